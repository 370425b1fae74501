"""A migration: the ordered steps from one version of a table to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cdc_sync.history.revision import Version
from cdc_sync.schema.changes import AddColumn, SchemaChange
from cdc_sync.schema.diff import diff
from cdc_sync.schema.evolve import apply
from cdc_sync.schema.internal import Column, InternalSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """Create the target with this schema; nothing happens if it is there."""

    schema: InternalSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """Apply the changes in order, in one commit, and stamp the version in the same commit.

    `steps` pairs each change with the schema it is applied to, so that a name-addressed format can look names up.
    """

    steps: tuple[tuple[InternalSchema, SchemaChange], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Give the rows that are there the value each new column had for them: `Column.initial`, never None."""

    columns: tuple[Column, ...]


Step: TypeAlias = CreateTable | AlterTable | Backfill


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """Steps that lead to version `version` with schema `schema`; no steps if the target is there already."""

    version: int
    schema: InternalSchema
    steps: tuple[Step, ...]


def migration(stamped: Version | None, rows_at: Version | None, head: Version) -> Migration:
    """Work out the steps for one target.

    Args:
        stamped: the version whose columns the target has, None if there is no target yet.
        rows_at: the version its rows are complete for: an interrupted migration leaves columns without their
            backfill. None if the target holds no rows of ours.
        head: where to go.

    Law: after the steps, `migration(head, head, head)` has none.
    """
    if stamped is None:
        return Migration(version=head.number, schema=head.schema, steps=(CreateTable(schema=head.schema),))
    steps: list[Step] = []
    if stamped.number != head.number:
        # The stamp must move even when no column does, so an empty AlterTable is a step too.
        steps.append(AlterTable(steps=_with_schemas(stamped.schema, diff(stamped.schema, head.schema))))
    if rows_at is not None:
        filled = tuple(
            column
            for column in _added(rows_at.schema, head.schema)
            if column.initial is not None and not column.retired
        )
        if filled:
            steps.append(Backfill(columns=filled))
    return Migration(version=head.number, schema=head.schema, steps=tuple(steps))


def _with_schemas(
    schema: InternalSchema, changes: tuple[SchemaChange, ...]
) -> tuple[tuple[InternalSchema, SchemaChange], ...]:
    paired = []
    for change in changes:
        paired.append((schema, change))
        schema = apply(schema, change)
    return tuple(paired)


def _added(before: InternalSchema, after: InternalSchema) -> tuple[Column, ...]:
    return tuple(change.column for change in diff(before, after) if isinstance(change, AddColumn))
