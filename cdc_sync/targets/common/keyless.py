"""Tables without a key: the target is a multiset of rows, and a batch changes how many copies of some it holds."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import isnan
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from structlog import get_logger

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.errors import TargetError
from cdc_sync.spark.columns import DELETED, value_column
from cdc_sync.spark.conditions import all_of
from cdc_sync.spark.whole_rows import NET
from cdc_sync.targets.common.partition_values import UNDIVIDED, Division, insertion
from cdc_sync.targets.protocol import MISSING_ROW, Batch

_RANK = "rank"
_BROADCAST_ROWS = 10_000
"""So few rows to look for are sent to every reader of the table; more would make it sort the whole table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """What a format does in one commit each.

    Attributes:
        append: adds rows of `value_column(id)` for each column.
        merge: takes `deleted` and `value_column(id)` for each column: removes every copy of a deleted row, adds the
            others. No two deleted rows are the same.
    """

    append: Callable[[DataFrame], None]
    merge: Callable[[DataFrame], None]


def write_whole_rows(name: TargetName, batch: Batch, table: DataFrame, writer: Writer) -> None:
    """Apply the contract of `spark.whole_rows.whole_rows` to a table, in one commit.

    The table is read just before, which is sound because nobody else writes it. Copies that stay are written again
    beside the new rows, with what retired columns hold, which equality does not look at. Copies to remove that are not
    there are warned of.

    Args:
        name: the table's, for messages.
        batch: its rows are the net counts, its schema the head.
        table: `value_column(id)` of all columns of all rows, as they are now.
        writer: how to commit.

    Raises:
        TargetError: if a copy to remove is not there and `Batch.require_rows` is set; nothing is written then.
    """
    missing = _write(batch, table, writer)
    if missing is None:
        raise TargetError(f"Cannot write {name}: {MISSING_ROW}")
    if missing:
        get_logger().warning("rows to delete were not there", table=str(name), rows=missing)


def _write(batch: Batch, table: DataFrame, writer: Writer) -> int | None:
    """Return how many copies were to be removed and were not there, None if that kept it from writing."""
    schema = batch.schema
    rows = batch.rows.persist()
    try:
        taken = rows.where(F.col(NET) < 0)
        distinct, wanted = taken.agg(F.count(NET), F.coalesce(-F.sum(NET), F.lit(0))).collect()[0]
        added = _copies(rows.where(F.col(NET) > 0))
        if not distinct:
            writer.append(added)
            return 0
        found = _found(table, F.broadcast(taken) if distinct <= _BROADCAST_ROWS else taken, schema).persist()
        try:
            removed = found.where(F.col(_RANK) <= -F.col(NET)).count()
            if removed < wanted and batch.require_rows:
                return None
            kept = found.where(F.col(_RANK) > -F.col(NET))
            if removed:
                writer.merge(_merge_source(schema, taken=taken, inserted=(added, kept)))
            else:
                writer.append(added)
            return int(wanted - removed)
        finally:
            found.unpersist()
    finally:
        rows.unpersist()


def _copies(added: DataFrame) -> DataFrame:
    """Return each row as many times as it is to be added."""
    return added.withColumn(NET, F.explode(F.array_repeat(F.lit(1), F.col(NET).cast("int"))))


def _found(table: DataFrame, taken: DataFrame, schema: InternalSchema) -> DataFrame:
    """Return the table's copies of the rows to be taken, numbered from 1; those numbered highest are to stay."""
    keys = {column.id: f"k{column.id}" for column in schema.live}
    wanted = taken.select(NET, *(F.col(value_column(id_)).alias(key) for id_, key in keys.items()))
    same = all_of(F.col(value_column(id_)).eqNullSafe(F.col(key)) for id_, key in keys.items())
    # Copies that hold something in a retired column stay longest: it cannot be had again.
    order = [F.col(value_column(column.id)).isNotNull() for column in schema.columns if column.retired]
    window = Window.partitionBy(*keys.values()).orderBy(*order, F.lit(1))
    return (
        table.join(wanted, same)
        .withColumn(_RANK, F.row_number().over(window))
        .select(_RANK, NET, *(value_column(column.id) for column in schema.columns))
    )


def _merge_source(schema: InternalSchema, *, taken: DataFrame, inserted: tuple[DataFrame, ...]) -> DataFrame:
    names = [value_column(column.id) for column in schema.columns]
    source = taken.select(F.lit(True).alias(DELETED), *names)
    for rows in inserted:
        source = source.unionByName(rows.select(F.lit(False).alias(DELETED), *names))
    return source


def merge_whole_rows_statement(table: str, view: str, schema: InternalSchema, division: Division = UNDIVIDED) -> str:
    """Return the MERGE for rows as `Writer.merge` takes them; a row to insert matches nothing."""
    condition = " AND ".join(f"t.{quoted(column.name)} <=> s.{value_column(column.id)}" for column in schema.live)
    values = {column.name: f"s.{value_column(column.id)}" for column in schema.columns}
    values |= division.of_new_row(values)
    return (
        f"MERGE INTO {table} t USING {view} s ON s.{DELETED} AND {condition} "
        f"WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND NOT s.{DELETED} THEN INSERT {insertion(values)}"
    )


def comparable(value: Any) -> Hashable:
    """Return a value such that two are equal if and only if Spark's `<=>` says so."""
    match value:
        case float() if isnan(value):
            return ("NaN",)
        case float():
            return value + 0.0  # -0.0 becomes 0.0
        case list() | tuple():
            return tuple(comparable(item) for item in value)
        case dict():
            return tuple(comparable(item) for item in value.values())
        case bytearray():
            return bytes(value)
        case _:
            return value  # type: ignore[no-any-return]
