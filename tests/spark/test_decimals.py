"""Decimals of one row that are decoded together: each by itself, whatever stands beside it."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.spark.decimals import MOST_TOGETHER, decimals_of, together

pytestmark = pytest.mark.spark

SHAPES = [(precision, scale) for precision in range(1, MOST_TOGETHER + 1) for scale in {0, precision // 2, precision}]


def shortest(number: int) -> bytes:
    """Write a whole number as Java's `BigInteger.toByteArray` does."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def values(precision: int, rng: random.Random) -> list[bytes | None]:
    most = 10**precision - 1
    edges = [0, 1, -1, 127, 128, -128, -129, most, -most, most + 1, -most - 1, 2**54, 2**55, -(2**55), 2**119, 2**127]
    others = [rng.randint(-most, most) for _ in range(12)]
    return [None, b"", *map(shortest, edges + others), bytes(40)]


def wanted(data: bytes | None, precision: int, scale: int) -> Decimal | None:
    # What is longer than it need be is not looked at, even if it is zero.
    number = int.from_bytes(data, "big", signed=True) if data and len(data) < 40 else None
    with localcontext() as context:
        context.prec = 50
        return None if number is None or abs(number) >= 10**precision else Decimal(number).scaleb(-scale)


@pytest.mark.parametrize("ansi", [False, True])
def test_each_decimal_is_exact_or_null_whatever_stands_beside_it(session: SparkSession, ansi: bool) -> None:
    rng = random.Random(7)
    columns = {f"c{place}": (shape, values(shape[0], rng)) for place, shape in enumerate(SHAPES)}
    for _, column in columns.values():
        rng.shuffle(column)
    rows = list(zip(*(column for _, column in columns.values()), strict=True))
    frame = session.createDataFrame(rows, T.StructType([T.StructField(name, T.BinaryType()) for name in columns]))
    shapes = {name: shape for name, (shape, _) in columns.items()}
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        decoded = frame.select(decimals_of({name: (F.col(name), *shape) for name, shape in shapes.items()}).alias("d"))
        shown = [together(F.col("d"), name, *shape).alias(name) for name, shape in shapes.items()]
        got = decoded.select(*shown)
        kinds: dict[str, Any] = {field.name: field.dataType for field in got.schema.fields}
        found = got.collect()
    finally:
        session.conf.set("spark.sql.ansi.enabled", "false")
    assert kinds == {name: T.DecimalType(*shape) for name, shape in shapes.items()}
    for row, given in zip(found, rows, strict=True):
        for (name, shape), data in zip(shapes.items(), given, strict=True):
            assert row[name] == wanted(data, *shape), (name, shape, data)
