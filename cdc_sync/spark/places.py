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


def _beside(events: DataFrame, places: Collection[tuple[int, int]], how: str) -> DataFrame:
    # As one text: `createDataFrame` has a worker of Python read them, and a literal for each is planned for seconds.
    text = json.dumps([{PARTITION: partition, OFFSET: offset} for partition, offset in sorted(places)])
    frame = events.sparkSession.range(1).select(F.inline(F.from_json(F.lit(text), _PLACES)))
    return events.join(F.broadcast(frame), [PARTITION, OFFSET], how)
