"""A target inside the process: for tests and for trying a configuration out."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T
from structlog import get_logger

from cdc_sync.core.migration.capabilities import MEMORY, Capabilities
from cdc_sync.core.migration.maintenance import Chores, Holdings, Maintained, Upkeep
from cdc_sync.core.migration.migration import AlterTable, Backfill, CreateTable, JoinValues, Migration, RewriteTable
from cdc_sync.core.migration.modes import Mode, metadata_names
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.model.shared_schema import RowMoves
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import DataType
from cdc_sync.errors import TargetError
from cdc_sync.spark.casting import converted
from cdc_sync.spark.columns import CREATED, DELETED, unchanged_column, value_column
from cdc_sync.spark.types import literal, to_spark, with_leaves
from cdc_sync.spark.unchanged import FORGOTTEN
from cdc_sync.spark.whole_rows import NET
from cdc_sync.targets.common.keyless import comparable
from cdc_sync.targets.memory.members import reshaped
from cdc_sync.targets.protocol import (
    MISSING_ROW,
    UNKNOWN_VALUE,
    Batch,
    Commit,
    RowsOf,
    check_held,
    marker_after_join,
    same_offsets,
)

_Row = dict[int | str, Any]
"""Values by column id, so that renames and moves cost nothing; a changelog's metadata stands under its names."""
_Rows = dict[tuple[Any, ...], _Row]
"""Rows by key; without a key, and in a changelog, rows are numbered."""
_KEPT = 100


