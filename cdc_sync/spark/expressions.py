"""Expressions that people write, as Spark understands them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.core.revisions.fills import Converted, Fill, Value
from cdc_sync.core.schema.expressions import Expression
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.spark.casting import converted, converted_or_fails
from cdc_sync.spark.types import literal, to_spark

_ANSI = "spark.sql.ansi.enabled"


@contextmanager
def strict_casts(spark: SparkSession) -> Iterator[None]:
    """Have what cannot be computed (a cast, an overflow, a division by zero) fail, and not become NULL."""
    before = spark.conf.get(_ANSI)
    spark.conf.set(_ANSI, "true")
    try:
        yield
    finally:
        spark.conf.set(_ANSI, str(before))


def filled_rows(rows: DataFrame, fill: Fill) -> DataFrame:
    """Return rows with what they get in the columns that read NULL. To be run with `strict_casts`.

    Args:
        rows: with all columns of the fill's schema, among others.
    """
    for id_, value in fill.values:
        column = fill.schema.column(id_)
        rows = rows.withColumn(column.name, F.coalesce(F.col(quoted(column.name)), _value(value, column, fill.schema)))
    return rows


def _value(value: Value | None, column: Column, schema: InternalSchema) -> SparkColumn:
    match value:
        case None:
            return literal(column.initial, column.type)
        case Expression():
            return F.expr(value.sql(schema)).cast(to_spark(column.type))
        case Converted(id=id_, refuses_lost=refuses):
            old = schema.column(id_)
            held = F.col(quoted(old.name))
            if refuses:
                return converted_or_fails(held, old.type, column.type, column.name)
            return converted(held, old.type, column.type)


def why_not_computed(spark: SparkSession, schema: InternalSchema, id_: int, expression: Expression) -> str | None:
    """Say why a column of a schema cannot be computed so, None if it can; the text continues "it "."""
    columns = (F.lit(None).cast(to_spark(column.type)).alias(column.name) for column in schema.columns)
    try:
        with strict_casts(spark):
            value = F.expr(expression.sql(schema)).cast(to_spark(schema.column(id_).type))
            found: Any = spark.range(0).select(*columns).select(value)._jdf.queryExecution().analyzed()
    except PySparkException as error:
        return f"cannot be computed: {str(error).splitlines()[0]}"
    if not found.deterministic():
        return "may say something else each time; write the value out"
    return None
