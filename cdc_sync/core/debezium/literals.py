"""Wire values as canonical literals, and which defaults cannot be trusted."""

from __future__ import annotations

import base64
import binascii
import math
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from typing_extensions import assert_never

from cdc_sync.core.debezium.wire import (
    WireBigDecimal,
    WireBits,
    WireBoolean,
    WireBytes,
    WireDate,
    WireDateText,
    WireDecimal,
    WireFloat,
    WireInstant,
    WireInteger,
    WireList,
    WireMap,
    WireStruct,
    WireText,
    WireTime,
    WireTimestamp,
    WireTimestampText,
    WireType,
    WireUnsupported,
    WireVariableDecimal,
)
from cdc_sync.core.schema.types import Default

_PER_SECOND = {"milli": 1_000, "micro": 1_000_000, "nano": 1_000_000_000}
_EPOCH = datetime(1970, 1, 1)
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?")
# A default has at most as many digits as its column: Postgres' NUMERIC(1000,1000), or its scales modulo 2048.
_MAX_SHIFT, _MAX_BYTES = 3_100, 1_300
_ZERO_UUID = "00000000-0000-0000-0000-000000000000"
# As Postgres writes them in its catalogue; in small letters they are ordinary texts, such as the role "user".
_KEYWORDS = frozenset(
    (
        "CURRENT_USER",
        "SESSION_USER",
        "SYSTEM_USER",
        "USER",
        "CURRENT_ROLE",
        "CURRENT_CATALOG",
        "CURRENT_SCHEMA",
        "CURRENT_DATE",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "LOCALTIME",
        "LOCALTIMESTAMP",
    )
)


def canonical_default(wire: WireType, value: object) -> tuple[Default, bool]:
    """Return a column's default in canonical form, and whether it is suspect.

    A suspect default may not be what existing rows read. Debezium evaluates no expression: in its place it sends 0, ''
    or false, the epoch, the zero UUID, or the expression's text. Seen in captures: `now()` as
    1970-01-01T00:00:00.000000Z, `random()` as 0.0, `nextval(...)` as 0, `gen_random_uuid()` as the zero UUID,
    `current_user` as CURRENT_USER, MariaDB's `'he''llo'` with both quotes. Source: Debezium,
    `PostgresDefaultValueConverter.extractDefault`, and the captures.

    Not detectable here: the Postgres connector ends a text at its first quote (`'he''llo'` and `'he' || x` both arrive
    as `he`), and shows no default at all for expressions it cannot read and for types it has no rule for (bytea,
    arrays, inet).

    Args:
        wire: the column's.
        value: the schema's `default` as `connect.load_json` reads it; None is no default.
    """
    if value is None:
        return None, False
    literal = canonical(wire, value)
    return literal, literal is None or _is_placeholder(wire, literal)


def canonical(wire: WireType, value: object) -> Default:
    """Return a JSON value in canonical form; None if it is null, does not fit its type or has no such form."""
    match wire:
        case WireBoolean():
            return value if isinstance(value, bool) else None
        case WireInteger(bits=bits):
            number = _integer(value)
            return number if number is not None and -(1 << bits - 1) <= number < 1 << bits - 1 else None
        case WireFloat():
            return _float(value)
        case WireText():
            return value if isinstance(value, str) else None
        case WireBytes() | WireBits():
            raw = from_base64(value)
            return None if raw is None else raw.hex()
        case WireDecimal(precision=precision, scale=scale):
            return _decimal(value, precision or 38, scale)
        case WireBigDecimal(precision=precision, scale=scale, shown=shown):
            return _decimal(value, precision, shown, sent_scale=scale)
        case WireDate():
            return _date(value)
        case WireDateText():
            return _date_text(value)
        case WireTimestamp(unit=unit):
            return _timestamp(value, unit)
        case WireTimestampText():
            return _iso(value, zoned=False)
        case WireInstant():
            return _iso(value, zoned=True)
        case WireTime(unit=unit):
            return _time(value, unit)
        case WireVariableDecimal() | WireList() | WireMap() | WireStruct() | WireUnsupported():
            # Connect has no defaults for structs, and no database constants for the others.
            return None
        case _:
            assert_never(wire)


