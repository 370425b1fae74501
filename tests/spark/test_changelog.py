"""Every event is a row of a changelog that says what the event said."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.wire import WireColumn, WireText
from cdc_sync.core.migration.modes import METADATA
from cdc_sync.core.model.positions import NO_POSITION, SourcePosition
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT64, STRING
from cdc_sync.spark.changelog import TS, WHOLE_BEFORE, changelog, position_text, whole_before
from cdc_sync.spark.columns import HAS_BEFORE, OFFSET, OP, PARTITION, POSITION, before_column, unchanged_column
from cdc_sync.spark.position import POSITION_TYPE

pytestmark = pytest.mark.spark

ID, TEXT = Column(id=1, name="id", type=INT64), Column(id=2, name="text", type=STRING)
KEYED = InternalSchema(columns=(ID, TEXT), primary_key=(1,), last_column_id=2)
KEYLESS = replace(KEYED, primary_key=())
EVENT = {
    PARTITION: 3,
    OFFSET: 7,
    OP: "c",
    POSITION: (0, "postgresql", [8, 9]),
    TS: 1_600_000_000_123,
    HAS_BEFORE: False,
}
FIELDS = [
    T.StructField(PARTITION, T.IntegerType()),
    T.StructField(OFFSET, T.LongType()),
    T.StructField(OP, T.StringType()),
    T.StructField(POSITION, POSITION_TYPE),
    T.StructField(TS, T.LongType()),
    T.StructField(HAS_BEFORE, T.BooleanType()),
    T.StructField(WHOLE_BEFORE, T.BooleanType()),
    T.StructField("c1", T.LongType()),
    T.StructField("c2", T.StringType()),
    T.StructField(before_column(1), T.LongType()),
    T.StructField(before_column(2), T.StringType()),
    T.StructField(unchanged_column(2), T.BooleanType()),
]


def converted(session: SparkSession, **values: Any) -> DataFrame:
    event = {unchanged_column(2): False, WHOLE_BEFORE: False, **EVENT, **values}
    return session.createDataFrame([tuple(event.get(field.name) for field in FIELDS)], T.StructType(FIELDS))


def row(frame: DataFrame, schema: InternalSchema = KEYED) -> Row:
    (found,) = changelog(frame, schema, topic="shop.public.t").collect()
    return found


def values(found: Row) -> tuple[Any, Any]:
    return found["c1"], found["c2"]


def test_a_row_is_the_values_and_behind_them_where_they_are_from(session: SparkSession) -> None:
    frame = converted(session, c1=1, c2="x")
    found = row(frame)
    assert list(found.asDict()) == ["c1", "c2", *(name for name, _ in METADATA)]
    assert tuple(found)[:7] == (1, "x", "c", "shop.public.t", 3, 7, "postgresql:8/9")
    assert found["_cdc_unchanged"] is None
    instant = changelog(frame, KEYED, topic="t").select(F.unix_millis("_cdc_ts")).collect()[0][0]
    assert datetime.fromtimestamp(instant / 1000, tz=timezone.utc).isoformat() == "2020-09-13T12:26:40.123000+00:00"


@pytest.mark.parametrize("op", ["c", "u", "r"])
def test_the_values_are_those_after_the_change(session: SparkSession, op: str) -> None:
    frame = converted(session, op=op, has_before=True, whole_before=True, c1=1, c2="new", b1=1, b2="old")
    assert values(row(frame)) == (1, "new")


@pytest.mark.parametrize(
    ("has_before", "whole", "expected"),
    [(True, False, (1, None)), (True, True, (1, "old")), (False, True, (1, None))],
    ids=["the key", "the whole row", "no before"],
)
def test_a_delete_is_what_is_known_of_the_row(
    session: SparkSession, has_before: bool, whole: bool, expected: tuple[Any, Any]
) -> None:
    frame = converted(session, op="d", has_before=has_before, whole_before=whole, c1=1, b1=1, b2="old")
    for schema in (KEYED, replace(KEYED, primary_key=())):
        assert values(row(frame, schema)) == expected


def test_a_truncate_is_a_row_without_values(session: SparkSession) -> None:
    found = row(converted(session, op="t"))
    assert (values(found), found["_cdc_op"], found["_cdc_offset"]) == ((None, None), "t", 7)


def test_values_that_are_left_out_are_named(session: SparkSession) -> None:
    frame = converted(session, op="u", c1=1, u2=True)
    assert row(frame)["_cdc_unchanged"] == ["text"]
    assert row(frame.drop(unchanged_column(2)))["_cdc_unchanged"] is None


@pytest.mark.parametrize("ts", [None, 2**63 - 1, -(2**63), 253402300800000, -62135596800001])
def test_a_time_that_cannot_be_shown_is_null(session: SparkSession, ts: int | None) -> None:
    assert row(converted(session, c1=1, ts_ms=ts))["_cdc_ts"] is None


@pytest.mark.parametrize(
    "position",
    [
        NO_POSITION,
        SourcePosition(kind="binlog", parts=(3, 2**62, 0)),
        SourcePosition(kind="postgresql", parts=(8, 9), incarnation=2),
    ],
    ids=str,
)
def test_a_position_is_written_as_everywhere_else(session: SparkSession, position: SourcePosition) -> None:
    frame = converted(session, position=(position.incarnation, position.kind, list(position.parts)))
    assert frame.select(position_text(F.col(POSITION))).collect()[0][0] == str(position)


COLUMNS = (
    WireColumn(field="id", name="id", wire=WireText(), optional=False),
    WireColumn(field="required", name="required", wire=WireText(), optional=False),
    WireColumn(field="nullable", name="nullable", wire=WireText()),
    WireColumn(field="filled", name="filled", wire=WireText(), default="x"),
)


@pytest.mark.parametrize(
    ("before", "proven"),
    [
        (("1", "", None, None), False),
        (("1", "y", None, "x"), False),
        (("1", "", "y", None), True),
        ((None, None, None, None), False),
    ],
)
def test_only_a_value_in_a_nullable_column_proves_that_the_whole_row_is_there(
    session: SparkSession, before: tuple[str | None, ...], proven: bool
) -> None:
    names = [column.name for column in COLUMNS]
    frame = session.createDataFrame([before], ", ".join(f"{name} string" for name in names))
    for columns in (COLUMNS, COLUMNS[:2]):
        found = frame.select(whole_before(columns, ("id",), lambda column: F.col(column.name))).collect()[0][0]
        assert found == (proven and columns is COLUMNS)
    assert frame.select(whole_before(COLUMNS, (), lambda column: F.col(column.name))).collect()[0][0] is True
