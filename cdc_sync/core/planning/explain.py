"""What is done to a target, in the words of SQL: the steps that `run` executes, put so that people can judge them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from typing_extensions import assert_never

from cdc_sync.core.migration.derived import derived_columns, derived_name
from cdc_sync.core.migration.migration import (
    AlterTable,
    Backfill,
    ChangeRegime,
    CreateTable,
    JoinValues,
    Repartition,
    RewriteTable,
    Step,
)
from cdc_sync.core.migration.modes import METADATA
from cdc_sync.core.migration.namerules import ANY_NAME
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.wording import literal_text, type_text
from cdc_sync.core.revisions.fills import Converted, Fill, Value
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
from cdc_sync.core.schema.expressions import Expression
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.members import (
    AddMember,
    DropMember,
    MemberChange,
    MoveMember,
    Path,
    RenameMember,
    UpdateKeyType,
    UpdatePartType,
    member_changes,
)
from cdc_sync.core.schema.partitioning import Partitioning, field_text

Cost: TypeAlias = Literal["metadata", "rewrite"]
"""`metadata`: one small commit, whatever the table's size. `rewrite`: rows are read and written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyTable:
    """All rows go, because the source's were truncated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollBack:
    """Rows and columns go back to what they were before the last rewrite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable:
    """The table goes, because the source's was dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTable:
    """The table gets another name, because the source's was dropped."""

    into: TargetName


DraftedStep: TypeAlias = Step | EmptyTable | RollBack | DropTable | ArchiveTable
"""All that a run does to a target, but for writing rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedStep:
    """One commit.

    Attributes:
        kind: the step's type, for machines: `CreateTable`, `AlterTable`, `RewriteTable`, `Backfill`, `JoinValues`,
            `Repartition`, `ChangeRegime`, `EmptyTable`, `RollBack`, `DropTable`, `ArchiveTable`.
        cost: what it takes.
        statements: SQL that would do the same; none where only the version is stamped.
    """

    kind: str
    cost: Cost
    statements: tuple[str, ...]


def explain(step: DraftedStep, target: TargetName) -> ExplainedStep:
    """Put one step in words."""
    table = _table(target)
    cost: Cost = "metadata"
    match step:
        case CreateTable(schema=schema, mode=mode):
            columns = [f"{_quoted(column.name)} {type_text(column.type)}" for column in schema.columns]
            columns += [f"{name} {type_text(type_)}" for name, type_ in METADATA] if mode == "append" else []
            derived, divided = _divided(step)
            statements: Iterable[str] = [f"CREATE TABLE {table} ({', '.join((*columns, *derived))}){divided}"]
        case AlterTable(steps=steps):
            statements = _altered(table, steps)
        case RewriteTable(steps=steps):
            cost = "rewrite"
            statements = _altered(table, steps)
        case Backfill(columns=filled):
            cost = "rewrite"
            statements = [_fill(table, {_quoted(column.name): literal_text(column.initial) for column in filled})]
        case JoinValues(schema=schema, into=into, joined=joined):
            cost = "rewrite"
            name = _quoted(schema.column(into).name)
            others = ", ".join(_quoted(schema.column(id_).name) for id_ in joined)
            statements = [f"UPDATE {table} SET {name} = <what events said of {others} since>"]
        case Repartition(partitions="derived", after=after):
            cost = "rewrite" if step.rewrites else "metadata"
            names = ", ".join(_quoted(derived_name(item, ANY_NAME)) for item in after.fields)
            statements = [f"INSERT OVERWRITE TABLE {table} <all rows, partitioned by ({names})>"] * step.rewrites
        case Repartition(before=before, after=after):
            clauses = (*_partition_fields("DROP", before, after), *_partition_fields("ADD", after, before))
            statements = [f"ALTER TABLE {table} {clause}" for clause in clauses]
        case ChangeRegime(after=after_regime):
            cost = "rewrite"
            statements = [f"INSERT OVERWRITE TABLE {table} <all rows, for schema_evolution: {after_regime}>"]
        case EmptyTable():
            statements = [f"DELETE FROM {table}"]
        case DropTable():
            statements = [f"DROP TABLE {table}"]
        case ArchiveTable(into=into):
            statements = [f"ALTER TABLE {table} RENAME TO {_quoted(into.namespace)}.{_quoted(into.name)}"]
        case RollBack():
            statements = [f"RESTORE TABLE {table} TO VERSION AS OF <before the last rewrite>"]
        case _:
            assert_never(step)
    return ExplainedStep(kind=type(step).__name__, cost=cost, statements=tuple(statements))


def _table(target: TargetName) -> str:
    return f"{_quoted(target.namespace)}.{_quoted(target.name)}"


def explain_fill(fill: Fill, target: TargetName) -> tuple[str, ...]:
    """Return SQL that would fill rows as a revision has them filled; `fill` is in the target's names."""
    table = _table(target)
    columns = ((fill.schema.column(id_), value) for id_, value in fill.values)
    return tuple(
        _fill(table, {_quoted(column.name): _filled_from(value, column, fill.schema)}) for column, value in columns
    )