@dataclass(slots=True)
class _Table:
    schema: InternalSchema
    version: int
    mode: Mode = "upsert"
    numbers: Iterator[int] = field(default_factory=count)
    progress: Progress | None = None
    rows: _Rows = field(default_factory=dict)
    # What there was before each of the last writes, oldest first: a write replaces the rows, it never changes them.
    past: list[tuple[Progress | None, _Rows]] = field(default_factory=list)
    writes: int = 0
    # What there was before the last rewrite: schema, version, progress, rows.
    kept: tuple[InternalSchema, int, Progress | None, _Rows] | None = None
    union: str | None = None

    def commit(self, rows: _Rows, progress: Progress) -> None:
        """Take other rows, and keep what there was for a while."""
        self.past = [*self.past, (self.progress, self.rows)][-_KEPT:]
        self.rows, self.progress, self.writes = rows, progress, self.writes + 1

    def states(self) -> dict[int, tuple[Progress | None, _Rows]]:
        """Return what can be read by the number of writes it holds, newest first, the present included."""
        newest_first = [(self.progress, self.rows), *reversed(self.past)]
        return {self.writes - age: state for age, state in enumerate(newest_first)}


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
        if table is None:
            return None
        kept = None if table.kept is None else table.kept[1]
        return TargetState(
            version=table.version,
            progress=table.progress,
            mode=table.mode,
            rows=len(table.rows),
            kept=kept,
            union=table.union,
        )

    def migrate(
        self, name: TargetName, migration: Migration, progress: Progress, said: Mapping[int, DataFrame] | None = None
    ) -> None:
        """Carry out the steps."""
        for step in migration.steps:
            if not isinstance(step, CreateTable):
                check_held(name, self._tables[name].progress, progress)
            match step:
                case CreateTable(schema=schema, mode=mode):
                    with self._lock:
                        made = _Table(schema=schema, version=migration.version, mode=mode, union=migration.union)
                        self._tables.setdefault(name, made)
                case JoinValues():
                    self._join(name, step, (said or {}).get(step.into))
                case AlterTable():
                    table = self._tables[name]
                    rows = _altered(table, migration.schema, table.rows)
                    table.past = [(marker, _altered(table, migration.schema, then)) for marker, then in table.past]
                    table.rows = {_place(table, migration.schema, key, row): row for key, row in rows.items()}
                    table.schema, table.version, table.union = migration.schema, migration.version, migration.union
                case RewriteTable():
                    self._rewrite(name, step, migration, progress)
                case Backfill(columns=columns):
                    self._backfill(name, columns, progress)

    def _rewrite(self, name: TargetName, step: RewriteTable, migration: Migration, progress: Progress) -> None:
        table = self._tables[name]
        if table.version == migration.version:
            return
        held = [column for column in step.before.columns if any(column.id == it.id for it in migration.schema.columns)]
        read = self.read(name, step.before, [column.id for column in held])
        new = {column.id: column.type for column in migration.schema.columns}
        values = read.select(
            *(
                converted(read[value_column(column.id)], column.type, new[column.id]).alias(str(column.id))
                for column in held
            )
        )
        labels = metadata_names(table.mode)
        filled = _initials(step.filled)
        rows: _Rows = {}
        for (number, old), row in zip(table.rows.items(), _collected(name, values), strict=True):
            new_row: _Row = filled | {int(id_): value for id_, value in row.asDict(recursive=True).items()}
            rows[_place(table, migration.schema, number, new_row)] = new_row | {label: old[label] for label in labels}
        table.kept = table.schema, table.version, table.progress, table.rows
        table.rows, table.schema, table.version, table.progress = rows, migration.schema, migration.version, progress

    def roll_back(self, name: TargetName) -> bool:
        """Put back what there was."""
        table = self._tables[name]
        if table.kept is None:
            return False
        table.schema, table.version, table.progress, table.rows = table.kept
        table.kept = None
        return True

    def _join(self, name: TargetName, step: JoinValues, said: DataFrame | None) -> None:
        table = self._tables[name]
        if table.progress is None:
            return
        rows: _Rows = {key: dict(row) for key, row in table.rows.items()}
        if table.mode == "append" or not step.schema.primary_key:
            for row in rows.values():
                parts = (row.get(id_) for id_ in (step.into, *step.joined))
                row[step.into] = next((value for value in parts if value is not None), None)
        elif said is not None:
            for values in (row.asDict(recursive=True) for row in _collected(name, said)):
                key = tuple(values[value_column(id_)] for id_ in step.schema.primary_key)
                if key in rows:
                    rows[key][step.into] = values[value_column(step.into)]
        table.rows, table.progress = rows, marker_after_join(table.progress, step.version)

    def _backfill(self, name: TargetName, columns: tuple[Column, ...], progress: Progress) -> None:
        values = _initials(columns)
        table = self._tables[name]
        for row in table.rows.values():
            # All columns of one step are new, so a row with a value in one of them was written after the migration.
            if all(row.get(column.id) is None for column in columns):
                row.update(values)
        table.progress = progress

    def write(self, name: TargetName, batch: Batch) -> None:
        """Apply the rows, all or none."""
        table = self._tables[name]
        after = dict(table.rows)
        keyed = batch.mode == "upsert" and batch.schema.primary_key
        if not keyed:
            _write_numbered(name, batch, after, table.numbers)
        for row in _collected(name, batch.rows) if keyed else ():
            values = row.asDict(recursive=True)
            key = tuple(values[value_column(id_)] for id_ in batch.schema.primary_key)
            if batch.require_rows and not values[CREATED] and key not in after:
                raise TargetError(f"Cannot write {name}: {MISSING_ROW}")
            if values[DELETED]:
                after.pop(key, None)
                continue
            kept = _unchanged(name, batch, values, known=key in after)
            written = {column.id: values[value_column(column.id)] for column in batch.schema.live}
            after[key] = after.get(key, {}) | {id_: value for id_, value in written.items() if id_ not in kept}
        with self._lock:
            check_held(name, table.progress, batch.behind)
            table.commit(after, batch.progress)

    def change_rows(
        self,
        name: TargetName,
        rows: RowsOf,
        change: RowMoves | Backfill,
        progress: Progress,
        behind: Progress | None,
    ) -> None:
        """Change them."""
        table, source = self._tables[name], rows.schema.columns[0].id
        check_held(name, table.progress, behind)
        values = _initials(change.columns) if isinstance(change, Backfill) else {}
        after: _Rows = {}
        for key, row in table.rows.items():
            if row.get(source) != rows.label:
                after[key] = row
            elif isinstance(change, Backfill):
                empty = all(row.get(column.id) is None for column in change.columns)
                after[key] = row | values if empty else row
            else:
                moved = {to: row.get(from_) for from_, to in change.moved}
                new: _Row = row | dict.fromkeys(change.emptied) | moved
                after[tuple(new.get(id_) for id_ in change.key)] = new
        table.rows, table.progress = after, progress

    def remove_rows(self, name: TargetName, rows: RowsOf, progress: Progress, behind: Progress | None) -> None:
        """Keep all others."""
        table, source = self._tables[name], rows.schema.columns[0].id
        check_held(name, table.progress, behind)
        table.commit({key: row for key, row in table.rows.items() if row.get(source) != rows.label}, progress)

    def truncate(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Remove all rows."""
        check_held(name, self._tables[name].progress, behind)
        self._tables[name].commit({}, progress)

    def mark(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Keep the rows."""
        check_held(name, self._tables[name].progress, behind)
        self._tables[name].commit(self._tables[name].rows, progress)

    def drop(self, name: TargetName) -> None:
        """Forget the table."""
        with self._lock:
            self._tables.pop(name, None)

    def archive(self, name: TargetName, into: TargetName) -> None:
        """Keep the table under the other name."""
        with self._lock:
            if name not in self._tables:
                return
            if into in self._tables:
                raise TargetError(f"Cannot archive {name}: table {into} exists")
            self._tables[into] = self._tables.pop(name)

    def read(
        self, name: TargetName, schema: InternalSchema, ids: Sequence[int], commit: Commit | None = None
    ) -> DataFrame:
        """Return columns of the rows, as they are or as they were."""
        table = self._tables[name]
        _, rows = table.states()[int(commit.reference) if commit is not None else table.writes]
        columns = tuple(schema.column(id_) for id_ in ids)
        initials = _initials(columns)
        types = {value_column(column.id): to_spark(column.type) for column in columns}
        struct = T.StructType([T.StructField(label, _without_zone(type_)) for label, type_ in types.items()])
        values = [tuple(row.get(id_, initials[id_]) for id_ in ids) for row in rows.values()]
        frame = _session().createDataFrame(values, struct)
        return frame.select(*(frame[label].cast(type_).alias(label) for label, type_ in types.items()))

    def commits(self, name: TargetName, limit: int) -> tuple[Commit, ...]:
        """Return the last states; older ones are forgotten."""
        found: list[Commit] = []
        for number, (progress, _) in self._tables[name].states().items():
            if not found or not same_offsets(found[-1].progress, progress):
                found.append(Commit(progress=progress, reference=str(number)))
        return tuple(found[:limit])

    def holdings(self, name: TargetName, upkeep: Upkeep) -> Holdings:
        """Return nothing: there are no files, and the past forgets itself."""
        return Holdings()

    def maintain(self, name: TargetName, chores: Chores) -> Maintained:
        """Do nothing."""
        return Maintained()

    def rows(self, name: TargetName) -> list[dict[str, Any]]:
        """Return the rows by column name, in column order, a changelog's metadata behind the source's columns."""
        table = self._tables[name]
        columns: list[tuple[str, int | str]] = [(column.name, column.id) for column in table.schema.columns]
        columns += [(label, label) for label in metadata_names(table.mode)]
        return [{label: row.get(id_) for label, id_ in columns} for row in table.rows.values()]


def _altered(table: _Table, after: InternalSchema, rows: _Rows) -> _Rows:
    """Return rows with the columns of another schema, and those with its members."""
    types: dict[int | str, tuple[DataType, DataType]] = {}
    for column in after.columns:
        held = next((item for item in table.schema.columns if item.id == column.id), column)
        types[column.id] = held.type, column.type
    kept = {*types, *metadata_names(table.mode)}
    return {
        key: {id_: reshaped(value, *types[id_]) if id_ in types else value for id_, value in row.items() if id_ in kept}
        for key, row in rows.items()
    }


def _place(table: _Table, schema: InternalSchema, number: tuple[Any, ...], row: _Row) -> tuple[Any, ...]:
    """Return where a row stands under another schema; where there is no key it is numbered."""
    if table.mode == "append" or table.union is not None:
        return number  # what a row of several source tables is found by is the affair of the one it is of
    if not schema.primary_key:
        return number if not table.schema.primary_key else (next(table.numbers),)
    return tuple(row.get(id_) for id_ in schema.primary_key)


def _write_numbered(name: TargetName, batch: Batch, after: _Rows, numbers: Iterator[int]) -> None:
    """Add rows; without a key, also take copies of rows away."""
    metadata = metadata_names(batch.mode)
    missing = 0
    for row in _collected(name, batch.rows):
        values = row.asDict(recursive=True)
        written: _Row = {column.id: values[value_column(column.id)] for column in batch.schema.columns}
        written |= {label: values[label] for label in metadata}
        net = values.get(NET, 1)
        for _ in range(net):
            after[(next(numbers),)] = dict(written)
        missing += _take(after, written, batch.schema, -net) if net < 0 else 0
    if missing and batch.require_rows:
        raise TargetError(f"Cannot write {name}: {MISSING_ROW}")
    if missing:
        get_logger().warning("rows to delete were not there", table=str(name), rows=missing)


def _take(rows: _Rows, wanted: _Row, schema: InternalSchema, copies: int) -> int:
    """Remove copies of a row, those that hold nothing in retired columns first; return how many were not there."""

    def live(row: _Row) -> tuple[Any, ...]:
        return tuple(comparable(row.get(column.id)) for column in schema.live)

    retired = [column.id for column in schema.columns if column.retired]
    found = [key for key, row in rows.items() if live(row) == live(wanted)]
    found.sort(key=lambda key: [rows[key].get(id_) is not None for id_ in retired])
    for key in found[:copies]:
        del rows[key]
    return max(copies - len(found), 0)


def _unchanged(name: TargetName, batch: Batch, values: dict[str, Any], *, known: bool) -> frozenset[int]:
    """Return the columns that keep what the table has."""
    left_out = frozenset(id_ for id_ in batch.unchanged if values[unchanged_column(id_)])
    if not left_out or (known and not values[FORGOTTEN]):
        return left_out
    if batch.require_values:
        raise TargetError(f"Cannot write {name}: {UNKNOWN_VALUE}")
    return frozenset()


def _initials(columns: Sequence[Column]) -> _Row:
    """Return the initial value of each column as Spark hands it to Python."""
    literals = (
        literal(column.initial, column.type).cast(_without_zone(to_spark(column.type))).alias(str(column.id))
        for column in columns
    )
    return {int(name): value for name, value in _session().range(1).select(*literals).collect()[0].asDict().items()}


def _collected(name: TargetName, rows: DataFrame) -> list[Row]:
    """Bring rows to the driver; instants as local times of UTC, for PySpark cannot bring those of the year 1."""
    plain = (rows[field.name].cast(_without_zone(field.dataType)).alias(field.name) for field in rows.schema)
    try:
        return rows.select(*plain).collect()
    except (Py4JJavaError, PySparkException) as error:
        raise TargetError(f"Cannot write {name}: {error}") from error


def _without_zone(type_: T.DataType) -> T.DataType:
    return with_leaves(type_, lambda leaf: T.TimestampNTZType() if isinstance(leaf, T.TimestampType) else leaf)


def _session() -> SparkSession:
    session = SparkSession.getActiveSession()
    assert session is not None
    return session
