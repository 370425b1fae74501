"""From actions, which name columns, to changes of a schema, which know them by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from typing_extensions import assert_never

from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.revisions.actions import (
    Action,
    AddColumn,
    Adopt,
    CastColumn,
    ColumnAction,
    CommentColumn,
    CreateTable,
    DropColumn,
    FillColumn,
    MoveColumn,
    NewColumn,
    PartitionBy,
    Place,
    RenameColumn,
    SetProperties,
)
from cdc_sync.core.revisions.fills import Converted, Value
from cdc_sync.core.revisions.inside import change_inside, check_cast, parse_path
from cdc_sync.core.schema import changes
from cdc_sync.core.schema.changes import SchemaChange
from cdc_sync.core.schema.derive import with_ids
from cdc_sync.core.schema.evolve import apply, apply_all, left_neighbour
from cdc_sync.core.schema.expressions import parse_expression
from cdc_sync.core.schema.internal import EMPTY_SCHEMA, Column, InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning, field_text
from cdc_sync.core.schema.transforms import fits
from cdc_sync.core.schema.types import NESTED, Default
from cdc_sync.errors import SchemaError

WAS_PREFIX = "__cdc_sync_was_"
"""What the name of a column begins with that another one has taken the place of; its id follows."""


class Unfit(Exception):
    """An action that the table's columns do not allow; the message continues "it ".

    Args:
        index: which of the revision's actions.
    """

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


class Compiled(NamedTuple):
    """What a revision makes of a table.

    Attributes:
        schema: behind it.
        changes: that lead there; none in a table's first revision.
        computed: by the ids of columns, what the rows that are there get in them, in the order of the actions.
        partitioning: what the table's files are to be divided by; None if nothing is said of it.
        properties: of the table, as `SetProperties` has them.
    """

    schema: InternalSchema
    changes: tuple[SchemaChange, ...] = ()
    computed: tuple[tuple[int, Value], ...] = ()
    partitioning: Partitioning | None = None
    properties: tuple[tuple[str, str | None], ...] = ()


def compiled(actions: Sequence[Action], before: InternalSchema | None, found: InternalSchema | None = None) -> Compiled:
    """Work out what actions make of a table.

    Args:
        before: of the table, None if no revision was applied to it.
        found: of a table that is to be adopted, as the lake has it.

    Raises:
        Unfit: if an action names a column that is not there, or whose name is taken, or asks for what cannot be.
    """
    first = actions[0]
    if before is None:
        return Compiled(
            _first(actions, found), partitioning=first.partitioning if isinstance(first, CreateTable) else None
        )
    if isinstance(first, PartitionBy) and len(actions) == 1:
        _check_divides(first.partitioning, before)
        return Compiled(before, partitioning=first.partitioning)
    if isinstance(first, SetProperties) and len(actions) == 1:
        return Compiled(before, properties=first.values)
    schema, made = before, list[SchemaChange]()
    computed: dict[int, tuple[int, Value]] = {}
    for index, action in enumerate(actions):
        if isinstance(action, (CreateTable, Adopt)):
            raise Unfit("has a table already, which an earlier revision made or adopted", index)
        if isinstance(action, (PartitionBy, SetProperties)):
            raise Unfit("stands beside other actions; partition_by and properties are alone in their revisions", index)
        try:
            if isinstance(action, FillColumn):
                column = _held(action.name, schema)
                computed[column.id] = index, parse_expression(action.sql, _own(schema))
                continue
            if isinstance(action, AddColumn) and action.fill_sql is not None:
                computed[schema.last_column_id + 1] = index, parse_expression(action.fill_sql, _own(schema))
            if isinstance(action, CastColumn) and action.way == "expand" and change_inside(action, schema) is None:
                value = Converted(id=_held(action.name, schema).id, refuses_lost=action.lost == "refuse")
                computed[schema.last_column_id + 1] = index, value
                steps = _expanded(action, schema)
            else:
                steps = (_change(action, schema),)
            schema = apply_all(schema, steps)
        except SchemaError as error:
            raise Unfit(str(error), index) from None
        made += steps
    for index, expression in computed.values():
        _check_stays(expression, made, index)
    there = {column.id for column in schema.columns}
    fills = tuple((id_, expression) for id_, (_, expression) in computed.items() if id_ in there)
    return Compiled(schema, tuple(made), fills)


def _own(schema: InternalSchema) -> InternalSchema:
    """Return the columns of a table without those that others have taken the place of."""
    columns = tuple(column for column in schema.columns if not column.name.startswith(WAS_PREFIX))
    return replace(schema, columns=columns)


def _check_stays(expression: Value, made: Sequence[SchemaChange], index: int) -> None:
    """Rows are filled behind all changes: what is read has to be there by then, as it was."""
    for change in made:
        match change:
            case changes.DropColumn(column=column) if column.id in expression.ids:
                raise Unfit(
                    f"fills from column {column.name!r}, which the revision drops; drop it in the next one", index
                )
            case changes.UpdateColumnType(id=id_) if id_ in expression.ids:
                raise Unfit("fills from a column whose type the revision changes; change it in another one", index)
            case _:
                pass


def _first(actions: Sequence[Action], found: InternalSchema | None) -> InternalSchema:
    match actions[0]:
        case CreateTable(columns=columns, partitioning=partitioning):
            schema = new_schema(columns)
            _check_divides(partitioning, schema)
            return schema
        case Adopt(columns=wanted) if found is not None:
            _check_found(wanted, found)
            return found
        case Adopt():
            raise Unfit("names a table that the lake does not have")
        case _:
            raise Unfit("is the first of its table: create_table or adopt comes before")


def new_schema(columns: Sequence[NewColumn]) -> InternalSchema:
    """Return the schema of a table that has these columns from the start; ids are given in their order."""
    schema = EMPTY_SCHEMA
    for column in columns:
        last = schema.columns[-1].id if schema.columns else None
        schema = apply(schema, changes.AddColumn(column=_column(column, schema), after=last))
    return schema


def _check_divides(partitioning: Partitioning, schema: InternalSchema) -> None:
    for item in partitioning.fields:
        column = schema.find(item.column)
        if column is None:
            raise Unfit(f"is partitioned by {field_text(item)}, and there is no column {item.column!r}")
        if not fits(item, column.type):
            raise Unfit(
                f"is partitioned by {field_text(item)}, which a column of type {type_text(column.type)} cannot be"
            )


def _check_found(wanted: Sequence[NewColumn], found: InternalSchema) -> None:
    for column in wanted:
        held = found.find(column.name)
        if held is None:
            names = ", ".join(item.name for item in found.columns)
            raise Unfit(f"expects a column {column.name!r}; the table has {names}")
        if type_text(held.type) != type_text(column.type):
            raise Unfit(f"expects {column.name!r} to be {type_text(column.type)}; it is {type_text(held.type)}")


def _column(new: NewColumn, schema: InternalSchema, initial: Default = None) -> Column:
    id_ = schema.last_column_id + 1
    return Column(id=id_, name=new.name, type=with_ids(new.type, id_), comment=new.comment, initial=initial)


def _expanded(action: CastColumn, schema: InternalSchema) -> tuple[SchemaChange, ...]:
    """Return what puts a new column in the place of an old one, which stays, behind all others, until rows are filled.

    Whatever reads rows by their places finds the new one where the old one was.
    """
    old = _held(action.name, schema)
    if isinstance(old.type, NESTED) or isinstance(action.type, NESTED):
        raise SchemaError(f"expands {old.name!r}, which is a list, map or struct; say way: exchange")
    check_cast(old, action.type)
    left = left_neighbour(schema, old.id)
    last = schema.columns[-1].id
    new = NewColumn(name=old.name, type=action.type, comment=old.comment)
    renamed = changes.RenameColumn(id=old.id, old=old.name, new=f"{WAS_PREFIX}{old.id}")
    added = changes.AddColumn(column=_column(new, schema), after=left)
    moved = changes.MoveColumn(id=old.id, old_after=added.column.id, new_after=last)
    return (renamed, added) if old.id == last else (renamed, added, moved)


def _change(action: ColumnAction, schema: InternalSchema) -> SchemaChange:
    inside = change_inside(action, schema)
    if inside is not None:
        return inside
    match action:
        case AddColumn(column=new, place=place, fill=fill):
            new = replace(new, name=_plain(new.name))
            _check_free(new.name, schema)
            return changes.AddColumn(column=_column(new, schema, fill), after=_after(place, schema))
        case DropColumn(name=name):
            column = _held(name, schema)
            if len(schema.columns) == 1:
                raise SchemaError(f"drops {name!r}, the only column; a table without columns cannot be")
            return changes.DropColumn(column=column, after=left_neighbour(schema, column.id))
        case RenameColumn(old=old, new=name):
            column = _held(old, schema)
            new_name = _plain(name)
            _check_free(new_name, schema, but=column.name)
            return changes.RenameColumn(id=column.id, old=column.name, new=new_name)
        case CastColumn(name=name, type=type_):
            column = _held(name, schema)
            after = with_ids(type_, schema.last_column_id, column.type)
            check_cast(column, after)
            return changes.UpdateColumnType(id=column.id, old=column.type, new=after)
        case MoveColumn(name=name, place=place):
            column = _held(name, schema)
            others = InternalSchema(
                columns=tuple(item for item in schema.columns if item is not column),
                primary_key=(),
                last_column_id=schema.last_column_id,
            )
            left = left_neighbour(schema, column.id)
            return changes.MoveColumn(id=column.id, old_after=left, new_after=_after(place, others))
        case CommentColumn(name=name, comment=comment):
            column = _held(name, schema)
            return changes.UpdateColumnComment(id=column.id, old=column.comment, new=comment)
        case _:
            assert_never(action)


def _after(place: Place, schema: InternalSchema) -> int | None:
    if place.first or not schema.columns:
        return None
    return schema.columns[-1].id if place.after is None else _held(place.after, schema).id


def _plain(name: str) -> str:
    """Return the name of a new column, without quotes."""
    parts = parse_path(name)
    if len(parts) > 1:
        raise SchemaError(f"names a column {name!r}; a name with a dot is quoted by `")
    if parts[0].startswith(WAS_PREFIX):
        raise SchemaError(f"names {parts[0]!r}, which cdc_sync keeps; `cdc-sync migrate finish` drops it")
    return parts[0]


def _held(name: str, schema: InternalSchema) -> Column:
    found = schema.find(name)
    if found is None or name.startswith(WAS_PREFIX):
        found = schema.find(_plain(name))
    if found is None:
        names = ", ".join(column.name for column in schema.columns)
        raise SchemaError(f"names column {name!r}, which the table does not have by then; it has {names}")
    return found


def _check_free(name: str, schema: InternalSchema, but: str | None = None) -> None:
    """Engines do not tell names apart by case."""
    taken = (column.name for column in schema.columns if column.name != but)
    other = next((held for held in taken if held.casefold() == name.casefold()), None)
    if other is not None:
        raise SchemaError(f"gives the name {name!r}, and the table has {other!r}")
