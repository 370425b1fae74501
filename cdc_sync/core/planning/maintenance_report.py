"""What `cdc-sync maintain` returns, and how it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

from cdc_sync.core.migration.maintenance import Chores, Holdings, Maintained
from cdc_sync.core.model.positions import TableId

Outcome = Literal["maintained", "due", "nothing_due", "left_alone", "failed"]
"""`due` and `nothing_due` are a dry run's; a table is left alone while a migration of it goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMaintained:
    """What became of one table.

    Attributes:
        problem: why it was left alone, or how it failed.
        holdings: what it consisted of before; None if it was not looked at.
        chores: what is due; only a dry run's.
        done: what was done.
    """

    table: TableId
    target: str
    outcome: Outcome
    problem: str | None = None
    holdings: Holdings | None = None
    chores: Chores | None = None
    done: Maintained | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineMaintained:
    """What became of the tables of a pipeline."""

    pipeline: str
    tables: tuple[TableMaintained, ...]

    @property
    def exit_code(self) -> int:
        """1 if a table failed, 4 if one was left alone, 2 if a dry run found something to do, else 0."""
        outcomes = {table.outcome for table in self.tables}
        codes: tuple[tuple[Outcome, int], ...] = (("failed", 1), ("left_alone", 4), ("due", 2))
        return next((code for outcome, code in codes if outcome in outcomes), 0)


def figures(done: Maintained) -> dict[str, int | bool]:
    """Return what was done, without what was not."""
    return {item.name: value for item in fields(done) if (value := getattr(done, item.name))}


def lines(found: PipelineMaintained) -> Iterator[str]:
    """Say it, one line for each table."""
    if not found.tables:
        yield f"Pipeline {found.pipeline!r} has seen no table yet."
    for table in found.tables:
        yield f"{table.table} -> {table.target}: {_said(table)}"


def _said(table: TableMaintained) -> str:
    if table.problem is not None:
        return f"{table.outcome.replace('_', ' ')}: {table.problem}"
    if table.done is not None:
        return f"{', '.join(_done(table.done)) or 'nothing to do'} ({table.seconds:.1f} s)"
    if table.holdings is None or table.chores is None:
        return "nothing to do"
    return ", ".join(_due(table.holdings, table.chores)) or "nothing to do"


def _done(done: Maintained) -> Iterator[str]:
    if done.files_rewritten:
        yield f"{done.files_rewritten} files of {size_text(done.bytes_rewritten)} became {done.files_written}"
    if done.change_files:
        yield f"{done.change_files} files of changes merged"
    if done.manifests:
        yield f"{done.manifests} lists of files merged"
    if done.expired:
        yield f"{done.expired} states expired"
    if done.files_removed:
        yield f"{done.files_removed} files removed"
    if done.marker_carried:
        yield "progress said once more"


def _due(holdings: Holdings, chores: Chores) -> Iterator[str]:
    if chores.compact:
        yield f"would join {holdings.small_files} small files of {size_text(holdings.small_size)}"
    if chores.apply_deletes:
        yield f"would write {holdings.files} files of {size_text(holdings.size)} anew without deleted rows"
    if chores.merge_changes:
        yield f"would merge {holdings.change_files} files of changes"
    if chores.merge_manifests:
        yield f"would merge {holdings.manifests} lists of files"
    if chores.expired:
        yield f"would expire {chores.expired} of {len(holdings.commits)} states"
    if chores.carry_marker:
        yield "would say once more what the table holds"


def size_text(size: int) -> str:
    """Write a number of bytes in the largest unit that leaves at least one."""
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size} bytes"
