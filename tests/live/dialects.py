"""How the two databases say what is done to a table."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.live.model import KEY, KEYS, PART, WIDE_KEY, Known

DEFAULTS = {
    "int": "7",
    "long": "5000000000",
    "money": "0.50",
    "sum": "12345678.25",
    "float": "0.25",
    "double": "-1.5",
    "text": "'n/a'",
    "day": "'2020-02-29'",
}
_VALUES: dict[str, Callable[[random.Random], object]] = {
    "int": lambda chance: chance.randrange(-(2**31), 2**31),
    "long": lambda chance: chance.randrange(-(2**63), 2**63),
    "money": lambda chance: f"{chance.randrange(-(10**8), 10**8) / 100:.2f}",
    "sum": lambda chance: f"{chance.randrange(-(10**9), 10**9)}.{chance.randrange(100):02}",
    # Six digits: a snapshot of MariaDB shows no more of a float.
    "float": lambda chance: chance.randrange(-4000, 4000) / 4,
    "double": lambda chance: chance.randrange(-(10**12), 10**12) / 8,
    "text": lambda chance: chance.choice(("", "a", "it''s", "ü ☀", "null", "x" * 30)) + str(chance.randrange(1000)),
    "day": lambda chance: f"{chance.randrange(1950, 2050)}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}",
    "moment": lambda chance: f"{_VALUES['day'](chance)} {chance.randrange(24):02}:05:06.{chance.randrange(10**6):06}",
    PART: lambda chance: chance.randrange(100),
}


def value(kind: str, chance: random.Random) -> str:
    """Return a random value as SQL."""
    found = _VALUES[kind](chance)
    return f"'{found}'" if kind in ("text", "day", "moment") else str(found)


def _default(column: Known) -> str:
    return f" default {column.default}" if column.default is not None else ""


def _definition(column: Known) -> str:
    return (" not null" if column.kind == PART else "") + _default(column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """Clauses behind `alter table t`, of which a rename stands alone."""

    chance: random.Random
    can_place = False
    renames_alone = True
    types = {
        KEY: "integer",
        WIDE_KEY: "bigint",
        PART: "integer",
        "int": "integer",
        "long": "bigint",
        "money": "numeric(8,2)",
        "sum": "numeric(12,2)",
        "float": "real",
        "double": "double precision",
        "text": "text",
        "day": "date",
        "moment": "timestamp",
    }

    @staticmethod
    def quoted(name: str) -> str:
        return '"{}"'.format(name.replace('"', '""'))

    def add(self, column: Known, *, after: str | None) -> str:
        return f"add column {self.quoted(column.name)} {self.types[column.kind]}{_definition(column)}"

    def drop(self, column: Known) -> str:
        return f"drop column {self.quoted(column.name)}"

    def rename(self, column: Known, name: str) -> str:
        return f"rename column {self.quoted(column.name)} to {self.quoted(name)}"

    def retype(self, column: Known) -> str:
        return f"alter column {self.quoted(column.name)} type {self.types[column.kind]}"

    def create(self, table: str, columns: Sequence[Known]) -> str:
        return _create(self, table, columns)

    def change_key(self, table: str, columns: Sequence[Known]) -> list[str]:
        name = table.rpartition(".")[2]
        return [f"drop constraint {name}_pkey", f"add constraint {name}_pkey primary key {_names(self, columns)}"]

    def noise(self, table: str, column: Known) -> str:
        return self.chance.choice(
            (
                f"comment on column {table}.{self.quoted(column.name)} is 'rename column a to b'",
                f"alter table {table} alter column {self.quoted(column.name)} set statistics 50",
                f"alter table {table} set (fillfactor = 90)",
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mariadb:
    """Clauses behind `alter table t`; the texts vary, for they are all that is known of a rename."""

    chance: random.Random
    can_place = True
    renames_alone = False
    types = {
        KEY: "int",
        WIDE_KEY: "bigint",
        PART: "int",
        "int": "int",
        "long": "bigint",
        "money": "decimal(8,2)",
        "sum": "decimal(12,2)",
        "float": "float",
        "double": "double",
        "text": "varchar(60)",
        "day": "date",
        "moment": "datetime(6)",
    }

    @staticmethod
    def quoted(name: str) -> str:
        return "`{}`".format(name.replace("`", "``"))

    def add(self, column: Known, *, after: str | None) -> str:
        name = self.quoted(column.name)
        return f"{self._word('add')} {name} {self.types[column.kind]}{_definition(column)}{self._place(after)}"

    def drop(self, column: Known) -> str:
        return f"{self._word('drop')} {self.quoted(column.name)}"

    def rename(self, column: Known, name: str) -> str:
        if self.chance.random() < 0.5:
            return f"rename column {self.quoted(column.name)} to {self.quoted(name)}"
        return self.change(column, name, column.kind)

    def change(self, column: Known, name: str, kind: str) -> str:
        """Return a CHANGE, which has to say all that is to stay.

        A default that goes before the next row leaves its value in rows of before, and no event would tell of it.
        """
        null = "not null" if kind in KEYS else "null"
        names = f"{self.quoted(column.name)} {self.quoted(name)}"
        return f"{self._word('change')} {names} {self.types[kind]} {null}{_default(column)}"

    def retype(self, column: Known, after: str | None = None) -> str:
        name = self.quoted(column.name)
        return f"{self._word('modify')} {name} {self.types[column.kind]}{_default(column)}{self._place(after)}"

    def create(self, table: str, columns: Sequence[Known]) -> str:
        return _create(self, table, columns)

    def change_key(self, table: str, columns: Sequence[Known]) -> list[str]:
        return ["drop primary key", f"add primary key {_names(self, columns)}"]

    def noise(self, table: str, column: Known) -> str:
        return self.chance.choice(
            (
                f"create index i{self.chance.randrange(10**9)} on {table} ({self.quoted(column.name)})",
                f"alter table {table} comment 'rename column a to b'",
                f"alter table {table} engine = innodb",
            )
        )

    def _word(self, word: str) -> str:
        said = self.chance.choice((word, word.upper(), f"/* {word} */ {word}"))
        return said + self.chance.choice((" column", " COLUMN", ""))

    def _place(self, after: str | None) -> str:
        match after:
            case None:
                return ""
            case "":
                return " first"
            case _:
                return f" after {self.quoted(after)}"


Dialect = Postgres | Mariadb

MOMENTS: dict[type[Dialect], tuple[str, ...]] = {
    Postgres: ("now()", "clock_timestamp()", "now() - interval '1 day'"),
    Mariadb: ("now(6)",),
}
"""Defaults of columns that hold a moment."""


def _create(dialect: Dialect, table: str, columns: Sequence[Known]) -> str:
    defined = ", ".join(f"{dialect.quoted(column.name)} {dialect.types[column.kind]}" for column in columns)
    return f"create table {table} ({defined}, primary key {_names(dialect, [c for c in columns if c.kind in KEYS])})"


def _names(dialect: Dialect, columns: Sequence[Known]) -> str:
    return f"({', '.join(dialect.quoted(column.name) for column in columns)})"
