"""Iceberg, format version 2, merge-on-read, through Spark and the Iceberg Java API inside its JVM.

One migration is one metadata commit: an Iceberg transaction takes any number of schema updates and the version stamp
(a table property) together. Progress is a property of each snapshot, so it is committed with the rows or not at all;
and whatever changes a table is committed on the state that it was begun on (`change`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.config.target import Target as TargetConfig
from cdc_sync.core.migration.altered import HeldColumns
from cdc_sync.core.migration.capabilities import ICEBERG, Capabilities
from cdc_sync.core.migration.maintenance import Chores, Holdings, Maintained, Upkeep
from cdc_sync.core.migration.migration import (
    AlterTable,
    Backfill,
    CreateTable,
    JoinValues,
    Migration,
    Repartition,
    RewriteTable,
)
from cdc_sync.core.migration.modes import Mode, metadata_names
from cdc_sync.core.migration.names import held_migration, held_parts, held_schema
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.model.shared_schema import RowMoves
from cdc_sync.core.revisions.fills import Fill
from cdc_sync.core.schema.expressions import Expression
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.errors import TargetError
from cdc_sync.spark.columns import value_column
from cdc_sync.spark.expressions import why_not_computed
from cdc_sync.spark.kept import Projection, kept
from cdc_sync.spark.session import activate
from cdc_sync.targets.common.backfill import backfill_statement
from cdc_sync.targets.common.commits import progress_of, states
from cdc_sync.targets.common.java import failure, first_line
from cdc_sync.targets.common.keyless import Writer, merge_whole_rows_statement, write_whole_rows
from cdc_sync.targets.common.merge import merge_statement, viewed
from cdc_sync.targets.common.merge_columns import join_columns_statement, join_said_statement
from cdc_sync.targets.common.properties import (
    MODE_PROPERTY,
    PARTITION_PROPERTY,
    ROWS_PROPERTY,
    UNION_PROPERTY,
    VERSION_PROPERTY,
    is_stamped,
    rows_version,
    stamps,
)
from cdc_sync.targets.common.rewritten_rows import converted_rows
from cdc_sync.targets.common.shared_rows import change_rows_statement, held_rows, remove_rows_statement
from cdc_sync.targets.iceberg import maintenance as iceberg_upkeep
from cdc_sync.targets.iceberg.adopted import tracked
from cdc_sync.targets.iceberg.change import Change
from cdc_sync.targets.iceberg.commits import field_ids, fields_of, lineage, past_columns, row_count
from cdc_sync.targets.iceberg.creation import create_table, make_namespace
from cdc_sync.targets.iceberg.fill import IcebergFilling, begin_fill
from cdc_sync.targets.iceberg.partitions import left_columns, partitioning_of, repartition, stamp_what_is_left
from cdc_sync.targets.iceberg.rewrite import kept_version, rewrite, roll_back
from cdc_sync.targets.iceberg.schema import alter, set_properties, widen
from cdc_sync.targets.protocol import Batch, Commit, RowsOf, marker_after_join


class IcebergTarget:
    """Tables of one Iceberg catalog. Thread-safe for different tables."""

    def __init__(self, *, config: TargetConfig, spark: SparkSession) -> None:
        self._config = config
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._catalog_name = config.catalog.name
        activate(spark)
        self._catalog: Any = self._open_catalog()
        self._namespaces = threading.Lock()
        self._identifiers: dict[TargetName, Any] = {}
        self._left: dict[TargetName, tuple[str, ...]] = {}  # what `left_columns` says, until the next migration

    @property
    def capabilities(self) -> Capabilities:
        """What Iceberg's Java library promotes in place."""
        return ICEBERG

    def state(self, name: TargetName) -> TargetState | None:
        """Read the stamp from the table's properties and the newest marker along the current lineage."""
        try:
            return self._state(name) if self._catalog.tableExists(self._identifier(name)) else None
        except (Py4JJavaError, PySparkException) as error:
            raise self._failure("read", name, error) from error

    def _state(self, name: TargetName) -> TargetState:
        table = self._load(name)
        stamp = table.properties().get(VERSION_PROPERTY)
        snapshot = table.currentSnapshot()
        summary = {} if snapshot is None else snapshot.summary()
        return TargetState(
            version=int(stamp) if stamp is not None else None,
            progress=progress_of(name, lineage(table)) if stamp is not None else None,
            mode=_mode(table),
            rows=row_count(summary),
            size=int(summary.get("total-files-size") or 0),
            kept=kept_version(table),
            partitioning=partitioning_of(table),
            partition_by=table.properties().get(PARTITION_PROPERTY),
            union=table.properties().get(UNION_PROPERTY),
            rows_version=rows_version(table.properties()),
            columns=HeldColumns(
                identity=f"{table.uuid()} {table.properties().get(PARTITION_PROPERTY)}",
                version=int(stamp or 0),
                numbers=field_ids(self._jvm, table.schema()),
            ),
        )

    def columns(self, name: TargetName) -> InternalSchema:
        """Read the schema, whoever made it; what stays only because a partition spec needs it is none of it."""
        table = self._load(name)
        left, last = left_columns(table), table.operations().current().lastColumnId()
        return tracked([field for field in fields_of(self._jvm, table.schema()) if field["name"] not in left], last)

    def properties(self, name: TargetName, keys: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
        """Read the table's own."""
        held = self._load(name).properties()
        return tuple((key, held.get(key)) for key in keys)

    def filling(self, name: TargetName, fill: Fill) -> IcebergFilling:
        """Look which files are older than the columns, and not written anew since."""
        try:
            return IcebergFilling(
                self._spark, self._load(name), name, replace(fill, schema=held_schema(fill.schema, ICEBERG.columns))
            )
        except (Py4JJavaError, PySparkException) as error:
            raise self._failure("fill", name, error) from error

    def complete(self, name: TargetName, number: int) -> None:
        """Set the property, in a commit that nobody else's comes before."""
        with self._changing("stamp", name, Progress(version=0)) as change:
            if change.table.properties().get(VERSION_PROPERTY) == str(number):
                change.transaction.updateProperties().set(ROWS_PROPERTY, str(number)).commit()

    def why_not_computed(self, schema: InternalSchema, id_: int, expression: Expression) -> str | None:
        """Have Spark look at the expression, over a table without rows."""
        return why_not_computed(self._spark, held_schema(schema, ICEBERG.columns), id_, expression)

    def migrate(
        self, name: TargetName, migration: Migration, progress: Progress, said: Mapping[int, DataFrame] | None = None
    ) -> None:
        """Carry out the steps; each is one commit and is skipped when it is in effect already."""
        migration = held_migration(migration, ICEBERG.columns)
        self._left.pop(name, None)
        for step in migration.steps:
            match step:
                case CreateTable():
                    self._create(name, step, stamps(migration))
                case JoinValues():
                    with self._changing("join columns of", name, progress) as change:
                        if not is_stamped(change.table.properties(), migration):
                            self._join(name, change, step, (said or {}).get(step.into))
                case AlterTable(steps=steps):
                    with self._changing("migrate", name, progress) as change:
                        if not is_stamped(change.table.properties(), migration):
                            before = partitioning_of(change.table)
                            alter(self._jvm, change.transaction, steps)
                            stamp_what_is_left(change.transaction, before)
                            stamped = stamps(migration) | begin_fill(change.table, migration)
                            set_properties(change.transaction, {**dict(migration.properties), **stamped})
                case RewriteTable():
                    self._rewrite(name, step, migration, progress)
                case Backfill():
                    with self._changing("back-fill", name, progress) as change:
                        change.run(backfill_statement(self._sql_name(name), step), progress)
                case Repartition(after=after):
                    with self._changing("partition", name, progress) as change:
                        repartition(self._jvm, change.transaction, after, self._config.table_properties)

    def roll_back(self, name: TargetName) -> bool:
        """Set the table's main branch, schema and partitions back to what the last rewrite kept."""
        self._left.pop(name, None)
        try:
            return roll_back(self._jvm, self._load(name), VERSION_PROPERTY)
        except Py4JJavaError as error:
            raise self._failure("roll back", name, error) from error

    def _rewrite(self, name: TargetName, step: RewriteTable, migration: Migration, progress: Progress) -> None:
        with self._changing("rewrite", name, progress) as change:
            if is_stamped(change.table.properties(), migration):
                return
            metadata = metadata_names(_mode(change.table))
            rows = converted_rows(self._spark.table(self._sql_name(name)), step, migration.schema, metadata)
            rewrite(self._jvm, change, rows, step, stamped=stamps(migration), progress=progress)

    def write(self, name: TargetName, batch: Batch) -> None:
        """Append or merge the rows; the marker is a property of the snapshot this makes."""
        batch = replace(batch, schema=held_schema(batch.schema, ICEBERG.columns))
        with self._changing("write", name, batch.behind) as change:
            if batch.append or batch.mode == "append":
                self._append(name, change, batch, batch.rows)
            elif not batch.schema.primary_key:
                self._write_whole_rows(name, change, batch)
            else:
                with viewed(batch.rows) as view:
                    change.run(merge_statement(self._sql_name(name), view, batch), batch.progress)

    def change_rows(
        self,
        name: TargetName,
        rows: RowsOf,
        change: RowMoves | Backfill,
        progress: Progress,
        behind: Progress | None,
    ) -> None:
        """Update them; where nothing is to change there is no commit."""
        text = change_rows_statement(self._sql_name(name), held_rows(rows, ICEBERG.columns), change)
        if text is None:
            return
        with self._changing("change rows of", name, behind) as changing:
            changing.run(text, progress)

    def remove_rows(self, name: TargetName, rows: RowsOf, progress: Progress, behind: Progress | None) -> None:
        """Delete them; a table without such rows gets the marker all the same."""
        text = remove_rows_statement(self._sql_name(name), held_rows(rows, ICEBERG.columns))
        with self._changing("remove rows of", name, behind) as change:
            change.run(text, progress)
            if progress_of(name, lineage(change.table)) != progress:
                change.mark(progress)

    def truncate(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Take all files out of the table, delete files too: one commit of metadata, however many rows there are."""
        with self._changing("empty", name, behind) as change:
            change.truncate(progress)

    def mark(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Append no file: a snapshot of the same files, with the marker."""
        with self._changing("mark", name, behind) as change:
            change.mark(progress)

    @contextmanager
    def _changing(self, verb: str, name: TargetName, behind: Progress | None) -> Iterator[Change]:
        """Have a table changed in one commit, which nobody else's comes before."""
        try:
            change = Change(self._spark, self._catalog_name, name, self._load(name))
            change.check(behind)
            yield change
            change.commit()
        except (Py4JJavaError, PySparkException) as error:
            raise self._failure(verb, name, error) from error

    def drop(self, name: TargetName) -> None:
        """Take the table out of the catalogue, and then delete its files."""
        identifier = self._identifier(name)
        try:
            if self._catalog.tableExists(identifier):
                self._catalog.dropTable(identifier, True)
        except Py4JJavaError as error:
            raise self._failure("drop", name, error) from error

    def archive(self, name: TargetName, into: TargetName) -> None:
        """Rename the table in the catalogue; its files stay where they are."""
        before, after = self._identifier(name), self._identifier(into)
        try:
            if not self._catalog.tableExists(before):
                return
            if self._catalog.tableExists(after):
                raise TargetError(f"Cannot archive {name}: table {into} exists")
            self._catalog.renameTable(before, after)
        except Py4JJavaError as error:
            raise self._failure("archive", name, error) from error

    def _append(self, name: TargetName, change: Change, batch: Batch, rows: DataFrame) -> None:
        metadata = metadata_names(batch.mode)
        names = tuple((value_column(column.id), column.name) for column in batch.schema.columns)
        if name not in self._left:
            self._left[name] = left_columns(change.table)
        left = self._left[name]

        def columns() -> Projection:
            named = (_named(label, text) for label, text in names)
            return Projection([*named, *metadata, *(F.lit(None).alias(column) for column in left)])

        change.append(kept(("named", names, metadata, left), columns).of(rows), batch.progress)

    def _write_whole_rows(self, name: TargetName, change: Change, batch: Batch) -> None:
        def merge(source: DataFrame) -> None:
            with viewed(source) as view:
                change.run(merge_whole_rows_statement(self._sql_name(name), view, batch.schema), batch.progress)

        writer = Writer(append=lambda rows: self._append(name, change, batch, rows), merge=merge)
        table = self.read(name, batch.schema, [column.id for column in batch.schema.columns])
        write_whole_rows(name, batch, table, writer)

    def read(
        self, name: TargetName, schema: InternalSchema, ids: Sequence[int], commit: Commit | None = None
    ) -> DataFrame:
        """Select from the current snapshot, or from that of the commit by the ids that Iceberg gave the columns."""
        schema = held_schema(schema, ICEBERG.columns)
        columns = [schema.column(id_) for id_ in ids]
        if commit is None:
            table = self._spark.table(self._sql_name(name))
            return table.select(*(table[quoted(column.name)].alias(value_column(column.id)) for column in columns))
        # Only the number of a snapshot becomes SQL: columns of the past may have any name.
        version = f" VERSION AS OF {int(commit.reference)}" if commit.progress is not None else " WHERE FALSE"
        past = self._spark.sql(f"SELECT * FROM {self._sql_name(name)}{version}")
        return past.select(*past_columns(self._jvm, self._load(name), commit, columns))

    def commits(self, name: TargetName, limit: int) -> tuple[Commit, ...]:
        """Follow the snapshots back; those that are expired cannot be read."""
        return states(lineage(self._load(name)), limit)

    def holdings(self, name: TargetName, upkeep: Upkeep) -> Holdings:
        """Ask the table's metadata tables."""
        try:
            return iceberg_upkeep.holdings(self._spark, self._load(name), self._sql_name(name), upkeep)
        except (Py4JJavaError, PySparkException) as error:
            raise self._failure("look over", name, error) from error

    def maintain(self, name: TargetName, chores: Chores) -> Maintained:
        """Compact, merge, expire and remove, by Iceberg's own actions."""
        try:
            return iceberg_upkeep.maintain(self._spark, self._load(name), chores)
        except (Py4JJavaError, PySparkException) as error:
            raise self._failure("maintain", name, error) from error

    def _join(self, name: TargetName, change: Change, step: JoinValues, said: DataFrame | None) -> None:
        """Fill the column that stays, under the name it was kept under; readers find the new name when all is there."""
        if change.progress is None:
            return  # no rows yet
        progress = marker_after_join(change.progress, step.version)
        by_key = bool(step.schema.primary_key) and _mode(change.table) != "append"
        widen(self._jvm, change.table, step.schema.column(step.into).name, step.type)
        if not by_key:
            change.run(join_columns_statement(self._sql_name(name), step), progress)
        elif said is not None:
            with viewed(said) as view:
                change.run(join_said_statement(self._sql_name(name), view, step), progress)

    def _create(self, name: TargetName, step: CreateTable, stamped: dict[str, str]) -> None:
        catalog = self._catalog
        identifier = self._identifier(name)
        properties = dict(self._config.table_properties) | stamped | {MODE_PROPERTY: step.mode}
        try:
            with self._namespaces:
                make_namespace(catalog, identifier.namespace())
            if catalog.tableExists(identifier):
                return
            create_table(self._jvm, catalog, identifier, step, int(stamped[VERSION_PROPERTY]), properties=properties)
        except Py4JJavaError as error:
            raise self._failure("create", name, error) from error

    def _open_catalog(self) -> Any:
        catalog = self._config.catalog
        if catalog.type == "jdbc" and catalog.uri is None:
            # The embedded catalog is an SQLite file in the warehouse, which is a local folder then.
            Path(catalog.warehouse).mkdir(parents=True, exist_ok=True)
        try:
            return self._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(
                self._spark._jsparkSession, self._catalog_name
            )
        except Py4JJavaError as error:
            raise TargetError(f"Cannot open Iceberg catalog {self._catalog_name!r}: {first_line(error)}") from error

    def _load(self, name: TargetName) -> Any:
        return self._catalog.loadTable(self._identifier(name))

    def _identifier(self, name: TargetName) -> Any:
        if name not in self._identifiers:
            gateway = self._spark.sparkContext._gateway
            assert gateway is not None
            parts = gateway.new_array(self._jvm.java.lang.String, 2)
            for index, part in enumerate(held_parts(name, ICEBERG.tables)):
                parts[index] = part
            self._identifiers[name] = self._jvm.org.apache.iceberg.catalog.TableIdentifier.of(parts)
        return self._identifiers[name]

    def _sql_name(self, name: TargetName) -> str:
        return ".".join(quoted(part) for part in (self._catalog_name, *held_parts(name, ICEBERG.tables)))

    def _failure(self, verb: str, name: TargetName, error: Exception) -> TargetError:
        return failure(f"{verb} {name}", error)


def _mode(table: Any) -> Mode:
    return "append" if table.properties().get(MODE_PROPERTY) == "append" else "upsert"


def _named(label: str, text: str) -> Column:
    return kept(("renamed", label, text), lambda: F.col(label).alias(text))
