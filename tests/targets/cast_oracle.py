"""Checked casts said a second time, in Python's own numbers, dates and texts; shares nothing with the program."""

from __future__ import annotations

import math
import re
import struct
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

from cdc_sync.core.schema.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    StringType,
    TimestampType,
)

_CLOCK = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?"
LOST = object()
"""The value has no place."""
_WORDS = dict.fromkeys(["t", "true", "y", "yes", "on", "1"], True) | dict.fromkeys(
    ["f", "false", "n", "no", "off", "0"], False
)


def expected(value: Any, old: DataType, new: DataType) -> Any:
    """Return what a value becomes, `LOST` where it has no place; instants are datetimes of UTC without a zone."""
    if value is None:
        return None
    if isinstance(old, FloatType):
        value = _rounded(value, old.bits)  # what the column holds of it
    with localcontext(Context(prec=400)):
        match new:
            case BooleanType():
                return value != 0 if isinstance(old, IntegerType) else _WORDS.get(value.strip(" ").lower(), LOST)
            case IntegerType(bits=bits):
                return _integer(value, bits)
            case FloatType(bits=bits):
                return _float(value, bits)
            case DecimalType():
                return _decimal(value, old, new)
            case StringType():
                return _text(value, old)
            case BinaryType():
                return value.encode()
            case DateType():
                return _date(value)
            case TimestampType():
                return _moment(value, zoned=new.zoned)
            case _:
                raise AssertionError(new)


def _integer(value: Any, bits: int) -> Any:
    if isinstance(value, str):
        if not re.fullmatch(r" *[+-]?[0-9]+ *", value):
            return LOST
        value = int(value)
    if isinstance(value, float) and not math.isfinite(value):
        return LOST
    whole = int(value)
    return whole if whole == value and -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1) else LOST


def _float(value: Any, bits: int) -> Any:
    if isinstance(value, str):
        text = value.strip(" ")
        special = re.fullmatch(r"NaN|[+-]?Infinity", text)
        if not special and not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
            return LOST
        found = _rounded(float(text), bits)
        if not special and (math.isinf(found) or (found == 0 and Decimal(text) != 0)):
            return LOST
        return found
    found = _rounded(float(value), bits)
    return LOST if math.isinf(found) and not math.isinf(value) else found


def _rounded(value: float, bits: int) -> float:
    if bits == 64 or not math.isfinite(value):
        return value
    try:
        (found,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(found)


_JAVA = {
    (2147483648.0, 32): Decimal("2147483650"),
    (9223372036854774784.0, 64): Decimal("9223372036854774800"),
    (5e-324, 64): Decimal("4.9e-324"),
}
"""Where Java before 19 writes a digit more than it takes (JDK-4511638)."""


def _shortest(value: float, old: DataType) -> Decimal:
    """Return the shortest decimal that is the float and no other."""
    if isinstance(old, FloatType) and (value, old.bits) in _JAVA:
        return _JAVA[value, old.bits]
    if isinstance(old, FloatType) and old.bits == 32:
        texts = (f"{value:.{digits}g}" for digits in range(1, 18))
        return Decimal(next(text for text in texts if _rounded(float(text), 32) == value))
    return Decimal(repr(value))


def _decimal(value: Any, old: DataType, new: DecimalType) -> Any:
    if isinstance(value, str):
        text = value.strip(" ")
        if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", text):
            return LOST
        exact = Decimal(text)
    elif isinstance(value, float):
        if not math.isfinite(value):
            return LOST
        exact = _shortest(value, old)
    else:
        exact = Decimal(value)
    found = exact.quantize(Decimal(1).scaleb(-new.scale), ROUND_HALF_UP)
    return found if abs(found) < Decimal(10) ** (new.precision - new.scale) else LOST


def _text(value: Any, old: DataType) -> Any:
    match old:
        case BooleanType():
            return "true" if value else "false"
        case FloatType():
            return _float_text(value, old)
        case DecimalType(scale=scale):
            return format(value.quantize(Decimal(1).scaleb(-scale)), "f")
        case BinaryType():
            try:
                return bytes(value).decode()
            except UnicodeDecodeError:
                return LOST
        case TimestampType(zoned=zoned):
            micros = f"{value.microsecond:06}".rstrip("0")
            clock = f"{value.year:04}-{value:%m-%d %H:%M:%S}" + (f".{micros}" if micros else "")
            return clock + ("+00" if zoned else "")
        case _:
            return str(value)


def _float_text(value: float, old: DataType) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    exact = _shortest(value, old)
    if Decimal("0.0001") <= abs(exact) < Decimal("1e15"):
        text = format(exact, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    digits = "".join(map(str, exact.as_tuple().digits)).rstrip("0")
    mantissa = digits[0] + (f".{digits[1:]}" if digits[1:] else "")
    return f"{'-' if value < 0 else ''}{mantissa}e{exact.adjusted():+03d}"


def _date(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.date()
    text = value.strip(" ")
    try:
        return date.fromisoformat(text) if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else LOST
    except ValueError:
        return LOST


def _moment(value: Any, *, zoned: bool) -> Any:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    found = re.fullmatch(rf" *([0-9-]{{10}})(?:[ T]{_CLOCK}(Z|[+-][0-9]{{2}}(?::[0-9]{{2}})?)?)? *", value)
    if found is None or (found[6] and not zoned):
        return LOST
    hour, minute, second = (int(part or 0) for part in found.groups()[1:4])
    try:
        day = date.fromisoformat(found[1])
        moment = datetime.combine(day, time(hour, minute, second, int((found[5] or "0").ljust(6, "0"))))
        return moment - _offset(found[6] or "Z")
    except (ValueError, OverflowError):
        return LOST


def _offset(text: str) -> timedelta:
    if text == "Z":
        return timedelta()
    hours, _, minutes = text[1:].partition(":")
    if int(hours) > 14 or int(minutes or 0) > 59:
        raise ValueError(text)
    return timedelta(hours=int(hours), minutes=int(minutes or 0)) * (-1 if text[0] == "-" else 1)
