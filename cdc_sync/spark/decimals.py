"""Decimals of any size out of two's complement bytes, on the JVM.

Spark's own decimals end at 38 digits. Beyond them a number is its decimal digits as text, which `scala.math.BigInt`
writes; where the point goes is a matter of string functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from cdc_sync.core.debezium.wire import WireBigDecimal
from cdc_sync.spark.raw import Format, Settings, exact_digits

MAX_BYTES = 65_536
"""Of an unscaled value; the largest `numeric` of Postgres has 61,235."""
MAX_SCALE = 131_072
"""In either direction; Postgres allows as many digits before the point."""

MOST_TOGETHER = 35
"""Digits: whatever fits in their 15 bytes has a place among 38."""
_MOST_BYTES = 17
_PERMISSIVE = {"mode": "PERMISSIVE"}

_HEX, _INVERTED = "0123456789ABCDEF", "FEDCBA9876543210"
_NONZERO, _NEGATED = "123456789ABCDEF", "FEDCBA987654321"


def decimal_of(value: Column, precision: int, scale: int) -> Column:
    """Decode a decimal of at most 38 digits: as Avro bytes, whose decimals are the same. NULL if it is longer."""
    usable = F.length(value).between(1, _MOST_BYTES)
    return from_avro(F.when(usable, _in_avro(value, b"")), json.dumps(_avro_type(precision, scale)), _PERMISSIVE)


def decimals_of(values: Mapping[str, tuple[Column, int, int]]) -> Column:
    """Decode decimals of at most `MOST_TOGETHER` digits together, for each `from_avro` is dear to every task.

    One value that Spark cannot hold would make all of them NULL, so they are read with more digits than their bytes can
    fill: `together` takes from the struct what fits.

    Args:
        values: by name, the bytes, precision and scale of each.

    Returns:
        A struct of the names.
    """
    fields, parts = [], []
    for name, (value, precision, scale) in values.items():
        digits, size = _room(precision)
        fields.append({"name": name, "type": ["null", _avro_type(digits, scale)]})
        usable = F.length(value).between(1, size)
        # The branches of a union are numbered, as a varint in zigzag.
        parts.append(F.when(usable, _in_avro(value, b"\x02")).otherwise(F.lit(bytearray(1))))
    record = {"type": "record", "name": "cdc_sync_decimals", "fields": fields}
    return from_avro(F.concat(*parts), json.dumps(record), _PERMISSIVE)


def together(decoded: Column, name: str, precision: int, scale: int) -> Column:
    """Return one of the decimals that `decimals_of` decoded, NULL if it has more digits than its precision."""
    value, (least, most) = decoded.getField(name), (Decimal((sign, (9,) * precision, -scale)) for sign in (1, 0))
    # In ANSI mode the cast alone would raise.
    return F.when(value.between(least, most), value.cast(f"decimal({precision},{scale})"))


def _room(precision: int) -> tuple[int, int]:
    """Return digits to read with, and the most bytes, any value of which has no more digits."""
    return (18, 7) if precision <= 16 else (38, 15)


def _in_avro(value: Column, before: bytes) -> Column:
    """Write bytes as Avro does: behind their length as a zig-zag varint, one byte, twice the length, below 64."""
    lengths = F.array(*(F.lit(bytearray([*before, 2 * length])) for length in range(_MOST_BYTES + 1)))
    return F.concat(F.element_at(lengths, F.length(value) + 1), value)


def _avro_type(precision: int, scale: int) -> dict[str, object]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def big_decimal(wire: WireBigDecimal, form: Format, settings: Settings) -> Callable[[Column], Column] | None:
    """Return what turns the raw value into the tracked one, None if it is that already."""
    if form == "json" and settings.decimal_format == "numeric":
        return _from_number(wire)
    return lambda value: _from_bytes(value, wire)


def variable_decimal(value: Column) -> Column:
    """Write a struct of scale and unscaled value as plain text, each value with its own digits after the point."""
    scale, unscaled = value.getField("scale"), value.getField("value")
    text = _once(_magnitude(unscaled), lambda digits: _placed(digits, scale))
    # The scale of a NULL is NULL, and so is the text.
    return F.when(scale.between(-MAX_SCALE, MAX_SCALE), F.concat(_sign(unscaled), text))


def _from_number(wire: WireBigDecimal) -> Callable[[Column], Column] | None:
    if exact_digits(wire) is None:
        # Spark reads such a number by way of a double; NULL is what the caller recognises as lost.
        return lambda value: F.when(value.isNull(), value)
    if wire.precision is not None:
        return None
    pattern = "0." + "0" * wire.scale if wire.scale else "0"
    # A cast would write small numbers with an exponent.
    return lambda value: F.call_function("format_number", value, F.lit(pattern))


def _from_bytes(value: Column, wire: WireBigDecimal) -> Column:
    precision, surplus, scale = wire.precision, wire.scale - wire.shown, F.lit(min(wire.scale, wire.shown))
    whole = _magnitude(value)
    if surplus > 0:
        whole = _once(whole, lambda digits: _without_zeros(digits, surplus))
    text = _once(whole, lambda digits: _placed(digits, scale))
    if precision is None:
        return F.concat(_sign(value), text)
    # In ANSI mode the cast would raise for a number with more digits.
    fitting = _once(text, lambda number: F.when(F.length(number) <= precision, number))
    return F.concat(_sign(value), fitting).cast(f"decimal({precision},0)")


def _once(value: Column, use: Callable[[Column], Column]) -> Column:
    """Return `use(value)` with the value computed once, however often it is used; Spark would compute it each time."""
    return F.get(F.transform(F.array(value), use), F.lit(0))


def _is_negative(shown: Column) -> Column:
    return shown >= "8"


def _sign(value: Column) -> Column:
    return F.when(_is_negative(F.hex(value)), "-").otherwise("")


def _magnitude(value: Column) -> Column:
    """Write a big-endian two's complement integer in decimal without its sign; NULL if it is empty or too long."""
    shown = F.hex(value)
    body = F.call_function("rtrim", F.lit("0"), shown)
    # Negating inverts all digits before the last that is not zero and takes that one from sixteen.
    size = F.length(body)
    negated = F.concat(
        F.translate(body.substr(F.lit(1), size - 1), _HEX, _INVERTED),
        F.translate(body.substr(size, F.lit(1)), _NONZERO, _NEGATED),
        shown.substr(size + 1, F.length(shown)),
    )
    digits = F.when(_is_negative(shown), negated).otherwise(shown)
    big = F.call_function("reflect", F.lit("scala.math.BigInt"), F.lit("apply"), digits, F.lit(16))
    length = F.length(value)
    return F.when(length.between(1, 8), F.conv(digits, 16, 10)).when(length.between(9, MAX_BYTES), big)


def _without_zeros(digits: Column, count: int) -> Column:
    """Take digits off the right end; NULL if one of them is not zero."""
    kept = F.length(digits) - count
    cut = F.when(digits.substr(kept + 1, F.lit(count)) == "0" * count, digits.substr(F.lit(1), kept))
    return F.when(digits == "0", digits).when(kept > 0, cut)


def _placed(digits: Column, scale: Column) -> Column:
    """Put the point into the digits of a whole number; a negative scale appends zeros."""
    size = F.greatest(F.length(digits), scale + 1)
    padded = F.call_function("lpad", digits, size, F.lit("0"))
    fraction = F.overlay(padded, F.lit("."), size - scale + 1, F.lit(0))
    larger = F.when(digits == "0", digits).otherwise(F.concat(digits, F.call_function("repeat", F.lit("0"), -scale)))
    return F.when(scale > 0, fraction).when(scale == 0, digits).otherwise(larger)
