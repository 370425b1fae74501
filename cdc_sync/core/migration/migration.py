"""A migration: the ordered steps from one version of a table to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from cdc_sync.core.history.history import History
from cdc_sync.core.history.joined import Joined, staying_id
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.capabilities import ICEBERG, Capabilities, Partitions, SchemaEvolution
from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.schema.changes import SchemaChange
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.evolve import apply
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.types import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """Create the target with this schema and stamp the mode; nothing happens if it is there.

    Attributes:
        partitioning: what its files are divided by, which is stamped too; None where nothing is said of it.
        partitions: how the format divides them.
        evolution: how its columns are found in older files, where the format has more than one way.
    """

    schema: InternalSchema
    mode: Mode = "upsert"
    partitioning: Partitioning | None = None
    partitions: Partitions = "hidden"
    evolution: SchemaEvolution = "on_write"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinValues:
    """Bring the values of columns into the one that they turned out to be part of, in one commit, before they go.

    Of a table whose rows are found by a key, what events said since then is given with the step; else a row's value
    is that of the first of the columns that has one.

    Attributes:
        schema: of the target as it is before: the column that stays still has its old name there.
        into: id of the column that stays, a retired one.
        joined: ids of the columns that go.
        type: what the column that stays has afterwards; its own type can be widened to it in place.
        version: the version that joins them, which the rows are complete for afterwards.
    """

    schema: InternalSchema
    into: int
    joined: tuple[int, ...]
    type: DataType
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """Apply the changes in order, in one commit, and stamp the version in the same commit.

    `steps` pairs each change with the schema it is applied to, so that a name-addressed format can look names up.
    """

    steps: tuple[tuple[InternalSchema, SchemaChange], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteTable:
    """Apply the changes, convert every row and stamp the version, all in one commit; what was before is kept.

    Attributes:
        version: what the target is stamped with before, which `Target.roll_back` leads to.
        before: the columns it has before.
        steps: as in `AlterTable`.
        filled: new columns whose initial value the rows get on the way.
        refuses_lost: it fails at a value that has no place in its column's new type; else that is NULL, and whoever
            makes the step has kept such values before.
    """

    version: int
    before: InternalSchema
    steps: tuple[tuple[InternalSchema, SchemaChange], ...]
    filled: tuple[Column, ...]
    refuses_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Give the rows that are there the value each new column had for them: `Column.initial`, never None."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartition:
    """Divide the target in another way, and stamp that, in one commit.

    With hidden partitions no row is touched, and it holds for what is written from now on. With derived ones all rows
    are written anew, unless only the text changes.

    Attributes:
        before: what the target's files are divided by, which another writer may have changed meanwhile.
        after: the same afterwards, in the present names of the columns.
        partitions: how the format divides them.
    """

    before: Partitioning
    after: Partitioning
    partitions: Partitions = "hidden"

    @property
    def rewrites(self) -> bool:
        """Whether rows are written anew."""
        return self.partitions == "derived" and set(self.before.fields) != set(self.after.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRegime:
    """Write all rows anew as a table whose columns are found in another way, in one commit.

    Columns, stamp and progress are the same afterwards. What `Target.roll_back` led to is given up: it is of the regime
    before.
    """

    after: SchemaEvolution


Step: TypeAlias = CreateTable | JoinValues | AlterTable | RewriteTable | Backfill | Repartition | ChangeRegime


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """Steps that lead to version `version` with schema `schema`; no steps if the target is there already.

    Attributes:
        union: of a target that several source tables share, what is stamped beside the version: whose its columns are.
        rows: of a table that no events are written to, whose rows therefore have no marker: the version that they are
            complete for behind these steps, stamped beside the other.
        properties: of the table, set by its `AlterTable` in the same commit; None is one that goes.
    """

    version: int
    schema: InternalSchema
    steps: tuple[Step, ...]
    union: str | None = None
    rows: int | None = None
    properties: tuple[tuple[str, str | None], ...] = ()


class Numbered(Protocol):
    """A schema with a number: a version, or a step of a revision."""

    @property
    def number(self) -> int:
        """What it is stamped as."""
        ...

    @property
    def schema(self) -> InternalSchema:
        """Its columns."""
        ...


def migration(
    stamped: Numbered | None,
    rows_at: Numbered | None,
    head: Numbered,
    *,
    capabilities: Capabilities = ICEBERG,
    mode: Mode = "upsert",
    joined: Sequence[Joined] = (),
    partitioning: Partitioning | None = None,
) -> Migration:
    """Work out the steps for one target.

    A changelog has no key and its rows stay what their events said: its key never changes, nothing is filled in.

    Args:
        stamped: the version whose columns the target has, None if there is no target yet.
        rows_at: the version its rows are complete for: an interrupted migration leaves columns without their
            backfill. None if the target holds no rows of ours.
        head: where to go; where a version on the way rewrites the rows, go there by `stages`.
        capabilities: what the target can change in place.
        mode: what the target holds.
        joined: every join of the table's history, oldest first.
        partitioning: of a target that is not there yet.

    Law: after the steps, `migration(head, head, head)` has none.
    """
    if stamped is None:
        create = CreateTable(
            schema=head.schema,
            mode=mode,
            partitioning=partitioning,
            partitions=capabilities.partitions or "hidden",
            evolution=capabilities.evolution,
        )
        return Migration(version=head.number, schema=head.schema, steps=(create,))
    steps: list[Step] = []
    if rows_at is not None:
        steps += _joins(stamped.schema, head.schema, joined)
    filled: tuple[Column, ...] = ()
    if rows_at is not None and mode == "upsert":
        filled = tuple(
            column
            for column in _added(rows_at.schema, head.schema)
            if column.initial is not None and not column.retired
        )
    changes = diff(stamped.schema, head.schema)
    altered = with_schemas(stamped.schema, changes)
    if rows_at is not None and rewrites(changes, capabilities, head.schema, mode):
        rewrite = RewriteTable(version=stamped.number, before=stamped.schema, steps=altered, filled=filled)
        return Migration(version=head.number, schema=head.schema, steps=(*steps, rewrite))
    if stamped.number != head.number:
        # The stamp must move even when no column does, so an empty AlterTable is a step too.
        steps.append(AlterTable(steps=altered))
    if filled:
        steps.append(Backfill(columns=filled))
    return Migration(version=head.number, schema=head.schema, steps=tuple(steps))


def stages(history: History, stamped: int | None, capabilities: Capabilities) -> tuple[Version, ...]:
    """Return the versions that a target has to be brought to, one after the other, the newest one last.

    A version that rewrites the rows is reached from the one right before it, so that values take the same way whatever
    batches there were.
    """
    found: dict[int, Version] = {}
    for version in history.versions[stamped:] if stamped is not None else ():
        if rewrites(version.changes, capabilities, version.schema):
            found |= {item.number: item for item in (history.version(version.number - 1), version)}
    found[history.head.number] = history.head
    return tuple(found[number] for number in sorted(found))


def _joins(before: InternalSchema, after: InternalSchema, joined: Sequence[Joined]) -> Iterator[JoinValues]:
    """Return a step for each column that takes in others which the target still has."""
    held, staying = {column.id for column in before.columns}, {column.id for column in after.columns}
    parts: dict[int, list[Joined]] = {}
    for item in joined:
        if item.id in held:
            parts.setdefault(staying_id(item.id, joined), []).append(item)
    for into, items in sorted(parts.items()):
        if into in held & staying:
            yield JoinValues(
                schema=before,
                into=into,
                joined=tuple(item.id for item in items),
                type=after.column(into).type,
                version=max(item.version for item in items),
            )


def with_schemas(
    schema: InternalSchema, changes: tuple[SchemaChange, ...]
) -> tuple[tuple[InternalSchema, SchemaChange], ...]:
    """Pair each change with the schema that it is applied to."""
    paired = []
    for change in changes:
        paired.append((schema, change))
        schema = apply(schema, change)
    return tuple(paired)


def _added(before: InternalSchema, after: InternalSchema) -> tuple[Column, ...]:
    known = {column.id for column in before.columns}
    return tuple(column for column in after.columns if column.id not in known)
