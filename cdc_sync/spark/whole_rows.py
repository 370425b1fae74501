"""Events of a table without a key, as what they do to a multiset of rows."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.spark.columns import OFFSET, OP, before_column, unchanged_column, value_column
from cdc_sync.spark.types import to_spark

NET = "net"
"""Of a batch's row: how many copies it adds to the table (above 0) or takes from it (below 0), never 0."""

_STEP, _STEPS = "step", "steps"


def whole_rows(converted: DataFrame, schema: InternalSchema) -> DataFrame:
    """Reduce converted events to one row for each distinct row they change the number of.

    A row is all live columns; NULL equals NULL, NaN equals NaN, -0.0 equals 0.0. The order of events does not matter:
    each adds the row after the change and takes the row before it.

    Args:
        converted: from `compile.convert` with before images; every `u` and `d` has one. Values that an update leaves
            out are taken from it.
        schema: the head; every live column's type can be compared, see `migration.capabilities.can_compare`.

    Returns:
        `net` and `value_column(id)` for each column, NULL for retired ones.
    """
    unchanged = {name for name in converted.columns if name.startswith(unchanged_column(0)[:-1])}
    # By way of the offset, because the job fails at a record with a problem through it.
    one = F.when(F.col(OFFSET) >= 0, F.lit(1))
    after = _row(schema, one, {column.id: _after(column.id, unchanged) for column in schema.live})
    before = _row(schema, -one, {column.id: F.col(before_column(column.id)) for column in schema.live})
    # Two projections, so that the rows are built from columns that are computed once.
    steps = F.array(F.when(F.col(OP).isin("u", "d"), before), F.when(F.col(OP) != "d", after))
    exploded = converted.select(steps.alias(_STEPS)).select(F.explode(_STEPS).alias(_STEP))
    taken = exploded.where(F.col(_STEP).isNotNull()).select(f"{_STEP}.*")
    keys = [value_column(column.id) for column in schema.live]
    summed = taken.groupBy(*keys).agg(F.sum(NET).alias(NET)).where(F.col(NET) != 0)
    retired = {column.id: F.lit(None).cast(to_spark(column.type)) for column in schema.columns if column.retired}
    values = (
        retired.get(column.id, F.col(value_column(column.id))).alias(value_column(column.id))
        for column in schema.columns
    )
    return summed.select(NET, *values)


def _after(id_: int, unchanged: set[str]) -> Column:
    value = F.col(value_column(id_))
    if unchanged_column(id_) not in unchanged:
        return value
    return F.when(F.col(unchanged_column(id_)), F.col(before_column(id_))).otherwise(value)


def _row(schema: InternalSchema, net: Column, values: dict[int, Column]) -> Column:
    return F.struct(net.alias(NET), *(values[column.id].alias(value_column(column.id)) for column in schema.live))