def _is_placeholder(wire: WireType, literal: Default) -> bool:
    match wire:
        case WireText(semantic=semantic):
            text = str(literal)
            is_expression = text in _KEYWORDS or ")::" in text or text.endswith("()") or "''" in text
            return not text or is_expression or (semantic == "io.debezium.data.Uuid" and text == _ZERO_UUID)
        case WireDecimal() | WireBigDecimal():
            return not Decimal(str(literal))
        case WireDate() | WireDateText():
            return literal == "1970-01-01"
        case WireTimestamp() | WireTimestampText():
            return literal == "1970-01-01T00:00:00"
        case WireInstant():
            return literal == "1970-01-01T00:00:00Z"
        case WireTime():
            return literal == "00:00:00"
        case _:
            return not literal


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(value: object) -> float | None:
    # NaN and the infinities have no form in the history's JSON.
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def from_base64(value: object) -> bytes | None:
    """Return the bytes of a text in base64, None if it is none."""
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None


def _decimal(value: object, precision: int | None, scale: int, *, sent_scale: int | None = None) -> str | None:
    """Write a decimal with exactly `scale` digits after the point; `decimal.format=NUMERIC` sends a number.

    Args:
        value: base64 of the unscaled value, or a number.
        precision: digits it may have; None for any.
        scale: digits after the point.
        sent_scale: the unscaled value's, where that is another.
    """
    if isinstance(value, str):
        raw = from_base64(value)
        unscaled = int.from_bytes(raw, "big", signed=True) if raw and len(raw) <= _MAX_BYTES else None
        if unscaled is not None and sent_scale is not None and sent_scale != scale:
            unscaled = _shifted(unscaled, scale - sent_scale)
    else:
        unscaled = _unscaled(value, scale)
    if unscaled is None or (precision is not None and abs(unscaled) >= 10**precision):
        return None
    digits = _digits(abs(unscaled)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if unscaled < 0 else text


def _unscaled(value: object, scale: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    sign, digits, exponent = Decimal(value).as_tuple()
    shift = int(exponent) + scale
    if shift > _MAX_SHIFT or len(digits) > _MAX_SHIFT:
        return None
    size = _shifted(int("".join(map(str, digits))), shift)
    return -size if size is not None and sign else size


def _shifted(number: int, places: int) -> int | None:
    """Multiply by a power of ten; None if a digit would be lost."""
    if places >= 0:
        return number * _power_of_ten(places)
    if -places > _MAX_SHIFT:
        return None if number else 0
    whole, rest = divmod(abs(number), _power_of_ten(-places))
    return None if rest else (whole if number >= 0 else -whole)


def _digits(number: int) -> str:
    # `str` refuses more than 4300 digits.
    if number < 10**4000:
        return str(number)
    upper, lower = divmod(number, 10**4000)
    return _digits(upper) + f"{lower:04000d}"


def _power_of_ten(exponent: int) -> int:
    return int(10**exponent)


def _date(value: object) -> str | None:
    days = _integer(value)
    try:
        return None if days is None else (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def _date_text(value: object) -> str | None:
    try:
        return date.fromisoformat(value.removesuffix("Z")).isoformat() if isinstance(value, str) else None
    except ValueError:
        return None


def _timestamp(value: object, unit: str) -> str | None:
    number = _integer(value)
    if number is None:
        return None
    try:
        # Floor, so that a nanosecond before 1970 stays before 1970, as the row path does it.
        return (_EPOCH + timedelta(microseconds=number * 1_000_000 // _PER_SECOND[unit])).isoformat()
    except OverflowError:
        return None


def _iso(value: object, *, zoned: bool) -> str | None:
    """Normalise ISO text to UTC; the standard library reads such fractions and offsets only from Python 3.11 on."""
    match = _ISO.fullmatch(value) if isinstance(value, str) else None
    if match is None or (zoned and match[4] is None):
        return None
    day, clock, fraction, offset = match.groups()
    micros = timedelta(microseconds=int((fraction or "0").ljust(9, "0")[:6]))
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}") + micros
        if zoned and offset != "Z":
            moment = datetime.fromisoformat(f"{moment.isoformat()}{offset}").astimezone(timezone.utc)
            moment = moment.replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return moment.isoformat() + ("Z" if zoned else "")


def _time(value: object, unit: str) -> str | None:
    """Write `[-]HH:MM:SS[.f]` without trailing zeros, as the row path does."""
    number = _integer(value)
    if number is None:
        return None
    seconds, rest = divmod(abs(number), _PER_SECOND[unit])
    digits = len(str(_PER_SECOND[unit])) - 1
    fraction = f".{rest:0{digits}d}".rstrip("0").rstrip(".")
    sign = "-" if number < 0 else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"
