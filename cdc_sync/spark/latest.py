"""The last event of each key."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.spark.columns import CREATED, DELETED, OFFSET, OP, value_column
from cdc_sync.spark.kept import Projection, kept

_LAST = "last"


def begins_with_row(op: Column, offset: Column) -> Column:
    """Aggregate to whether the key's first event needs no row to be there: only an update does."""
    return F.min_by(op, offset) != "u"


def latest(converted: DataFrame, schema: InternalSchema, *, one_task: bool = False) -> DataFrame:
    """Reduce converted events to one row for each key.

    All events of a key that are read together are in one partition, or `refusals` stops the table (see also
    `TableReading.awaits`), so the offset orders them.

    Args:
        converted: events of the table.
        schema: the head.
        one_task: they come from one task (`source.in_one_task`), which costs less to know than to find out.

    Returns:
        `deleted`, `created` and `value_column(id)` for each column, the contract of `targets.protocol.Batch`.
    """
    keys = tuple(value_column(id_) for id_ in schema.primary_key)
    names = tuple(value_column(column.id) for column in schema.columns)
    aggregates, rows = kept(("latest", keys, names), lambda: _expressions(keys, names))
    return rows.of(together(converted, keys, one_task=one_task).groupBy(*keys).agg(*aggregates))


def together(converted: DataFrame, keys: tuple[str, ...], *, one_task: bool) -> DataFrame:
    """Shuffle events before an aggregation by key, so that rows are sorted once and not before and after a shuffle."""
    if one_task:
        return converted
    return converted.repartition(int(converted.sparkSession.conf.get("spark.sql.shuffle.partitions") or 2), *keys)


def _expressions(keys: tuple[str, ...], names: tuple[str, ...]) -> tuple[tuple[Column, ...], Projection]:
    """Return what a key's events are reduced to, and what the rows are made of that."""
    last = F.max_by(F.struct(OP, *(name for name in names if name not in keys)), OFFSET).alias(_LAST)
    created = begins_with_row(F.col(OP), F.col(OFFSET)).alias(CREATED)
    values = (F.col(name) if name in keys else _of_last(name) for name in names)
    deleted = (F.col(_LAST).getField(OP) == "d").alias(DELETED)
    return (last, created), Projection((deleted, F.col(CREATED), *values))


def _of_last(name: str) -> Column:
    return kept(("of last", name), lambda: F.col(_LAST).getField(name).alias(name))
