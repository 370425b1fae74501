"""Delta Lake tables, found by their path, through Spark and Delta's Java API inside its JVM.

A table lies at `<warehouse>/<namespace>/<name>`. Columns are mapped by name, so that add, drop, rename and move touch
no data file; one migration is one commit of the table's metadata, the version stamp in it. The marker is each commit's
user metadata, so it is committed with the rows or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.config.target import Target as TargetConfig
from cdc_sync.core.migration.altered import HeldColumns
from cdc_sync.core.migration.capabilities import DELTA, Capabilities
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
from cdc_sync.core.migration.modes import metadata_names
from cdc_sync.core.migration.names import held_migration, held_parts, held_schema
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.model.shared_schema import RowMoves
from cdc_sync.core.revisions.fills import Fill
from cdc_sync.core.schema.expressions import Expression
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.spark.columns import value_column
from cdc_sync.spark.expressions import why_not_computed
from cdc_sync.spark.session import activate
from cdc_sync.spark.types import literal, to_spark
from cdc_sync.targets.common.commits import progress_of, states
from cdc_sync.targets.common.folder import delete_folder, move_folder
from cdc_sync.targets.common.keyless import Writer, merge_whole_rows_statement, write_whole_rows
from cdc_sync.targets.common.merge import merge_statement, viewed
from cdc_sync.targets.common.partition_values import Division
from cdc_sync.targets.common.past_members import Part, as_now, delta_part
from cdc_sync.targets.common.properties import (
    PARTITION_PROPERTY,
    ROWS_PROPERTY,
    UNION_PROPERTY,
    VERSION_PROPERTY,
    rows_version,
)
from cdc_sync.targets.common.shared_rows import change_rows_statement, held_rows, remove_rows_statement
from cdc_sync.targets.delta import maintenance as delta_upkeep
from cdc_sync.targets.delta.adopted import tracked
from cdc_sync.targets.delta.failures import telling
from cdc_sync.targets.delta.fields import COLUMN_ID, PHYSICAL_NAME, delta_type
from cdc_sync.targets.delta.fill import DeltaFilling
from cdc_sync.targets.delta.log import DeltaTable, forget, there
from cdc_sync.targets.delta.migrate import DeltaSteps, division_of, kept_before, mode_of
from cdc_sync.targets.hive.listing import Listed
from cdc_sync.targets.protocol import Batch, Commit, RowsOf, check_held


class DeltaTarget:
    """Tables below one folder. Thread-safe for different tables."""

    def __init__(self, *, config: TargetConfig, spark: SparkSession) -> None:
        self._config = config
        self._spark = spark
        self._warehouse = config.catalog.warehouse.rstrip("/")
        activate(spark)

    @property
    def capabilities(self) -> Capabilities:
        """What column mapping does without touching data."""
        return DELTA

    def state(self, name: TargetName) -> TargetState | None:
        """Read the stamp from the table's properties and the newest marker along the log."""
        with telling("read", name):
            return self._state(name)

    def _state(self, name: TargetName) -> TargetState | None:
        table = self._table(name)
        snapshot = table.snapshot()
        if snapshot is None:
            return None
        layout = table.layout(snapshot)
        properties = layout.properties
        stamp = properties.get(VERSION_PROPERTY)
        size = snapshot.sizeInBytesIfKnown()
        return TargetState(
            version=None if stamp is None else int(stamp),
            progress=None if stamp is None else progress_of(name, table.lineage(snapshot.version())),
            mode=mode_of(properties),
            size=int(size.get()) if size.isDefined() else 0,
            kept=kept_before(properties).get("version"),
            partitioning=layout.partitioning,
            partition_by=properties.get(PARTITION_PROPERTY),
            union=properties.get(UNION_PROPERTY),
            rows_version=rows_version(properties),
            columns=HeldColumns(
                identity=f"{table.identity(snapshot)} {properties.get(PARTITION_PROPERTY)}",
                version=int(stamp or 0),
                numbers={field["name"]: int(field["metadata"].get(COLUMN_ID, 0)) for field in layout.own},
            ),
        )

    def columns(self, name: TargetName) -> InternalSchema:
        """Read the columns, whoever made them; those that a table of ours is divided by are none of them."""
        with telling("read", name):
            table = self._table(name)
            return tracked(table.layout(there(table)).own)

    def why_not_computed(self, schema: InternalSchema, id_: int, expression: Expression) -> str | None:
        """Have Spark look at the expression, over a table without rows."""
        return why_not_computed(self._spark, held_schema(schema, DELTA.columns), id_, expression)

    def properties(self, name: TargetName, keys: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
        """Read the table's own."""
        table = self._table(name)
        held = table.properties(there(table))
        return tuple((key, held.get(key)) for key in keys)

    def filling(self, name: TargetName, fill: Fill) -> DeltaFilling:
        """Look which files are older than the columns, and not written anew since."""
        held = replace(fill, schema=held_schema(fill.schema, DELTA.columns))
        with telling("fill", name):
            return DeltaFilling(self._spark, self._table(name), name, held)

    def complete(self, name: TargetName, number: int) -> None:
        """Set the property, in a commit of ours that no other one of ours comes before."""
        with self._changing("stamp", name, Progress(version=0)) as (table, on):
            if table.properties(on).get(VERSION_PROPERTY) == str(number):
                table.change(None, on, lambda layout: layout.stamped({ROWS_PROPERTY: str(number)}))

    def migrate(
        self, name: TargetName, migration: Migration, progress: Progress, said: Mapping[int, DataFrame] | None = None
    ) -> None:
        """Carry out the steps; each is one commit and is skipped when it is in effect already."""
        migration = held_migration(migration, DELTA.columns)
        steps = DeltaSteps(name, self._table(name), migration, self._config.table_properties)
        for step in migration.steps:
            with telling(_VERBS[type(step)], name):
                steps.carry_out(step, progress, said or {})

    def roll_back(self, name: TargetName) -> bool:
        """Restore the version before the last rewrite: its files, its columns and its properties."""
        table = self._table(name)
        snapshot = table.snapshot()
        kept = kept_before(table.properties(snapshot))
        if not kept:
            return False
        before = progress_of(name, table.lineage(kept["commit"]))
        marker = before.to_text() if before is not None else ""
        with telling("roll back", name):
            # What another job commits meanwhile fails this, and is not left beside the rows of before.
            once = {"spark.databricks.delta.maxCommitAttempts": "0"}
            table.run(f"RESTORE TABLE {table.sql_name} TO VERSION AS OF {kept['commit']}", once, marker)
        return True

    def write(self, name: TargetName, batch: Batch) -> None:
        """Append or merge the rows; the marker is in the same commit."""
        batch = replace(batch, schema=held_schema(batch.schema, DELTA.columns))
        with self._changing("write", name, batch.behind) as (table, on):
            division = division_of(table.layout(on), batch.schema)
            if batch.append or batch.mode == "append":
                self._append(table, on, batch, batch.rows, division)
            elif not batch.schema.primary_key:
                self._write_whole_rows(name, table, on, batch, division)
            else:
                with viewed(batch.rows) as view:
                    statement = merge_statement(table.sql_name, view, batch, division)
                    table.execute(statement, batch.progress.to_text(), on)

    def change_rows(
        self,
        name: TargetName,
        rows: RowsOf,
        change: RowMoves | Backfill,
        progress: Progress,
        behind: Progress | None,
    ) -> None:
        """Update them; where nothing is to change there is no commit."""
        text = change_rows_statement(self._table(name).sql_name, held_rows(rows, DELTA.columns), change)
        if text is None:
            return
        with self._changing("change rows of", name, behind) as (table, on):
            table.execute(text, progress.to_text(), on)

    def remove_rows(self, name: TargetName, rows: RowsOf, progress: Progress, behind: Progress | None) -> None:
        """Delete them; a table without such rows gets the marker all the same."""
        with self._changing("remove rows of", name, behind) as (table, on):
            statement = remove_rows_statement(table.sql_name, held_rows(rows, DELTA.columns))
            table.execute(statement, progress.to_text(), on)

    def truncate(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Take all files out of the table; they can be read until they are vacuumed."""
        with self._changing("empty", name, behind) as (table, on):
            table.execute(f"DELETE FROM {table.sql_name}", progress.to_text(), on)

    def mark(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Commit nothing but the marker."""
        with self._changing("mark", name, behind) as (table, on):
            table.repeat(progress.to_text(), on)

    @contextmanager
    def _changing(self, verb: str, name: TargetName, behind: Progress | None) -> Iterator[tuple[DeltaTable, Any]]:
        """Have a table changed that holds what it is known to; yields it as it is then, and Delta's snapshot of that.

        Raises:
            TargetMoved: if it held something else, or another commit came before the change's.
        """
        table = self._table(name)
        with telling(verb, name):
            on = there(table)
            check_held(name, progress_of(name, table.lineage(on.version())), behind)
            yield table, on

    def drop(self, name: TargetName) -> None:
        """Delete the table's folder."""
        delete_folder(self._spark, self.path(name))
        forget(self._spark, self.path(name))

    def archive(self, name: TargetName, into: TargetName) -> None:
        """Rename the table's folder."""
        move_folder(self._spark, self.path(name), self.path(into))
        forget(self._spark, self.path(name))

    def read(
        self, name: TargetName, schema: InternalSchema, ids: Sequence[int], commit: Commit | None = None
    ) -> DataFrame:
        """Select from the newest version, or from that of the commit by the names that data files have for columns."""
        schema = held_schema(schema, DELTA.columns)
        columns = [schema.column(id_) for id_ in ids]
        table = self._table(name)
        snapshot = table.snapshot()
        if commit is None:
            rows = table.rows(snapshot.version())
            return rows.select(*(_present(column) for column in columns))
        now = {field["name"]: delta_part(field, PHYSICAL_NAME) for field in table.fields(snapshot)}
        # Version 0 made the table, and holds nothing.
        version = int(commit.reference) if commit.progress is not None else 0
        parts = (delta_part(field, PHYSICAL_NAME) for field in table.fields(table.at(version)))
        then = {part.mark: part for part in parts}
        return table.rows(version).select(*(_past(column, then, now[column.name]) for column in columns))

    def commits(self, name: TargetName, limit: int) -> tuple[Commit, ...]:
        """Follow the log back to where files were removed."""
        table = self._table(name)
        return states(table.readable_lineage(table.snapshot().version()), limit)

    def holdings(self, name: TargetName, upkeep: Upkeep) -> Holdings:
        """Ask the log."""
        table = self._table(name)
        kept = kept_before(table.properties(table.snapshot())).get("commit")
        with telling("look over", name):
            return delta_upkeep.holdings(self._spark, table, upkeep, kept=kept)

    def maintain(self, name: TargetName, chores: Chores) -> Maintained:
        """Compact, say the marker once more, and remove files."""
        table = self._table(name)
        with telling("maintain", name):
            on = there(table)
            progress = progress_of(name, table.lineage(on.version()))
            return delta_upkeep.maintain(table, chores, on, marker=None if progress is None else progress.to_text())

    def _append(self, table: DeltaTable, on: Any, batch: Batch, rows: DataFrame, division: Division) -> None:
        metadata = metadata_names(batch.mode)
        columns = (
            rows[value_column(column.id)].cast(delta_type(column.type)).alias(column.name)
            for column in batch.schema.columns
        )
        table.append(division.rows(rows.select(*columns, *metadata)), batch.progress.to_text(), on)

    def _write_whole_rows(self, name: TargetName, table: DeltaTable, on: Any, batch: Batch, division: Division) -> None:
        def merge(source: DataFrame) -> None:
            with viewed(source) as view:
                statement = merge_whole_rows_statement(table.sql_name, view, batch.schema, division)
                table.execute(statement, batch.progress.to_text(), on)

        writer = Writer(append=lambda rows: self._append(table, on, batch, rows, division), merge=merge)
        held = self.read(name, batch.schema, [column.id for column in batch.schema.columns])
        write_whole_rows(name, batch, held, writer)

    def listed(self, name: TargetName) -> Listed | None:
        """Return the columns as the log has them."""
        table = self._table(name)
        snapshot = table.snapshot()
        if snapshot is None:
            return None
        struct = T.StructType.fromJson({"type": "struct", "fields": table.fields(snapshot)})
        return Listed(location=self.path(name), struct=struct, provider="delta")

    def path(self, name: TargetName) -> str:
        """Return where a table lies; a crafted name is a folder of its own too, and does not leave the warehouse."""
        return "/".join((self._warehouse, *held_parts(name, DELTA.tables)))

    def _table(self, name: TargetName) -> DeltaTable:
        return DeltaTable(self._spark, self.path(name))


_VERBS: Mapping[type[Step], str] = {
    CreateTable: "create",
    JoinValues: "join columns of",
    AlterTable: "migrate",
    RewriteTable: "rewrite",
    Backfill: "back-fill",
    Repartition: "partition",
    ChangeRegime: "rewrite",
}


def _present(column: Column) -> SparkColumn:
    return F.col(quoted(column.name)).cast(to_spark(column.type)).alias(value_column(column.id))


def _past(column: Column, then: Mapping[int | str, Part], now: Part) -> SparkColumn:
    part = then.get(now.mark)
    if part is None:
        return literal(column.initial, column.type).alias(value_column(column.id))
    return as_now(F.col(quoted(part.name)), part, now, column.type).alias(value_column(column.id))
