"""Random lives of a Postgres table, as the records it writes: each step is one drawn integer, taken apart."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.testing import INT32, INT64, JSON, TEXT, SourceTable, array, column

NAMES = ("a", "b", "c", "d", "e", "f", "`g`", "id")
TYPES = (INT32, INT64, TEXT, JSON, array(INT32))
_DEFAULTS = {"int32": 7, "int64": 8, "string": "x"}


class Life(SourceTable):
    """A table that lives by integers.

    A new name is never one that the last event showed: from events alone nobody can tell that such a column is not
    the one that had the name (`align` says so), and then no reader can be right.
    """

    def __init__(self, numbers: list[int]) -> None:
        columns = (column("id", INT32, optional=False), column("a", INT32), column("b", TEXT))
        super().__init__("t", columns, null_is_default=False)
        self._shown = {item.field for item in columns}
        self._next_key = 0
        start, *rest = numbers
        for number in range(start % 3):
            self.put(number)
        if start % 2:  # what was written before the connector came is read by a snapshot
            self.records.clear()
            self.wal.last_commit = None
            self.snapshot()
        for number in rest:
            number, kind = divmod(number, len(_STEPS))
            _STEPS[kind](self, number)

    def _values(self, number: int) -> dict[str, object]:
        """Return a value for some of the columns; the others get their default or NULL."""
        filled = {}
        for place, item in enumerate(self.columns):
            if item.field not in self.key and (item.optional is False or number >> place & 1):
                filled[item.field or ""] = _value(item, number)
        return filled

    def _wrote(self) -> None:
        self._shown = {item.field for item in self.columns}

    def put(self, number: int) -> None:
        self._next_key += 1
        self.insert({self.key[0]: self._next_key, **self._values(number)})
        self._wrote()

    def change(self, number: int) -> None:
        if self.rows:
            row = self.rows[number % len(self.rows)]
            self.update({self.key[0]: row[self.key[0]]}, self._values(number // 3))
            self._wrote()

    def rekey(self, number: int) -> None:
        if self.rows:
            self._next_key += 1
            row = self.rows[number % len(self.rows)]
            self.update({self.key[0]: row[self.key[0]]}, {self.key[0]: self._next_key})
            self._wrote()

    def remove(self, number: int) -> None:
        if self.rows:
            row = self.rows[number % len(self.rows)]
            self.delete({self.key[0]: row[self.key[0]]})
            self._wrote()

    def empty(self, number: int) -> None:
        if number % 5 == 0:
            self.truncate()

    def _fresh(self, number: int) -> str | None:
        taken = self._shown | {item.field for item in self.columns}
        free = [name for name in NAMES if name not in taken]
        return free[number % len(free)] if free else None

    def _other(self, number: int) -> ConnectSchema | None:
        others = [item for item in self.columns if item.field not in self.key]
        return others[number % len(others)] if others else None

    def add(self, number: int) -> None:
        number, type_ = divmod(number, len(TYPES))
        name = self._fresh(number)
        default = _DEFAULTS.get(TYPES[type_].type) if number % 2 else None
        if name is not None:
            optional = default is None or number % 4 == 1
            self.add_column(column(name, TYPES[type_], optional=optional, default=default), initial=default)

    def drop(self, number: int) -> None:
        item = self._other(number)
        if item is not None:
            self.drop_column(item.field or "")

    def rename(self, number: int) -> None:
        name, item = self._fresh(number // 3), self.columns[number % len(self.columns)]
        if name is not None:
            self.rename_column(item.field or "", name)

    def widen(self, number: int) -> None:
        item = self._other(number)
        if item is not None and item.type == "int32":
            self.alter_column(item.field or "", lambda c: replace(c, type="int64"))

    def retext(self, number: int) -> None:
        """Change text to JSON and back: another schema text and fingerprint, the same tracked type."""
        item = self._other(number)
        if item is not None and item.type == "string":
            name = None if item.name else JSON.name
            self.alter_column(item.field or "", lambda c: replace(c, name=name, version=1 if name else None))

    def redefault(self, number: int) -> None:
        item = self._other(number)
        # Before any event shows the column, nobody learns what its default was when it was added.
        if item is not None and item.type == "int32" and item.field in self._shown:
            default = None if item.optional and number % 3 == 0 else number % 9 + 1
            self.alter_column(item.field or "", lambda c: replace(c, default=default))


def _value(item: ConnectSchema, number: int) -> object:
    if item.type == "array":
        return [number % 5, None]
    return number % 1000 if item.type.startswith("int") else f"t{number % 1000}"


_STEPS = (
    Life.put,
    Life.put,
    Life.change,
    Life.change,
    Life.rekey,
    Life.remove,
    Life.add,
    Life.drop,
    Life.rename,
    Life.retext,
    Life.widen,
    Life.redefault,
    Life.add,
    Life.drop,
    Life.empty,
)

lives = st.lists(st.integers(0, 2**20), min_size=2, max_size=22).map(Life)
"""Tables that lived up to 21 steps, with everything they wrote."""
