"""Events as rows of a changelog, one for each."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.debezium.wire import WireColumn
from cdc_sync.core.migration.modes import METADATA
from cdc_sync.core.schema.internal import Column as TableColumn
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.spark.columns import (
    HAS_BEFORE,
    OFFSET,
    OP,
    PARTITION,
    POSITION,
    before_column,
    unchanged_column,
    value_column,
)
from cdc_sync.spark.conditions import any_or_false
from cdc_sync.spark.position import INCARNATION, KIND, PARTS
from cdc_sync.spark.types import to_spark

TS, WHOLE_BEFORE = "ts_ms", "whole_before"
"""Of a converted event, where asked for: `source.ts_ms`; whether `before`, if there is one, is the whole row."""

_FIRST, _LAST = -62135596800000, 253402300799999
"""The years 1 to 9999 in milliseconds."""


def changelog(converted: DataFrame, schema: InternalSchema, *, topic: str) -> DataFrame:
    """Return one row for each converted event, truncates included.

    The values are those after the change. Of a delete they are the whole row before it where the event is known to
    hold it (see `whole_before`), else only the key's.

    Args:
        converted: from `compile.convert` with images, unchanged columns and what a changelog wants, for converters
            that know the record's key and whose projections went through `projection.without_initials`.
        schema: the head.
        topic: where the records come from.

    Returns:
        `value_column(id)` for each column, then the columns of `migration.modes.METADATA`.
    """
    whole = (F.col(OP) == "d") & F.col(HAS_BEFORE) & F.col(WHOLE_BEFORE)
    values = (_value(column, whole).alias(value_column(column.id)) for column in schema.columns)
    metadata = {
        "_cdc_op": F.col(OP),
        "_cdc_topic": F.lit(topic),
        "_cdc_partition": F.col(PARTITION),
        "_cdc_offset": F.col(OFFSET),
        "_cdc_position": position_text(F.col(POSITION)),
        "_cdc_ts": _instant(F.col(TS)),
        "_cdc_unchanged": _unchanged(converted, schema),
    }
    return converted.select(*values, *(metadata[name].cast(to_spark(type_)).alias(name) for name, type_ in METADATA))


def position_text(position: Column) -> Column:
    """Return a position as `str(SourcePosition)` writes it."""
    parts = F.transform(position.getField(PARTS), lambda part: part.cast("string"))
    begun = position.getField(INCARNATION)
    incarnation = F.when(begun > 0, F.concat(F.lit("."), begun.cast("string"))).otherwise(F.lit(""))
    return F.concat(position.getField(KIND), incarnation, F.lit(":"), F.array_join(parts, "/"))


def whole_before(columns: Iterable[WireColumn], key: Iterable[str], before: Callable[[WireColumn], Column]) -> Column:
    """Return whether an event's `before` is proven to hold the whole row, not just the key.

    A connector that knows only the key sends NULL for columns that accept it, and made-up values such as 0 for others
    (Debezium, `JdbcValueConverters.convertValue`). So a value in a nullable column proves the image. A column with a
    default proves nothing: Connect's converters may have put it where there is NULL. Events without a key need no
    proof: what knows only a key does not send them.

    Args:
        columns: the event's columns.
        key: the names of those that the record's key is made of, whether or not the target has a key.
        before: how to read a column's raw value in `before`.
    """
    names = set(key)
    if not names:
        return F.lit(True)
    return any_or_false(before(column).isNotNull() for column in proving(columns, names))


def proving(columns: Iterable[WireColumn], key: Container[str]) -> list[WireColumn]:
    """Return the columns whose values prove that `before` is the whole row, see `whole_before`."""
    return [
        column
        for column in columns
        if column.optional and column.default is None and not column.suspect_default and column.name not in key
    ]


def _value(column: TableColumn, whole: Column) -> Column:
    return F.when(whole, F.col(before_column(column.id))).otherwise(F.col(value_column(column.id)))


def _instant(milliseconds: Column) -> Column:
    """Return the time, NULL where a connector sends none or one that not every reader can show."""
    return F.when(milliseconds.between(_FIRST, _LAST), F.timestamp_millis(milliseconds))


def _unchanged(converted: DataFrame, schema: InternalSchema) -> Column:
    names = [
        F.when(F.col(unchanged_column(column.id)), F.lit(column.name))
        for column in schema.columns
        if unchanged_column(column.id) in converted.columns
    ]
    if not names:
        return F.lit(None)
    found = F.array_compact(F.array(*names))
    return F.when(F.size(found) > 0, found)
