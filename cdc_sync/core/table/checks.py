"""What may stop a table before anything of it is read: its topic, and what the source told late."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from typing_extensions import assert_never

from cdc_sync.core.lineage.audit import Joined, Split
from cdc_sync.core.lineage.column_log import Unlogged, Unread
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.doubts import Doubt
from cdc_sync.core.planning.end_of_table import begun_behind, first_of_life, last_end
from cdc_sync.core.planning.stops import Pause, files_gone, lost_beginning, too_late
from cdc_sync.core.table.state import Failure, TableState
from cdc_sync.errors import CannotPass, CdcSyncError, FilesGone, HistoryError, TargetError, TransientError


def of_another_topic(state: TableState, topic: str) -> TableState:
    """Stop a table whose topic is not the one whose offsets the target knows.

    After the source table was dropped its topic may have been cleared away too; then it begins anew.
    """
    if state.is_gone:
        return begun_anew(replace(state, progress=None, cursor=replace(state.cursor, passed={}, awaited={})))
    return state.stopped(
        Pause(
            code=Code.TOPIC_RECREATED,
            reason=f"topic {topic} was deleted and made again, so its offsets no longer mean what they did",
            remedy="snapshot the table again into a new target",
        )
    )


def begun_anew(state: TableState) -> TableState:
    """Return the table as it begins behind the end of another one of its name, if one ended before."""
    if state.history is None or state.progress is not None:
        return state
    end = last_end(state.history, state.target.stamped)
    if end is None:
        return state
    return replace(state, progress=begun_behind(end, state.target.stamped or end.number))


def lacks_offsets(state: TableState, topic: str, partition: int, beginning: int) -> TableState:
    """Return the table as it stands where a partition begins at an offset, and it has not read all that was before.

    A table whose target holds nothing stops where the topic does not have its first event any more. A marker of an
    earlier version does not tell whether what is gone from a partition was read; then `status` says so.
    """
    start = state.next_offset(topic, partition)
    if start is not None:
        return state if start >= beginning else state.stopped(_deleted(topic, partition, start, beginning))
    if state.progress is not None:
        if not beginning or topic not in state.progress.offsets:
            return state
        return state.warned(
            f"{topic}[{partition}] begins at offset {beginning}, and the table, written by an earlier version of "
            "cdc_sync, does not say whether what was before was read; compare it with `cdc-sync verify`"
        )
    if state.history is None:
        return state
    first = first_of_life(state.history).kafka
    if (first.topic, first.partition) != (topic, partition) or first.offset >= beginning:
        return state
    lost = f"offsets {first.offset} to {beginning - 1} of {topic}[{partition}]"
    if state.route.policy.missing_rows == "insert":
        return state.warned(
            f"{lost} were deleted from the topic, and the target was not there: rows of then are missing unless the "
            "table was snapshot since; compare with `cdc-sync verify`"
        )
    return state.stopped(lost_beginning(lost))


def _deleted(topic: str, partition: int, start: int, beginning: int) -> Pause:
    return Pause(
        code=Code.OFFSETS_DELETED,
        reason=f"offsets {start} to {beginning - 1} of {topic}[{partition}] were deleted from the topic before they "
        "were read",
        remedy="snapshot the table again into a new target; raise the topic's retention",
    )


def audited(state: TableState, findings: Iterable[Split | Joined | Unread | Unlogged]) -> TableState:
    """Take up what evidence that came late says: stop if it shows that a column was taken for another."""
    for item in findings:
        match item:
            case Split(version=version, old=old, new=new):
                state = state.warned(
                    f"version {version}: {old!r} and {new!r} are one column, as the source told later; "
                    f"`cdc-sync decide` with --rename {old}={new} joins them"
                )
            case Unread(text=text, reason=reason):
                state = state.warned(
                    f"a statement was not understood, so columns are told by name across it: {text} ({reason})"
                )
            case Unlogged():
                state = _without_events(state, item)
            case Joined(version=version, name=name, statement=statement):
                state = state.stopped(too_late(version, name, statement))
            case _:
                assert_never(item)
    return state


def _without_events(state: TableState, told: Unlogged) -> TableState:
    """Mark the table for a statement that changed rows without an event, or warn of a foreign key that may."""
    if told.effect == "follow":
        return state.warned(
            f"rows of it may change or go without an event, with those of another table: {told.text}; compare it with "
            "`cdc-sync verify`"
        )
    version = state.history.head.number if state.history else 0
    ends = state.progress.offsets if state.progress else {}
    place, text = str(told.position), told.text
    return state.doubted([Doubt(kind=told.effect, id=0, version=version, ends=ends, at=place, statement=text)])


def failed(state: TableState, error: Exception) -> TableState:
    """Return the table behind an attempt that failed; what does not pass by trying again stops it."""
    if isinstance(error, CannotPass):
        return state.stopped(Pause(code=Code(error.code), reason=error.reason, remedy=error.remedy))
    said = str(error) if isinstance(error, CdcSyncError) else f"{type(error).__name__}: {error}"
    are_gone = isinstance(error, FilesGone)
    if are_gone and state.failure is not None and state.failure.files_gone:
        return state.stopped(files_gone(said))  # it was tried again, and they are not there yet
    return state.failed(Failure(text=said, code=code_of(error), files_gone=are_gone))


_CODES: tuple[tuple[type[Exception], Code], ...] = (
    (TransientError, Code.AWAY),
    (TargetError, Code.TARGET),
    (HistoryError, Code.HISTORY),
)


def code_of(error: Exception) -> Code:
    """Return the cause of an attempt that failed and is tried again."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), Code.OTHER)
