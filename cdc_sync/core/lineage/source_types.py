"""Whether a source's change of a type, by its own rule, may have changed values that were there."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MODIFIER = re.compile(r"\(\s*(-?\d+)\s*(?:,\s*(-?\d+)\s*)?\)")

_WIDER = (
    ("tinyint", "smallint", "mediumint", "int", "bigint"),
    ("tinyint unsigned", "smallint unsigned", "mediumint unsigned", "int unsigned", "bigint unsigned"),
    ("tinytext", "text", "mediumtext", "longtext"),
    ("tinyblob", "blob", "mediumblob", "longblob"),
)
"""Types of MySQL and MariaDB, each of which holds every value of those before it."""
_WHOLE = frozenset(name for names in _WIDER[:2] for name in names) | {"integer"}
"""What stands in brackets behind them is a width to show, and changes no value."""
_SPELLED = {"varchar": "character varying", "varbit": "bit varying", "bpchar": "character", "integer": "int"}
_LIMITED = frozenset(("character varying", "bit varying", "varbinary", "nvarchar", "varchar2", "nvarchar2", "text"))
_SAME_TEXT = frozenset(
    (
        ("character varying", "text"),
        ("text", "character varying"),
        ("citext", "text"),
        ("text", "citext"),
        ("json", "text"),
        ("json", "character varying"),
        ("text", "json"),
        ("character varying", "json"),
        ("jsonb", "json"),
        ("jsonb", "text"),
        ("jsonb", "character varying"),
        ("uuid", "text"),
        ("uuid", "character varying"),
        ("xml", "text"),
        ("name", "text"),
        ("json", "longtext"),
        ("longtext", "json"),
        ("char", "character varying"),
        ("char", "text"),
        ("char", "mediumtext"),
        ("char", "longtext"),
        ("character varying", "mediumtext"),
        ("character varying", "longtext"),
    )
)
"""Pairs of types, the later of which shows every text of the earlier as it was."""


@dataclass(frozen=True, slots=True)
class _Type:
    base: str
    sizes: tuple[int, ...]
    labels: str


def may_differ(old: str, new: str, *, as_text: bool = False) -> bool:
    """Tell whether values may be other ones behind a change of their column's type.

    Args:
        old, new: as the source's catalogue, a schema-change record or a propagated type writes them.
        as_text: values are kept as texts, in which digits that are zero count.
    """
    one, other = _read(old), _read(new)
    if one == other or (one.base == other.base and one.base in _WHOLE):
        return False
    if one.base == other.base:
        return _sizes_differ(one, other, as_text=as_text) or not other.labels.startswith(one.labels)
    if any((one.base, other.base) in pairs for pairs in map(_wider_pairs, _WIDER)):
        return False
    if (one.base, other.base) not in _SAME_TEXT:
        return True
    # A limit that was not there before may cut a value off.
    return other.base not in _TEXTS and bool(other.sizes) and not (one.sizes and other.sizes >= one.sizes)


_TEXTS = frozenset(("text", "mediumtext", "longtext", "json"))


def _wider_pairs(names: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    return frozenset((one, other) for place, one in enumerate(names) for other in names[place + 1 :])


def _read(text: str) -> _Type:
    """Part a type's text: `timestamp(3) without time zone`, `DECIMAL(10,2)`, `ENUM(1)("'a'")`."""
    text, _, labels = text.partition("('") if "('" in text else text.partition('("')
    sizes = tuple(int(size) for found in _MODIFIER.findall(text) for size in found if size)
    words = " ".join(_MODIFIER.sub(" ", text).replace("[]", " []").lower().split())
    words = words.removesuffix(" zerofill")
    first, space, rest = words.partition(" ")
    doubled = rest == first or rest.startswith(f"{first} ")  # a name and its expression, which repeats it
    words = rest if doubled else words
    first, space, rest = words.partition(" ")
    return _Type(f"{_SPELLED.get(first, first)}{space}{rest}", sizes, labels.rstrip(")"))


def _sizes_differ(one: _Type, other: _Type, *, as_text: bool) -> bool:
    base = one.base.removesuffix(" []")
    if base in ("enum", "set"):
        return False
    if base in ("numeric", "decimal"):
        return _digits_differ(one.sizes, other.sizes, as_text=as_text)
    if base in _LIMITED or base == "char":
        return bool(other.sizes) and not (one.sizes and other.sizes >= one.sizes)
    default = _digits_of_a_second(base)
    if default is not None:
        return (other.sizes or (default,)) < (one.sizes or (default,))
    return one.sizes != other.sizes


def _digits_of_a_second(base: str) -> int | None:
    """Return how many digits of a second a type has that says nothing of them; None if it has no seconds."""
    if base.endswith("time zone") or base in ("interval", "timestamptz", "timetz"):
        return 6
    return 0 if base in ("datetime", "timestamp", "time") else None


def _digits_differ(one: tuple[int, ...], other: tuple[int, ...], *, as_text: bool) -> bool:
    if not other:
        return False
    if not one:
        return True
    (digits, scale), (now, now_scale) = ((*sizes, 0)[:2] for sizes in (one, other))
    return now_scale < scale or now - now_scale < digits - scale or (as_text and now_scale != scale)
