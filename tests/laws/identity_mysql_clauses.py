"""Clauses of an ALTER TABLE, drawn at random."""

from __future__ import annotations

from dataclasses import replace

from tests.laws.identity_model import KINDS, Col
from tests.laws.identity_mysql import Server
from tests.laws.identity_mysql_text import Clause


def _some_clause(server: Server, columns: list[Col], vacated: list[str]) -> Clause | None:
    """Draw a clause about one of the columns not named yet; names given up by others may be taken."""
    do = server.random.choice(("add", "add", "drop", "rename", "rename", "change", "modify"))
    if do == "add":
        hidden = server.draw.hides()
        name = server.draw.name(server.table, hidden=hidden)
        if vacated and not hidden and server.draw.chance(0.4):
            name = vacated.pop()
        return placed(server, Clause(do="add", old=name, kind=server.draw.kind()), 0.5)
    if not columns:
        return None
    column = columns.pop(server.random.randrange(len(columns)))
    goes_on = server.draw.reveal or not column.is_excluded
    if do == "drop":
        vacated += [column.name] if goes_on else []
        return Clause(do="drop", old=column.name)
    kind = column.kind if server.draw.chance(0.5) else KINDS[column.kind].wider or column.kind
    if do == "modify":
        return placed(server, Clause(do="modify", old=column.name, kind=kind), 0.6)
    new = server.draw.renamed(server.table, column)
    if vacated and goes_on and server.draw.chance(0.4):
        new = vacated.pop()
    vacated += [column.name] if goes_on else []
    if do == "rename":
        return Clause(do="rename", old=column.name, new=new)
    return placed(server, Clause(do="change", old=column.name, new=new, kind=kind), 0.4)


def placed(server: Server, clause: Clause, probability: float) -> Clause:
    """Perhaps put the column somewhere else; behind which one is chosen when the statement is carried out."""
    if not server.draw.chance(probability):
        return clause
    first = server.draw.chance(0.3)
    return replace(clause, first=first, place=None if first else "")


def drawn_clauses(server: Server, count: int) -> list[Clause]:
    """Draw clauses that name no column twice; the server may refuse them together all the same."""
    most = max(1, len(server.table.columns) - 2)
    columns = server.draw.pick(server.table, min(count, most)) or server.draw.pick(server.table)
    vacated: list[str] = []
    found = [_some_clause(server, columns, vacated) for _ in range(count)]
    clauses = [clause for clause in found if clause is not None]
    server.random.shuffle(clauses)
    return clauses


def renaming(server: Server, column: Col, new: str) -> Clause:
    if server.draw.chance(0.5):
        return Clause(do="rename", old=column.name, new=new)
    return Clause(do="change", old=column.name, new=new, kind=column.kind)
