"""What is next for a table: entries of its log that are not in effect, and what each of them takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.migration import (
    AlterTable,
    Backfill,
    Migration,
    Repartition,
    RewriteTable,
    Step,
    migration,
)
from cdc_sync.core.revisions.actions import CastColumn, CreateTable
from cdc_sync.core.revisions.applied import Entry, Log
from cdc_sync.core.revisions.compile import WAS_PREFIX, compiled
from cdc_sync.core.revisions.fills import Converted, Fill, Value
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.revisions.squash import taken_as_done
from cdc_sync.core.schema.casts import always_converts, casts_values, keeps_apart
from cdc_sync.core.schema.changes import AddColumn, DropColumn, SchemaChange, UpdateColumnType
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.evolve import apply_all, left_neighbour
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning
from cdc_sync.core.schema.types import DataType, IntegerType, ListType, MapType, StructType
from cdc_sync.errors import RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the lake says of a table.

    Attributes:
        version: the entry that its columns are stamped with, None if none is.
        rows: the entry that its rows are complete for.
        columns: as its format shows them.
        fed: a pipeline writes it.
        partitioning: what its files are divided by.
        size: bytes of its files.
        properties: that a revision is to set, as they are now.
    """

    columns: InternalSchema
    version: int | None = None
    rows: int | None = None
    fed: bool = False
    partitioning: Partitioning = UNPARTITIONED
    size: int = 0
    properties: tuple[tuple[str, str | None], ...] = ()

    @property
    def is_left(self) -> bool:
        """Whether rows are left to be filled."""
        return self.version is not None and self.rows != self.version


@dataclass(frozen=True, slots=True)
class _At:
    """A schema, and its number."""

    number: int
    schema: InternalSchema


def next_entry(revision: Revision, log: Log, held: Held | None) -> Entry:
    """Return the entry by which a revision is applied to a table.

    Args:
        log: what is in effect in the table.
        held: what the lake says of it, None if it is not there.

    Raises:
        Unfit: if the revision does not fit the columns.
        RefusedError: if the table has some of the revisions that this one stands for.
    """
    done = taken_as_done(revision, log)
    if done is not None:
        return done
    found = None if held is None else held.columns
    made = compiled(revision.actions, log.schema, found)
    return Entry(
        table=revision.table,
        number=len(log.entries) + 1,
        revision=revision.id,
        digest=revision.digest,
        text=revision.text,
        changes=made.changes,
        schema=made.schema,
        computed=made.computed,
        created=isinstance(revision.actions[0], CreateTable),
        partitioning=made.partitioning,
        divided_before=UNPARTITIONED if held is None else held.partitioning,
        properties=made.properties,
        properties_before=() if held is None else held.properties,
        casts_to_null=any(isinstance(action, CastColumn) and action.lost == "null" for action in revision.actions),
    )


def undo_entry(log: Log, revision: Revision) -> Entry:
    """Return the entry that takes back the newest revision in effect; columns that stay keep their values.

    Raises:
        RefusedError: if nothing is to be taken back, or values would have to come back that are gone.
    """
    newest = log.in_effect[-1]
    at = newest.number - 1
    if revision.irreversible is not None:
        raise RefusedError(f"Cannot take {newest.revision} back: it is irreversible: {revision.irreversible}")
    if newest.replaces:
        raise RefusedError(f"Cannot take {newest.revision} back: it stands for {len(newest.replaces)} revisions")
    if not at:
        how = "made" if newest.created else "adopted"
        raise RefusedError(f"Cannot take {newest.revision} back: it {how} {log.table}, which stays as it is")
    now = log.entries[-1].schema
    were = {column.id for column in log.entries[at - 1].schema.columns}
    filled = next((now.column(id_).name for id_, _ in newest.computed if id_ in were), None)
    if filled is not None:
        raise RefusedError(f"Cannot take {newest.revision} back: it filled {filled}, and what was NULL is not known")
    before = replace(_without_finished(log, at), last_column_id=now.last_column_id)
    changes = diff(now, before)
    why = next((reason for change in changes for reason in (_lost_by(change, now, newest),) if reason), None)
    if why is not None:
        raise RefusedError(f"Cannot take {newest.revision} back: {why}")
    return replace(
        newest,
        number=len(log.entries) + 1,
        changes=changes,
        schema=before,
        undoes=True,
        created=False,
        partitioning=None if newest.partitioning is None else newest.divided_before,
        divided_before=newest.partitioning or UNPARTITIONED,
        properties=newest.properties_before,
        properties_before=newest.properties,
        computed=(),
        casts_to_null=False,
        finishes=False,
        replaces=(),
    )


