"""What derived columns hold, in plain Python: the model that tables and expressions are compared with."""

from __future__ import annotations

import zlib
from datetime import date, datetime, timezone
from decimal import Decimal, localcontext
from typing import Any

from cdc_sync.core.schema.partitioning import Bucket, Identity, PartitionField, Period, Truncate
from cdc_sync.core.schema.types import DataType, DecimalType

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def expected(item: PartitionField, value: Any, type_: DataType) -> Any:
    """What the column for a field holds where its source holds a value; moments without a zone are in UTC."""
    if value is None:
        return None
    match item:
        case Identity():
            return _itself(value, type_)
        case Bucket(count=count):
            return zlib.crc32(_hashed(value)) % count
        case Truncate(width=width):
            return _truncated(value, width, type_)
        case Period(unit="year"):
            return value.year
        case Period(unit="day"):
            return value.date() if isinstance(value, datetime) else value
        case Period(unit=unit):
            return f"{value.year:04}-{value.month:02}" + (f"-{value.day:02}-{value.hour:02}" if unit == "hour" else "")


def _itself(value: Any, type_: DataType) -> Any:
    match value:
        case str():
            return value[:40] or None
        case bytes():
            return value[:20].hex() or None
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S.%f}".rjust(26, "0")
        case Decimal() if _is_long(type_):
            return f"{value:f}"
        case float():
            return str(value + 0.0)  # zero has no sign, for a key of -0.0 finds one of 0.0
        case _:
            return value


def _hashed(value: Any) -> bytes:
    match value:
        case bytes():
            return value
        case datetime():
            since = value.replace(tzinfo=timezone.utc) - EPOCH
            return str((since.days * 86400 + since.seconds) * 10**6 + since.microseconds).encode()
        case date():
            return value.isoformat().encode()
        case Decimal():
            return f"{value:f}".encode()
        case _:
            return str(value).encode()


def _truncated(value: Any, width: int, type_: DataType) -> Any:
    match value:
        case str():
            return value[: min(width, 40)] or None
        case bytes():
            return value[: min(width, 20)].hex() or None
        case int():
            found = value // width * width
            return found if found >= -(2**63) else None
        case _:
            assert isinstance(type_, DecimalType)
            with localcontext() as context:
                context.prec = 80
                units = int(value.scaleb(type_.scale)) // width * width
                number = Decimal(units).scaleb(-type_.scale)
                return f"{number:f}" if _is_long(type_) else number


def _is_long(type_: DataType) -> bool:
    return isinstance(type_, DecimalType) and type_.scale > 6
