"""Stored values that have no place in their column's new type: how many there are, and the first of them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.migration.operator_requests import UnconvertedValue
from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.types import NESTED, BinaryType, DataType
from cdc_sync.spark.casting import has_no_place
from cdc_sync.spark.columns import value_column


def count_lost(rows: DataFrame, columns: Sequence[tuple[Column, DataType]]) -> dict[str, int]:
    """Count the values of each column that its new type has no place for, in one pass; columns without are left out.

    Args:
        rows: `value_column(id)` of each.
        columns: each with its stored type, and the new type.
    """
    lost = (F.count_if(_lost(rows, column, new)).alias(str(place)) for place, (column, new) in enumerate(columns))
    counts = rows.agg(*lost).collect()[0]
    return {column.name: counts[str(place)] for place, (column, _) in enumerate(columns) if counts[str(place)]}


def first_lost(
    rows: DataFrame, column: Column, new: DataType, key: Sequence[Column], *, limit: int
) -> tuple[UnconvertedValue, ...]:
    """Return the first of a column's lost values, in their keys' order: the same ones when asked again."""
    # Maps are in no order of their own.
    order = [
        _text(rows, part) if isinstance(part.type, NESTED) else rows[value_column(part.id)] for part in (*key, column)
    ]
    found = rows.where(_lost(rows, column, new)).sort(*order).limit(limit)
    labels = [_text(rows, part).alias(f"k{place}") for place, part in enumerate(key)]
    return tuple(
        UnconvertedValue(
            column=column.name,
            key={part.name: row[f"k{place}"] for place, part in enumerate(key)},
            value=row["value"],
        )
        for row in found.select(*labels, _text(rows, column).alias("value")).collect()
    )


def _lost(rows: DataFrame, column: Column, new: DataType) -> SparkColumn:
    return has_no_place(rows[value_column(column.id)], column.type, new)


def _text(rows: DataFrame, column: Column) -> SparkColumn:
    value = rows[value_column(column.id)]
    if isinstance(column.type, NESTED):
        return F.to_json(value)
    return F.base64(value) if isinstance(column.type, BinaryType) else value.cast("string")