def _without_finished(log: Log, number: int) -> InternalSchema:
    """Return the columns after an entry, less those that were on their way out then and are dropped by now."""
    schema = log.entries[number - 1].schema
    finished = {
        change.column.id
        for entry in log.entries[number:]
        if entry.finishes
        for change in entry.changes
        if isinstance(change, DropColumn)
    }
    stay = (it for it in schema.columns if it.id not in finished or not it.name.startswith(WAS_PREFIX))
    return replace(schema, columns=tuple(stay))


def _lost_by(change: SchemaChange, schema: InternalSchema, undone: Entry) -> str | None:
    """Say why a change does not lead back to the rows of before, None if it does."""
    match change:
        case DropColumn(column=column) if isinstance(dict(undone.computed).get(column.id), Converted):
            return f"rows written since have their values in the new {column.name} only; cast it back in a revision"
        case AddColumn(column=column):
            return f"it dropped column {column.name}, whose values are gone"
        case UpdateColumnType(id=id_, old=old, new=new) if not keeps_apart(new, old):
            return f"values of {schema.column(id_).name} may not be what they were before it"
        case _:
            return None


class Work(NamedTuple):
    """What brings a table to an entry of its log: first the columns, then the rows. Each part may be repeated.

    Attributes:
        columns: one commit; None if they are there already.
        fill: what rows get behind it; None if there is nothing to fill.
    """

    columns: Migration | None
    fill: Fill | None


def work(entry: Entry, before: Log, rows: int | None, capabilities: Capabilities) -> Work:
    """Return what brings a table to an entry.

    Args:
        before: what is in effect in the table; with the entry itself, if only its rows are not complete.
        rows: the entry that its rows are complete for.
    """
    head, number = _At(entry.number, entry.schema), entry.number
    if not before.entries and not entry.created:
        return Work(Migration(version=1, schema=head.schema, rows=1, steps=(AlterTable(steps=()),)), None)
    stamped = None if not before.entries else _At(len(before.entries), before.entries[-1].schema)
    complete = None if rows is None else _At(rows, before.entries[rows - 1].schema)
    whole = migration(stamped, complete, head, capabilities=capabilities, partitioning=entry.partitioning)
    values: dict[int, Value | None] = {
        column.id: None for step in whole.steps if isinstance(step, Backfill) for column in step.columns
    }
    values |= _computed(entry, before, rows)
    fill = Fill(number=number, schema=entry.schema, values=tuple(values.items())) if values else None
    other = tuple(_strict(step, entry) for step in whole.steps if not isinstance(step, Backfill))
    if entry.partitioning is not None and not entry.created:
        kind = capabilities.partitions or "hidden"
        # Before the stamp: whoever is killed between the two does it once more.
        other = (Repartition(before=entry.divided_before, after=entry.partitioning, partitions=kind), *other)
    rows_then = number if fill is None else rows
    columns = replace(whole, rows=rows_then, steps=other, properties=entry.properties) if other else None
    return Work(columns, fill)


def _strict(step: Step, entry: Entry) -> Step:
    """Return a step that loses no value, unless the revision says so: others may write one behind any look at them."""
    return replace(step, refuses_lost=not entry.casts_to_null) if isinstance(step, RewriteTable) else step


