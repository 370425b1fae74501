"""What a topic with damaged records means, decided by Python's own JSON reader and nothing of cdc_sync.

A record that is a change of the table, strictly, all of it JSON in UTF-8, must be applied as such or set aside. One
that is not must be set aside, unless the damage is in what nobody needs:

- The layout of Kafka Connect, schema first, is read up to the end of the payload. What stands behind it does not count,
  be it a second payload or the record's last byte.
- A record that ends as a tombstone within the wrapper does is a tombstone, whatever stands before.
- A record that is no row, such as a heartbeat, is what its schema says; its payload does not count.
- Of another table's record only its name counts, and of a row's source block only what names table and position.

Of a member that an object holds twice the last one counts.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

Meaning = Literal["change", "another table's", "tombstone", "no change", "unreadable"]

COLUMN_TYPES = {
    "id": "int32",
    "note": "string",
    "amount": "decimal",
    "day": "date",
    "moment": "timestamp",
    "flag": "boolean",
    "ratio": "double",
    "tags": "list",
}
"""The columns of every table of the fuzzed job."""

_EPOCH = dt.datetime(1970, 1, 1)


class Unreadable(ValueError):
    """A record, or a value in it, that is not what it must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What one record means.

    Attributes:
        row: the row after the change; None for a delete.
        key: of the row that the change is about.
    """

    meaning: Meaning
    key: Any = None
    row: Mapping[str, Any] | None = None


Reader = Callable[[bytes], dict[str, Any]]
"""Reads a value as the document `{"schema":...,"payload":...}`; raises `Unreadable`."""

_WRAPPED_TOMBSTONE = b',"payload":null}'
_SCHEMA, _PAYLOAD = '{"schema":', ',"payload":'


def decode(value: bytes | None, table: tuple[str, str, str], read: Reader) -> Decoded:
    """Tell what one record is to a table named by database, schema and name, if it is not set aside."""
    if value is None or value.endswith(_WRAPPED_TOMBSTONE):
        return Decoded(meaning="tombstone")
    strict = _decode(value, table, read)
    if strict.meaning in ("change", "another table's", "tombstone") or read is not read_json:
        return strict
    needed = _decode(value, table, _read_needed)
    if needed.meaning in ("change", "no change"):
        return needed
    if _is_no_row(value):
        return Decoded(meaning="no change")
    # Nobody reads more of another table's record than whose it is, not even whether it is text.
    others = _decode(value.decode(errors="replace").encode("ascii", "replace"), table, _read_needed)
    return others if others.meaning == "another table's" else strict


def _is_no_row(value: bytes) -> bool:
    """Tell whether the schema is one of records without rows; in any layout it is all that is looked at of these."""
    try:
        document, _ = _DECODER.raw_decode(value.decode().lstrip())
    except (ValueError, ArithmeticError, RecursionError):
        return False
    schema = document.get("schema") if isinstance(document, dict) else None
    name = schema.get("name") if isinstance(schema, dict) else None
    return isinstance(name, str) and not name.endswith(".Envelope")


def _decode(value: bytes, table: tuple[str, str, str], read: Reader) -> Decoded:
    try:
        document = read(value)
    except Unreadable:
        return Decoded(meaning="unreadable")
    if "payload" in document and document["payload"] is None:
        return Decoded(meaning="tombstone")
    name = document["schema"].get("name") if isinstance(document.get("schema"), dict) else None
    if not isinstance(name, str) or not name.endswith(".Envelope"):
        return Decoded(meaning="no change")
    try:
        return _change(document.get("payload"), table)
    except Unreadable:
        return Decoded(meaning="unreadable")


def read_json(value: bytes) -> dict[str, Any]:
    """Read a value as JSON, strictly."""
    try:
        document = json.loads(value.decode(), parse_constant=_no_constant, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise Unreadable(str(error)) from error
    if not isinstance(document, dict):
        raise Unreadable("not an object")
    return document


def _read_needed(value: bytes) -> dict[str, Any]:
    """Read a value laid out as Kafka Connect does it up to the end of its payload, of what is no row only the schema.

    Strict in these parts. The wrapper's closing brace is taken for granted.
    """
    head, found, tail = value.partition(_PAYLOAD.encode())
    if not head.startswith(_SCHEMA.encode()) or not found:
        raise Unreadable("laid out otherwise")
    schema = read_json(head + b"}").get("schema")
    name = schema.get("name") if isinstance(schema, dict) else None
    if isinstance(name, str) and not name.endswith(".Envelope"):
        return {"schema": schema, "payload": {}}
    try:
        payload, _ = _DECODER.raw_decode(tail[:-1].decode())
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise Unreadable(str(error)) from error
    return {"schema": schema, "payload": payload}


def _no_constant(name: str) -> object:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=Decimal)


_NAMES: dict[str, type | tuple[type, ...]] = {"db": str, "schema": (str, type(None)), "table": str}


def _change(payload: Any, table: tuple[str, str, str]) -> Decoded:
    if not isinstance(payload, dict) or not isinstance(payload.get("source"), dict):
        raise Unreadable("no source")
    source, op = payload["source"], payload.get("op")
    # Databases without schemas send none, which is the same as NULL.
    if not all(isinstance(source.get(name), kinds) for name, kinds in _NAMES.items()):
        raise Unreadable("no names")
    if (source.get("db"), source.get("schema"), source.get("table")) != table:
        return Decoded(meaning="another table's")
    if op not in ("c", "r", "u", "d"):
        raise Unreadable("no operation")
    if _holds_half_of_a_pair(payload):
        raise Unreadable("no text")
    image = payload.get("before" if op == "d" else "after")
    if not isinstance(image, dict):
        raise Unreadable("no row")
    if op == "d":
        return Decoded(meaning="change", key=_value("int32", image.get("id")))
    row = {name: _value(type_, image.get(name)) for name, type_ in COLUMN_TYPES.items()}
    if row["id"] is None:
        raise Unreadable("no key")
    return Decoded(meaning="change", key=row["id"], row=row)


def _holds_half_of_a_pair(value: Any) -> bool:
    """Half of a surrogate pair is no character, and no text of a database has one."""
    match value:
        case str():
            return any("\ud800" <= letter <= "\udfff" for letter in value)
        case dict():
            return any(_holds_half_of_a_pair(part) for item in value.items() for part in item)
        case list():
            return any(map(_holds_half_of_a_pair, value))
        case _:
            return False


def _value(type_: str, raw: Any) -> Any:
    if raw is None:
        return None
    match type_, raw:
        case "int32", int() if not isinstance(raw, bool) and -(2**31) <= raw < 2**31:
            return raw
        case "string", str():
            return raw
        case "boolean", bool():
            return raw
        case "double", (int() | float() | Decimal()) if not isinstance(raw, bool):
            return _double(raw)
        case "double", "NaN" | "Infinity" | "-Infinity":
            return float(raw)
        case "decimal", str():
            return _decimal(raw)
        case "date", int() if not isinstance(raw, bool):
            return _within(lambda: (_EPOCH + dt.timedelta(days=raw)).date())
        case "timestamp", int() if not isinstance(raw, bool):
            return _within(lambda: _EPOCH + dt.timedelta(microseconds=raw))
        case "list", list():
            return [_value("int32", item) for item in raw]
        case _:
            raise Unreadable(f"{raw!r} is no {type_}")


def _double(raw: int | float | Decimal) -> float:
    try:
        found = float(raw)
    except OverflowError as error:
        raise Unreadable(str(error)) from error
    if isinstance(raw, (int, Decimal)) and found in (float("inf"), float("-inf")):
        raise Unreadable("beyond a double")
    return found


def _decimal(raw: str) -> Decimal:
    try:
        data = base64.b64decode(raw, validate=True)
    except ValueError as error:
        raise Unreadable(str(error)) from error
    unscaled = int.from_bytes(data, "big", signed=True)
    if not data or abs(unscaled) >= 10**10:
        raise Unreadable("not a decimal(10, 2)")
    return Decimal(unscaled).scaleb(-2)


def _within(read: Any) -> Any:
    try:
        return read()
    except OverflowError as error:
        raise Unreadable(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One record of a topic.

    Attributes:
        original: what the record was before it was damaged; None for a good one.
        kind: what was done to it; empty for a good one.
    """

    key: bytes | None
    value: bytes | None
    kind: str = ""
    original: bytes | None = None


def rows_after(
    entries: Sequence[Entry],
    table: tuple[str, str, str],
    read: Reader,
    *,
    aside: frozenset[int],
    found: Mapping[Any, Mapping[str, Any]],
) -> dict[Any, Any]:
    """Apply every record that was not set aside, in order.

    A damaged record that gives a column another name, which the next good record takes back, may have been taken for
    what it was before the damage.

    Args:
        found: the rows that the target has, by key.
    """
    rows: dict[Any, Any] = {}
    for offset, entry in enumerate(entries):
        if offset in aside:
            continue
        told = decode(entry.value, table, read)
        if entry.original is not None and "field_renamed" in entry.kind:
            before = decode(entry.original, table, read)
            told = before if found.get(before.key) == before.row else told
        if told.meaning != "change":
            continue
        if told.row is None:
            rows.pop(told.key, None)
        else:
            rows[told.key] = told.row
    return rows
