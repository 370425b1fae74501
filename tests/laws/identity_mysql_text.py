"""How people and tools write MySQL's and MariaDB's DDL: quoting, case, comments, optional words."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from tests.laws.identity_model import KINDS, Col


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One clause of an ALTER TABLE.

    Attributes:
        old: the column's name before the statement; for `add` its new one.
        new: its name after it, for `rename` and `change`.
        kind: its type, for `add`, `change` and `modify`.
        place: `FIRST`, or the name that it comes behind; None leaves it where it is, or puts it last.
        text: the whole clause, for `noise`, which changes no column.
    """

    do: Literal["add", "drop", "rename", "change", "modify", "noise"]
    old: str = ""
    new: str = ""
    kind: str = ""
    place: str | None = None
    first: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes names and clauses in the manner of one author."""

    random: Random
    mariadb: bool
    database: str

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def word(self, text: str) -> str:
        return self.random.choice((text, text.lower(), text.title())) if self.chance(0.4) else text.lower()

    def gap(self) -> str:
        return self.random.choice((" ", " ", " ", "  ", "\n  ", " /* then */ ", "\t", " -- so\n "))

    def name(self, name: str, *, exact: bool = True) -> str:
        """Write a column's name; one that is looked up may be written in any case."""
        if not exact and self.chance(0.1):
            name = name.swapcase() if name.swapcase().casefold() == name.casefold() else name
        plain = name.isascii() and name.isidentifier() and name.upper() not in _RESERVED and name.lower() not in _WORDS
        return name if plain and self.chance(0.5) else "`" + name.replace("`", "``") + "`"

    def table(self, name: str, *, in_database: bool = True) -> str:
        """Write a table's name, with its database or, if that is the session's, perhaps without."""
        if in_database and self.chance(0.5):
            return f"`{name}`" if self.chance(0.5) else name
        quote = "`" if self.chance(0.6) else ""
        dot = "." if quote == "" or self.chance(0.9) else " . "
        return f"{quote}{self.database}{quote}{dot}{quote}{name}{quote}"

    def type(self, kind: str, *, key: bool = False) -> str:
        options = ["", "", "", " NULL", " COMMENT 'drop column a, rename b to c'", ' DEFAULT NULL COMMENT "it\'s; `a`"']
        return self.random.choice(KINDS[kind].mysql) + (" NOT NULL" if key else self.random.choice(options))

    def clause(self, clause: Clause, *, key: bool = False, unless: bool = True) -> str:
        """Write a clause; `unless` allows MariaDB's IF EXISTS and IF NOT EXISTS, which look at the table before."""
        column = self.word("COLUMN ") if self.chance(0.5) else ""
        place = ""
        if clause.first:
            place = f" {self.word('FIRST')}"
        elif clause.place is not None:
            place = f" {self.word('AFTER')} {self.name(clause.place, exact=False)}"
        unless = unless and self.mariadb and self.chance(0.08)
        missing, there = ("IF NOT EXISTS ", "IF EXISTS ") if unless else ("", "")
        match clause.do:
            case "add":
                return f"{self.word('ADD')} {column}{missing}{self.name(clause.old)} {self.type(clause.kind)}{place}"
            case "drop":
                return f"{self.word('DROP')} {column}{there}{self.name(clause.old, exact=False)}"
            case "rename":
                names = f"{self.name(clause.old, exact=False)} {self.word('TO')} {self.name(clause.new)}"
                return f"{self.word('RENAME COLUMN')} {there}{names}"
            case "change":
                names = f"{self.name(clause.old, exact=False)} {self.name(clause.new)}"
                return f"{self.word('CHANGE')} {column}{there}{names} {self.type(clause.kind, key=key)}{place}"
            case "modify":
                name = self.name(clause.old)
                return f"{self.word('MODIFY')} {column}{there}{name} {self.type(clause.kind, key=key)}{place}"
            case "noise":
                return clause.text

    def alter(self, name: str, clauses: list[str]) -> str:
        ignore = self.word("IGNORE ") if self.mariadb and self.chance(0.05) else ""
        head = f"{self.word('ALTER')} {ignore}{self.word('TABLE')}{self.gap()}{self.table(name)}"
        return self.comments(head + self.gap() + f",{self.gap()}".join(clauses))

    def comments(self, statement: str) -> str:
        if self.chance(0.08):
            statement = f"/* ApplicationName=Desk 7, alter table t drop column a */ {statement}"
        if self.chance(0.05):
            statement += " -- rename column a to b"
        return statement

    def definition(self, column: Col) -> str:
        quoted = "`" + column.name.replace("`", "``") + "`"
        kind = KINDS[column.kind].mysql[0]
        if column.generated:
            return f"{quoted} {kind} GENERATED ALWAYS AS (1 + 1) STORED"
        return f"{quoted} {kind}" + (" NOT NULL" if column.key else "")

    def create(self, name: str, columns: tuple[Col, ...], *, head: str = "CREATE TABLE") -> str:
        lines = [self.definition(column) for column in columns]
        keys = ["`" + column.name.replace("`", "``") + "`" for column in columns if column.key]
        if keys:
            lines.append(f"PRIMARY KEY ({', '.join(keys)})")
        body = ",\n  ".join(lines)
        return f"{head} {self.table(name)} (\n  {body}\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"


_RESERVED = frozenset(("ORDER", "SELECT", "TO", "COLUMN", "KEY", "INDEX", "RENAME", "FIRST", "AFTER", "STATE"))
_WORDS = frozenset(("if", "check", "like", "primary", "unique", "constraint", "foreign", "period", "partition"))
