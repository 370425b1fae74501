"""Applying one change to a schema, and turning a change around."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from typing_extensions import assert_never

from cdc_sync.core.schema.changes import (
    AddColumn,
    ChangePrimaryKey,
    DropColumn,
    JoinColumn,
    MoveColumn,
    RenameColumn,
    RetireColumn,
    ReviveColumn,
    SchemaChange,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
)
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import nested_ids
from cdc_sync.errors import SchemaError


def apply(schema: InternalSchema, change: SchemaChange) -> InternalSchema:
    """Return the schema after one change.

    `last_column_id` only ever rises: it covers the ids of every column and nested field that was added.

    Raises:
        SchemaError: if the change does not start from this schema (an `old` value differs, a column is missing or
            there already), or drops a key column.
    """
    match change:
        case AddColumn(column=column, after=after):
            last_column_id = max(schema.last_column_id, column.id, *nested_ids(column.type))
            return replace(schema, columns=_inserted(schema.columns, column, after), last_column_id=last_column_id)
        case DropColumn(column=column, after=after) | JoinColumn(column=column, after=after):
            _check(change, schema.column(column.id), column)
            _check(change, left_neighbour(schema, column.id), after)
            if column.id in schema.primary_key:
                raise SchemaError(f"Cannot drop column {column.name!r}: it is part of the primary key")
            if isinstance(change, JoinColumn):
                into = schema.column(change.into)
                _check(change, (into.name, into.retired), (change.into_name, True))
            return replace(schema, columns=_without(schema, column.id))
        case MoveColumn(id=id_, old_after=old_after, new_after=new_after):
            _check(change, left_neighbour(schema, id_), old_after)
            return replace(schema, columns=_inserted(_without(schema, id_), schema.column(id_), new_after))
        case ChangePrimaryKey(old=old, new=new):
            _check(change, schema.primary_key, old)
            return replace(schema, primary_key=new)
        case _:
            column = schema.column(change.id)
            changed = _changed(column, change)
            last_column_id = max(schema.last_column_id, *nested_ids(changed.type), 0)
            place = next(index for index, other in enumerate(schema.columns) if other is column)
            columns = (*schema.columns[:place], changed, *schema.columns[place + 1 :])
            return replace(schema, columns=columns, last_column_id=last_column_id)


def apply_all(schema: InternalSchema, changes: Iterable[SchemaChange]) -> InternalSchema:
    """Apply changes one after the other.

    Raises:
        SchemaError: if one of them does not fit.
    """
    for change in changes:
        schema = apply(schema, change)
    return schema


def left_neighbour(schema: InternalSchema, id_: int) -> int | None:
    """Return the id of the column directly before, None for the first.

    Raises:
        SchemaError: if there is no column with this id.
    """
    left = None
    for column in schema.columns:
        if column.id == id_:
            return left
        left = column.id
    raise SchemaError(f"Cannot find column: no column has id {id_}")


def _changed(
    column: Column,
    change: RenameColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnDefault
    | RetireColumn
    | ReviveColumn,
) -> Column:
    match change:
        case RenameColumn(old=old, new=new):
            _check(change, column.name, old)
            return replace(column, name=new)
        case UpdateColumnType(old=old_type, new=new_type):
            _check(change, column.type, old_type)
            return replace(column, type=new_type)
        case UpdateColumnNullability(old=old_optional, new=new_optional):
            _check(change, column.optional, old_optional)
            return replace(column, optional=new_optional)
        case UpdateColumnComment(old=old_comment, new=new_comment):
            _check(change, column.comment, old_comment)
            return replace(column, comment=new_comment)
        case UpdateColumnDefault(old=old_default, new=new_default):
            _check(change, column.default, old_default)
            return replace(column, default=new_default)
        case RetireColumn(name=name):
            _check(change, (column.name, column.retired), (name, False))
            return replace(column, retired=True)
        case ReviveColumn(name=name):
            _check(change, (column.name, column.retired), (name, True))
            return replace(column, retired=False)
        case _:
            assert_never(change)


def _check(change: SchemaChange, found: object, expected: object) -> None:
    """A change carries what it starts from, so that it is never applied to the wrong version."""
    if found != expected:
        raise SchemaError(f"Cannot apply {change}: the schema has {found!r} where the change expects {expected!r}")


def _without(schema: InternalSchema, id_: int) -> tuple[Column, ...]:
    return tuple(column for column in schema.columns if column.id != id_)


def _inserted(columns: tuple[Column, ...], column: Column, after: int | None) -> tuple[Column, ...]:
    if after is None:
        return (column, *columns)
    for index, neighbour in enumerate(columns, start=1):
        if neighbour.id == after:
            return (*columns[:index], column, *columns[index:])
    raise SchemaError(f"Cannot place column {column.name!r}: no column has id {after}")
