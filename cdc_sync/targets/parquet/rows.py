"""The rows of a Parquet table after a batch: all of them, for a state is written whole."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import Column as SchemaColumn
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.spark.columns import CREATED, DELETED, unchanged_column, value_column
from cdc_sync.spark.conditions import all_of, any_of
from cdc_sync.spark.types import literal, to_spark
from cdc_sync.spark.unchanged import FORGOTTEN
from cdc_sync.targets.parquet.properties import Stamp
from cdc_sync.targets.protocol import MISSING_ROW, UNKNOWN_VALUE, Batch

_THERE, _GIVEN = "there", "given"
"""Of a row of the join: whether the table has it, whether the batch has it."""


def held(rows: DataFrame, struct: StructType, values: Mapping[str, Column] | None = None) -> DataFrame:
    """Return rows with the columns of a table, in order, under its types.

    Args:
        rows: with the table's names.
        struct: the columns.
        values: what some of them have instead.
    """
    found = values or {}
    return rows.select(
        *(
            found.get(field.name, F.col(quoted(field.name))).cast(field.dataType).alias(field.name)
            for field in struct.fields
        )
    )


def new_rows(rows: DataFrame, schema: InternalSchema, struct: StructType) -> DataFrame:
    """Return rows of `value_column(id)` (and a changelog's own) as the table holds them."""
    return held(rows, struct, {column.name: F.col(value_column(column.id)) for column in schema.columns})


def value_of(stamp: Stamp, column: SchemaColumn) -> Column:
    """Return `value_column(id)` of a column; in rows of a state that did not have it, that is its initial value."""
    name = stamp.columns.get(column.id)
    value = literal(column.initial, column.type) if name is None else F.col(quoted(name)).cast(to_spark(column.type))
    return value.alias(value_column(column.id))


def merged(batch: Batch, table: DataFrame, struct: StructType) -> DataFrame:
    """Return all rows after a batch; the job fails at a row that must not be.

    One join finds what is inserted, changed and deleted, so that neither side is worked out twice.

    Args:
        batch: of a table with a key; its schema has the names of the table.
        table: all rows.
        struct: the table's columns.
    """
    schema = batch.schema
    before = table.select(
        F.lit(True).alias(_THERE), *(table[quoted(column.name)].alias(_held(column.id)) for column in schema.columns)
    )
    given = batch.rows.withColumn(_GIVEN, F.lit(True))
    same = all_of(
        before[_held(column.id)].eqNullSafe(given[value_column(column.id)].cast(struct[column.name].dataType))
        for column in schema.key_columns
    )
    joined = before.join(given, same, "full_outer")
    is_there, is_given = F.col(_THERE).isNotNull(), F.col(_GIVEN).isNotNull()
    values = {}
    for column in schema.columns:
        keeps = ~is_given
        if column.retired:
            keeps = is_there  # the source says nothing about it any more
        elif column.id in batch.unchanged:
            keeps = keeps | (is_there & F.col(unchanged_column(column.id)) & ~F.col(FORGOTTEN))
        new = F.col(value_column(column.id)).cast(struct[column.name].dataType)
        values[column.name] = F.when(keeps, F.col(_held(column.id))).otherwise(new)
    stays = F.when(is_given, _stays(batch, is_there)).otherwise(F.lit(True))
    return held(joined.where(stays), struct, values)


def without(table: DataFrame, gone: DataFrame, schema: InternalSchema) -> DataFrame:
    """Return the rows of a table that are no copies of others, given as `value_column(id)`; retired columns aside."""
    same = all_of(
        table[quoted(column.name)].cast(to_spark(column.type)).eqNullSafe(gone[value_column(column.id)])
        for column in schema.live
    )
    return table.join(gone, same, "left_anti")


def said_of(table: DataFrame, given: DataFrame, schema: InternalSchema, struct: StructType, into: int) -> DataFrame:
    """Return all rows, one column with what was said of it, where something was.

    Args:
        table: all rows.
        given: `value_column(id)` of the key's columns and of that one, at most one row for each key.
        schema: the table's, with its names.
        struct: its columns.
        into: id of that column.
    """
    label = schema.column(into).name
    keys = {column.id: f"k{column.id}" for column in schema.key_columns}
    source = given.select(
        F.lit(True).alias(_GIVEN),
        F.col(value_column(into)).alias(_held(into)),
        *(F.col(value_column(column.id)).alias(keys[column.id]) for column in schema.key_columns),
    )
    same = all_of(
        table[quoted(column.name)].eqNullSafe(source[keys[column.id]].cast(struct[column.name].dataType))
        for column in schema.key_columns
    )
    joined = table.join(source, same, "left")
    type_ = struct[label].dataType
    value = F.when(source[_GIVEN], source[_held(into)].cast(type_)).otherwise(table[quoted(label)].cast(type_))
    names = {field.name: table[quoted(field.name)] for field in struct.fields}
    return held(joined, struct, {**names, label: value})


def _held(id_: int) -> str:
    return f"h{id_}"


def _stays(batch: Batch, is_there: Column) -> Column:
    """Return whether a row of the batch is one of the table afterwards."""
    condition = ~F.col(DELETED)
    if batch.unchanged and batch.require_values:
        left_out = any_of([F.coalesce(F.col(unchanged_column(id_)), F.lit(False)) for id_ in batch.unchanged])
        unknown = F.when(is_there, F.col(FORGOTTEN)).otherwise(left_out)
        condition = F.when(~F.col(DELETED) & unknown, _failing(UNKNOWN_VALUE)).otherwise(condition)
    if batch.require_rows:
        condition = F.when(~is_there & ~F.col(CREATED), _failing(MISSING_ROW)).otherwise(condition)
    return condition


def _failing(problem: str) -> Column:
    return F.raise_error(F.lit(problem)).cast("boolean")
