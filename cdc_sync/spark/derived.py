"""What derived columns hold (`migration.derived`), as Spark SQL of a source's value.

SQL, for it stands in statements and in data frames alike. It means the same with `spark.sql.ansi.enabled` and without,
in Spark 3.5 and 4, never fails, and gives NULL for NULL. Moments are in UTC, as the session is.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from typing_extensions import assert_never

from cdc_sync.core.migration.derived import MAX_TEXT, Derived
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.partitioning import Bucket, Identity, Period, Truncate, Unit
from cdc_sync.core.schema.types import (
    STRING,
    BinaryType,
    DataType,
    DecimalType,
    FloatType,
    IntegerType,
    StringType,
    TimestampType,
)
from cdc_sync.spark.types import to_spark

_MAX_BYTES = MAX_TEXT // 2
_PATTERNS: dict[Unit, str] = {"month": "yyyy-MM", "hour": "yyyy-MM-dd-HH"}


def derived_column(derived: Derived, name: str) -> Column:
    """Return a derived column, under its own name, of a data frame that has its source under a name."""
    return F.expr(derived_sql(derived, quoted(name))).alias(derived.name)


def derived_sql(derived: Derived, value: str) -> str:
    """Return what a derived column holds where its source holds a value; `value` is SQL already."""
    value = f"CAST({value} AS {to_spark(derived.source).simpleString()})"
    match derived.field:
        case Identity():
            found = _itself(value, derived)
        case Period(unit=unit):
            found = _period(value, unit)
        case Bucket(count=count):
            # Any engine and language knows this hash of a text: who looks for a key can tell its bucket.
            found = f"{_hash(value, derived.source)} % {count}"
        case Truncate(width=width):
            found = _truncated(value, width, derived)
        case _:
            assert_never(derived.field)
    return f"CAST({found} AS {to_spark(derived.type).simpleString()})"


def _itself(value: str, derived: Derived) -> str:
    match derived.source:
        case StringType():
            return _short(value, MAX_TEXT)
        case BinaryType():
            return _digits(value, _MAX_BYTES)
        case DecimalType(scale=scale) if derived.type == STRING:
            return _decimal_text(value, scale)
        case FloatType():
            # Zero is written with its sign, and compared without.
            return f"({value} + CAST(0 AS {to_spark(derived.source).simpleString()}))"
        case TimestampType():
            return f"date_format(CAST({value} AS TIMESTAMP), 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
        case _:
            return value


def _period(value: str, unit: Unit) -> str:
    match unit:
        case "year":
            return f"year({value})"
        case "day":
            return value
        case "month" | "hour":
            return f"date_format(CAST({value} AS TIMESTAMP), '{_PATTERNS[unit]}')"
        case _:
            assert_never(unit)


def _truncated(value: str, width: int, derived: Derived) -> str:
    match derived.source:
        case StringType():
            return _short(value, min(width, MAX_TEXT))
        case BinaryType():
            return _digits(value, min(width, _MAX_BYTES))
        case IntegerType():
            number = f"CAST({value} AS BIGINT)"
            # NULL where the multiple is below the lowest number.
            return f"try_subtract({number}, pmod({number}, {width}L))"
        case DecimalType(precision=precision, scale=scale):
            # In units of the last digit, as Iceberg has it. A difference has one digit more, where there is room.
            type_ = f"DECIMAL({min(max(precision, 11), 38)}, {scale})"
            number, unit = f"CAST({value} AS {type_})", f"CAST('{width}E-{scale}' AS {type_})"
            found = f"try_subtract({number}, pmod({number}, {unit}))"
            return found if derived.type != STRING else _decimal_text(found, scale)
        case _:
            return value


def _hash(value: str, type_: DataType) -> str:
    """Return the CRC-32 of a value's text, of bytes themselves, of a moment's microseconds since 1970."""
    match type_:
        case BinaryType():
            data = value
        case DecimalType(scale=scale):
            data = _decimal_text(value, scale)
        case TimestampType():
            data = f"CAST(unix_micros(CAST({value} AS TIMESTAMP)) AS STRING)"
        case _:
            data = f"CAST({value} AS STRING)"
    return f"crc32(CAST({data} AS BINARY))"


def _decimal_text(value: str, scale: int) -> str:
    """Return a number with all its digits behind the point; a cast writes small ones with an exponent."""
    return f"replace(format_number({value}, {scale}), ',', '')"


def _short(value: str, characters: int) -> str:
    return f"nullif(substring({value}, 1, {characters}), '')"


def _digits(value: str, count: int) -> str:
    return f"nullif(lower(hex(substring({value}, 1, {count}))), '')"
