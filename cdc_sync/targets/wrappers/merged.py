"""One source table's part of a target that several share, as a target of its own.

What is planned, migrated and written for a table knows nothing of the others: it has its own columns, version and
progress here. The shared table has the union of all columns and one more, which says what table a row is of; `sharing`
decides what a change means for it. Its stamp says whose columns are which, its marker how far each table has read, and
both are in the commits themselves, so that what holds for the target of one table holds here too.

A change that concerns rows takes three commits: the columns that come, with the share on its way; the rows, with the
share's marker at the new version; the columns that nobody has any more. Each is skipped when it is in effect.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.maintenance import Chores, Holdings, Maintained, Upkeep
from cdc_sync.core.migration.migration import (
    AlterTable,
    Backfill,
    ChangeRegime,
    CreateTable,
    JoinValues,
    Migration,
    Repartition,
    RewriteTable,
    with_schemas,
)
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.model.shared_schema import Share, Union, empty_union, parse_union
from cdc_sync.core.planning.shared_table import evolved, settled, without
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import without_ids
from cdc_sync.errors import ShareRefused, TargetError, UnfitTarget
from cdc_sync.spark.columns import CREATED, DELETED, unchanged_column, value_column
from cdc_sync.spark.kept import Projection, kept
from cdc_sync.spark.types import to_spark
from cdc_sync.spark.unchanged import FORGOTTEN
from cdc_sync.targets.protocol import Batch, Commit, RowsOf, Shareable, Target, check_held, same_offsets
from cdc_sync.targets.wrappers.dry_run import DraftTarget


class SharedTables:
    """The tables of a target as each source table knows its own. Thread-safe."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._shared: dict[TargetName, SharedTable] = {}
        self._lock = threading.Lock()

    def target_of(self, route: Route) -> Target:
        """Return where a source table's rows go: the target, or the table's part of one that it shares."""
        target, merge = self._target, route.merge
        if merge is None:
            return target
        if isinstance(target, DraftTarget):
            return target.of(lambda real: SharedTable(cast(Shareable, real), merge).share(route.table))
        with self._lock:
            # A configuration that merges is refused for formats that cannot.
            made = SharedTable(cast(Shareable, target), merge)
            return self._shared.setdefault(route.target, made).share(route.table)


class SharedTable:
    """What the source tables of one target have in common. Thread-safe.

    Commits of one process wait for each other: each carries what all the others have read.
    """

    def __init__(self, target: Shareable, source_column: str) -> None:
        self.target = target
        self.source_column = source_column
        self.lock = threading.RLock()

    def share(self, table: TableId) -> MergedTarget:
        """Return the target as one source table knows it."""
        return MergedTarget(self, table)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mine:
    """A shared table, and what one source table has of it; no share if there is none yet.

    Attributes:
        progress: how far the share has read, None if it has not written anything.
    """

    state: TargetState
    union: Union
    share: Share | None
    progress: Progress | None

    @property
    def is_done(self) -> bool:
        """Whether the share's rows are those of the version that it is on its way to."""
        if self.share is None or self.share.coming is None or self.progress is None:
            return True
        return self.progress.version >= self.share.coming.version


