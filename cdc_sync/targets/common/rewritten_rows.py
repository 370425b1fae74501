"""The rows of a table as they are after a rewrite."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from cdc_sync.core.migration.migration import RewriteTable
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.spark.casting import converted, converted_or_fails
from cdc_sync.spark.types import literal


def converted_rows(rows: DataFrame, step: RewriteTable, after: InternalSchema, metadata: Sequence[str]) -> DataFrame:
    """Return the rows of a table as they are after a step, columns in order, a changelog's own behind them."""
    before, filled = {column.id: column for column in step.before.columns}, {column.id for column in step.filled}

    def value(column: Column) -> SparkColumn:
        old = before.get(column.id)
        if old is None:
            return literal(column.initial if column.id in filled else None, column.type)
        held = rows[quoted(old.name)]
        if old.type == column.type:
            return held
        if step.refuses_lost:
            return converted_or_fails(held, old.type, column.type, old.name)
        return converted(held, old.type, column.type)

    return rows.select(*(value(column).alias(column.name) for column in after.columns), *metadata)
