"""What a source's text means: for each type of the two databases the target's type and the value to compare.

Written from the databases' manuals and the mapping in `docs/types.md`, with nothing of cdc_sync in it, so that the
truth is read by other code than the one under test.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache
from typing import Any

POINT = "struct<x: double, y: double, wkb: binary, srid: int>"

_EXACT = Context(prec=5000)
_LAST_INT64 = 2**63 - 1
_MICROSECONDS = {"s": 10**6, "h": 3600 * 10**6, "m": 60 * 10**6, "day": 86400 * 10**6}
_MONTH = 365.25 / 12


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How one source type is compared.

    Attributes:
        types: the target types that hold it right, the usual one first.
        of_text: the source's text as a value to compare.
        of_target: a target's value in the same form.
    """

    types: tuple[str, ...]
    of_text: Callable[[str], Any]
    of_target: Callable[[Any], Any] = _same


class OutOfRange(ValueError):
    """A date or time that no Python value holds: infinite, or outside the years 1 to 9999."""


@cache
def kind(database: str, type_: str) -> Kind:
    """Return how a source type is compared."""
    return _mariadb(type_) if database == "mariadb" else _postgres(type_)


def _postgres(type_: str) -> Kind:
    if type_ in _POSTGRES:
        return _POSTGRES[type_]
    if type_.endswith("[]"):
        return _list(_postgres(type_[:-2]))
    if match := re.fullmatch(r"numeric\((\d+),(\d+)\)", type_):
        return Kind(types=(f"decimal({match[1]}, {match[2]})",), of_text=Decimal)
    if match := re.fullmatch(r"numeric\((\d+),-(\d+)\)", type_):
        return Kind(types=(f"decimal({int(match[1]) + int(match[2])}, 0)",), of_text=Decimal)
    if type_ == "numeric":
        return _DECIMAL_TEXT
    if match := re.fullmatch(r"character\((\d+)\)", type_):
        width = int(match[1])
        return Kind(types=("string",), of_text=lambda text: text.ljust(width))
    if type_.startswith("bit"):
        return _BIT1 if type_ == "bit(1)" else Kind(types=("binary",), of_text=_postgres_bits(type_))
    if type_.startswith("timestamp"):
        return _INSTANT if "with time zone" in type_ else _LOCAL
    if type_.startswith("time"):
        return _ZONED_TIME if "with time zone" in type_ else _TIME
    return _TEXT


def _mariadb(type_: str) -> Kind:
    name = re.match(r"\w+", type_)
    assert name is not None, type_
    if type_ == "tinyint(1)":
        # What the connector learnt from `boolean` in a statement is one, from a snapshot an integer.
        return Kind(
            types=("int", "boolean"), of_text=int, of_target=lambda value: None if value is None else int(value)
        )
    if type_ == "float(7,2)":
        return Kind(types=("double",), of_text=lambda text: float_text(_rounded(float(text))), of_target=float_text)
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\).*", type_):
        if int(match[1]) > 38:
            return _DECIMAL_TEXT
        return Kind(types=(f"decimal({match[1]}, {match[2]})",), of_text=Decimal)
    if match := re.fullmatch(r"bit\((\d+)\)", type_):
        width = (int(match[1]) + 7) // 8
        return (
            _BIT1
            if type_ == "bit(1)"
            else Kind(types=("binary",), of_text=lambda t: int(t, 16).to_bytes(width, "little"))
        )
    if name[0] in ("int", "bigint"):
        return _LONG if name[0] == "bigint" or "unsigned" in type_ else _INT
    return _MARIADB.get(name[0], _TEXT)


def float_text(value: float | None) -> str | None:
    """Return a number so that NaN equals itself and 0 is not -0."""
    return None if value is None else repr(value)


def _rounded(value: float) -> float:
    """Round to 32 bits."""
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def _float32_text(value: float | None) -> str | None:
    return None if value is None else repr(_rounded(float(value)))


def _exact(value: Any) -> Any:
    """Return digits and scale without trailing zeros, which the connector takes off; NaN as what equals itself."""
    if value is None or str(value) == "NaN":
        return value
    return Decimal(value).normalize(_EXACT)


