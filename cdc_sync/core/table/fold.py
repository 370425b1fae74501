"""The state behind each effect: what the next decision begins with. A lost reply costs a look, never a wrong state."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.end_of_table import begun_behind
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.table.questions import Exists, KeyClash, PlanOf, RoomFor, TargetNow
from cdc_sync.core.table.seen import Seen
from cdc_sync.core.table.state import TableState
from cdc_sync.core.table.transitions import Migrate, Record, RecordJoin, ReleaseTarget


def recorded(state: TableState, step: Record) -> TableState:
    """The history has the versions."""
    if step.versions:
        former = state.history.versions if state.history else ()
        state = replace(state, history=History(table=state.table, versions=(*former, *step.versions)))
    return state.warned(*step.warnings)


def raced(seen: Seen) -> Seen:
    """Another writer recorded a version first: all is planned again."""
    return replace(seen, facts=seen.facts.without(PlanOf, RoomFor), races=seen.races + 1)


def changed(seen: Seen) -> Seen:
    """The target is not what it was."""
    return replace(seen, facts=seen.facts.without(TargetNow, Exists, KeyClash))


def migrated(state: TableState, step: Migrate, found: TargetState | None) -> TableState:
    """The target has the columns of a version.

    Args:
        found: the target as it is now.
    """
    view = replace(state.target, stamped=step.history.head.number)
    if found is not None and found.columns is not None:
        view = replace(view, columns=found.columns)
    if state.route.partition_by is not None:
        view = view.divided_as(found)  # columns may have taken parts of it
    return replace(state, target=view, progress=step.progress if state.progress is not None else None)


def written(state: TableState, ranges: tuple[OffsetRange, ...], progress: Progress) -> TableState:
    """The target holds the rows of ranges."""
    rows = state.target.rows
    more = sum(item.size for item in ranges)
    view = replace(state.target, rows=None if rows is None else rows + more)
    return replace(state, target=view, progress=progress)


def behind_write(state: TableState, seen: Seen, ranges: tuple[OffsetRange, ...]) -> Seen:
    """What is left behind a write; where it had to end before the ranges do, the next run looks anew from there.

    Args:
        state: behind the write.
        seen: before it.
        ranges: that were to be written.
    """
    reached = state.progress
    is_whole = reached is not None and all(
        (reached.next_offset(item.topic, item.partition) or 0) >= item.end for item in ranges
    )
    return changed(replace(seen.behind(ranges), over=not is_whole))


def emptied(state: TableState, progress: Progress) -> TableState:
    """The target holds no row; partitions may have to be read again, and it may not have the head's columns yet."""
    return replace(
        state,
        progress=progress,
        cursor=replace(state.cursor, passed={}),
        hints=replace(state.hints, current=frozenset()),
    )


def ended(state: TableState, end: Version) -> TableState:
    """The table's end is recorded."""
    assert state.history is not None
    return replace(state, history=state.history.extended(end), wait=None)


def released(state: TableState, step: ReleaseTarget) -> TableState:
    """The target is another table's, or none."""
    former = state.progress
    offsets = {} if former is None else former.offsets
    places = {(topic, number): at for topic, found in offsets.items() for number, at in found.items()}
    return replace(
        state,
        progress=begun_behind(step.end, step.end.number, former),
        target=replace(state.target, stamped=None),
        cursor=replace(state.cursor.passing(places), unread=offsets),
        hints=replace(state.hints, current=frozenset()),
    )


def divided(state: TableState, wanted: Partitioning) -> TableState:
    """The target is partitioned as configured."""
    return replace(state, target=replace(state.target, partitioning=wanted, partition_by=str(wanted)))


def joined(state: TableState, step: RecordJoin) -> TableState:
    """The version that joins two columns is recorded; what `status` said of them is no news any more."""
    assert state.history is not None
    about = f"{step.join.old!r} and {step.join.new!r}"
    warnings = tuple(text for text in state.journal.warnings if about not in text)
    return replace(
        state, history=state.history.extended(step.version), journal=replace(state.journal, warnings=warnings)
    )
