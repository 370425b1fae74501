"""Telling records whose decimals are JSON numbers (`decimal.format=NUMERIC`) from those in which they are base64.

The schema is the same to the byte, so each record tells by itself.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.forms import Prefix
from cdc_sync.core.debezium.wire import WireBigDecimal, WireDecimal, WireList, WireMap, WireStruct, WireType
from cdc_sync.spark.columns import VALUE
from cdc_sync.spark.converter import Converter
from cdc_sync.spark.layouts import CORRUPT, layout_of
from cdc_sync.spark.payloads import behind


def with_numbers(converters: tuple[Converter, ...]) -> tuple[Converter, ...]:
    """Return the converters, and behind them those of records in which decimals are numbers."""
    twins = (replace(item, decimal_format="numeric") for item in converters if _row_type(item).fields)
    return (*(replace(item, decimal_format="base64") for item in converters), *twins)


def are_numbers(converter: Converter) -> Column:
    """Return whether the decimals of a record of a converter's form are numbers or NULL; never NULL itself.

    A text is no double, but for NaN and the infinities, which no decimal is either.
    """
    form, row = converter.value_form, _row_type(converter)
    data = behind(F.col(VALUE), len(form.text)) if isinstance(form, Prefix) else F.col(VALUE)
    type_ = layout_of(converter, F.lit(None), F.lit(None)).json_type(row, row, False)
    parsed = F.from_json(data.cast("string"), type_, {"columnNameOfCorruptRecord": CORRUPT})
    return F.coalesce(parsed.getField(CORRUPT).isNull(), F.lit(False))


def _row_type(converter: Converter) -> T.StructType:
    if converter.wire_format != "json":
        return T.StructType([])
    typed = ((column.field, _numbers(column.wire)) for column in converter.schema.columns)
    return T.StructType([T.StructField(field, type_) for field, type_ in typed if type_ is not None])


def _numbers(wire: WireType) -> T.DataType | None:
    """Return the type that reads no more of a value than its decimals, as doubles; None if it holds none."""
    match wire:
        case WireDecimal() | WireBigDecimal():
            return T.DoubleType()
        case WireList(element=element):
            inner = _numbers(element)
            return None if inner is None else T.ArrayType(inner)
        case WireMap(value=value, text_keys=True):
            inner = _numbers(value)
            return None if inner is None else T.MapType(T.StringType(), inner)
        case WireStruct(fields=fields):
            typed = ((field.name, _numbers(field.type)) for field in fields)
            found = [T.StructField(name, type_) for name, type_ in typed if type_ is not None]
            return T.StructType(found) if found else None
        case _:
            return None
