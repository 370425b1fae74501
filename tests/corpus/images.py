"""The captured truth and a lake table as comparable images."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

_SIMPLE_TYPES = {
    "smallint": "int",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "double precision": "double",
    "boolean": "boolean",
    "date": "date",
    "bytea": "binary",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Columns as (name, Iceberg type) in order, and the rows as a multiset of Python values."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]


def expected_image(table: dict[str, Any]) -> Image:
    """Turn a table of `expected/*.json` or a line of `history.jsonl` into an image."""
    columns = [
        (column["name"], column["type"]) if isinstance(column, dict) else (column[0], column[1])
        for column in table["columns"]
    ]
    rows = [tuple(_value(type_, text) for (_, type_), text in zip(columns, row, strict=True)) for row in table["rows"]]
    return Image(columns=tuple((name, _type(type_)) for name, type_ in columns), rows=_sorted(rows))


def lake_image(schema: Any, rows: list[dict[str, Any]]) -> Image:
    """Turn a pyiceberg schema and its rows into an image."""
    names = [field.name for field in schema.fields]
    columns = tuple((field.name, str(field.field_type)) for field in schema.fields)
    return Image(columns=columns, rows=_sorted([tuple(row[name] for name in names) for row in rows]))


def differences(expected: Image, found: Image) -> list[str]:
    """Say in words how two images differ; empty if they are equal."""
    found_differences = []
    if expected.columns != found.columns:
        found_differences.append(f"columns: expected {expected.columns}, found {found.columns}")
    if expected.rows != found.rows:
        missing = [row for row in expected.rows if row not in found.rows]
        extra = [row for row in found.rows if row not in expected.rows]
        found_differences.append(
            f"rows: missing {missing[:5]}, too many {extra[:5]}, counts {len(expected.rows)} and {len(found.rows)}"
        )
    return found_differences


def _sorted(rows: list[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(sorted(rows, key=repr))


def _type(text: str) -> str:
    if text in _SIMPLE_TYPES:
        return _SIMPLE_TYPES[text]
    if match := re.fullmatch(r"numeric\((\d+),(\d+)\)", text):
        return f"decimal({match[1]}, {match[2]})"
    if text.startswith("timestamp"):
        return "timestamptz" if "with time zone" in text else "timestamp"
    if text.endswith("[]"):
        return f"list<{_type(text[:-2])}>"
    return "string"


def _value(type_: str, text: str | None) -> Any:
    if text is None:
        return None
    kind = _type(type_)
    if kind in ("int", "long"):
        return int(text)
    if kind in ("float", "double"):
        return float(text)
    if kind == "boolean":
        return text == "true"
    if kind == "date":
        return dt.date.fromisoformat(text)
    if kind == "binary":
        return bytes.fromhex(text.removeprefix("\\x"))
    if kind.startswith("decimal"):
        return Decimal(text)
    if kind == "timestamp":
        return dt.datetime.fromisoformat(_six_digits(text))
    if kind == "timestamptz":
        return dt.datetime.fromisoformat(_six_digits(text)).astimezone(dt.timezone.utc)
    return text


def _six_digits(text: str) -> str:
    """Pad the fraction of a second and the offset, which Python 3.10 wants whole."""
    text = re.sub(r"([+-]\d\d)$", r"\1:00", text)
    return re.sub(r"\.(\d{1,6})", lambda match: "." + match[1].ljust(6, "0"), text)
