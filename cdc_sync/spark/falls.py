"""Where a source's log began anew, found among the records of a range; the rule is that of `incarnations`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from cdc_sync.core.model.incarnations import Reached
from cdc_sync.core.model.positions import TableId
from cdc_sync.spark.columns import OFFSET, PARTITION, TOPIC
from cdc_sync.spark.conditions import first_of, names_table
from cdc_sync.spark.kept import Projection
from cdc_sync.spark.position import INCARNATION, KIND, PARTS, POSITION_TYPE, literal_position

Before: TypeAlias = Mapping[TableId, Mapping[tuple[str, int], Reached]]
"""What each partition has come to before the records that are looked at."""


def with_falls(looked_at: DataFrame) -> DataFrame:
    """Add `fall`: the times around an event that proves that the source's log began anew, as `incarnations.fall`.

    Args:
        looked_at: with `reached_before` as `before`.
    """
    return _of_fall().of(_of_reached().of(looked_at))


def reached_before(before: Before) -> Column:
    """Return what the table's events have come to before the records, NULL where that is not known."""
    known = [
        (
            names_table(F.col("table"), table) & (F.col(TOPIC) == topic) & (F.col(PARTITION) == partition),
            F.struct(
                literal_position(reached.position).alias("position"),
                F.lit(reached.latest).cast("long").alias("latest"),
                F.lit(reached.last).cast("long").alias("last"),
            ),
        )
        for table, places in before.items()
        for (topic, partition), reached in places.items()
    ]
    nothing = F.lit(None).cast(f"struct<position: {POSITION_TYPE.simpleString()}, latest: bigint, last: bigint>")
    return first_of(known).otherwise(nothing) if known else nothing


@cache
def _of_reached() -> Projection:
    """Return what the events before each one have come to in its partition; the same for every range."""
    earlier = Window.partitionBy("is_event", "table", TOPIC, PARTITION).orderBy(OFFSET)
    earlier = earlier.rowsBetween(Window.unboundedPreceding, -1)
    told = F.col("at").isNotNull() & (F.size(F.col("position").getField(PARTS)) > 0)
    before = F.col("before")
    last = F.last(F.when(told, F.col("at")), ignorenulls=True).over(earlier)
    highest = F.max(F.when(told, F.col("position"))).over(earlier)
    latest = F.max(F.when(told, F.col("at"))).over(earlier)
    return Projection(
        (
            "*",
            F.greatest(highest, before.getField("position")).alias("highest"),
            F.greatest(latest, before.getField("latest")).alias("latest"),
            F.coalesce(last, before.getField("last")).alias("last"),
        )
    )


@cache
def _of_fall() -> Projection:
    falls = F.col("may_fall") & _is_surely_before(F.col("position"), F.col("highest")) & (F.col("at") > F.col("latest"))
    began = F.greatest(F.floor((F.col("last") + F.col("at") + 1) / 2), F.col("latest") + 1)
    fall = F.struct("at", began.alias("began"), "latest", "last")
    return Projection(("*", F.when(F.col("is_event") & falls, fall).alias("fall")))


def _is_surely_before(position: Column, other: Column) -> Column:
    """Return what `incarnations.is_surely_before` does."""
    same = (position.getField(INCARNATION) == other.getField(INCARNATION)) & (position.getField(KIND) == "postgresql")
    same = same & (other.getField(KIND) == "postgresql")
    reaches = F.array_max(position.getField(PARTS)) < F.get(other.getField(PARTS), F.lit(0))
    return F.when(same, reaches).otherwise(position < other)
