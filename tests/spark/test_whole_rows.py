"""Events of a table without a key become net counts of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import FLOAT64, STRING
from cdc_sync.spark.columns import OFFSET, unchanged_column
from cdc_sync.spark.whole_rows import NET, whole_rows
from cdc_sync.targets.common.keyless import comparable
from tests.targets.keyless import Event, converted, created, deleted, updated

pytestmark = pytest.mark.spark

SCHEMA = InternalSchema(
    columns=(Column(id=1, name="number", type=FLOAT64), Column(id=2, name="text", type=STRING)),
    primary_key=(),
    last_column_id=2,
)
A, B = (1.0, "a"), (2.0, None)


def net(frame: DataFrame, schema: InternalSchema = SCHEMA) -> dict[Any, int]:
    """Return the counts by row; every row at most once."""
    found = whole_rows(frame, schema)
    assert found.columns == [NET, "c1", "c2"]
    rows = [(comparable(tuple(row)[1:]), row[NET]) for row in found.collect()]
    assert max(Counter(row for row, _ in rows).values(), default=0) <= 1
    return dict(rows)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], {}),
        ([created(A), created(A), created(B)], {A: 2, B: 1}),
        ([Event("r", None, A)], {A: 1}),
        ([deleted(A), deleted(A)], {A: -2}),
        ([updated(A, B)], {A: -1, B: 1}),
        ([updated(A, A)], {}),
        ([updated(A, B), updated(B, A)], {}),
        ([created(A), updated(A, B), deleted(B)], {}),
        ([created((0.0, None)), created((-0.0, None))], {(0.0, None): 2}),
        ([created((float("nan"), None)), deleted((float("nan"), None))], {}),
        ([created((None, None)), created((None, None))], {(None, None): 2}),
        ([created((None, "")), deleted((None, None))], {(None, ""): 1, (None, None): -1}),
    ],
    ids=str,
)
def test_events_add_the_row_after_and_take_the_row_before(
    session: SparkSession, events: list[Event], expected: dict[Any, int]
) -> None:
    assert net(converted(session, events, SCHEMA)) == expected


def test_a_value_that_is_left_out_is_the_one_before(session: SparkSession) -> None:
    events = [updated((1.0, "long"), (2.0, None)), updated((1.0, "long"), (3.0, None))]
    frame = converted(session, events, SCHEMA).withColumn(unchanged_column(2), F.col(OFFSET) == 0)
    assert net(frame) == {(1.0, "long"): -2, (2.0, "long"): 1, (3.0, None): 1}


def test_retired_columns_do_not_tell_rows_apart(session: SparkSession) -> None:
    schema = replace(SCHEMA, columns=(replace(SCHEMA.columns[0], retired=True), SCHEMA.columns[1]))
    frame = converted(session, [created((1.0, "a")), created((2.0, "a"))], schema)
    assert net(frame, schema) == {(None, "a"): 2}


def test_a_record_that_stops_the_write_is_not_optimised_away(session: SparkSession) -> None:
    raising = F.when(F.col(OFFSET) < 1, F.col(OFFSET)).otherwise(F.raise_error(F.lit("found it")).cast("bigint"))
    frame = converted(session, [created(A), created(A)], SCHEMA).withColumn(OFFSET, raising)
    with pytest.raises(Py4JJavaError, match="found it"):
        whole_rows(frame, SCHEMA).agg(F.count(F.lit(1))).collect()