class MergedTarget:
    """The `Target` of one source table in a shared table. Thread-safe."""

    def __init__(self, shared: SharedTable, table: TableId) -> None:
        self._shared = shared
        self._target = shared.target
        self._table = table

    @property
    def capabilities(self) -> Capabilities:
        """Those of the format."""
        return self._target.capabilities

    def state(self, name: TargetName) -> TargetState | None:
        """Return what is known of the share; None if there is none, whatever else is in the table."""
        mine = self._find(name)
        if mine is None or mine.share is None:
            return None
        share = mine.share.arrived if mine.is_done else mine.share
        return TargetState(version=share.version, progress=mine.progress, rows=mine.state.rows, size=mine.state.size)

    def migrate(
        self, name: TargetName, migration: Migration, progress: Progress, said: Mapping[int, DataFrame] | None = None
    ) -> None:
        """Carry out the steps for the rows of this source table, and leave those of all others as they are.

        Raises:
            ShareRefused: if the change concerns rows of others.
        """
        with self._shared.lock:
            for step in migration.steps:
                match step:
                    case CreateTable() | AlterTable():
                        self._take_up(name, migration)
                    case Backfill(columns=columns):
                        self._fill(name, columns, progress)
                    case RewriteTable() | JoinValues() | Repartition() | ChangeRegime():
                        raise self._refused(
                            name,
                            Refused(
                                code=Code.SHARED,
                                reason="the change takes writing rows anew, and rows of other tables are among them",
                                remedy="give the table a target of its own",
                            ),
                        )

    def roll_back(self, name: TargetName) -> bool:
        """Keep nothing to go back to: rows of other tables would go back too."""
        return False

    def write(self, name: TargetName, batch: Batch) -> None:
        """Write the rows with the union's columns; those that the source table does not have are NULL in them."""
        with self._shared.lock:
            mine, share = self._settled(name)
            check_held(name, mine.progress, batch.behind)
            union = mine.union
            key = (union.source.id, *(share.columns[id_] for id_ in batch.schema.primary_key))
            found = replace(
                batch,
                rows=_of_union(batch, union, share),
                schema=replace(_as_held(union, batch.schema, share), primary_key=key),
                progress=self._marker(mine, batch.progress),
                behind=mine.state.progress,
                unchanged=tuple(share.columns[id_] for id_ in batch.unchanged),
            )
            self._target.write(name, found)

    def truncate(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Remove the rows of this source table."""
        with self._shared.lock:
            mine, _ = self._settled(name)
            check_held(name, mine.progress, behind)
            self._target.remove_rows(name, self._rows(mine.union), self._marker(mine, progress), mine.state.progress)

    def mark(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Commit the share's progress alone."""
        with self._shared.lock:
            mine, _ = self._settled(name)
            check_held(name, mine.progress, behind)
            self._target.mark(name, self._marker(mine, progress), mine.state.progress)

    def drop(self, name: TargetName) -> None:
        """Remove the rows of this source table, then its share; with the last one the table goes.

        Until the share is gone its marker stays, so whoever starts between the two knows how far it had read.
        """
        with self._shared.lock:
            mine = self._find(name)
            if mine is None:
                self._target.drop(name)  # files may be left of it
                return
            if mine.share is None:
                return
            after = without(mine.union, self._table)
            if not after.shares:
                self._target.drop(name)
                return
            if mine.state.progress is not None:
                self._target.remove_rows(name, self._rows(mine.union), mine.state.progress, mine.state.progress)
            self._stamp(name, mine, after.next)

    def archive(self, name: TargetName, into: TargetName) -> None:
        """Refuse: rows of other tables would get the name too."""
        raise TargetError(f"Cannot rename {name} to {into} for {self._table}: rows of other tables are in it")

    def read(
        self, name: TargetName, schema: InternalSchema, ids: Sequence[int], commit: Commit | None = None
    ) -> DataFrame:
        """Return columns of this source table's rows, as they are or as they were."""
        mine = self._there(name)
        share = mine.share if not mine.is_done else mine.share and mine.share.arrived
        if share is None:
            raise TargetError(f"Cannot read {name}: it has no rows of {self._table}")
        source = mine.union.source.id
        homes = dict.fromkeys((source, *(share.columns[id_] for id_ in ids)))
        rows = self._target.read(name, mine.union.schema, tuple(homes), commit)
        wanted = (_value(share.columns[id_], id_, mine.union.schema, schema.column(id_)) for id_ in ids)
        return rows.where(F.col(value_column(source)) == share.label).select(*wanted)

    def commits(self, name: TargetName, limit: int) -> tuple[Commit, ...]:
        """Return states with different progress of this share, as far back as its values stand where they do now."""
        mine = self._there(name)
        share = mine.share
        if share is None:
            return ()
        found: list[Commit] = []
        for commit in self._target.commits(name, limit * len(mine.union.shares)):
            progress = _progress_of(share, commit.progress)
            if len(found) == limit or (progress is not None and progress.version < share.arrived.moved):
                break
            if not found or not same_offsets(found[-1].progress, progress):
                found.append(replace(commit, progress=progress))
        return tuple(found)

    def holdings(self, name: TargetName, upkeep: Upkeep) -> Holdings:
        """Return the figures of the whole table."""
        return self._target.holdings(name, upkeep)

    def maintain(self, name: TargetName, chores: Chores) -> Maintained:
        """Do the chores of the whole table."""
        with self._shared.lock:
            return self._target.maintain(name, chores)

    def _take_up(self, name: TargetName, migration: Migration) -> None:
        """Bring the share to a version, whose columns the table has afterwards."""
        mine = self._find(name)
        if mine is not None and mine.share is not None:
            mine, share = self._settled(name)
            if share.version == migration.version:
                return
        before = empty_union(self._shared.source_column) if mine is None else mine.union
        found = evolved(before, self._table, migration.version, migration.schema, self.capabilities)
        if isinstance(found, Refused):
            raise self._refused(name, found)
        if mine is None:
            step = CreateTable(schema=found.schema)
            self._target.migrate(name, _stamped(found, step), Progress(version=found.revision))
            return
        self._stamp(name, mine, found)
        self._settled(name)

    def _settled(self, name: TargetName) -> tuple[_Mine, Share]:
        """End what was begun of a change, and return how the share stands then."""
        mine = self._there(name)
        share = mine.share
        if share is not None and share.coming is not None:
            if not mine.is_done and mine.progress is not None:
                progress = replace(mine.progress, version=share.coming.version)
                marker = self._marker(mine, progress)
                self._target.change_rows(name, self._rows(mine.union), share.coming.moves, marker, mine.state.progress)
            self._stamp(name, mine, settled(mine.union, self._table).next)
            mine = self._there(name)
            share = mine.share
        if share is None:
            raise TargetError(f"Cannot write {name}: it has no share of {self._table}; it was changed by another job")
        return mine, share

    def _fill(self, name: TargetName, columns: Sequence[Column], progress: Progress) -> None:
        mine, share = self._settled(name)
        check_held(name, mine.progress, progress)
        homes = tuple(
            replace(mine.union.schema.column(share.columns[column.id]), initial=column.initial) for column in columns
        )
        step = Backfill(columns=homes)
        marker = self._marker(mine, progress)
        self._target.change_rows(name, self._rows(mine.union), step, marker, mine.state.progress)

    def _stamp(self, name: TargetName, mine: _Mine, after: Union) -> None:
        steps = with_schemas(mine.union.schema, diff(mine.union.schema, after.schema))
        progress = mine.state.progress or Progress(version=after.revision)
        self._target.migrate(name, _stamped(after, AlterTable(steps=steps)), progress)

    def _find(self, name: TargetName) -> _Mine | None:
        """Return how the table stands, None if it is not there.

        Raises:
            UnfitTarget: if it is there and not shared as configured.
        """
        state = self._target.state(name)
        if state is None:
            return None
        if state.union is None:
            raise UnfitTarget(
                Code.NOT_OURS,
                f"Cannot merge {self._table} into {name}: the table exists and is not shared by several source tables",
                "move the table away and `cdc-sync resume` this one, or route it elsewhere",
            )
        union = parse_union(state.union)
        if union.source.name != self._shared.source_column:
            raise UnfitTarget(
                Code.SHARED,
                f"Cannot merge {self._table} into {name}: there {union.source.name!r} says which table a row is of",
                "set merge.source_column to that, or route it elsewhere",
            )
        share = union.find(self._table)
        progress = None if share is None else _progress_of(share, state.progress)
        return _Mine(state=state, union=union, share=share, progress=progress)

    def _there(self, name: TargetName) -> _Mine:
        mine = self._find(name)
        if mine is None:
            raise TargetError(f"Cannot find {name}, which {self._table} is merged into")
        return mine

    def _rows(self, union: Union) -> RowsOf:
        return RowsOf(schema=union.schema, label=str(self._table))

    def _marker(self, mine: _Mine, progress: Progress) -> Progress:
        """Return the table's marker with this share's progress, and that of all others as it is."""
        said = mine.state.progress.shares if mine.state.progress is not None else {}
        others = {share.label: said[share.label] for share in mine.union.shares if share.label in said}
        return Progress(version=mine.union.revision, shares={**others, str(self._table): progress})

    def _refused(self, name: TargetName, why: Refused) -> ShareRefused:
        return ShareRefused(table=self._table, target=name, reason=why.reason, remedy=why.remedy)


def _stamped(union: Union, step: CreateTable | AlterTable) -> Migration:
    return Migration(version=union.revision, schema=union.schema, steps=(step,), union=union.to_text())


def _progress_of(share: Share, progress: Progress | None) -> Progress | None:
    """Return how far a share has read; what is older than it is of one that was taken away."""
    found = None if progress is None else progress.shares.get(share.label)
    return found if found is not None and found.version >= share.begun else None


def _as_held(union: Union, own: InternalSchema, share: Share) -> InternalSchema:
    """Return the union's columns as a batch of one share writes them: what it says nothing of stays as it is."""
    live = {share.columns[column.id] for column in own.live} | {union.source.id}
    return replace(
        union.schema, columns=tuple(replace(column, retired=column.id not in live) for column in union.schema.columns)
    )


def _of_union(batch: Batch, union: Union, share: Share) -> DataFrame:
    """Return a batch's rows with a value for each column of the union, which the share's own are cast to."""
    own = {share.columns[column.id]: column for column in batch.schema.columns}
    said = (DELETED, CREATED, *((FORGOTTEN,) if batch.unchanged else ()))

    def value(column: Column) -> SparkColumn:
        if column.id == union.source.id:
            return F.lit(share.label).alias(value_column(column.id))
        if column.id not in own:
            return F.lit(None).cast(to_spark(column.type)).alias(value_column(column.id))
        found = F.col(value_column(own[column.id].id))
        cast = without_ids(own[column.id].type) != without_ids(column.type)
        return (found.cast(to_spark(column.type)) if cast else found).alias(value_column(column.id))

    def projection() -> Projection:
        left_out = (F.col(unchanged_column(id_)).alias(unchanged_column(share.columns[id_])) for id_ in batch.unchanged)
        return Projection([*said, *map(value, union.schema.columns), *left_out])

    of = (union.schema.columns, batch.schema.columns, tuple(sorted(share.columns.items())))
    return kept(("merged", share.label, of, batch.unchanged), projection).of(batch.rows)


def _value(home: int, id_: int, union: InternalSchema, column: Column) -> SparkColumn:
    cast = without_ids(union.column(home).type) != without_ids(column.type)
    found = F.col(value_column(home))
    return (found.cast(to_spark(column.type)) if cast else found).alias(value_column(id_))
