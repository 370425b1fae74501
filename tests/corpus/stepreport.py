"""The report of every step: how each table is after each step that an event of it tells of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.corpus.carried import events
from tests.corpus.differences import compare
from tests.corpus.images import Image, Truth
from tests.corpus.reader import database
from tests.corpus.report import AWAITED, RENAMED, losses_text, truth_of
from tests.corpus.steps import Seen

_CUT = 200
"""Characters at which the history cuts a cell off, with an ellipsis behind them."""
_UNTOLD = "no event tells of the last DDL yet"
_UNCUT = "text"
"""A source type, of both databases, whose text is its value."""


def verdict(capture: str, seen: Seen) -> tuple[str, tuple[str, ...]]:
    """Return how a table is after a step, in words, and what nothing explains, empty if there is no such thing."""
    status, image = seen.status, seen.image
    if status.state == "paused":
        reason = status.reason or ""
        awaited = next((f"awaits: {awaited}" for part, awaited in AWAITED if part in reason), None)
        return (awaited, ()) if awaited else ("paused", (reason,))
    if status.state == "gone" and image is None and RENAMED in (status.reason or ""):
        return f"gone at the source, {RENAMED}", ()
    if image is None:
        return status.state, (status.reason or "it has no target",)
    marked = frozenset(mark.column for mark in status.needs_resync)
    truth, image = _cut(truth_of(capture, seen.step.tables[seen.table]), image.without_sides_of(marked))
    told = compare(truth, image, seen.table, marked=marked, upto=seen.step.position)
    if told.equal:
        return "equal", ()
    if not told.unexplained:
        return f"differs: {losses_text(told)}", ()
    last = [event for event in events(database(capture))[seen.table] if event.position <= seen.step.position][-1]
    if {*last.fields} != {name for name, *_ in seen.step.tables[seen.table]["columns"]}:
        return _UNTOLD, ()
    return "differs for no known reason", told.unexplained


def _cut(truth: Truth, image: Image) -> tuple[Truth, Image]:
    """Compare columns with a cell that was cut off by the text that is left of it."""
    cut = {place for row in truth.rows for place, text in enumerate(row) if text is not None and len(text) > _CUT}
    names = {truth.names[place] for place in cut}
    columns = tuple((name, _UNCUT if name in names else type_) for name, type_ in truth.columns)
    found = tuple((name, "string" if name in names else type_) for name, type_ in image.columns)
    rows = tuple(
        tuple(_cut_text(value) if name in names else value for name, value in zip(image.names, row, strict=True))
        for row in image.rows
    )
    return replace(truth, columns=columns), Image(columns=found, rows=rows)


def _cut_text(value: Any) -> str | None:
    match value:
        case None | str():
            text = value
        case bytes():
            text = f"\\x{value.hex()}"
        case _:
            text = f"{{{','.join('NULL' if item is None else item for item in value)}}}"
    return text if text is None or len(text) <= _CUT else f"{text[:_CUT]}…"


def report_text(capture: str, found: Sequence[tuple[str, str]]) -> str:
    """Return the report of a capture as the golden file has it, from each table and verdict."""
    tables = sorted({table for table, _ in found})
    width = max(map(len, tables))
    lines = [f"{capture}\n"]
    for table in tables:
        counts = Counter(verdict for name, verdict in found if name == table)
        told = "; ".join(f"{count} {verdict}" for verdict, count in counts.items())
        lines.append(f"  {table.ljust(width)}  {told}\n")
    return "".join(lines)
