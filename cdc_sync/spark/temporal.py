"""Dates, timestamps and times of day out of numbers and ISO 8601 text.

Text is parsed by `try_to_timestamp`, which gives NULL where a cast would raise in ANSI mode.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from typing_extensions import assert_never

from cdc_sync.core.debezium.wire import Unit, WireDate, WireDateText, WireInstant, WireTimestamp, WireTimestampText
from cdc_sync.spark.raw import OutOfRange

_UNITS_PER_SECOND = {"milli": 1_000, "micro": 1_000_000, "nano": 1_000_000_000}
# Years 1 to 9999: what every reader of every format can show; Debezium's infinities lie outside.
_DAYS = (-719162, 2932896)
_MICROS = (-62135596800000000, 253402300799999999)
# Postgres streams an infinite day as one of these, whichever its sign (Debezium, `PostgresValueConverter`).
_INFINITE_DAYS = (-2147472692, -2147472691)
# In nanoseconds the infinities are the ends of the 64 bits.
_NANO_INFINITIES = (-(2**63), 2**63 - 1)
_LONG_MIN = -(2**63)

_TOO_EARLY = r"^(-infinity|(-\d{4,}|0000)-\d\d-\d\d.*)$"
_TOO_LATE = r"^([+]?infinity|[+]\d{5,}-\d\d-\d\d.*)$"

Moment = WireDate | WireDateText | WireTimestamp | WireTimestampText | WireInstant


def moment(wire: Moment, policy: OutOfRange) -> Callable[[Column], Column]:
    """Return what makes a date or a timestamp; NULL for what is none, or is out of range and not clamped."""
    clamp = policy == "clamp"
    match wire:
        case WireDate():
            return _clamped_date if clamp else _date
        case WireDateText():
            return lambda value: _parsed(_without_z(value), value, clamp=clamp).cast("date")
        case WireTimestamp(unit=unit):
            return lambda value: _local_timestamp(value, unit, clamp=clamp)
        case WireTimestampText():
            # The session's zone is UTC, so that the local time is the one the text shows.
            return lambda value: _parsed(value, value, clamp=clamp).cast("timestamp_ntz")
        case WireInstant():
            return lambda value: _parsed(_without_plain_z(value), value, clamp=clamp)
        case _:
            assert_never(wire)


def is_out_of_range(wire: WireDateText | WireTimestampText | WireInstant, value: Column) -> Column:
    """Return whether a text that `moment` made NULL is a date or a timestamp, but outside the years 1 to 9999."""
    text = _without_z(value) if isinstance(wire, WireDateText) else value
    named = F.rlike(value, F.lit(_TOO_EARLY)) | F.rlike(value, F.lit(_TOO_LATE))
    return F.coalesce(F.try_to_timestamp(text).isNotNull() | named, F.lit(False))


def time_text(value: Column, unit: Unit) -> Column:
    """Write a time of day or a duration as `[-]HH:MM:SS[.f]`, as databases do; 24:00:00 and beyond stay."""
    per_second = _UNITS_PER_SECOND[unit]
    digits = len(str(per_second)) - 1
    size = F.abs(value)
    whole = _divided(size, per_second)
    fraction = F.concat(F.lit("."), F.lpad((size % per_second).cast("string"), digits, "0"))
    text = F.concat(
        F.when(value < 0, "-").otherwise(""),
        _at_least_two(_divided(whole, 3600)),
        F.lit(":"),
        _at_least_two(_divided(whole, 60) % 60),
        F.lit(":"),
        _at_least_two(whole % 60),
        F.when(size % per_second == 0, "").otherwise(F.call_function("rtrim", F.lit("0"), fraction)),
    )
    return F.when(value != _LONG_MIN, text)


def _at_least_two(number: Column) -> Column:
    text = number.cast("string")
    return F.when(number < 10, F.concat(F.lit("0"), text)).otherwise(text)


def _divided(value: Column, by: int) -> Column:
    """Divide whole numbers; `/` would go through a double and lose digits."""
    return F.call_function("div", value, F.lit(by))


def _date(value: Column) -> Column:
    return F.when(value.between(*_DAYS), F.call_function("date_from_unix_date", value))


def _clamped_date(value: Column) -> Column:
    within = F.greatest(F.lit(_DAYS[0]), F.least(F.lit(_DAYS[1]), value))
    # An infinite day whose sign is not known has no nearest day. NULL is not in any list, so it stays NULL.
    return F.when(~value.isin(*_INFINITE_DAYS), F.call_function("date_from_unix_date", within))


def _without_z(value: Column) -> Column:
    return F.call_function("rtrim", F.lit("Z"), value)


def _without_plain_z(value: Column) -> Column:
    """Leave out a Z behind a full time of day and no other zone: Spark would look it up by patterns.

    The session's zone is UTC.
    """
    # Bytes, because to find a place in a text its characters are counted.
    data, size = value.cast("binary"), F.octet_length(value)
    full = size >= len("2024-01-31T12:34:56Z")
    plain = full & F.endswith(value, F.lit("Z")) & ~F.contains(value, F.lit("+")) & (F.locate("-", value, 11) == 0)
    digit = F.substring(data, -2, 1).between(F.lit(bytearray(b"0")), F.lit(bytearray(b"9")))
    return F.when(plain & digit, data.substr(F.lit(1), size - 1).cast("string")).otherwise(value)


def _parsed(text: Column, value: Column, *, clamp: bool) -> Column:
    """Read ISO 8601 text as an instant; finer digits than microseconds are cut off, which rounds down."""
    instant = F.try_to_timestamp(text).cast("timestamp")
    first, last = (F.timestamp_micros(F.lit(bound)) for bound in _MICROS)
    found = F.when(instant.between(first, last), instant)
    if not clamp:
        return found
    early, late = (F.rlike(value, F.lit(pattern)) for pattern in (_TOO_EARLY, _TOO_LATE))
    return found.when((instant < first) | early, first).when((instant > last) | late, last)


def _local_timestamp(value: Column, unit: Unit, *, clamp: bool) -> Column:
    if unit == "nano":
        # Every other value is within range.
        early, late = (value == bound for bound in _NANO_INFINITIES)
        micros, within = _floored_micros(value), ~(early | late)
    else:
        factor = 1_000_000 // _UNITS_PER_SECOND[unit]
        low, high = (bound // factor for bound in _MICROS)
        early, late = value < low, value > high
        micros, within = value * factor if factor > 1 else value, value.between(low, high)
    found = F.when(within, F.timestamp_micros(micros))
    if clamp:
        found = found.when(early, F.timestamp_micros(F.lit(_MICROS[0]))).when(
            late, F.timestamp_micros(F.lit(_MICROS[1]))
        )
    return found.cast("timestamp_ntz")


def _floored_micros(nanos: Column) -> Column:
    # Division cuts off towards zero; before 1970 that would be up.
    return _divided(nanos, 1000) - F.when(nanos % 1000 < 0, 1).otherwise(0)
