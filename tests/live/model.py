"""The columns of one table as whoever alters it knows them: each has a number that outlives its name."""

from __future__ import annotations

import random
from copy import copy
from dataclasses import dataclass, field, replace

KEY, WIDE_KEY, PART = "key", "wide key", "part"
IDENTITIES = (KEY, WIDE_KEY)
"""What the one column holds that is different in every row."""
KEYS = (*IDENTITIES, PART)
"""What columns of the primary key hold."""
KINDS = ("int", "long", "money", "sum", "float", "double", "text", "day", "moment")
"""What columns hold; the dialects say what that is called."""
WIDER = {"int": "long", "money": "sum", "float": "double"}
CONVERTED = {
    "int": ("text", "double", "sum"),
    "long": ("text", "double"),
    "money": ("text", "double"),
    "day": ("text", "moment"),
}
"""What columns become that then hold what they held, in a type that no table format widens to."""

BETWEEN = "between"
"""A name that a column has for a moment only."""
_ODD = ("größe", "a b", "Total", "select", "x;y", "it's")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A column; `number` is different for every column the table ever had, `default` is SQL."""

    number: int
    name: str
    kind: str
    default: str | None = None


@dataclass(slots=True)
class Model:
    """The columns in order, and every name there ever was."""

    table: str
    columns: list[Known] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    made: int = 0

    def copy(self) -> Model:
        """Return it as it is now, to go back to."""
        other = copy(self)
        other.columns, other.names = list(self.columns), list(self.names)
        return other

    @property
    def others(self) -> list[Known]:
        """All columns but those of the key."""
        return [column for column in self.columns if column.kind not in KEYS]

    def add(self, name: str, kind: str, place: int | None = None, default: str | None = None) -> Known:
        self.made += 1
        column = Known(number=self.made, name=name, kind=kind, default=default)
        self.columns.insert(len(self.columns) if place is None else place, column)
        if name not in self.names:
            self.names.append(name)
        return column

    def drop(self, column: Known) -> None:
        self.columns.remove(column)

    def change(self, column: Known, *, name: str | None = None, kind: str | None = None) -> Known:
        changed = replace(column, name=name or column.name, kind=kind or column.kind)
        self.columns[self.columns.index(column)] = changed
        if changed.name not in (*self.names, BETWEEN):
            self.names.append(changed.name)
        return changed

    def move(self, column: Known, place: int) -> None:
        self.columns.remove(column)
        self.columns.insert(place, column)

    def free_name(self, chance: random.Random) -> str:
        """Return a name no column has: a new one, an odd one, or one that a column had once."""
        taken = {column.name.casefold() for column in self.columns}
        options = [name for name in (*self.names, *_ODD) if name.casefold() not in taken]
        if options and chance.random() < 0.4:
            return chance.choice(options)
        number = len(self.names)
        while f"c{number}" in taken:
            number += 1
        return f"c{number}"
