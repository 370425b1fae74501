"""What happens at a source while the job runs, as data."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = "inv"
"""The schema, or the database where there are no schemas, of every table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The row that shows a step in the lake: the one its first row statement writes.

    Attributes:
        table: `schema.table`.
        key: the values of its primary key.
    """

    table: str
    key: tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happens at the source.

    Attributes:
        title: what it is, as one would say it.
        ddl: statements of one transaction, run first.
        rows: statements after it, each committed alone; a schema change is seen with the first row after it.
        proof: what to wait for in the lake before the next step; None goes on at once.
        is_alter: the step changes the columns of a table, so the time until it is seen is measured.
    """

    title: str
    ddl: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    proof: Proof | None = None
    is_alter: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything that happens at one source.

    Attributes:
        before: the statements that make the source as the job finds it; Debezium's snapshot reads it.
        snapshot: rows that show that the lake has the snapshot.
        steps: what happens while the job runs.
    """

    before: tuple[str, ...]
    snapshot: tuple[Proof, ...]
    steps: tuple[Step, ...]


def alter(title: str, *ddl: str, rows: tuple[str, ...], table: str, key: tuple[object, ...]) -> Step:
    """Make a step that changes the columns of a table; its first row statement writes the row with that key."""
    return Step(title=title, ddl=ddl, rows=rows, proof=Proof(table=table, key=key), is_alter=True)
