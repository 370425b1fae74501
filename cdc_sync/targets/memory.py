"""A target inside the process: for tests and for trying a configuration out."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from cdc_sync.errors import TargetError
from cdc_sync.migrate.capabilities import MEMORY, Capabilities
from cdc_sync.migrate.migration import AlterTable, Backfill, CreateTable, Migration
from cdc_sync.naming import TargetName
from cdc_sync.progress import Progress
from cdc_sync.schema.internal import InternalSchema
from cdc_sync.spark.columns import CREATED, DELETED, value_column
from cdc_sync.spark.types import literal
from cdc_sync.targets.base import MISSING_ROW, Batch, TargetState


@dataclass(slots=True)
class _Table:
    schema: InternalSchema
    version: int
    progress: Progress | None = None
    # rows by key; each row maps a column id to its value, so that renames and moves cost nothing
    rows: dict[tuple[Any, ...], dict[int, Any]] = field(default_factory=dict)


class MemoryTarget:
    """Tables as Python dictionaries; collects every batch to the driver, so never for real data."""

    def __init__(self) -> None:
        self._tables: dict[TargetName, _Table] = {}
        self._lock = threading.Lock()

    @property
    def capabilities(self) -> Capabilities:
        """As Iceberg's, so that a dry run and a run agree."""
        return MEMORY

    def state(self, name: TargetName) -> TargetState | None:
        """Return stamp and marker, None if the table was never created."""
        table = self._tables.get(name)
        return None if table is None else TargetState(version=table.version, progress=table.progress)

    def migrate(self, name: TargetName, migration: Migration, progress: Progress) -> None:
        """Carry out the steps."""
        for step in migration.steps:
            match step:
                case CreateTable(schema=schema):
                    with self._lock:
                        self._tables.setdefault(name, _Table(schema=schema, version=migration.version))
                case AlterTable():
                    table = self._tables[name]
                    kept = {column.id for column in migration.schema.columns}
                    table.rows = {
                        key: {id_: value for id_, value in row.items() if id_ in kept}
                        for key, row in table.rows.items()
                    }
                    table.schema, table.version = migration.schema, migration.version
                case Backfill(columns=columns):
                    self._backfill(name, columns, progress)

    def _backfill(self, name: TargetName, columns: tuple[Any, ...], progress: Progress) -> None:
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        assert session is not None
        one = session.range(1).select(
            *(literal(column.initial, column.type).alias(str(column.id)) for column in columns)
        )
        values = one.collect()[0].asDict()
        table = self._tables[name]
        for row in table.rows.values():
            # All columns of one step are new, so a row with a value in one of them was written after the migration.
            if all(row.get(column.id) is None for column in columns):
                row.update({column.id: values[str(column.id)] for column in columns})
        table.progress = progress

    def write(self, name: TargetName, batch: Batch) -> None:
        """Apply the rows, all or none."""
        table = self._tables[name]
        after = dict(table.rows)
        for row in batch.rows.collect():
            values = row.asDict(recursive=True)
            key = tuple(values[value_column(id_)] for id_ in batch.schema.primary_key)
            if values[DELETED]:
                after.pop(key, None)
                continue
            if batch.require_rows and not values[CREATED] and key not in after:
                raise TargetError(f"Cannot write {name}: {MISSING_ROW}")
            written = {column.id: values[value_column(column.id)] for column in batch.schema.live}
            after[key] = after.get(key, {}) | written
        table.rows, table.progress = after, batch.progress

    def rows(self, name: TargetName) -> list[dict[str, Any]]:
        """Return the rows by column name, in column order."""
        table = self._tables[name]
        return [{column.name: row.get(column.id) for column in table.schema.columns} for row in table.rows.values()]
