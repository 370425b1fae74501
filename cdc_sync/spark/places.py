"""Events at some places of a topic, and those without them."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.spark.columns import OFFSET, PARTITION
from cdc_sync.spark.local_rows import local_rows

_PLACES = T.StructType([T.StructField(PARTITION, T.IntegerType()), T.StructField(OFFSET, T.LongType())])


def left_out(events: DataFrame, places: Collection[tuple[int, int]]) -> DataFrame:
    """Return events without those at places, each partition and offset."""
    return _beside(events, places, "left_anti") if places else events


def at_places(events: DataFrame, places: Collection[tuple[int, int]]) -> DataFrame:
    """Return the events at places, each partition and offset."""
    return _beside(events, places, "left_semi")


def marked(events: DataFrame, places: Collection[tuple[int, int]], name: str) -> DataFrame:
    """Return all events, and in a column of this name whether they are at places.

    A condition that uses the column is looked at behind the join, which `left_out` does not say: Spark looks at what is
    asked of the others before it leaves any out.
    """
    found = _frame(events, places).select(PARTITION, OFFSET, F.lit(True).alias(name))
    joined = events.join(F.broadcast(found), [PARTITION, OFFSET], "left")
    return joined.withColumn(name, F.coalesce(F.col(name), F.lit(False)))


def _beside(events: DataFrame, places: Collection[tuple[int, int]], how: str) -> DataFrame:
    return events.join(F.broadcast(_frame(events, places)), [PARTITION, OFFSET], how)


def _frame(events: DataFrame, places: Collection[tuple[int, int]]) -> DataFrame:
    return local_rows(events.sparkSession, sorted(places), _PLACES)
