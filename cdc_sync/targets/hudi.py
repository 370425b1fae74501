"""Hudi, copy-on-write, schema on write: what Presto, Trino and Hive read right as well as Spark.

Readers of such tables find columns by name, in files that have the columns of the time they were written. So only what
every reader takes is done in place; everything else replaces all files in one commit, and no old file is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from cdc_sync.config import Target as TargetConfig
from cdc_sync.errors import TargetError
from cdc_sync.migrate.capabilities import HUDI, Capabilities, can_compare
from cdc_sync.migrate.migration import AlterTable, Backfill, CreateTable, JoinValues, Migration, RewriteTable, Step
from cdc_sync.migrate.modes import metadata_names
from cdc_sync.migrate.names import held_migration, held_schema
from cdc_sync.migrate.typechange import rewrites
from cdc_sync.naming import TargetName
from cdc_sync.progress import Progress
from cdc_sync.quote import quoted
from cdc_sync.schema.internal import Column, InternalSchema
from cdc_sync.spark.columns import DELETED, value_column
from cdc_sync.spark.conditions import all_of, any_of
from cdc_sync.spark.formats import HUDI_SETTINGS
from cdc_sync.spark.session import activate
from cdc_sync.spark.types import literal, to_spark
from cdc_sync.targets.base import Batch, Commit, TargetState, marker_after_join
from cdc_sync.targets.failures import first_line
from cdc_sync.targets.folder import delete_folder, move_folder
from cdc_sync.targets.hudi_rows import appended, merged, prepared, record_key
from cdc_sync.targets.hudi_schema import KEY, META, avro_schema, held_type, struct_of, table_struct
from cdc_sync.targets.hudi_stamp import Kept, Stamp, names_of
from cdc_sync.targets.hudi_table import HudiTable, Snapshot, Written
from cdc_sync.targets.keyless import Writer, write_whole_rows
from cdc_sync.targets.listing import Listed
from cdc_sync.targets.past import Beginning, Entry, Lineage, states
from cdc_sync.targets.place import held_parts
from cdc_sync.targets.rows import converted_rows
from cdc_sync.upkeep import Chores, Holdings, Maintained, Upkeep


class HudiTarget:
    """Tables below one folder. Thread-safe for different tables."""

    def __init__(self, *, config: TargetConfig, spark: SparkSession) -> None:
        self._config = config
        self._spark = spark
        self._warehouse = config.catalog.warehouse.rstrip("/")
        activate(spark)
        _check_serializer(spark)
        # Else a list cannot hold a NULL. Source: parquet-avro's `AvroWriteSupport`.
        hadoop = self._jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
            spark._jsparkSession.sparkContext()
        ).hadoopConfiguration()
        hadoop.set("parquet.avro.write-old-list-structure", "false")
        # Hudi measures objects with JOL, which would attach a debugger to this process first.
        self._jvm.java.lang.System.setProperty("jol.skipHotspotSAAttach", "true")

    @property
    def capabilities(self) -> Capabilities:
        """What readers that find columns by name take without a rewrite."""
        return HUDI

    def state(self, name: TargetName) -> TargetState | None:
        """Read what the newest commit says."""
        table = self._table(name)
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
        )

    def migrate(
        self, name: TargetName, migration: Migration, progress: Progress, said: Mapping[int, DataFrame] | None = None
    ) -> None:
        """Carry out the steps; each is one commit and is skipped when it is in effect already."""
        migration = held_migration(migration, HUDI.columns)
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
            columns = names_of(step.schema)
            stamp = Stamp(version=migration.version, mode=step.mode, columns=columns, created=True)
            table.create(table_struct(step.schema, step.mode), stamp)
            return
        now = _present(table)
        if isinstance(step, Backfill):
            self._backfill(table, now, step, progress)
            return
        if now.stamp.version == migration.version:
            return
        match step:
            case JoinValues():
                self._join(table, now, step, said.get(step.into))
            case AlterTable(steps=steps):
                changes = tuple(change for _, change in steps)
                if rewrites(changes, HUDI, migration.schema, now.stamp.mode):
                    rewrite = RewriteTable(version=now.stamp.version, before=steps[0][0], steps=steps, filled=())
                    self._rewrite(table, now, rewrite, migration, now.stamp.progress, now.stamp.kept)
                else:
                    self._alter(table, now, migration)
            case RewriteTable():
                table.merge_logs()  # what is kept is read from its files
                now = _present(table)
                table.keep(now.instant)
                kept = Kept(instant=now.instant, version=step.version)
                self._rewrite(table, now, step, migration, progress, kept)
                table.let_go(but=now.instant)

    def roll_back(self, name: TargetName) -> bool:
        """Write the rows that were kept once more, under the columns they had, in one commit."""
        table = self._table(name)
        now = _present(table)
        kept = now.stamp.kept
        if kept is None or not table.keeps(kept.instant):
            return False
        then = table.snapshot_at(kept.instant)
        struct = struct_of(self._jvm, then.schema)
        rows = table.kept_rows(kept.instant, struct)
        stamp = replace(then.stamp, kept=None, goes_back_to=kept.instant, created=False)
        try:
            table.commit(
                "overwrite",
                prepared(rows, struct, _values(struct), key=F.col(KEY)),
                then.schema,
                lambda written: replace(stamp, rows=written.inserted),
            )
            table.let_go(but=None)
        except (Py4JJavaError, PySparkException) as error:
            raise self._failure("roll back", name, error) from error
        return True

    def write(self, name: TargetName, batch: Batch) -> None:
        """Insert, update and delete in one commit, whose metadata holds the marker."""
        batch = replace(batch, schema=held_schema(batch.schema, HUDI.columns))
        table = self._table(name)
        now = _present(table)
        struct = struct_of(self._jvm, now.schema)
        try:
            if batch.append or batch.mode == "append":
                keyed = batch.mode == "upsert" and bool(batch.schema.primary_key)
                rows = appended(batch.rows, batch.schema, struct, keyed=keyed)
            elif not batch.schema.primary_key:
                self._write_whole_rows(name, table, now, batch)
                return
            else:
                rows = merged(batch, table.rows(now.instant), struct)
            table.commit("upsert", rows, now.schema, _following(table, now, batch.progress))
        except (Py4JJavaError, PySparkException) as error:
            raise self._failure("write", name, error) from error

    def truncate(self, name: TargetName, progress: Progress) -> None:
        """Replace all files by none."""
        table = self._table(name)
        now = _present(table)
        stamp = replace(now.stamp, rows=0)
        try:
            table.commit("overwrite", None, now.schema, _following(table, replace(now, stamp=stamp), progress))
        except Py4JJavaError as error:
            raise self._failure("empty", name, error) from error

    def mark(self, name: TargetName, progress: Progress) -> None:
        """Commit no record."""
        table = self._table(name)
        now = _present(table)
        try:
            table.commit("upsert", None, now.schema, _following(table, now, progress))
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
        now = _present(table)
        if commit is None or commit.progress is None:
            held, rows = names_of(held_schema(schema, HUDI.columns)), table.rows(now.instant)
            values = (_cast(rows, held[column.id], column).alias(value_column(column.id)) for column in columns)
            return rows.select(*values) if commit is None else rows.where(F.lit(False)).select(*values)
        rows, then = table.rows(commit.reference), table.snapshot_at(commit.reference).stamp.columns
        past = (
            _cast(rows, then[column.id], column) if column.id in then else literal(column.initial, column.type)
            for column in columns
        )
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

    def _rewrite(
        self,
        table: HudiTable,
        now: Snapshot,
        step: RewriteTable,
        migration: Migration,
        progress: Progress | None,
        kept: Kept | None,
    ) -> None:
        """Replace all files by others with the new columns; records keep their keys unless the key changes."""
        schema, mode = migration.schema, now.stamp.mode
        struct = table_struct(schema, mode)
        metadata = metadata_names(mode)
        rows = converted_rows(table.rows(now.instant), step, schema, [*metadata, KEY])
        key = F.col(KEY)
        if mode == "upsert" and schema.primary_key:
            key = record_key([(F.col(quoted(column.name)), column.type) for column in schema.key_columns])
        stamp = replace(
            now.stamp,
            version=migration.version,
            columns=names_of(schema),
            progress=progress,
            kept=kept,
            goes_back_to=None,
            created=False,
        )
        table.commit(
            "overwrite",
            prepared(rows, struct, _values(struct), key=key),
            avro_schema(self._jvm, struct),
            lambda written: replace(stamp, rows=written.inserted),
        )

    def _alter(self, table: HudiTable, now: Snapshot, migration: Migration) -> None:
        """Commit other columns and nothing else."""
        schema = avro_schema(self._jvm, table_struct(migration.schema, now.stamp.mode))
        stamp = replace(now.stamp, version=migration.version, columns=names_of(migration.schema))
        table.commit("upsert", None, schema, _following(table, replace(now, stamp=stamp), stamp.progress))

    def _backfill(self, table: HudiTable, now: Snapshot, step: Backfill, progress: Progress) -> None:
        rows = table.rows(now.instant)
        # All columns of one step are new, so they are NULL in exactly the rows that are not filled yet.
        unfilled = rows.where(all_of(rows[quoted(column.name)].isNull() for column in step.columns))
        values = {column.name: literal(column.initial, column.type) for column in step.columns}
        self._update(table, now, unfilled, values, progress)

    def _join(self, table: HudiTable, now: Snapshot, step: JoinValues, said: DataFrame | None) -> None:
        """Fill the column that stays, under the name it was kept under; readers find the new name when all is there."""
        if now.stamp.progress is None:
            return  # no rows yet
        into = step.schema.column(step.into)
        columns = tuple(replace(it, type=step.type) if it.id == into.id else it for it in step.schema.columns)
        struct = table_struct(replace(step.schema, columns=columns), now.stamp.mode)
        schema = now.schema if struct_of(self._jvm, now.schema) == struct else avro_schema(self._jvm, struct)
        progress = marker_after_join(now.stamp.progress, step.version)
        rows = table.rows(now.instant)
        held = rows[quoted(into.name)].cast(held_type(step.type))
        if now.stamp.mode == "append" or not step.schema.primary_key:
            newer = [rows[quoted(step.schema.column(id_).name)] for id_ in step.joined]
            missing = rows.where(held.isNull() & any_of(value.isNotNull() for value in newer))
            value = F.coalesce(held, *(item.cast(held_type(step.type)) for item in newer))
            self._update(table, replace(now, schema=schema), missing, {into.name: value}, progress)
        elif said is not None:
            key = record_key([(F.col(value_column(column.id)), column.type) for column in step.schema.key_columns])
            given = said.select(key.alias("said_of"), F.col(value_column(into.id)).alias("said"))
            joined = rows.join(given, F.col(KEY) == F.col("said_of"))
            changed = joined.where(~held.eqNullSafe(F.col("said"))) if can_compare(step.type) else joined
            self._update(table, replace(now, schema=schema), changed, {into.name: F.col("said")}, progress)

    def _update(
        self, table: HudiTable, now: Snapshot, rows: DataFrame, values: Mapping[str, SparkColumn], progress: Progress
    ) -> None:
        """Change values of records that are there; `rows` has all columns of the table."""
        struct = struct_of(self._jvm, now.schema)
        changed = prepared(rows, struct, _values(struct) | dict(values), key=F.col(KEY))
        table.commit("upsert", changed, now.schema, _following(table, now, progress))

    def _write_whole_rows(self, name: TargetName, table: HudiTable, now: Snapshot, batch: Batch) -> None:
        schema, struct = batch.schema, struct_of(self._jvm, now.schema)
        stamp = _following(table, now, batch.progress)

        def commit(rows: DataFrame) -> None:
            table.commit("upsert", rows, now.schema, stamp)

        def merge(source: DataFrame) -> None:
            gone, added = source.where(F.col(DELETED)), source.where(~F.col(DELETED))
            held = table.rows(now.instant)
            same = all_of(
                held[quoted(column.name)].cast(to_spark(column.type)).eqNullSafe(gone[value_column(column.id)])
                for column in schema.live
            )
            found = held.join(gone, same, "left_semi")
            removed = prepared(found, struct, {}, key=F.col(KEY), deleted=F.lit(True))
            commit(removed.unionByName(appended(added, schema, struct, keyed=False)))

        writer = Writer(
            append=lambda rows: commit(appended(rows, schema, struct, keyed=False)),
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
        own = [StructField(label, StringType()) for label in META]
        struct = StructType([*own, *struct_of(self._jvm, now.schema).fields])
        return Listed(location=self.path(name), struct=struct, provider="hudi", logs=table.is_merged_on_read)

    def path(self, name: TargetName) -> str:
        """Return the folder of a table; a crafted name does not leave the warehouse."""
        return "/".join((self._warehouse, *held_parts(name, HUDI.tables)))

    def _table(self, name: TargetName) -> HudiTable:
        return HudiTable(self._spark, self.path(name), self._config.table_properties)

    @property
    def _jvm(self) -> Any:
        return self._spark._jvm

    def _failure(self, verb: str, name: TargetName, error: Exception) -> TargetError:
        return TargetError(f"Cannot {verb} {name}: {first_line(error)}")


_VERBS: Mapping[type[Step], str] = {
    CreateTable: "create",
    JoinValues: "join columns of",
    AlterTable: "migrate",
    RewriteTable: "rewrite",
    Backfill: "back-fill",
}
_KEPT_COMMITS = 1000
"""So many commits later a state before a rewrite is given up: as long as it is kept, Hudi archives nothing."""


def _check_serializer(spark: SparkSession) -> None:
    """Refuse a session that would damage rows: what a JVM serializes with is said when it is started."""
    key, kryo = "spark.serializer", HUDI_SETTINGS["spark.serializer"]
    if spark.conf.get(key, None) != kryo:
        settings = " ".join(f"--conf {name}={HUDI_SETTINGS[name]}" for name in (key, "spark.kryo.registrator"))
        raise TargetError(f"Cannot write Hudi tables: Spark was started without {kryo}; give spark-submit {settings}")


def _present(table: HudiTable) -> Snapshot:
    now = table.snapshot()
    if now is None:
        raise TargetError(f"Cannot use {table.path}: there is no table")
    return now


def _following(table: HudiTable, now: Snapshot, progress: Progress | None) -> Callable[[Written], Stamp]:
    """Return what the next commit says, once it is known what it writes."""
    kept = now.stamp.kept
    if kept is not None:
        kept = replace(kept, age=kept.age + 1) if kept.age < _KEPT_COMMITS else None
        if kept is None:
            table.let_go(but=None)
    stamp = replace(now.stamp, progress=progress, kept=kept, goes_back_to=None, created=False)
    return lambda written: replace(stamp, rows=stamp.rows + written.inserted - written.deleted)


def _lineage(table: HudiTable) -> Lineage:
    for instant, stamp in table.stamps():
        if stamp is not None and stamp.progress is None:
            yield Beginning()
            return
        marker = None if stamp is None or stamp.progress is None else stamp.progress.to_text()
        yield Entry(reference=instant, marker=marker)


def _values(struct: StructType) -> dict[str, SparkColumn]:
    return {field.name: F.col(quoted(field.name)) for field in struct.fields}


def _cast(rows: DataFrame, name: str, column: Column) -> SparkColumn:
    return rows[quoted(name)].cast(to_spark(column.type))
