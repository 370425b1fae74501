"""What MySQL and MariaDB do with an ALTER TABLE of many clauses."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.laws.identity_model import Database, Relation
from tests.laws.identity_mysql_text import Clause


class Impossible(Exception):
    """The server refuses the statement."""


def altered(database: Database, relation: Relation, clauses: list[Clause], random: Random) -> list[Clause]:
    """Carry the clauses out, choose the places left open (`place=""`), and return the clauses as to be written.

    All clauses name columns by what they were called before the statement, but places by what they are called
    after it; a column stands at its place only once the clauses before have been carried out.

    Source: MySQL and MariaDB, `mysql_prepare_alter_table` in `sql/sql_table.cc`.

    Raises:
        Impossible: two columns have one name then, or a column is named twice; nothing was done.
    """
    by_name = {clause.old.casefold(): clause for clause in clauses if clause.do not in ("add", "noise")}
    if len(by_name) != sum(clause.do not in ("add", "noise") for clause in clauses):
        raise Impossible
    written = list(clauses)
    columns, waiting = [], {}
    for column in relation.columns:
        clause = by_name.get(column.name.casefold())
        if clause is None:
            columns.append(column)
            continue
        if clause.do == "drop":
            continue
        now = replace(
            column,
            name=clause.new if clause.do in ("rename", "change") else column.name,
            kind=clause.kind if clause.do in ("change", "modify") else column.kind,
        )
        if clause.do != "rename" and (clause.first or clause.place is not None):
            waiting[id(clause)] = now
        else:
            columns.append(now)
    for at, clause in enumerate(clauses):
        if clause.do == "add":
            column = database.new_column(clause.old, clause.kind)
        elif id(clause) in waiting:
            column = waiting[id(clause)]
        else:
            continue
        if clause.first:
            columns.insert(0, column)
        elif clause.place is None or not columns:
            columns.append(column)
            written[at] = replace(clause, place=None)
        else:
            left = random.randrange(len(columns))
            written[at] = replace(clause, place=columns[left].name)
            columns.insert(left + 1, column)
    if len({column.name.casefold() for column in columns}) != len(columns):
        raise Impossible
    relation.columns = columns
    return written
