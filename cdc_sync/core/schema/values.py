"""Values that people write in files, as canonical literals of a column's type."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from cdc_sync.core.schema.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    Default,
    FloatType,
    IntegerType,
    StringType,
    TimestampType,
)
from cdc_sync.errors import SchemaError

Written: TypeAlias = bool | int | float | str | None


def canonical_value(value: Written, type_: DataType) -> Default:
    """Return a value in the canonical form of a type, see `Default`.

    Raises:
        SchemaError: if it is no value of the type; the message continues "it ".
    """
    if value is None:
        return None
    try:
        return _canonical(value, type_)
    except (ValueError, InvalidOperation, OverflowError):
        raise SchemaError(f"must be {_wanted(type_)}, not {value!r}") from None


def _canonical(value: bool | int | float | str, type_: DataType) -> Default:
    match type_, value:
        case BooleanType(), bool():
            return value
        case _, bool():
            raise ValueError(value)
        case IntegerType(bits=bits), int() if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            return value
        case FloatType(), int() | float() if math.isfinite(value):
            return float(value)
        case DecimalType(), int() | float() | str():
            return _decimal(value, type_)
        case StringType(), str():
            return value
        case BinaryType(), str():
            return bytes.fromhex(value).hex()
        case DateType(), str():
            return date.fromisoformat(value).isoformat()
        case TimestampType(zoned=zoned), str():
            return _timestamp(value, zoned=zoned)
        case _:
            raise ValueError(value)


def _decimal(value: float | str, type_: DecimalType) -> str:
    number = Decimal(str(value))
    scaled = number.quantize(Decimal(1).scaleb(-type_.scale))
    if scaled != number or len(scaled.as_tuple().digits) > type_.precision:
        raise ValueError(value)
    return f"{scaled:f}"


def _timestamp(text: str, *, zoned: bool) -> str:
    # Before Python 3.11 `fromisoformat` does not take the Z.
    found = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    if (found.tzinfo is not None) != zoned:
        raise ValueError(text)
    if zoned:
        return f"{found.astimezone(timezone.utc).replace(tzinfo=None).isoformat()}Z"
    return found.isoformat()


def _wanted(type_: DataType) -> str:
    match type_:
        case BooleanType():
            return "true or false"
        case IntegerType(bits=bits):
            return f"a whole number of {bits} bits"
        case FloatType():
            return "a number"
        case DecimalType(precision=precision, scale=scale):
            return f"a number with at most {precision} digits, {scale} of them behind the point"
        case StringType():
            return "text, in quotes where it looks like something else"
        case BinaryType():
            return "bytes, as hexadecimal digits in quotes"
        case DateType():
            return "a day such as 2020-01-31"
        case TimestampType(zoned=True):
            return "a time with its zone, such as 2020-01-31T12:00:00Z"
        case TimestampType():
            return "a time without a zone, such as 2020-01-31T12:00:00"
        case _:
            return "left out, or null, for a column that has parts"
