"""Derived columns hold what a plain model says, for every type and the values that are at its edges."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.migration.capabilities import DELTA
from cdc_sync.core.migration.derived import derived_columns
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.transforms import fits
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
)
from cdc_sync.spark.derived import derived_column, derived_sql
from cdc_sync.spark.types import to_spark
from tests.targets.derived import expected

_MOMENTS = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1969, 12, 31, 23, 59, 59, 1)]
_VALUES: dict[str, tuple[DataType, list[Any]]] = {
    "boolean": (BOOLEAN, [True, False]),
    "int8": (INT8, [-128, -1, 0, 127]),
    "int16": (INT16, [-(2**15), 2**15 - 1]),
    "int32": (INT32, [-(2**31), -7, 0, 7, 2**31 - 1]),
    "int64": (INT64, [-(2**63), -(2**63) + 1, 0, 2**63 - 1]),
    "float": (FLOAT32, [0.5, -0.0]),
    "double": (FLOAT64, [1.5, -0.0, 0.0]),
    "money": (DecimalType(precision=9, scale=2), [Decimal(t) for t in ("10.65", "-0.01", "0.00", "-9999999.99")]),
    "exact": (DecimalType(precision=30, scale=9), [Decimal(t) for t in ("0.000000001", "0E-9", "-1234567.500000000")]),
    "whole": (DecimalType(precision=38, scale=0), [Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(-3)]),
    "te`xt": (STRING, ["", " ", "é😀" * 50, "a/b=c%25", "__HIVE_DEFAULT_PARTITION__", "\x00\n'\"\\", "null"]),
    "bytes": (BINARY, [b"", b"\x00\xff" * 30, b"a"]),
    "date": (DATE, [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(2024, 2, 29)]),
    "moment": (TIMESTAMP, _MOMENTS),
    "instant": (TIMESTAMP_TZ, _MOMENTS),
}
_WAYS = (
    *("{}", "bucket(1, {})", "bucket(16, {})", "bucket(2147483647, {})", "year({})", "month({})", "day({})"),
    *("hour({})", "truncate(1, {})", "truncate(10, {})", "truncate(1000, {})", "truncate(2147483647, {})"),
)


@pytest.fixture(params=["true", "false"])
def session(request: pytest.FixtureRequest, _spark: SparkSession) -> SparkSession:
    """Both ways of SQL: the job's, and what Spark 4 does where nobody says otherwise."""
    session = _spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", request.param)
    return session


def test_every_transform_of_every_type_holds_what_the_model_says(session: SparkSession) -> None:
    rows = max(len(values) for _, values in _VALUES.values()) + 1
    columns = tuple(Column(id=id_, name=name, type=type_) for id_, (name, (type_, _)) in enumerate(_VALUES.items(), 1))
    schema = InternalSchema(columns=columns, primary_key=(), last_column_id=99)
    struct = T.StructType([T.StructField(column.name, to_spark(column.type)) for column in columns])
    # One value of each column is NULL at least.
    table = [tuple((values[n] if n < len(values) else None) for _, values in _VALUES.values()) for n in range(rows)]
    held = {column.name: column.type for column in columns}
    fields = [
        item
        for way in _WAYS
        for name in held
        for item in Partitioning.parse([way.format(f"`{name.replace('`', '``')}`")]).fields
        if fits(item, held[name])
    ]
    assert len(fields) == 98
    derived = [derived_columns(Partitioning(fields=(it,)), schema, "upsert", DELTA.columns)[0] for it in fields]
    frame = session.createDataFrame(table, struct)
    # A hundred columns in several selects: Java takes no method of all of them at once.
    for begin in range(0, len(derived), 25):
        part = derived[begin : begin + 25]
        found = frame.select(*(derived_column(it, it.field.column).alias(f"c{n}") for n, it in enumerate(part)))
        assert [field.dataType for field in found.schema] == [to_spark(it.type) for it in part]
        for row, values in zip(found.collect(), table, strict=True):
            named = dict(zip(held, values, strict=True))
            for it, value in zip(part, row, strict=True):
                source = named[it.field.column]
                assert value == expected(it.field, source, it.source), (it.field, source)


def test_numbers_that_are_none_have_a_partition_too(session: SparkSession) -> None:
    schema = InternalSchema(columns=(Column(id=1, name="c", type=FLOAT64),), primary_key=(), last_column_id=1)
    (derived,) = derived_columns(Partitioning.parse(["c"]), schema, "upsert", DELTA.columns)
    frame = session.createDataFrame([(math.nan,), (math.inf,), (-math.inf,)], "c double")
    assert [row[0] for row in frame.select(derived_column(derived, "c")).collect()] == ["NaN", "Infinity", "-Infinity"]


def test_small_and_wide_integers_have_one_bucket(session: SparkSession) -> None:
    """A type that widens in place leaves rows where they are."""
    for way in ("c", "bucket(16, c)", "truncate(10, c)"):
        found = []
        for type_ in (INT8, INT32, INT64):
            schema = InternalSchema(columns=(Column(id=1, name="c", type=type_),), primary_key=(), last_column_id=1)
            (derived,) = derived_columns(Partitioning.parse([way]), schema, "upsert", DELTA.columns)
            frame = session.range(1).select(F.expr(derived_sql(derived, "CAST(-7 AS INT)")).alias("c"))
            found.append((frame.schema, frame.collect()))
        assert found[0] == found[1] == found[2]
