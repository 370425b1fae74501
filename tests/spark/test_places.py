"""Events at places, and those without them."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.spark.places import at_places, left_out, marked

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


def test_whether_an_event_is_at_a_place_is_known_of_each(events: DataFrame) -> None:
    rows = marked(events, PLACES, "is_letter").where("is_letter").collect()
    assert sorted((row.partition, row.offset) for row in rows) == sorted(PLACES)
    assert marked(events, (), "is_letter").where("NOT is_letter").count() == 5


def test_what_is_wrong_with_an_event_at_a_place_is_not_looked_at(events: DataFrame) -> None:
    """The explosion has Spark filter by what is exploded, below a join that does not tell what is left out."""
    wrong = F.when((F.col("offset") == 2) & ~F.col("is_letter"), F.raise_error(F.lit("wrong")).cast("bigint"))
    found = marked(events, {(0, 2), (1, 2)}, "is_letter").withColumn("wrong", wrong).where("NOT is_letter")
    assert found.select(F.explode(F.array("wrong", "offset"))).count() == 6
