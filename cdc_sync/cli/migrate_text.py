"""What revisions do to lake tables, as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TypeAlias

from typing_extensions import assert_never

from cdc_sync.core.revisions.lint import CODES
from cdc_sync.operations.migrate.report import (
    Checked,
    Migrated,
    MigrationPlan,
    MigrationStatus,
    PlannedStep,
    RevisedTable,
    RevisionHistory,
    Way,
)

Shown: TypeAlias = MigrationPlan | Migrated | MigrationStatus | RevisionHistory | Checked
_WAYS: dict[Way, str] = {
    "create": "makes the table",
    "adopt": "takes the table over as it is",
    "in_place": "in place, one small commit",
    "fill": "in place, then the rows are filled",
    "expand": "a new column in the place of the old one, then the rows are filled",
    "exchange": "all rows are written anew, in one commit",
}


def lines(value: Shown) -> Iterator[str]:
    """Say what would be, is, or was done."""
    match value:
        case MigrationPlan():
            yield from _plan(value)
        case Migrated():
            yield from _done(value)
        case MigrationStatus():
            for table in value.tables:
                yield from _table(table)
            if not value.tables:
                yield "There is no revision yet."
        case RevisionHistory():
            yield from _history(value)
        case Checked():
            for it in value.findings:
                yield f"{it.file}:{it.line}: {it.code} {it.text}: {CODES[it.code]}"
            yield f"{len(value.revisions)} revisions can be used."
        case _:
            assert_never(value)


def _plan(value: MigrationPlan) -> Iterator[str]:
    for table in value.fills:
        yield f"{table}: rows are filled, which was left of the revisions before"
    for step in value.steps:
        size = f" ({step.rewrites / 1e6:,.1f} MB{_time(step.seconds)})" if step.rewrites else ""
        yield f"{_named(step)}: {_WAYS[step.way]}{size}"
        if step.description:
            yield f"  {step.description}"
        for statement in step.statements:
            yield f"  {statement}"
    yield from value.problems
    if not (value.steps or value.fills or value.problems):
        yield "Nothing is to be done: every revision is applied."


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f", about {timedelta(seconds=round(seconds))} for one process"


def _done(value: Migrated) -> Iterator[str]:
    for table in value.filled:
        yield f"{table}: rows filled"
    for step in value.steps:
        yield f"{_named(step)}: done"
    for table in value.left:
        yield f"{table}: rows are left to be filled, by `cdc-sync migrate backfill`"
    if not (value.filled or value.steps or value.left):
        yield "Nothing was to be done."


def _named(step: PlannedStep) -> str:
    if step.finishes:
        return f"{step.table} is finished"
    return f"{step.table} {'takes back' if step.undoes else 'gets'} {step.revision}"


def _table(table: RevisedTable) -> Iterator[str]:
    at = f"at {table.revision}" if table.revision else "no revision applied"
    pending = f", {len(table.pending)} pending" if table.pending else ""
    of = f" ({table.units_left} of {table.units} units)" if table.units else ""
    yield f"{table.table}: {at}{pending}{f', rows are to be filled{of}' if table.fill else ''}"
    for name in table.unfinished:
        yield f"  {name} is kept; `cdc-sync migrate finish` drops it"
    if table.problem:
        yield f"  {table.problem}"


def _history(value: RevisionHistory) -> Iterator[str]:
    yield str(value.table)
    for step in value.steps:
        verb = "finished" if step.finishes else f"takes back {step.revision}" if step.undoes else step.revision
        yield f"  {step.number}  {verb}"
        for change in step.changes:
            yield f"     {change.text}"
