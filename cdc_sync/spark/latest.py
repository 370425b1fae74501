"""The last event of each key."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_sync.schema.internal import InternalSchema
from cdc_sync.spark.columns import CREATED, DELETED, OFFSET, OP, value_column

_LAST = "last"


def begins_with_row(op: Column, offset: Column) -> Column:
    """Aggregate to whether the key's first event needs no row to be there: only an update does."""
    return F.min_by(op, offset) != "u"


def latest(converted: DataFrame, schema: InternalSchema) -> DataFrame:
    """Reduce converted events to one row for each key.

    All events of a key are in one partition, so the offset orders them.

    Returns:
        `deleted`, `created` and `value_column(id)` for each column, the contract of `targets.base.Batch`.
    """
    keys = [value_column(id_) for id_ in schema.primary_key]
    others = [name for column in schema.columns if (name := value_column(column.id)) not in keys]
    last = F.max_by(F.struct(OP, *others), OFFSET).alias(_LAST)
    created = begins_with_row(F.col(OP), F.col(OFFSET)).alias(CREATED)
    # Shuffled before the aggregation, rows are sorted once instead of before and after the shuffle.
    partitions = int(converted.sparkSession.conf.get("spark.sql.shuffle.partitions") or 2)
    reduced = converted.repartition(partitions, *keys).groupBy(*keys).agg(last, created)
    by_name = {name: F.col(_LAST).getField(name).alias(name) for name in others}
    values = [by_name.get(value_column(column.id), F.col(value_column(column.id))) for column in schema.columns]
    return reduced.select((F.col(_LAST).getField(OP) == "d").alias(DELETED), CREATED, *values)
