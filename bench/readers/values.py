"""Values of any reader in one form that JSON holds: a letter for the kind, and a text; and whether two are the same.

Standard library only: a reader's own Python environment imports this.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TypeAlias

Value: TypeAlias = "list[object] | None"
"""None, or the letter of a kind and what is held: a text, a list of values, or a struct's values by name."""
Row: TypeAlias = "dict[str, Value]"


def encode(value: object) -> Value:
    """Return a Python value in the form that is compared.

    Raises:
        ValueError: for a value of a kind that no table here holds.
    """
    match value:
        case None:
            return None
        case bool():
            return ["bool", str(value).lower()]
        case int():
            return ["int", str(value)]
        case float():
            return ["float", repr(value)]
        case Decimal():
            return ["decimal", format(value, "f")]
        case str():
            return ["text", value]
        case bytes() | bytearray() | memoryview():
            return ["bytes", bytes(value).hex()]
        case datetime() if value.tzinfo is None:
            return ["local", value.isoformat(timespec="microseconds")]
        case datetime():
            return ["instant", value.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds")]
        case date():
            return ["date", value.isoformat()]
        case Mapping():
            return ["struct", {str(name): encode(item) for name, item in value.items()}]
        case list() | tuple():
            return ["list", [encode(item) for item in value]]
    raise ValueError(f"{type(value).__name__} is not a value of a table")


def encode_map(pairs: Sequence[tuple[object, object]]) -> Value:
    """Return a map, whose pairs have no order."""
    return ["map", sorted(([encode(key), encode(item)] for key, item in pairs), key=repr)]


def same(wanted: Value, found: Value, *, single: bool = False) -> bool:
    """Tell whether a reader shows what the source holds.

    A moment may come with a zone or without (UTC then), and bytes that are a text as one, for the types of Hive and of
    ClickHouse do not tell them apart.

    Args:
        wanted: the source's.
        found: the reader's.
        single: the column is a float of 32 bits, which readers show with any number of digits.
    """
    if wanted is None or found is None:
        return wanted is found
    kind, content = wanted
    theirs, shown = found
    match kind, theirs:
        case (("local" | "instant"), ("local" | "instant")):
            return content == shown
        case "float", "float":
            return _same_float(float(str(content)), float(str(shown)), single=single)
        case "bytes", "text":
            return content == str(shown).encode().hex()
        case "decimal", "decimal":
            return Decimal(str(content)) == Decimal(str(shown))
        case "list", "list":
            return _all_same(content, shown)
        case "struct", "struct":
            return _fields_same(content, shown)
        case "map", "map":
            return _pairs_same(content, shown)
        case _:
            return kind == theirs and content == shown


def _same_float(ours: float, theirs: float, *, single: bool) -> bool:
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    if single and math.isfinite(ours) and math.isfinite(theirs):
        return struct.pack("f", ours) == struct.pack("f", theirs)
    return ours == theirs


def _all_same(ours: object, theirs: object) -> bool:
    assert isinstance(ours, list)
    assert isinstance(theirs, list)
    return len(ours) == len(theirs) and all(same(a, b) for a, b in zip(ours, theirs, strict=True))


def _fields_same(ours: object, theirs: object) -> bool:
    assert isinstance(ours, dict)
    assert isinstance(theirs, dict)
    return list(ours) == list(theirs) and all(same(ours[name], theirs[name]) for name in ours)


def _pairs_same(ours: object, theirs: object) -> bool:
    assert isinstance(ours, list)
    assert isinstance(theirs, list)
    return len(ours) == len(theirs) and all(
        same(a, c) and same(b, d) for (a, b), (c, d) in zip(ours, theirs, strict=True)
    )