def explain_properties(properties: Sequence[tuple[str, str | None]], target: TargetName) -> tuple[str, ...]:
    """Return SQL that sets properties of a table, and takes away those that are None."""
    table = _table(target)
    given = ", ".join(
        f"{literal_text(name)} = {literal_text(value)}" for name, value in properties if value is not None
    )
    gone = ", ".join(literal_text(name) for name, value in properties if value is None)
    found = (f"SET TBLPROPERTIES ({given})" if given else "", f"UNSET TBLPROPERTIES ({gone})" if gone else "")
    return tuple(f"ALTER TABLE {table} {clause}" for clause in found if clause)


def _filled_from(value: Value | None, column: Column, schema: InternalSchema) -> str:
    match value:
        case None:
            return literal_text(column.initial)
        case Expression():
            return value.sql(schema)
        case Converted(id=id_):
            return f"CAST({_quoted(schema.column(id_).name)} AS {type_text(column.type)})"


def _fill(table: str, values: Mapping[str, str]) -> str:
    """Return the UPDATE of columns that are NULL in the rows to fill; names and values are SQL."""
    assigned = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"UPDATE {table} SET {assigned} WHERE {' AND '.join(f'{name} IS NULL' for name in values)}"


def _divided(step: CreateTable) -> tuple[tuple[str, ...], str]:
    """Return the columns that a new table is partitioned by beside the source's, and the clause that says so."""
    partitioning = step.partitioning
    if partitioning is None or not partitioning.fields:
        return (), ""
    if step.partitions == "hidden":
        return (), f" PARTITIONED BY ({partitioning})"
    derived = derived_columns(partitioning, step.schema, step.mode, ANY_NAME)
    names = ", ".join(_quoted(column.name) for column in derived)
    return tuple(f"{_quoted(column.name)} {type_text(column.type)}" for column in derived), f" PARTITIONED BY ({names})"


def _altered(table: str, steps: Iterable[tuple[InternalSchema, SchemaChange]]) -> Iterable[str]:
    return [f"ALTER TABLE {table} {clause}" for before, change in steps for clause in _clauses(before, change)]


def _partition_fields(verb: str, of: Partitioning, without: Partitioning) -> Iterable[str]:
    return [f"{verb} PARTITION FIELD {field_text(item)}" for item in of.fields if item not in without.fields]


def _inside(column: str, change: MemberChange) -> str:
    """Return what follows ALTER TABLE for one change inside a column, or of its whole type."""

    def named(path: Path) -> str:
        return ".".join(_quoted(name) for name in (column, *path))

    match change:
        case AddMember(parent=parent, field=field, after=after):
            return f"ADD COLUMN {named((*parent, field.name))} {type_text(field.type)} {_behind(after)}"
        case DropMember(parent=parent, field=field):
            return f"DROP COLUMN {named((*parent, field.name))}"
        case RenameMember(parent=parent, old=old, new=new):
            return f"RENAME COLUMN {named((*parent, old))} TO {_quoted(new)}"
        case UpdatePartType(path=path, new=type_) | UpdateKeyType(path=path, new=type_):
            return f"ALTER COLUMN {named(path)} TYPE {type_text(type_)}"
        case MoveMember(parent=parent, name=name, after=after):
            return f"ALTER COLUMN {named((*parent, name))} {_behind(after)}"
        case _:
            assert_never(change)


def _clauses(before: InternalSchema, change: SchemaChange) -> tuple[str, ...]:
    """Return what follows ALTER TABLE, once for each change inside a column; nothing for what is only recorded."""
    match change:
        case AddColumn(column=column, after=after):
            return (f"ADD COLUMN {_quoted(column.name)} {type_text(column.type)} {_place(before, after)}",)
        case DropColumn(column=column) | JoinColumn(column=column):
            return (f"DROP COLUMN {_quoted(column.name)}",)
        case RenameColumn(old=old, new=new):
            return (f"RENAME COLUMN {_quoted(old)} TO {_quoted(new)}",)
        case UpdateColumnType(id=id_, old=old_type, new=new_type):
            name = before.column(id_).name
            return tuple(_inside(name, part) for part in member_changes(old_type, new_type))
        case UpdateColumnComment(id=id_, new=comment):
            return (f"ALTER COLUMN {_quoted(before.column(id_).name)} COMMENT {literal_text(comment)}",)
        case MoveColumn(id=id_, new_after=after):
            return (f"ALTER COLUMN {_quoted(before.column(id_).name)} {_place(before, after)}",)
        case UpdateColumnNullability() | UpdateColumnDefault() | RetireColumn() | ReviveColumn() | ChangePrimaryKey():
            return ()
        case _:
            assert_never(change)


def _place(before: InternalSchema, after: int | None) -> str:
    return _behind(None if after is None else before.column(after).name)


def _behind(name: str | None) -> str:
    return "FIRST" if name is None else f"AFTER {_quoted(name)}"


def _quoted(name: str) -> str:
    """Return a name as people write it: quoted only where it has to be."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else quoted(name)
