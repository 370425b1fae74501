"""The table-by-table report: how each captured table ends, in one line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.corpus.carried import events, script_position
from tests.corpus.differences import MOVED, Comparison, compare
from tests.corpus.images import Image, Truth
from tests.corpus.reader import database, expected, history
from tests.corpus.runs import Ended

AWAITED: tuple[tuple[str, str], ...] = (
    ("cannot be proven", "column evidence"),
    ("dropped and created again", "whole-table change (recreated)"),
    ("generated or excluded column", "column evidence"),
    ("a row that the target never had", "whole-table change (rename)"),
)
"""What a paused table waits for, told by a part of its reason; the first that is found counts."""

# Rows of a partitioned table arrive under its leaves; the snapshot shows them under the parent too.
_LEAVES = {"inv.part": ("inv.part_2024", "inv.part_2025")}
# Tables that no line of the history tells of, as the statements 109 and 112 of the script wrote them.
_WRITTEN: dict[tuple[str, str], dict[str, Any]] = {
    ("mariadb", "inv.dropped"): {
        "columns": [["id", "int(11)", True, None], ["v", "int(11)", False, None]],
        "primary_key": ["id"],
        "rows": [["1", "1"]],
    },
    ("mariadb", "inv._ghosted_gho"): {
        "columns": [
            ["id", "int(11)", True, None],
            ["w", "varchar(5)", False, "'g'"],
            ["v", "int(11)", False, None],
        ],
        "primary_key": ["id"],
        "rows": [["1", "g", "1"], ["2", "g", "2"]],
    },
}
RENAMED = "the target is renamed with it"
"""A part of the reason of a table that another name took over."""
_CUT = 200
"""Characters at which the history cuts a cell off."""

_UNTOLD_DDL = "no event tells of the DDL after the last row"
_UNTOLD_END = "DROP TABLE and RENAME TABLE never appear"
_UNDER_LEAVES = "rows of a partitioned table arrive under its leaves"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What the report says of one table.

    Attributes:
        details: why the verdict is not one that the report allows; empty if it is.
    """

    table: str
    verdict: str
    details: tuple[str, ...] = ()


def report(capture: str, ended: Ended) -> list[Line]:
    """Return a line for each table that the run or the truth knows."""
    tables = sorted({*ended.statuses, *expected(capture)})
    return [_line(capture, table, ended) for table in tables]


def report_text(capture: str, lines: Sequence[Line]) -> str:
    """Return the report of a capture as the golden file has it."""
    width = max(len(line.table) for line in lines)
    return f"{capture}\n" + "".join(f"  {line.table.ljust(width)}  {line.verdict}\n" for line in lines)


def _line(capture: str, table: str, ended: Ended) -> Line:
    status, image = ended.statuses.get(table), ended.images.get(table)
    if status is None:
        return Line(table=table, verdict="missing", details=("the run knows no such table",))
    if status.state == "paused":
        reason = status.reason or ""
        for part, awaited in AWAITED:
            if part in reason:
                return Line(table=table, verdict=f"awaits: {awaited}")
        return Line(table=table, verdict="paused", details=(f"{reason} (at {status.paused_at})",))
    if status.state == "gone" and image is not None:
        line = _compared(capture, table, image, frozenset())
        kept = line.verdict in ("equal", f"differs: {_UNTOLD_END}")
        return replace(line, verdict="gone at the source, rows kept") if kept else line
    if status.state == "gone" and image is None and RENAMED in (status.reason or ""):
        return Line(table=table, verdict=f"gone at the source, {RENAMED}", details=_still_there(capture, table))
    if status.state != "running" or image is None:
        return Line(table=table, verdict=status.state, details=(status.reason or "it has no target",))
    marked = frozenset(mark.column for mark in status.needs_resync)
    return _compared(capture, table, image.without_sides_of(marked), marked)


def _still_there(capture: str, table: str) -> tuple[str, ...]:
    return ("the source has it in the end",) if table in expected(capture) else ()


def _compared(capture: str, table: str, image: Image, marked: Collection[str]) -> Line:
    final = expected(capture).get(table)
    told = Comparison(unexplained=("the source has no such table in the end",))
    if final is not None:
        told = compare(truth_of(capture, final), image, table, marked=marked)
        if told.equal:
            also = f", and marked: needs resync ({', '.join(sorted(marked))})" if marked else ""
            return Line(table=table, verdict=f"equal{also}")
        if [loss for loss, _ in told.losses] == [MOVED] and not told.unexplained:
            return Line(table=table, verdict=f"awaits: column evidence (not paused; {MOVED})")
        if not told.unexplained:
            return Line(table=table, verdict=f"differs: {losses_text(told)}")
    reason = _untold(capture, table, image)
    if reason is not None:
        return Line(table=table, verdict=f"differs: {reason}")
    return Line(table=table, verdict="differs for no known reason", details=told.unexplained)


def losses_text(comparison: Comparison) -> str:
    """Return the losses of a comparison, each with its columns."""
    return "; ".join(f"{loss} ({', '.join(columns)})" for loss, columns in comparison.losses)


def _untold(capture: str, table: str, image: Image) -> str | None:
    """Return why a table is what the source was at its last event, if it is."""
    final, then = expected(capture).get(table), _at_last_event(capture, table)
    if then is not None and compare(then, image, table).equal:
        if final is None:
            return _UNTOLD_END
        if table in _LEAVES and _is_union_of_leaves(capture, table):
            return _UNDER_LEAVES
        return _UNTOLD_DDL
    last = events(database(capture)).get(table)
    if final is not None and last is not None:
        shown = Truth.of(database(capture), final).only(last[-1].fields)
        shown = shown.with_adjusted_names() if capture.endswith("avro") else shown
        if len(shown.names) < len(final["columns"]) and compare(shown, image, table).equal:
            return _UNTOLD_DDL
    return None


def _at_last_event(capture: str, table: str) -> Truth | None:
    """Return the table as the source had it when its last event was written."""
    found = events(database(capture)).get(table)
    if not found:
        return None
    written = _WRITTEN.get((database(capture), table))
    if written is not None:
        return truth_of(capture, written)
    last = max(found, key=lambda event: event.position)
    lines = [(script_position(capture, line["pos_after"]), line) for line in history(capture) if line["table"] == table]
    if last.op == "r":
        # A snapshot reads what all statements before it made.
        chosen = [line for position, line in lines if position <= last.position][-1:]
    else:
        chosen = [line for position, line in lines if position >= last.position][:1]
    if not chosen or any(len(text or "") >= _CUT for row in chosen[0]["rows"] for text in row):
        return None
    return truth_of(capture, chosen[0])


def truth_of(capture: str, table: Mapping[str, Any]) -> Truth:
    """Return a table of the truth under the names that a capture's connector gives its columns."""
    truth = Truth.of(database(capture), table)
    return truth.with_adjusted_names() if capture.endswith("avro") else truth


def _is_union_of_leaves(capture: str, table: str) -> bool:
    truths = [Truth.of("postgres", expected(capture)[name]) for name in (table, *_LEAVES[table])]
    parent, *leaves = (sorted(map(repr, truth.rows)) for truth in truths)
    return parent == sorted(row for leaf in leaves for row in leaf)
