"""A table as any reader of this folder shows it, and the names that formats hold in place of the source's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Place: TypeAlias = tuple[str, str]
"""Namespace and name of a table, as the source and the configuration call it."""


class Misread(AssertionError):
    """A table contradicts itself: its files are not what its log or its metastore says they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table at one moment.

    Attributes:
        columns: (name as at the source, type in Iceberg's words) in order.
        rows: in any order, values by column.
    """

    columns: tuple[tuple[str, str], ...]
    rows: Sequence[Mapping[str, Any]]


class Lake(Protocol):
    """The tables of one warehouse, read only."""

    def table(self, place: Place) -> Table | None:
        """Read a whole table; None if there is no such table (yet)."""
        ...

    def stamp(self) -> int | None:
        """Return a number that every commit of rows to any table changes; None while there is nothing."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...


def held(name: str) -> str:
    """Return a name as formats hold it that know ASCII letters, digits and `_` only: `docs/names.md`, rule 1."""
    plain = "".join(letter if re.match(r"[A-Za-z0-9_]", letter) else _code(letter) for letter in name)
    return f"{_code(plain[0])}{plain[1:]}" if plain[:1].isdigit() else plain


def _code(letter: str) -> str:
    return f"_x{ord(letter):04X}_"


def source_name(name: str) -> str:
    """Return the source's name for one that such a format holds."""
    return re.sub(r"_x([0-9A-F]{4,6})_", lambda match: chr(int(match[1], 16)), name)
