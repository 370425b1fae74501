"""What may be done to a table's columns: each change alters the model and returns the statements that do the same.

No ALTER of more than one clause names a column that another clause of it gives away: Debezium 3.5 loses such columns
of MariaDB. Nor is a column moved that had its name in another case before: its connector fails then, for good ("Cannot
create field because of field name duplication").
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

from tests.live.dialects import DEFAULTS, Dialect, Mariadb, Postgres
from tests.live.model import BETWEEN, KINDS, WIDER, Known, Model

Change: TypeAlias = Callable[["Table"], list[str] | None]
"""None: the table is not as the change needs it."""


class Table:
    """A table in mid-change.

    Attributes:
        defaults: whether new columns may have a default.
        emptied: the last change left no row.
        lives: how often it was created.
    """

    def __init__(self, model: Model, name: str, dialect: Dialect, chance: random.Random) -> None:
        self.model, self.name, self.dialect, self.chance = model, name, dialect, chance
        self.defaults = True
        self.emptied = False
        self.lives = 1

    def alter(self, *clauses: str) -> str:
        return f"alter table {self.name} {', '.join(clauses)}"

    def some(self, count: int) -> list[Known] | None:
        others = self.model.others
        return self.chance.sample(others, count) if len(others) >= count else None

    def added(self, name: str, kind: str) -> str:
        """Add a column to the model, anywhere if the database can; return the clause."""
        place = self.chance.randint(0, len(self.model.columns)) if self.dialect.can_place else None
        after = None if place is None else self.model.columns[place - 1].name if place else ""
        column = self.model.add(name, kind, place, self.default(kind))
        return self.dialect.add(column, after=after)

    def default(self, kind: str) -> str | None:
        """Return a default for a new column, or none."""
        return DEFAULTS.get(kind) if self.defaults and self.chance.random() < 0.4 else None

    def renamed(self, column: Known, name: str) -> tuple[Known, str]:
        clause = self.dialect.rename(column, name)
        return self.model.change(column, name=name), clause


def add(table: Table) -> list[str] | None:
    if len(table.model.columns) > 9:
        return None
    return [table.alter(table.added(table.model.free_name(table.chance), table.chance.choice(KINDS)))]


def drop(table: Table) -> list[str] | None:
    if len(table.model.others) < 4:
        return None
    column = table.chance.choice(table.model.others)
    table.model.drop(column)
    return [table.alter(table.dialect.drop(column))]


def rename(table: Table) -> list[str] | None:
    column = table.chance.choice(table.model.others)
    return [table.alter(table.renamed(column, table.model.free_name(table.chance))[1])]


def rename_the_last(table: Table) -> list[str] | None:
    return [table.alter(table.renamed(table.model.others[-1], table.model.free_name(table.chance))[1])]


def rename_by_case(table: Table) -> list[str] | None:
    column = table.chance.choice(table.model.others)
    other = column.name.swapcase()
    return None if other == column.name else [table.alter(table.renamed(column, other)[1])]


def rename_the_key(table: Table) -> list[str] | None:
    key = table.model.columns[next(i for i, c in enumerate(table.model.columns) if c not in table.model.others)]
    return [table.alter(table.renamed(key, table.model.free_name(table.chance))[1])]


def rename_away_and_back(table: Table) -> list[str] | None:
    column = table.chance.choice(table.model.others)
    away, first = table.renamed(column, table.model.free_name(table.chance))
    _, second = table.renamed(away, column.name)
    return [table.alter(first), table.alter(second)]


def widen(table: Table) -> list[str] | None:
    narrow = [column for column in table.model.others if column.kind in WIDER]
    if not narrow:
        return None
    column = table.chance.choice(narrow)
    return [table.alter(table.dialect.retype(table.model.change(column, kind=WIDER[column.kind])))]


def rename_and_widen(table: Table) -> list[str] | None:
    narrow = [column for column in table.model.others if column.kind in WIDER]
    if not narrow:
        return None
    column = table.chance.choice(narrow)
    name = table.model.free_name(table.chance)
    if isinstance(table.dialect, Mariadb):
        table.model.change(column, name=name, kind=WIDER[column.kind])
        return [table.alter(table.dialect.change(column, name, WIDER[column.kind]))]
    named, clause = table.renamed(column, name)
    return [table.alter(clause), table.alter(table.dialect.retype(table.model.change(named, kind=WIDER[column.kind])))]


def move(table: Table) -> list[str] | None:
    if not isinstance(table.dialect, Mariadb):
        return None
    column = table.chance.choice(table.model.others)
    if any(name != column.name and name.lower() == column.name.lower() for name in table.model.names):
        return None
    rest = [other for other in table.model.columns if other != column]
    place = table.chance.randint(0, len(rest))
    table.model.move(column, place)
    return [table.alter(table.dialect.retype(column, after=rest[place - 1].name if place else ""))]


def swap(table: Table) -> list[str] | None:
    return _rotated(table, 2)


def rotate(table: Table) -> list[str] | None:
    return _rotated(table, 3)


def _rotated(table: Table, count: int) -> list[str] | None:
    """Give each of some columns the name of the next, the first one by way of another name."""
    columns = table.some(count)
    if columns is None:
        return None
    names = [column.name for column in columns]
    first, clause = table.renamed(columns[0], BETWEEN)
    clauses = [clause]
    for column, name in zip(reversed(columns[1:]), [names[0], *reversed(names[2:])], strict=True):
        clauses.append(table.renamed(column, name)[1])
    clauses.append(table.renamed(first, names[1])[1])
    return [table.alter(clause) for clause in clauses]


def replace(table: Table) -> list[str] | None:
    """Drop a column and add one of its name; its type may be the same."""
    column = table.chance.choice(table.model.others)
    kind = column.kind if table.chance.random() < 0.5 else table.chance.choice(KINDS)
    gone = table.dialect.drop(column)
    table.model.drop(column)
    came = table.added(column.name, kind)
    return [table.alter(gone), table.alter(came)]


def take_over_a_name(table: Table) -> list[str] | None:
    """Rename a column, and give its name to another or to a new one."""
    columns = table.some(2)
    if columns is None:
        return None
    first = table.renamed(columns[0], table.model.free_name(table.chance))[1]
    if table.chance.random() < 0.5:
        second = table.renamed(columns[1], columns[0].name)[1]
    else:
        second = table.added(columns[0].name, columns[0].kind)
    return [table.alter(first), table.alter(second)]


def drop_and_rename(table: Table) -> list[str] | None:
    """Drop a column and give its name to another."""
    columns = table.some(2)
    if columns is None or len(table.model.others) < 4:
        return None
    table.model.drop(columns[0])
    return [table.alter(table.dialect.drop(columns[0])), table.alter(table.renamed(columns[1], columns[0].name)[1])]


def several_clauses(table: Table) -> list[str] | None:
    """Change different columns in one ALTER."""
    columns = table.some(2)
    if columns is None or len(table.model.others) < 4:
        return None
    gone, other = columns
    clauses = [table.dialect.drop(gone)]
    table.model.drop(gone)
    if not table.dialect.renames_alone:
        clauses.append(table.renamed(other, _new_name(table))[1])
    elif other.kind in WIDER:
        clauses.append(table.dialect.retype(table.model.change(other, kind=WIDER[other.kind])))
    # At the end: a place would name a column.
    kind = table.chance.choice(KINDS)
    column = table.model.add(_new_name(table), kind, default=table.default(kind))
    clauses.append(table.dialect.add(column, after=None))
    return [table.alter(*clauses)]


def _new_name(table: Table) -> str:
    """Return a name that no column ever had."""
    return f"n{len(table.model.names)}"


def by_a_shadow_table(table: Table) -> list[str] | None:
    """Alter a copy, fill it and put it in the table's place, as gh-ost and pt-online-schema-change do."""
    if not isinstance(table.dialect, Mariadb):
        return None
    database, _, own = table.name.partition(".")
    shadow, former = f"{database}._{own}_gho", f"{database}._{own}_del"
    before = {column.number: column.name for column in table.model.columns}
    work = Table(table.model, shadow, table.dialect, table.chance)
    work.defaults = table.defaults
    altered = [text for change in table.chance.sample((add, rename, drop, widen), 2) for text in change(work) or []]
    kept = [column for column in table.model.columns if column.number in before]
    quoted = table.dialect.quoted
    into = ", ".join(quoted(column.name) for column in kept)
    from_ = ", ".join(quoted(before[column.number]) for column in kept)
    return [
        f"create table {shadow} like {table.name}",
        *altered,
        f"insert into {shadow} ({into}) select {from_} from {table.name}",
        f"rename table {table.name} to {former}, {shadow} to {table.name}",
        f"drop table {former}",
    ]


def nothing(table: Table) -> list[str] | None:
    """Run DDL that does nothing to the columns."""
    if isinstance(table.dialect, Postgres | Mariadb):
        return [table.dialect.noise(table.name, table.chance.choice(table.model.others))]
    return None


CHANGES: dict[Change, int] = {
    add: 6,
    drop: 4,
    rename: 6,
    rename_the_last: 3,
    rename_by_case: 1,
    rename_the_key: 1,
    rename_away_and_back: 1,
    rename_and_widen: 2,
    widen: 3,
    move: 3,
    swap: 3,
    rotate: 2,
    replace: 3,
    take_over_a_name: 3,
    drop_and_rename: 2,
    several_clauses: 3,
    by_a_shadow_table: 2,
    nothing: 2,
}
"""Every change, with how often it is chosen."""
