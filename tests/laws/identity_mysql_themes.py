"""What is done to a MySQL table between its rows: from one statement to the tools that change tables online."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from tests.laws.identity_course import NAME, Course
from tests.laws.identity_model import KINDS
from tests.laws.identity_mysql import Server
from tests.laws.identity_mysql_clauses import drawn_clauses, placed, renaming
from tests.laws.identity_mysql_text import Clause
from tests.laws.identity_mysql_tools import (
    elsewhere,
    exchange,
    ghost,
    noise,
    nothing_there,
    online_schema_change,
    recreate,
    said_oddly,
    there_and_back,
)

Theme: TypeAlias = Callable[[Server], None]


def mysql_course(seed: int, *, reveal: bool = False) -> Course:
    """Generate one history of the table `shop.t`."""
    server = Server(Random(seed), reveal=reveal)
    server.create(NAME, server.draw.columns(server.database))
    if server.draw.chance(0.4):
        server.themes.append("created in the stream")
    else:
        for _ in range(server.random.choice((0, 0, 1, 3))):
            _one(server)
        server.rows.clear()
        server.changes.clear()
        server.offsets = [0] * server.partitions
        server.snapshot()
        server.themes.append("snapshot")
    if server.draw.chance(0.8):
        server.row()
    names, weights, themes = zip(*_THEMES, strict=True)
    for _ in range(server.random.randint(2, 6)):
        drawn = server.random.choices(range(len(names)), weights)[0]
        server.themes.append(names[drawn])
        themes[drawn](server)
        for _ in range(server.random.choice((0, 1, 1, 1, 2))):
            server.row()
    server.row()
    return server.course()


_NOTHING = (
    "ALGORITHM=COPY", "ENGINE=InnoDB", "COMMENT='rename column a to b'", "LOCK=SHARED", "AUTO_INCREMENT = 7",
    "DEFAULT CHARACTER SET utf8mb4",
)  # fmt: skip


def _one(server: Server) -> None:
    server.alter(*drawn_clauses(server, 1))


def _many_clauses(server: Server) -> None:
    extra = [text for text in _NOTHING if server.draw.chance(0.05)]
    server.alter(*drawn_clauses(server, server.random.randint(2, 5)), extra=extra)


def _collapsed(server: Server) -> None:
    for _ in range(server.random.randint(2, 4)):
        server.alter(*drawn_clauses(server, server.random.choice((1, 1, 2, 3))))
        if server.draw.chance(0.12):
            server.row()


def _rename(server: Server) -> None:
    for column in server.draw.pick(server.table):
        server.alter(renaming(server, column, server.draw.renamed(server.table, column)))


def _key(server: Server) -> None:
    if server.partitions == 1:  # a key that changes goes to another partition, and planning refuses that
        column = next(column for column in server.table.columns if column.key)
        server.alter(renaming(server, column, server.draw.renamed(server.table, column)))


def _case_only(server: Server) -> None:
    for column in server.draw.pick(server.table):
        server.alter(renaming(server, column, server.draw.other_case(column.name)))


def _all_at_once(server: Server) -> None:
    """Rename, retype and move in one clause."""
    for column in server.draw.pick(server.table):
        kind = KINDS[column.kind].wider or column.kind
        new = server.draw.renamed(server.table, column)
        server.alter(Clause(do="change", old=column.name, new=new, kind=kind, place=""))


def _circle(server: Server, count: int) -> None:
    """Give columns each other's names, in one statement or over a spare name."""
    columns = server.draw.pick(server.table, count, same_kind=server.draw.chance(0.8))
    if not columns:
        return
    names = [column.name for column in columns]
    if server.draw.chance(0.6):
        clauses = [renaming(server, c, new) for c, new in zip(columns, [*names[1:], names[0]], strict=True)]
        server.random.shuffle(clauses)
        server.alter(*clauses)
        return
    spare = server.draw.name(server.table, reuse=0)
    renames = [(names[0], spare), *zip(names[1:], names, strict=False), (spare, names[-1])]
    for old, new in renames:
        server.alter(renaming(server, server.table.named(old), new))


def _swap(server: Server) -> None:
    _circle(server, 2)


def _rotate(server: Server) -> None:
    _circle(server, 3)


def _add_again(server: Server) -> None:
    for column in server.draw.pick(server.table):
        kind = column.kind if server.draw.chance(0.6) else server.draw.kind()
        add = placed(server, Clause(do="add", old=column.name, kind=kind), 0.6)
        drop = Clause(do="drop", old=column.name)
        if server.draw.chance(0.5):
            server.alter(*((drop, add) if server.draw.chance(0.5) else (add, drop)))
        else:
            server.alter(drop)
            server.alter(add)


def _replace(server: Server) -> None:
    for column in server.draw.pick(server.table):
        add = Clause(do="add", old=server.draw.name(server.table), kind=column.kind, place="")
        server.alter(add, Clause(do="drop", old=column.name))


def _name_goes_on(server: Server) -> None:
    columns = server.draw.pick(server.table, 2, same_kind=server.draw.chance(0.7))
    if not columns:
        return
    first, second = columns
    if server.draw.chance(0.5):
        rename = renaming(server, first, server.draw.renamed(server.table, first))
        clauses = [rename, placed(server, Clause(do="add", old=first.name, kind=first.kind), 0.7)]
    else:
        clauses = [Clause(do="drop", old=first.name), renaming(server, second, first.name)]
    if server.draw.chance(0.4):
        for clause in clauses:
            server.alter(clause)
    else:
        server.random.shuffle(clauses)
        server.alter(*clauses)


def _reorder(server: Server) -> None:
    columns = server.draw.pick(server.table, 2)
    server.alter(*(placed(server, Clause(do="modify", old=c.name, kind=c.kind), 1) for c in columns))


_THEMES: tuple[tuple[str, float, Theme], ...] = (
    ("one clause", 10, _one),
    ("rename", 12, _rename),
    ("many clauses", 14, _many_clauses),
    ("collapsed", 16, _collapsed),
    ("case only", 5, _case_only),
    ("rename, retype and move", 8, _all_at_once),
    ("swap", 7, _swap),
    ("rotate", 5, _rotate),
    ("rename of the key", 4, _key),
    ("drop and add again", 7, _add_again),
    ("drop and add another", 5, _replace),
    ("name goes on", 6, _name_goes_on),
    ("reorder", 4, _reorder),
    ("recreated", 4, recreate),
    ("exchanged for another table", 3, exchange),
    ("renamed away and back", 3, there_and_back),
    ("gh-ost", 4, ghost),
    ("pt-online-schema-change", 4, online_schema_change),
    ("snapshot again", 3, Server.snapshot),
    ("noise", 5, noise),
    ("another database", 2, elsewhere),
    ("said oddly", 0.3, said_oddly),
    ("nothing there", 2, nothing_there),
)
