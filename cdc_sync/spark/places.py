"""Events at some places of a topic, and those without them."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from cdc_sync.spark.columns import OFFSET, PARTITION

_PLACES = StructType([StructField(PARTITION, IntegerType()), StructField(OFFSET, LongType())])


def left_out(events: DataFrame, places: Collection[tuple[int, int]]) -> DataFrame:
    """Return events without those at places, each partition and offset."""
    return _beside(events, places, "left_anti") if places else events


def at_places(events: DataFrame, places: Collection[tuple[int, int]]) -> DataFrame:
    """Return the events at places, each partition and offset."""
    return _beside(events, places, "left_semi")


def _beside(events: DataFrame, places: Collection[tuple[int, int]], how: str) -> DataFrame:
    frame = events.sparkSession.createDataFrame(sorted(places), _PLACES)
    return events.join(F.broadcast(frame), [PARTITION, OFFSET], how)
