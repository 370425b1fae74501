"""Parquet files with a Hive metastore: tables for whoever knows neither Iceberg nor Delta nor Hudi.

A table's files have exactly its columns, and a commit writes all of them anew, into a folder of their own, which the
metastore's entry then names. So every change of columns and rows is one step for readers, and a batch costs what the
table is large. Of a table with partitions those are written that a batch touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.config.target import Target as TargetConfig
from cdc_sync.core.migration.capabilities import PARQUET, Capabilities
from cdc_sync.core.migration.maintenance import Chores, Holdings, Maintained, Upkeep
from cdc_sync.core.migration.migration import (
    AlterTable,
    Backfill,
    CreateTable,
    JoinValues,
    Migration,
    Repartition,
    RewriteTable,
    Step,
)
from cdc_sync.core.migration.modes import metadata_names
from cdc_sync.core.migration.names import held_migration, held_schema, held_target
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.errors import TargetError
from cdc_sync.spark.conditions import all_of
from cdc_sync.spark.session import activate
from cdc_sync.spark.types import literal
from cdc_sync.targets.common.commits import states
from cdc_sync.targets.common.files import Files
from cdc_sync.targets.common.java import failure, first_line
from cdc_sync.targets.common.rewritten_rows import converted_rows
from cdc_sync.targets.hive.columns import held_type, table_struct
from cdc_sync.targets.hive.metastore import Metastore
from cdc_sync.targets.parquet.commits import Snapshot, following
from cdc_sync.targets.parquet.partitions import divided_by, still_divided
from cdc_sync.targets.parquet.properties import Kept, Stamp, names_of
from cdc_sync.targets.parquet.rows import held, said_of, value_of
from cdc_sync.targets.parquet.table import ParquetTable
from cdc_sync.targets.parquet.write import write_batch
from cdc_sync.targets.protocol import Batch, Commit, check_held, marker_after_join


class ParquetTarget:
    """Tables of one warehouse that one metastore names. Thread-safe for different tables."""

    def __init__(self, *, config: TargetConfig, spark: SparkSession) -> None:
        """Reach the metastore.

        Raises:
            TargetError: if it cannot be reached.
        """
        self._config = config
        self._spark = spark
        self._tidied: set[TargetName] = set()
        activate(spark)
        try:
            self._files = Files(spark, config.catalog.warehouse)
            self._warehouse = self._files.qualified(config.catalog.warehouse.rstrip("/"))
            self._metastore = Metastore(catalog=config.catalog, warehouse=self._warehouse, spark=spark)
        except Py4JJavaError as error:
            raise TargetError(f"Cannot open {config.catalog.warehouse}: {first_line(error)}") from error

    @property
    def capabilities(self) -> Capabilities:
        """What readers that find columns by name or by place take without a rewrite."""
        return PARQUET

    def state(self, name: TargetName) -> TargetState | None:
        """Read the stamp that the metastore's entry names; a table of somebody else has none."""
        with _telling("read", name):
            table = self.table(name)
            now = table.settle()
            if now is None:
                return None if table.entry() is None else TargetState(version=None, progress=None)
            stamp = now.stamp
            kept = stamp.kept if stamp.kept and table.at(now.folder, stamp.kept.reference) else None
        return TargetState(
            version=stamp.version,
            progress=stamp.progress,
            mode=stamp.mode,
            size=stamp.size,
            kept=None if kept is None else kept.version,
            partitioning=stamp.partitioning,
            partition_by=stamp.partition_by,
        )

    def migrate(
        self, name: TargetName, migration: Migration, progress: Progress, said: Mapping[int, DataFrame] | None = None
    ) -> None:
        """Carry out the steps; each is one commit and is skipped when it is in effect already."""
        migration = held_migration(migration, PARQUET.columns)
        for step in migration.steps:
            with _telling(_VERBS[type(step)], name):
                self._carry_out(name, step, migration, progress, said or {})

    def _carry_out(
        self, name: TargetName, step: Step, migration: Migration, progress: Progress, said: Mapping[int, DataFrame]
    ) -> None:
        table, schema = self.table(name), migration.schema
        if isinstance(step, CreateTable):
            struct, columns = table_struct(step.schema, step.mode), names_of(step.schema)
            stamp = Stamp(version=migration.version, mode=step.mode, columns=columns, struct=struct)
            table.create(stamp if step.partitioning is None else divided_by(stamp, step.partitioning, step.schema))
            return
        now = _to_change(table, progress)
        if isinstance(step, Backfill):
            self._backfill(table, now, step, progress)
            return
        if isinstance(step, Repartition):
            self._divide(table, now, divided_by(following(now), step.after, schema))
            return
        if now.stamp.version == migration.version:
            return
        mode = now.stamp.mode
        after = replace(
            following(now), version=migration.version, columns=names_of(schema), struct=table_struct(schema, mode)
        )
        match step:
            case JoinValues():
                self._join(table, now, step, said.get(step.into))
            case AlterTable(steps=steps):
                after = still_divided(after, steps, schema)
                changes = tuple(change for _, change in steps)
                if now.stamp.progress is not None and rewrites(changes, PARQUET, schema, mode):
                    rewrite = RewriteTable(version=now.stamp.version, before=steps[0][0], steps=steps, filled=())
                    self._rewrite(table, now, after, rewrite, schema)
                else:
                    table.restamp(now, after)
            case RewriteTable(steps=steps):
                after = still_divided(after, steps, schema)
                number = now.stamp.number + 1
                kept = Kept(
                    reference=now.reference, version=step.version, number=number, partitioned=now.is_partitioned
                )
                self._rewrite(table, now, replace(after, progress=progress, kept=kept), step, schema)

    def roll_back(self, name: TargetName) -> bool:
        """Name the folder of before the last rewrite again."""
        with _telling("roll back", name):
            table = self.table(name)
            now = _settled(table)
            kept = now.stamp.kept
            then = None if kept is None else table.at(now.folder, kept.reference)
            if then is None:
                return False
            table.restamp(now, replace(then.stamp, kept=None), data=then.data)
        return True

    def write(self, name: TargetName, batch: Batch) -> None:
        """Write anew all rows of the table, or of the partitions that the batch touches, and the marker beside them."""
        batch = replace(batch, schema=held_schema(batch.schema, PARQUET.columns))
        with _telling("write", name):
            table = self.table(name)
            write_batch(name, table, _to_change(table, batch.behind), batch)

    def truncate(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Name an empty folder."""
        with _telling("empty", name):
            table = self.table(name)
            now = _to_change(table, behind)
            table.commit(now, replace(following(now), progress=progress), None)

    def mark(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Say something else of the same files."""
        with _telling("mark", name):
            table = self.table(name)
            now = _to_change(table, behind)
            table.restamp(now, replace(following(now), progress=progress))

    def drop(self, name: TargetName) -> None:
        """Take the table away from readers, then delete its files."""
        with _telling("drop", name):
            self.table(name).drop()

    def archive(self, name: TargetName, into: TargetName) -> None:
        """Rename the metastore's entry."""
        with _telling("archive", name):
            self.table(name).archive(held_target(into, PARQUET.tables))

    def read(
        self, name: TargetName, schema: InternalSchema, ids: Sequence[int], commit: Commit | None = None
    ) -> DataFrame:
        """Select from the files of a state, by the names that it says its columns had."""
        columns = [schema.column(id_) for id_ in ids]
        with _telling("read", name):
            table = self.table(name)
            now = _present(table)
            then: Snapshot | None = now
            if commit is not None and commit.progress is not None:
                then = table.at(now.folder, commit.reference)
                if then is None:
                    raise TargetError(f"Cannot read {name} as of {commit.reference}: it is not kept any more")
            assert then is not None
            rows = table.rows(then)
            if commit is not None and commit.progress is None:
                rows = rows.where(F.lit(False))
            return rows.select(*(value_of(then.stamp, column) for column in columns))

    def commits(self, name: TargetName, limit: int) -> tuple[Commit, ...]:
        """Return the states whose folders are kept."""
        with _telling("read", name):
            table = self.table(name)
            return states(table.lineage(_present(table)), limit)

    def holdings(self, name: TargetName, upkeep: Upkeep) -> Holdings:
        """Return how large the table is: every commit makes all files anew, and lets go of what is not kept."""
        with _telling("look over", name):
            return Holdings(size=_present(self.table(name)).stamp.size)

    def maintain(self, name: TargetName, chores: Chores) -> Maintained:
        """Do nothing, for nothing is left over."""
        return Maintained()

    def table(self, name: TargetName) -> ParquetTable:
        """Return what is under a name."""
        return ParquetTable(
            name=held_target(name, PARQUET.tables),
            spark=self._spark,
            metastore=self._metastore,
            files=self._files,
            warehouse=self._warehouse,
            properties=self._config.table_properties,
            kept_states=self._config.kept_states,
            tidied=self._tidied,
        )

    def _rewrite(
        self, table: ParquetTable, now: Snapshot, after: Stamp, step: RewriteTable, schema: InternalSchema
    ) -> None:
        rows = converted_rows(table.rows(now), step, schema, metadata_names(after.mode))
        table.commit(now, after, held(rows, after.struct), as_many=True)

    def _divide(self, table: ParquetTable, now: Snapshot, after: Stamp) -> None:
        """Bring the rows to other partitions, or say only that they are divided as another text has it."""
        if now.stamp.partition_by == after.partition_by:
            return
        if set(now.stamp.partitioning.fields) == set(after.partitioning.fields):
            table.restamp(now, replace(following(now), partition_by=after.partition_by))
        elif now.stamp.progress is None:
            table.commit(now, after, None)
        else:
            table.commit(now, after, held(table.rows(now), after.struct), as_many=True)

    def _backfill(self, table: ParquetTable, now: Snapshot, step: Backfill, progress: Progress) -> None:
        # All columns of one step are new, so they are NULL in exactly the rows that are not filled yet.
        unfilled = all_of(F.col(quoted(column.name)).isNull() for column in step.columns)
        values = {
            column.name: F.when(unfilled, literal(column.initial, column.type)).otherwise(F.col(quoted(column.name)))
            for column in step.columns
        }
        rows = held(table.rows(now), now.stamp.struct, values)
        table.commit(now, replace(following(now), progress=progress), rows)

    def _join(self, table: ParquetTable, now: Snapshot, step: JoinValues, said: DataFrame | None) -> None:
        """Fill the column that stays, under the name it was kept under; readers find the new name when all is there."""
        if now.stamp.progress is None:
            return  # no rows yet
        label = step.schema.column(step.into).name
        columns = tuple(replace(it, type=step.type) if it.id == step.into else it for it in step.schema.columns)
        struct = table_struct(replace(step.schema, columns=columns), now.stamp.mode)
        rows = table.rows(now)
        if now.stamp.mode == "append" or not step.schema.primary_key:
            names = [label, *(step.schema.column(id_).name for id_ in step.joined)]
            value = F.coalesce(*(rows[quoted(item)].cast(held_type(step.type)) for item in names))
            rows = held(rows, struct, {label: value})
        elif said is not None:
            rows = said_of(rows, said, step.schema, struct, step.into)
        else:
            return
        progress = marker_after_join(now.stamp.progress, step.version)
        table.commit(now, replace(following(now), struct=struct, progress=progress), rows)


_VERBS: Mapping[type[Step], str] = {
    CreateTable: "create",
    JoinValues: "join columns of",
    AlterTable: "migrate",
    RewriteTable: "rewrite",
    Backfill: "back-fill",
    Repartition: "partition",
}


@contextmanager
def _telling(verb: str, name: TargetName) -> Iterator[None]:
    """Say which table something went wrong with."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise failure(f"{verb} {name}", error) from error


def _present(table: ParquetTable) -> Snapshot:
    return _there(table, table.snapshot())


def _there(table: ParquetTable, now: Snapshot | None) -> Snapshot:
    if now is None:
        raise TargetError(f"Cannot use {table.name}: there is no table, or one that cdc_sync has not made")
    return now


def _settled(table: ParquetTable) -> Snapshot:
    """Return the present state; what a crash left half done is ended before."""
    return _there(table, table.settle())


def _to_change(table: ParquetTable, behind: Progress | None) -> Snapshot:
    """Return the present state of a table that holds what it is known to.

    Raises:
        TargetMoved: if it holds something else.
    """
    now = _settled(table)
    check_held(table.name, now.stamp.progress, behind)
    return now
