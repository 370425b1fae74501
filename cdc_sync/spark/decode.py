"""Wire values as Spark expressions: one rule for each `WireType`, none of them in Python's row path.

Every expression gives the same in ANSI mode and without it, and none of them raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.wire import (
    WireBigDecimal,
    WireDate,
    WireDateText,
    WireDecimal,
    WireInstant,
    WireInteger,
    WireList,
    WireMap,
    WireStruct,
    WireTime,
    WireTimestamp,
    WireTimestampText,
    WireType,
    WireVariableDecimal,
)
from cdc_sync.spark.conditions import any_of
from cdc_sync.spark.decimals import big_decimal, decimal_of, variable_decimal
from cdc_sync.spark.placeholders import PLACEHOLDER, is_placeholder
from cdc_sync.spark.raw import DEFAULTS, Format, ReadAs, Settings, avro_reader_type, is_object, raw_type
from cdc_sync.spark.temporal import is_out_of_range, moment, time_text

__all__ = [
    "DEFAULTS",
    "PLACEHOLDER",
    "Decoder",
    "Format",
    "ReadAs",
    "Settings",
    "avro_reader_type",
    "decoder",
    "does_not_convert",
    "is_placeholder",
    "json_type",
    "raw_type",
]
Decoder: TypeAlias = Callable[[Column], Column]


def json_type(wire: WireType) -> T.DataType:
    """Return `raw_type` of JSON."""
    return raw_type(wire)


def decoder(wire: WireType, form: Format = "json", settings: Settings = DEFAULTS) -> Decoder | None:
    """Return what turns the raw value into the tracked type's value, None if it is that already.

    The result is NULL exactly when the input is NULL or does not convert, or is out of range where the policy wants
    NULL. The same holds for every element, member and value inside.

    Args:
        wire: the value's type.
        form: how it was written.
        settings: as for `raw_type`.
    """
    match wire:
        case WireInteger(bits=bits):
            return _narrow(bits) if raw_type(wire, form) == T.IntegerType() and bits < 32 else None
        case WireDecimal(precision=precision, scale=scale):
            if isinstance(raw_type(wire, form, settings), T.DecimalType):
                return None
            return lambda value: decimal_of(value, precision or 38, scale)
        case WireBigDecimal():
            return big_decimal(wire, form, settings)
        case WireVariableDecimal():
            return variable_decimal
        case WireDate() | WireDateText() | WireTimestamp() | WireTimestampText() | WireInstant():
            return moment(wire, settings.out_of_range)
        case WireTime(unit=unit):
            return lambda value: time_text(value, unit)
        case WireList(element=element):
            inner = decoder(element, form, settings)
            return None if inner is None else lambda value: F.transform(value, inner)
        case WireMap():
            key, value = (decoder(part, form, settings) for part in (wire.key, wire.value))
            return map_decoder(wire, form, settings, key=key, value=value)
        case WireStruct():
            return _struct(wire, form, settings)
        case _:
            return None


def does_not_convert(
    wire: WireType, raw: Column, converted: Column, form: Format = "json", settings: Settings = DEFAULTS
) -> Column | None:
    """Return the condition under which a value, or a part of it, was lost in conversion; None if it cannot be.

    The condition is never NULL.

    Args:
        wire: the value's type.
        raw: the value as `raw_type` has it.
        converted: what `decoder` with the same form and settings made of it.
        form: how it was written.
        settings: as for `raw_type`.
    """
    return _lost(wire, raw, converted, form, settings) if _can_be_lost(wire, form, settings) else None


def becomes_null(
    wire: WireType, raw: Column, converted: Column, form: Format = "json", settings: Settings = DEFAULTS
) -> Column | None:
    """Return the condition under which a value, or a part of it, is NULL for being out of range; None if it cannot be.

    It holds as well where a part does not convert, which `does_not_convert` tells. Arguments are those of that.
    """
    if settings.out_of_range != "null" or not _holds_moments(wire):
        return None
    return does_not_convert(wire, raw, converted, form, ReadAs(decimal_format=settings.decimal_format))


def _holds_moments(wire: WireType) -> bool:
    match wire:
        case WireDate() | WireDateText() | WireTimestamp() | WireTimestampText() | WireInstant():
            return True
        case WireList(element=element):
            return _holds_moments(element)
        case WireStruct(fields=fields):
            return any(_holds_moments(field.type) for field in fields)
        case WireMap(value=value):
            return _holds_moments(value)
        case _:
            return False


def _can_be_lost(wire: WireType, form: Format, settings: Settings) -> bool:
    match wire:
        case WireList(element=element):
            return _can_be_lost(element, form, settings)
        case WireStruct(fields=fields):
            return any(_can_be_lost(field.type, form, settings) for field in fields)
        case WireMap(key=key, value=value):
            rebuilt = not is_object(wire, form) or decoder(key, form, settings) is not None
            return rebuilt or _can_be_lost(value, form, settings)
        case WireDate() | WireTimestamp():
            # A number is always a point in time; if it has no place, it is out of range.
            return settings.out_of_range != "null"
        case _:
            return decoder(wire, form, settings) is not None


def _lost(wire: WireType, raw: Column, converted: Column, form: Format, settings: Settings) -> Column:
    """Return the condition for a type that can be lost; never NULL."""
    lost = raw.isNotNull() & converted.isNull()
    match wire:
        case WireList(element=element):
            return lost | _one_lost(element, raw, converted, form, settings)
        case WireStruct(fields=fields):
            return any_of(
                _lost(field.type, raw[field.name], converted[field.name], form, settings)
                for field in fields
                if _can_be_lost(field.type, form, settings)
            )
        case WireMap(value=value):
            if not _can_be_lost(value, form, settings):
                return lost
            values = raw_values(wire, raw, form, settings)
            return lost | _one_lost(value, values, F.map_values(converted), form, settings)
        case WireDateText() | WireTimestampText() | WireInstant() if settings.out_of_range == "null":
            return lost & ~is_out_of_range(wire, raw)
        case _:
            return lost


def _one_lost(wire: WireType, raw: Column, converted: Column, form: Format, settings: Settings) -> Column:
    """Return whether an element was lost on the way from one array to the other, which is as long."""
    pairs = F.zip_with(raw, converted, lambda one, other: _lost(wire, one, other, form, settings))
    return F.coalesce(F.exists(pairs, lambda is_lost: is_lost), F.lit(False))


def _narrow(bits: int) -> Decoder:
    limit = 1 << bits - 1
    name = {8: "tinyint", 16: "smallint"}[bits]
    return lambda value: F.when(value.between(-limit, limit - 1), value.cast(name))


def _struct(wire: WireStruct, form: Format, settings: Settings) -> Decoder | None:
    inner = {field.name: decoder(field.type, form, settings) for field in wire.fields}
    if not any(inner.values()):
        return None

    def decode(value: Column) -> Column:
        members = (
            (value[name] if member is None else member(value[name])).alias(name) for name, member in inner.items()
        )
        return F.when(value.isNotNull(), F.struct(*members))

    return decode


def map_decoder(
    wire: WireMap, form: Format, settings: Settings, *, key: Decoder | None, value: Decoder | None
) -> Decoder | None:
    """Return what turns the raw value into a map, None if it is one already; NULL where a key is NULL or there twice.

    Args:
        wire: the map's type.
        form: how it was written.
        settings: as for `raw_type`.
        key: decodes a raw key, None if it needs no decoding.
        value: decodes a raw value.
    """
    if is_object(wire, form) and key is None:
        return None if value is None else lambda raw: F.transform_values(raw, lambda _, item: value(item))

    def decode(raw: Column) -> Column:
        keys, values, intact = _parts(wire, raw, form, settings)
        keys = keys if key is None else F.transform(keys, key)
        values = values if value is None else F.transform(values, value)
        unique = F.size(F.array_distinct(keys)) == F.size(keys)
        # Spark fails the query for a key that is NULL or there twice.
        return F.when(intact & unique & ~F.exists(keys, lambda item: item.isNull()), F.map_from_arrays(keys, values))

    return decode


def raw_values(wire: WireMap, raw: Column, form: Format, settings: Settings) -> Column:
    """Return the raw values as an array, in the order of the map."""
    return _parts(wire, raw, form, settings)[1]


def _parts(wire: WireMap, raw: Column, form: Format, settings: Settings) -> tuple[Column, Column, Column]:
    """Return keys, values, and whether the entries could be read."""
    if is_object(wire, form):
        return F.map_keys(raw), F.map_values(raw), F.lit(True)
    if form == "json":
        keys = F.transform(raw, lambda pair: F.get(pair, F.lit(0)))
        values = F.transform(raw, lambda pair: F.get(pair, F.lit(1)))
        read_keys = _parsed(wire.key, keys, form, settings)
        read_values = _parsed(wire.value, values, form, settings)
        pairs = ~F.exists(raw, lambda pair: pair.isNull() | (F.size(pair) != 2))
        return read_keys, read_values, pairs & _same_nulls(keys, read_keys) & _same_nulls(values, read_values)
    entries = ~F.exists(raw, lambda entry: entry.isNull())
    return F.transform(raw, lambda entry: entry["key"]), F.transform(raw, lambda entry: entry["value"]), entries


def _parsed(wire: WireType, texts: Column, form: Format, settings: Settings) -> Column:
    """Read JSON values that were read as texts: strings have lost their quotes, all others are as they were."""
    type_ = raw_type(wire, form, settings)
    quoted = isinstance(type_, (T.StringType, T.BinaryType))
    text = F.to_json(texts) if quoted else F.concat(F.lit("["), F.array_join(texts, ",", "null"), F.lit("]"))
    return F.from_json(text, T.ArrayType(type_))


def _same_nulls(one: Column, other: Column) -> Column:
    found = [F.size(F.filter(side, lambda item: item.isNull())) for side in (one, other)]
    return F.coalesce((F.size(one) == F.size(other)) & (found[0] == found[1]), F.lit(False))