def microseconds(text: str | None) -> int | None:
    """Return a time of day, or beyond it, in microseconds."""
    if text is None:
        return None
    match = re.fullmatch(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?", text)
    if match is None:
        raise ValueError(f"not a time: {text!r}")
    sign, hours, minutes, seconds, fraction = match.groups()
    whole = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 10**6 + int((fraction or "").ljust(6, "0"))
    return -whole if sign else whole


def _date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise OutOfRange(text) from None


def _local(text: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(_six_digits(text))
    except ValueError:
        raise OutOfRange(text) from None


def _instant(text: str) -> dt.datetime:
    try:
        found = dt.datetime.fromisoformat(_six_digits(text))
    except ValueError:
        raise OutOfRange(text) from None
    # MariaDB's session wrote the truth in UTC, without saying so.
    return found.replace(tzinfo=dt.timezone.utc) if found.tzinfo is None else found.astimezone(dt.timezone.utc)


def _six_digits(text: str) -> str:
    """Pad the fraction of a second and the offset, which Python 3.10 wants whole."""
    text = re.sub(r"([+-]\d\d)$", r"\1:00", text)
    return re.sub(r"\.(\d{1,6})", lambda match: "." + match[1].ljust(6, "0"), text)


def _duration(text: str) -> int:
    """Return an interval as the connector's approximate microseconds: a month is a twelfth of 365.25 days."""
    total = Decimal(0)
    day = Decimal(_MICROSECONDS["day"])
    for number, unit in re.findall(r"([+-]?\d+) (year|mon|day)s?", text):
        days = {"year": Decimal("365.25"), "mon": Decimal(str(_MONTH)), "day": Decimal(1)}[unit]
        total += int(number) * days * day
    if match := re.search(r"([+-]?)(\d+):(\d\d):(\d\d(?:\.\d+)?)$", text):
        seconds = int(match[2]) * 3600 + int(match[3]) * 60 + Decimal(match[4])
        total += seconds * 10**6 * (-1 if match[1] == "-" else 1)
    return max(-_LAST_INT64 - 1, min(_LAST_INT64, int(total)))


def _postgres_bits(type_: str) -> Callable[[str], bytes]:
    def read(text: str) -> bytes:
        # A fixed width is kept, a varying one is as wide as what it holds without leading zeros.
        number = int(text, 2)
        width = (number.bit_length() + 7) // 8 if "varying" in type_ else (len(text) + 7) // 8
        return number.to_bytes(width, "little")

    return read


def _postgres_point(text: str) -> dict[str, Any]:
    x, y = (float(part) for part in text.strip("()").split(","))
    return {"x": x, "y": y, "wkb": struct.pack("<BIdd", 1, 1, x, y), "srid": None}


def _mariadb_point(text: str) -> dict[str, Any]:
    data = bytes.fromhex(text)
    x, y = struct.unpack("<dd", data[-16:])
    return {"x": x, "y": y, "wkb": data[4:], "srid": int.from_bytes(data[:4], "little") or None}


def _list(element: Kind) -> Kind:
    def of_text(text: str) -> list[Any]:
        return [None if item is None else element.of_text(item) for item in _elements(text)]

    return Kind(
        types=tuple(f"list<{type_}>" for type_ in element.types),
        of_text=of_text,
        of_target=lambda value: None if value is None else [element.of_target(item) for item in value],
    )


def _elements(text: str) -> list[str | None]:
    """Take a one-dimensional array of Postgres apart."""
    found: list[str | None] = []
    for quoted, bare in re.findall(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)', text):
        found.append((None if bare == "NULL" else bare) if bare else re.sub(r"\\(.)", r"\1", quoted))
    return found


_TEXT = Kind(types=("string",), of_text=_same)
_INT = Kind(types=("int",), of_text=int)
_LONG = Kind(types=("long",), of_text=int)
_BINARY = Kind(types=("binary",), of_text=bytes.fromhex)
_DATE = Kind(types=("date",), of_text=_date)
_LOCAL = Kind(types=("timestamp",), of_text=_local)
_INSTANT = Kind(types=("timestamptz",), of_text=_instant)
_TIME = Kind(types=("string",), of_text=microseconds, of_target=microseconds)
_ZONED_TIME = Kind(types=("string",), of_text=_same)
_DECIMAL_TEXT = Kind(types=("string",), of_text=_exact, of_target=_exact)
_FLOAT = Kind(types=("float",), of_text=lambda text: repr(_rounded(float(text))), of_target=_float32_text)
_DOUBLE = Kind(types=("double",), of_text=lambda text: repr(float(text)), of_target=float_text)
_BIT1 = Kind(types=("boolean",), of_text=lambda text: text == "1")

_POSTGRES = {
    "smallint": _INT,
    "integer": _INT,
    "bigint": _LONG,
    "oid": _LONG,
    "inv.posint": _INT,
    "real": _FLOAT,
    "double precision": _DOUBLE,
    "boolean": Kind(types=("boolean",), of_text=lambda text: text == "true"),
    "date": _DATE,
    "bytea": Kind(types=("binary",), of_text=lambda text: bytes.fromhex(text.removeprefix("\\x"))),
    "interval": Kind(types=("long",), of_text=_duration),
    "money": Kind(types=("decimal(38, 2)",), of_text=lambda text: Decimal(re.sub(r"[$,]", "", text))),
    "point": Kind(types=(POINT,), of_text=_postgres_point),
}

_MARIADB = {
    "tinyint": _INT,
    "smallint": _INT,
    "mediumint": _INT,
    "year": _INT,
    "float": _FLOAT,
    "double": _DOUBLE,
    "binary": _BINARY,
    "varbinary": _BINARY,
    "tinyblob": _BINARY,
    "blob": _BINARY,
    "mediumblob": _BINARY,
    "longblob": _BINARY,
    "date": _DATE,
    "time": _TIME,
    "datetime": _LOCAL,
    "timestamp": _INSTANT,
    "point": Kind(types=(POINT,), of_text=_mariadb_point),
}
