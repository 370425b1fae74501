"""Hudi, copy-on-write and merge-on-read, in both regimes: schema on write, and schema on read for Spark alone.

In the first, readers find columns by name in files that have those of the time they were written; in the second, by ids
(`internal_schema`). What the regime's readers take is in place; everything else replaces all files in one commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from cdc_sync.config.target import Target as TargetConfig
from cdc_sync.core.migration.capabilities import HUDI, HUDI_ON_READ, Capabilities
from cdc_sync.core.migration.derived import held_partitioning
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
    Step,
)
from cdc_sync.core.migration.names import held_migration, held_parts, held_schema
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import UNPARTITIONED
from cdc_sync.core.schema.types import NESTED
from cdc_sync.errors import TargetError
from cdc_sync.spark.columns import DELETED, value_column
from cdc_sync.spark.conditions import all_of
from cdc_sync.spark.session import activate
from cdc_sync.spark.types import literal, to_spark
from cdc_sync.targets.common.commits import Beginning, Entry, Lineage, states
from cdc_sync.targets.common.folder import delete_folder, move_folder
from cdc_sync.targets.common.java import failure
from cdc_sync.targets.common.keyless import Writer, write_whole_rows
from cdc_sync.targets.hive.listing import Listed
from cdc_sync.targets.hudi.by_id import value_of
from cdc_sync.targets.hudi.internal_schema import anew, field_of, fields_of
from cdc_sync.targets.hudi.migrate import (
    alter,
    change_regime,
    fill,
    following,
    join,
    present,
    restamp,
    rewrite,
    to_change,
    values_of,
)
from cdc_sync.targets.hudi.partitions import Division, division, partition_columns, partitioning_of
from cdc_sync.targets.hudi.properties import Kept, Stamp, names_of
from cdc_sync.targets.hudi.rows import appended, merged, prepared
from cdc_sync.targets.hudi.schema import KEY, META, held_type
from cdc_sync.targets.hudi.settings import ON_READ, check_serializer
from cdc_sync.targets.hudi.table import HudiTable
from cdc_sync.targets.hudi.timeline import Snapshot
from cdc_sync.targets.protocol import Batch, Commit


class HudiTarget:
    """Tables below one folder. Thread-safe for different tables."""

    def __init__(self, *, config: TargetConfig, spark: SparkSession) -> None:
        self._config = config
        self._spark = spark
        self._warehouse = config.catalog.warehouse.rstrip("/")
        activate(spark)
        check_serializer(spark)
        # Else a list cannot hold a NULL. Source: parquet-avro's `AvroWriteSupport`.
        hadoop = self._jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
            spark._jsparkSession.sparkContext()
        ).hadoopConfiguration()
        hadoop.set("parquet.avro.write-old-list-structure", "false")
        # Hudi measures objects with JOL, which would attach a debugger to this process first.
        self._jvm.java.lang.System.setProperty("jol.skipHotspotSAAttach", "true")

    @property
    def capabilities(self) -> Capabilities:
        """What readers of the configured regime take without a rewrite; each table is treated as its own."""
        return self._config.capabilities

    def state(self, name: TargetName) -> TargetState | None:
        """Read what the newest commit says."""
        try:
            return self._state(name)
        except (Py4JJavaError, PySparkException) as error:
            raise self._failure("read", name, error) from error

    def _state(self, name: TargetName) -> TargetState | None:
        table = self._table(name)
        table.settle()
        now = table.snapshot()
        if now is None:
            return None
        stamp = now.stamp
        kept = stamp.kept if stamp.kept is not None and table.keeps(stamp.kept.instant) else None
        return TargetState(
            version=stamp.version,
            progress=stamp.progress,
            mode=stamp.mode,
            rows=stamp.rows,
            size=table.size(),
            kept=None if kept is None else kept.version,
            partitioning=partitioning_of(stamp.partitions),
            partition_by=stamp.partition_by,
            evolution=now.columns.evolution,
            logs=now.logs,
        )

    def migrate(
        self, name: TargetName, migration: Migration, progress: Progress, said: Mapping[int, DataFrame] | None = None
    ) -> None:
        """Carry out the steps; each is one commit and is skipped when it is in effect already."""
        migration = held_migration(migration, self.capabilities.columns)
        for step in migration.steps:
            try:
                self._carry_out(name, step, migration, progress, said or {})
            except (Py4JJavaError, PySparkException) as error:
                raise self._failure(_VERBS[type(step)], name, error) from error

    def _carry_out(
        self, name: TargetName, step: Step, migration: Migration, progress: Progress, said: Mapping[int, DataFrame]
    ) -> None:
        table = self._table(name)
        if isinstance(step, CreateTable):
            self._create(table, step, migration.version)
            return
        now = to_change(table, progress)
        if isinstance(step, Backfill):
            fill(table, now, step, migration.schema, progress)
            return
        if isinstance(step, ChangeRegime):
            change_regime(table, now, migration.schema, step.after)
            return
        if isinstance(step, Repartition):
            restamp(table, now, step.after, held_partitioning(step.after, self.capabilities.columns))
            return
        if now.stamp.version == migration.version:
            return
        match step:
            case JoinValues():
                join(table, now, step, said.get(step.into))
            case AlterTable(steps=steps):
                changes = tuple(change for _, change in steps)
                evolution = now.columns.evolution
                after = table.columns_of(migration.schema, now.stamp.mode, evolution, now.stamp.partitions)
                able = HUDI_ON_READ if evolution == "on_read" else HUDI
                in_place = not rewrites(changes, able, migration.schema, now.stamp.mode)
                if changes and (not in_place or table.would_misread(after)):
                    wanted = RewriteTable(version=now.stamp.version, before=steps[0][0], steps=steps, filled=())
                    rewrite(table, now, wanted, migration, now.stamp.progress, now.stamp.kept)
                else:
                    alter(table, now, migration)
            case RewriteTable():
                table.merge_logs()  # what is kept is read from its files
                now = present(table)
                table.keep(now.instant)
                kept = Kept(instant=now.instant, version=step.version)
                rewrite(table, now, step, migration, progress, kept)
                table.let_go(but=now.instant)

    def _create(self, table: HudiTable, step: CreateTable, version: int) -> None:
        by, rules = step.partitioning, self.capabilities.columns
        held = UNPARTITIONED if by is None else held_partitioning(by, rules)
        stamp = Stamp(
            version=version,
            mode=step.mode,
            columns=names_of(step.schema),
            created=True,
            partitions=partition_columns(held, step.schema, step.mode, rules),
            partition_by=None if by is None else str(by),
        )
        table.create(table.columns_of(step.schema, step.mode, step.evolution, stamp.partitions), stamp)

    def roll_back(self, name: TargetName) -> bool:
        """Write the rows that were kept once more, under the columns they had, in one commit."""
        table = self._table(name)
        try:
            table.begin()
            kept = present(table).stamp.kept
            if kept is None or not table.keeps(kept.instant):
                return False
            then = table.snapshot_at(kept.instant)
            struct = table.struct(then.columns)
            rows = table.kept_rows(kept.instant, then.columns)
            as_they_are = Division(columns=then.stamp.partitions, derived=None)
            stamp = replace(then.stamp, kept=None, goes_back_to=kept.instant, created=False)
            table.commit(
                "overwrite",
                prepared(rows, struct, values_of(struct), key=F.col(KEY), division=as_they_are),
                anew(then.columns),
                lambda written: replace(stamp, rows=written.inserted),
            )
            table.let_go(but=None)
        except (Py4JJavaError, PySparkException) as error:
            raise self._failure("roll back", name, error) from error
        return True

    def write(self, name: TargetName, batch: Batch) -> None:
        """Insert, update and delete in one commit, whose metadata holds the marker."""
        batch = replace(batch, schema=held_schema(batch.schema, self.capabilities.columns))
        table = self._table(name)
        try:
            now = to_change(table, batch.behind)
            struct = table.struct(now.columns)
            divided = division(now.stamp.partitions, batch.schema, now.stamp.mode)
            if batch.append or batch.mode == "append":
                keyed = batch.mode == "upsert" and bool(batch.schema.primary_key)
                rows = appended(batch.rows, batch.schema, struct, keyed=keyed, division=divided)
            elif not batch.schema.primary_key:
                self._write_whole_rows(name, table, now, batch, divided)
                return
            else:
                rows = merged(batch, table.rows(now.instant, now.columns), struct, divided)
            table.commit("upsert", rows, now.columns, following(table, now, batch.progress))
        except (Py4JJavaError, PySparkException) as error:
            raise self._failure("write", name, error) from error

    def truncate(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Replace all files by none."""
        table = self._table(name)
        try:
            now = to_change(table, behind)
            stamp = replace(now.stamp, rows=0)
            table.commit("overwrite", None, now.columns, following(table, replace(now, stamp=stamp), progress))
        except Py4JJavaError as error:
            raise self._failure("empty", name, error) from error

    def mark(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Commit no record."""
        table = self._table(name)
        try:
            now = to_change(table, behind)
            table.commit("upsert", None, now.columns, following(table, now, progress))
        except Py4JJavaError as error:
            raise self._failure("mark", name, error) from error

    def drop(self, name: TargetName) -> None:
        """Delete the table's folder."""
        delete_folder(self._spark, self.path(name))

    def archive(self, name: TargetName, into: TargetName) -> None:
        """Rename the table's folder; what it says of its own name stays."""
        move_folder(self._spark, self.path(name), self.path(into))

    def read(
        self, name: TargetName, schema: InternalSchema, ids: Sequence[int], commit: Commit | None = None
    ) -> DataFrame:
        """Select from the newest commit, or from an earlier one by the names that it says its columns had."""
        columns = [schema.column(id_) for id_ in ids]
        table = self._table(name)
        now = present(table)
        if commit is None or commit.progress is None:
            held, rows = names_of(held_schema(schema, self.capabilities.columns)), table.rows(now.instant, now.columns)
            values = (_cast(rows, held[column.id], column).alias(value_column(column.id)) for column in columns)
            return rows.select(*values) if commit is None else rows.where(F.lit(False)).select(*values)
        then = table.snapshot_at(commit.reference)
        rows = table.rows(commit.reference, then.columns)
        past = (_past(rows, then, column) for column in columns)
        return rows.select(*(value.alias(value_column(column.id)) for value, column in zip(past, columns, strict=True)))

    def commits(self, name: TargetName, limit: int) -> tuple[Commit, ...]:
        """Follow the timeline back to where files have been cleaned."""
        return states(_lineage(self._table(name)), limit)

    def holdings(self, name: TargetName, upkeep: Upkeep) -> Holdings:
        """List the table's folder. What it is to keep Hudi itself knows, and every commit of ours cleans up by that."""
        table = self._table(name)
        try:
            return Holdings(files=len(sizes := table.base_sizes()), size=sum(sizes), change_files=table.logs())
        except Py4JJavaError as error:
            raise self._failure("look over", name, error) from error

    def maintain(self, name: TargetName, chores: Chores) -> Maintained:
        """Merge logs, and remove the files that they were merged into once nothing needs them."""
        table = self._table(name)
        try:
            before = table.logs() if chores.merge_changes else 0
            if before:
                table.merge_logs()
                table.clean()
            return Maintained(change_files=before)
        except Py4JJavaError as error:
            raise self._failure("maintain", name, error) from error

    def _write_whole_rows(
        self, name: TargetName, table: HudiTable, now: Snapshot, batch: Batch, divided: Division
    ) -> None:
        schema, struct = batch.schema, table.struct(now.columns)
        stamp = following(table, now, batch.progress)

        def commit(rows: DataFrame) -> None:
            table.commit("upsert", rows, now.columns, stamp)

        def merge(source: DataFrame) -> None:
            gone, added = source.where(F.col(DELETED)), source.where(~F.col(DELETED))
            held = table.rows(now.instant, now.columns)
            same = all_of(
                held[quoted(column.name)].cast(to_spark(column.type)).eqNullSafe(gone[value_column(column.id)])
                for column in schema.live
            )
            found = held.join(gone, same, "left_semi")
            removed = prepared(found, struct, {}, key=F.col(KEY), deleted=F.lit(True), division=divided)
            commit(removed.unionByName(appended(added, schema, struct, keyed=False, division=divided)))

        writer = Writer(
            append=lambda rows: commit(appended(rows, schema, struct, keyed=False, division=divided)),
            merge=merge,
        )
        present = self.read(name, schema, [column.id for column in schema.columns])
        write_whole_rows(name, batch, present, writer)

    def listed(self, name: TargetName) -> Listed | None:
        """Return the columns of the newest commit, behind Hudi's own."""
        table = self._table(name)
        now = table.snapshot()
        if now is None:
            return None
        if now.stamp.partitions:
            raise TargetError(
                f"Cannot register {name}: it is partitioned, and partitioned hudi tables are not registered in a "
                "metastore; leave out target.catalog.type, or drop the table and have it built anew without "
                "partition_by"
            )
        own = [StructField(label, StringType()) for label in META]
        struct = StructType([*own, *table.struct(now.columns).fields])
        return Listed(
            location=self.path(name),
            struct=struct,
            provider="hudi",
            logs=now.logs,
            options={} if now.columns.internal is None else ON_READ,
        )

    def path(self, name: TargetName) -> str:
        """Return the folder of a table; a crafted name does not leave the warehouse."""
        return "/".join((self._warehouse, *held_parts(name, self.capabilities.tables)))

    def _table(self, name: TargetName) -> HudiTable:
        return HudiTable(self._spark, self.path(name), self._config.table_properties)

    @property
    def _jvm(self) -> Any:
        return self._spark._jvm

    def _failure(self, verb: str, name: TargetName, error: Exception) -> TargetError:
        return failure(f"{verb} {name}", error)


_VERBS: Mapping[type[Step], str] = {
    CreateTable: "create",
    JoinValues: "join columns of",
    AlterTable: "migrate",
    RewriteTable: "rewrite",
    Backfill: "back-fill",
    Repartition: "partition",
    ChangeRegime: "change the regime of",
}


def _lineage(table: HudiTable) -> Lineage:
    for instant, stamp in table.stamps():
        if stamp is not None and stamp.progress is None:
            yield Beginning()
            return
        marker = None if stamp is None or stamp.progress is None else stamp.progress.to_text()
        yield Entry(reference=instant, marker=marker)


def _past(rows: DataFrame, then: Snapshot, column: Column) -> SparkColumn:
    """Return a column's value of an earlier state, members found by their ids where those are known."""
    names = then.stamp.columns
    if column.id not in names:
        return literal(column.initial, column.type)
    if then.columns.internal is None or not isinstance(column.type, NESTED):
        return _cast(rows, names[column.id], column)
    held = fields_of(then.columns.internal)
    return value_of(field_of(column), held, held_type(column.type)).cast(to_spark(column.type))


def _cast(rows: DataFrame, name: str, column: Column) -> SparkColumn:
    return rows[quoted(name)].cast(to_spark(column.type))
