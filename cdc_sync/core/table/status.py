"""What `status` and the log say of a table: functions of its state, and of the one before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.coverage import Coverage
from cdc_sync.core.migration.wording import dropped_text
from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.replaced_nulls import ONGOING
from cdc_sync.core.planning.status import StateName, TableStatus
from cdc_sync.core.table.state import TableState, archived

_REPLACED_NULL = " arrives as the column's default"

Line: TypeAlias = tuple[Literal["info", "warning"], str, dict[str, Any]]
"""Level, event and its fields."""


def with_replaced_nulls(state: TableState) -> TableState:
    """Return the table with the warning of columns in which a NULL arrives as the default, and of no others."""
    live = state.history.head.schema.live if state.history is not None else ()
    names = [column.name for column in live if state.journal.replaced_nulls.get(column.id) == ONGOING]
    text = (
        f"a NULL in {', '.join(names)}{_REPLACED_NULL}; set value.converter.replace.null.with.default=false in the "
        "connector, or policy.ambiguous_null: pause"
    )
    kept = tuple(it for it in state.journal.warnings if it == text or _REPLACED_NULL not in it)
    if kept != state.journal.warnings:
        state = replace(state, journal=replace(state.journal, warnings=kept))
    return state.warned(text) if names and text not in kept else state


def _awaited(state: TableState) -> Iterator[str]:
    asked = state.requests.snapshot
    if asked is not None:
        yield f"a snapshot that {asked.by} asked for at {asked.at} takes the place of its rows once it is whole"


def status(state: TableState, coverage: Coverage) -> TableStatus:
    """Return what the table's status file says.

    Args:
        state: of the table.
        coverage: since when the evidence tells of it.
    """
    head = None if state.history is None else state.history.head
    gone = None if head is None or head.dropped is None else _end_in_words(state, head)
    stop = state.stop
    reasons: dict[StateName, str | None] = {
        "paused": stop.reason if stop else None,
        "failing": state.failure.text if state.failure else None,
        "waiting": state.wait.text if state.wait else None,
        "gone": gone,
        "running": None,
    }
    codes: dict[StateName, Code | None] = {
        "paused": stop.code if stop else None,
        "failing": state.failure.code if state.failure else None,
        "waiting": Code.EVIDENCE if state.waits_for is None else Code.OTHER_TABLE,
    }
    name: StateName = next((name for name, reason in reasons.items() if reason is not None), "running")
    cursor = state.cursor
    return TableStatus(
        table=state.table,
        target=str(state.route.target),
        state=name,
        written_at=state.journal.written_at,
        event_at=state.journal.event_at,
        version=None if head is None else head.number,
        code=None if (code := codes.get(name)) is None else code.value,
        reason=reasons[name],
        remedy=stop.remedy if stop else None,
        paused_at=stop.at if stop else None,
        # Without progress the topics are kept all the same: a later run must find the table there again.
        offsets=(state.progress.offsets if state.progress else None) or cursor.unread or cursor.known_before,
        warnings=(*state.warnings, *_awaited(state)),
        counts=state.journal.counts,
        needs_resync=state.marks,
        replaced_nulls=state.journal.replaced_nulls,
        evidence=coverage.since,
        evidence_gaps=coverage.all_gaps,
    )


def _end_in_words(state: TableState, end: Version) -> str:
    """Say since when the source table is gone, who says so, and what became of the target."""
    assert end.dropped is not None
    told = end.evidence[0]
    what = "was dropped" if end.renamed_to is None else f"is {end.renamed_to} now"
    said = f"the source table {what}, by {told.text} ({told.kind}): {dropped_text(end.dropped)}"
    return f"{said} as {archived(state, end)}" if end.dropped == "archive" else said


def told(before: TableState, after: TableState) -> Iterator[Line]:
    """Yield what the log says of the way from one state to the next."""
    if after.stop is not None and before.stop is None:
        stop = after.stop
        yield (
            "warning",
            "table paused",
            {
                "code": stop.code.value,
                "reason": stop.reason,
                "remedy": stop.remedy,
                "at": stop.at,
            },
        )
    if before.failure is not None and after.failure is None and after.stop is None:
        yield "info", "table goes on", {"after": before.failure.text}
    if after.wait is not None and after.wait != before.wait:
        yield "warning", "table waits for evidence", {"why": after.wait.text}
    for text in after.journal.warnings:
        if text not in before.journal.warnings:
            yield "warning", "warning", {"warning": text}
    known = {doubt.key for doubt in before.journal.doubts}
    for doubt in after.journal.doubts:
        if doubt.key not in known:
            yield "warning", "values in doubt", {"why": doubt.reason}
    for kind, number in after.journal.counts.items():
        more = number - before.journal.counts.get(kind, 0)
        if more > 0:
            yield "warning", kind, {"rows": more}
