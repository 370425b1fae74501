"""Events at places, and those without them."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc_sync.spark.places import at_places, left_out

PLACES = {(0, 2), (1, 1), (7, 2**40)}


@pytest.fixture
def events(_spark: SparkSession) -> DataFrame:
    rows = [(partition, offset) for partition in (0, 1) for offset in (1, 2)]
    return _spark.createDataFrame([*rows, (7, 2**40)], "partition int, offset bigint")


def found(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in frame.collect())


def test_events_at_places_are_those_and_no_others(events: DataFrame) -> None:
    assert found(at_places(events, PLACES)) == sorted(PLACES)
    assert found(at_places(events, ())) == []


def test_the_others_are_left(events: DataFrame) -> None:
    assert found(left_out(events, PLACES)) == [(0, 1), (1, 2)]
    assert len(found(left_out(events, ()))) == 5
