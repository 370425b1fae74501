"""Whether columns can tell rows apart."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.spark.columns import value_column
from cdc_sync.spark.conditions import any_of


def clash(rows: DataFrame, key: Sequence[int]) -> str | None:
    """Return why rows cannot be told apart by columns, None if they can.

    Args:
        rows: `value_column(id)` of each.
        key: ids of the columns, at least one.
    """
    values = [rows[value_column(id_)] for id_ in key]
    if rows.where(any_of([value.isNull() for value in values])).limit(1).collect():
        return "a row has NULL in it"
    if rows.groupBy(*values).agg(F.count("*").alias("rows")).where("rows > 1").limit(1).collect():
        return "two rows have the same values in it"
    return None
