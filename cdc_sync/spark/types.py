"""Tracked types as Spark types, and canonical literals as Spark expressions."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from typing_extensions import assert_never

from cdc_sync.core.schema.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    Default,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

_INTEGERS: dict[int, T.DataType] = {8: T.ByteType(), 16: T.ShortType(), 32: T.IntegerType(), 64: T.LongType()}


def to_spark(type_: DataType) -> T.DataType:
    """Return the Spark type that holds every value of a tracked type."""
    match type_:
        case BooleanType():
            return T.BooleanType()
        case IntegerType(bits=bits):
            return _INTEGERS[bits]
        case FloatType(bits=bits):
            return T.FloatType() if bits == 32 else T.DoubleType()
        case DecimalType(precision=precision, scale=scale):
            return T.DecimalType(precision, scale)
        case StringType():
            return T.StringType()
        case BinaryType():
            return T.BinaryType()
        case DateType():
            return T.DateType()
        case TimestampType(zoned=zoned):
            return T.TimestampType() if zoned else T.TimestampNTZType()
        case StructType(fields=fields):
            return T.StructType([T.StructField(f.name, to_spark(f.type), f.optional) for f in fields])
        case ListType(element=element, element_optional=optional):
            return T.ArrayType(to_spark(element), optional)
        case MapType(key=key, value=value, value_optional=optional):
            return T.MapType(to_spark(key), to_spark(value), optional)
        case _:
            assert_never(type_)


def with_leaves(type_: T.DataType, leaf: Callable[[T.DataType], T.DataType], *, optional: bool = False) -> T.DataType:
    """Return a type with every part that has no parts itself changed; `optional` lets every part be NULL."""

    def inside(part: T.DataType) -> T.DataType:
        return with_leaves(part, leaf, optional=optional)

    match type_:
        case T.ArrayType():
            return T.ArrayType(inside(type_.elementType), optional or type_.containsNull)
        case T.MapType():
            return T.MapType(inside(type_.keyType), inside(type_.valueType), optional or type_.valueContainsNull)
        case T.StructType():
            fields = (T.StructField(f.name, inside(f.dataType), optional or f.nullable) for f in type_.fields)
            return T.StructType(list(fields))
        case _:
            return leaf(type_)


def wide_integer(type_: T.DataType) -> T.DataType:
    """Return the type that a format without 8 and 16 bit integers holds a leaf as."""
    return T.IntegerType() if isinstance(type_, (T.ByteType, T.ShortType)) else type_


def literal(value: Default, type_: DataType) -> Column:
    """Return a canonical literal as a column of the tracked type."""
    if value is None:
        return F.lit(None).cast(to_spark(type_))
    if isinstance(type_, BinaryType):
        return F.unhex(F.lit(value))
    return F.lit(value).cast(to_spark(type_))


def literal_sql(value: Default, type_: DataType) -> str:
    """Return a canonical literal as SQL; text travels as hexadecimal digits, so nothing in it can become SQL."""
    target = to_spark(type_).simpleString()
    if value is None:
        return f"CAST(NULL AS {target})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        return f"CAST('{value!r}' AS {target})"
    if isinstance(type_, BinaryType):
        return f"X'{bytes.fromhex(value).hex()}'"
    return f"CAST(CAST(X'{value.encode().hex()}' AS STRING) AS {target})"
