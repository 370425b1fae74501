"""Events at some places of a topic, and those without them."""

from __future__ import annotations

import json
from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.spark.columns import OFFSET, PARTITION

_PLACES = f"array<struct<{PARTITION}: int, {OFFSET}: bigint>>"


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
    # As one text: `createDataFrame` has a worker of Python read them, and a literal for each is planned for seconds.
    text = json.dumps([{PARTITION: partition, OFFSET: offset} for partition, offset in sorted(places)])
    return events.sparkSession.range(1).select(F.inline(F.from_json(F.lit(text), _PLACES)))