def unfinished(log: Log) -> tuple[Column, ...]:
    """Return the columns of a table that others have taken the place of."""
    columns = () if log.schema is None else log.schema.columns
    return tuple(column for column in columns if column.name.startswith(WAS_PREFIX))


def finish_entry(log: Log) -> Entry | None:
    """Return the entry that drops the columns which others have taken the place of, None if there are none.

    Args:
        log: of a table whose rows are complete.
    """
    newest, gone = log.entries[-1], unfinished(log)
    if not gone:
        return None
    schema = newest.schema
    changes = tuple(DropColumn(column=it, after=left_neighbour(schema, it.id)) for it in reversed(gone))
    return replace(
        newest,
        number=newest.number + 1,
        changes=changes,
        schema=apply_all(schema, changes),
        undoes=False,
        created=False,
        partitioning=None,
        computed=(),
        casts_to_null=False,
        finishes=True,
        replaces=(),
        properties=(),
        properties_before=(),
    )


def _computed(entry: Entry, before: Log, rows: int | None) -> dict[int, Value]:
    """Return what is to be computed for rows that are complete up to an entry; in a new table there are none."""
    there = {column.id for column in entry.schema.columns}
    due = () if rows is None else (*before.entries[rows:], entry)
    return {id_: it for item in due for id_, it in item.computed if id_ in there}


def needs_rows(entry: Entry) -> bool:
    """Whether an entry takes away, or writes anew, what rows may be left to be filled from, or fills an old column."""
    added = {change.column.id for change in entry.changes if isinstance(change, AddColumn)}
    fills = any(id_ not in added for id_, _ in entry.computed)
    return fills or any(isinstance(change, (DropColumn, UpdateColumnType)) for change in entry.changes)


def may_lose(entry: Entry, before: Log) -> tuple[tuple[Column, DataType], ...]:
    """Return the columns of which values may have no place in their new types, and those types.

    There are none where the revision says that such values become NULL.
    """
    schema = before.schema
    if schema is None or entry.casts_to_null:
        return ()
    casts = [(schema.column(it.id), it.new) for it in entry.changes if isinstance(it, UpdateColumnType)]
    casts += [
        (schema.column(it.id), entry.schema.column(id_).type) for id_, it in entry.computed if isinstance(it, Converted)
    ]
    return tuple((old, new) for old, new in casts if casts_values(old.type, new) and not always_converts(old.type, new))


def drift(known: InternalSchema, found: InternalSchema) -> str | None:
    """Say how a table's columns differ from those that its revisions left, None if they do not.

    Args:
        known: as the target holds them: names and types are the format's.
        found: as the format shows them.
    """
    expected = [(column.name, column.type) for column in known.columns]
    there = {column.name: column.type for column in found.columns}
    said = [f"{name} is gone" for name, _ in expected if name not in there]
    said += [f"{name} was added" for name in there if name not in dict(expected)]
    said += [f"{name} has another type" for name, type_ in expected if name in there and not _alike(type_, there[name])]
    return ", ".join(said) or None


def _alike(one: DataType, other: DataType) -> bool:
    """Tell whether two types are one to a format that has no integers of 8 and 16 bits."""
    match one, other:
        case IntegerType(), IntegerType():
            return max(one.bits, 32) == max(other.bits, 32)
        case ListType(), ListType():
            return _alike(one.element, other.element)
        case MapType(), MapType():
            return _alike(one.key, other.key) and _alike(one.value, other.value)
        case StructType(), StructType():
            there = {field.name: field.type for field in other.fields}
            known = {field.name: field.type for field in one.fields}
            return there.keys() == known.keys() and all(_alike(type_, there[name]) for name, type_ in known.items())
        case _:
            return one == other


def pending(revisions: Sequence[Revision], log: Log) -> tuple[Revision, ...]:
    """Return the revisions of a table that are not in effect, in their order."""
    done = {entry.revision for entry in log.in_effect}
    return tuple(revision for revision in revisions if revision.table == log.table and revision.id not in done)
