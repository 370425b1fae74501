"""Wire values as Spark expressions: one rule for each `WireType`, none of them in Python's row path."""

from __future__ import annotations

import json
from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.avro.functions import from_avro
from typing_extensions import assert_never

from cdc_sync.debezium.conversions import (
    WireBoolean,
    WireBytes,
    WireDate,
    WireDateText,
    WireDecimal,
    WireFloat,
    WireInstant,
    WireInteger,
    WireList,
    WireText,
    WireTime,
    WireTimestamp,
    WireTimestampText,
    WireType,
    WireUnsupported,
)
from cdc_sync.errors import SchemaError

PLACEHOLDER = "__debezium_unavailable_value"
"""Debezium's default `unavailable.value.placeholder`, sent for unchanged TOAST values."""

_JSON_INTEGERS: dict[int, T.DataType] = {8: T.ByteType(), 16: T.ShortType(), 32: T.IntegerType(), 64: T.LongType()}
_UNITS_PER_SECOND = {"milli": 1_000, "micro": 1_000_000, "nano": 1_000_000_000}
# Years 1 to 9999: what every reader of every format can show; Debezium's infinities lie outside.
_DAYS = (-719162, 2932896)
_MICROS = (-62135596800000000, 253402300799999999)


def json_type(wire: WireType) -> T.DataType:
    """Return the type `from_json` reads the wire value as; bytes are base64, which it decodes itself."""
    match wire:
        case WireBoolean():
            return T.BooleanType()
        case WireInteger(bits=bits):
            return _JSON_INTEGERS[bits]
        case WireFloat(bits=bits):
            return T.FloatType() if bits == 32 else T.DoubleType()
        case WireText() | WireInstant() | WireDateText() | WireTimestampText():
            return T.StringType()
        case WireBytes() | WireDecimal():
            return T.BinaryType()
        case WireDate():
            return T.IntegerType()
        case WireTimestamp() | WireTime():
            return T.LongType()
        case WireList(element=element):
            return T.ArrayType(json_type(element))
        case WireUnsupported(name=name):
            raise SchemaError(f"Cannot read {name}: the plan must refuse a table with such a column")
        case _:
            assert_never(wire)


def decoder(wire: WireType) -> Callable[[Column], Column] | None:
    """Return what turns the JSON value into the tracked type's value, None if it is that already.

    The result is NULL exactly when the input is NULL or does not convert.
    """
    match wire:
        case WireDecimal(precision=precision, scale=scale):
            return lambda value: _decimal(value, precision or 38, scale)
        case WireDate():
            return lambda value: F.when(
                value.between(*_DAYS), F.call_function("date_from_unix_date", value.cast("int"))
            )
        case WireDateText():
            return lambda value: F.rtrim(F.regexp_replace(value, "Z$", "")).cast("date")
        case WireTimestamp(unit=unit):
            return lambda value: _local_timestamp(value, unit)
        case WireTimestampText():
            return lambda value: F.regexp_replace(value, "Z$", "").cast("timestamp_ntz")
        case WireInstant():
            return _instant
        case WireTime(unit=unit):
            return lambda value: _time_text(value, unit)
        case WireList(element=element):
            inner = decoder(element)
            return None if inner is None else lambda value: F.transform(value, inner)
        case _:
            return None


def does_not_convert(wire: WireType, raw: Column, converted: Column) -> Column | None:
    """Return the condition under which a value was lost in conversion, None if it cannot be."""
    if decoder(wire) is None:
        return None
    if isinstance(wire, WireList):
        lost = F.size(F.filter(raw, lambda item: item.isNotNull())) != F.size(
            F.filter(converted, lambda item: item.isNotNull())
        )
        return raw.isNotNull() & lost
    return raw.isNotNull() & converted.isNull()


def is_placeholder(wire: WireType, raw: Column) -> Column | None:
    """Return the condition under which a JSON value stands for "unchanged", None where it has no such form.

    Source: Debezium documentation, `unavailable.value.placeholder`, and its Postgres value converters.
    """
    text = F.lit(PLACEHOLDER)
    match wire:
        case WireText():
            return raw == text
        case WireBytes():
            return raw == F.lit(bytearray(PLACEHOLDER.encode()))
        case WireList(element=WireText(semantic="io.debezium.data.Uuid")):
            return raw == F.array(F.lit(_PLACEHOLDER_UUID))
        case WireList(element=WireText()):
            return raw == F.array(text)
        case WireList(element=WireBytes()):
            return raw == F.array(F.lit(bytearray(PLACEHOLDER.encode())))
        case WireList(element=WireInteger() | WireDate() as element):
            codes = F.array(*(F.lit(code).cast(json_type(element)) for code in PLACEHOLDER.encode()))
            return raw == codes
        case _:
            return None


def _name_uuid(name: bytes) -> str:
    """Java's `UUID.nameUUIDFromBytes`: a version 3 UUID without a name space."""
    import hashlib
    import uuid

    digest = bytearray(hashlib.md5(name, usedforsecurity=False).digest())
    digest[6] = digest[6] & 0x0F | 0x30
    digest[8] = digest[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(digest)))


_PLACEHOLDER_UUID = _name_uuid(PLACEHOLDER.encode())


def _decimal(value: Column, precision: int, scale: int) -> Column:
    """Decode a big-endian two's complement integer: as Avro bytes, whose decimals are the same.

    An Avro byte string is its length as a zig-zag varint (one byte, twice the length, below 64) and the bytes.
    """
    schema = json.dumps({"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale})
    lengths = F.array(*(F.lit(bytearray([2 * length])) for length in range(18)))
    prefixed = F.concat(F.element_at(lengths, F.length(value) + 1), value)
    usable = F.length(value).between(1, 17)
    return from_avro(F.when(usable, prefixed), schema, {"mode": "PERMISSIVE"})


def _local_timestamp(value: Column, unit: str) -> Column:
    micros = _to_micros(value, unit)
    return F.when(micros.between(*_MICROS), F.timestamp_micros(micros)).cast("timestamp_ntz")


def _instant(value: Column) -> Column:
    instant = value.cast("timestamp")
    micros = F.unix_micros(instant)
    return F.when(micros.between(*_MICROS), instant)


def _to_micros(value: Column, unit: str) -> Column:
    if unit == "milli":
        bounds = tuple(bound // 1000 for bound in _MICROS)
        return F.when(value.between(*bounds), value * 1000)
    if unit == "nano":
        # Floor, also before 1970; `/` would go through a double and lose digits.
        return F.call_function("div", value - F.pmod(value, F.lit(1000)), F.lit(1000))
    return value


def _time_text(value: Column, unit: str) -> Column:
    """Write a time of day or a duration as `[-]HH:MM:SS[.ffffff]`, as databases do; 24:00:00 and beyond stay."""
    per_second = _UNITS_PER_SECOND[unit]
    digits = len(str(per_second)) - 1
    size = F.abs(value)
    whole = F.call_function("div", size, F.lit(per_second))
    fraction = F.rtrim(F.regexp_replace(F.lpad((size % per_second).cast("string"), digits, "0"), "0+$", ""))
    clock = F.format_string(
        "%s%02d:%02d:%02d",
        F.when(value < 0, "-").otherwise(""),
        F.call_function("div", whole, F.lit(3600)),
        F.call_function("div", whole % 3600, F.lit(60)),
        whole % 60,
    )
    text = F.when(fraction == "", clock).otherwise(F.concat(clock, F.lit("."), fraction))
    return F.when(value.isNotNull(), text)
