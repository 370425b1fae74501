"""Joining two columns that the operator says are one, between two batches; what was begun before is ended."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.history.history import History
from cdc_sync.core.history.joined import joined_columns
from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.merge_columns import join_version
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.table.migrating import migration_to, needs_rows_before, steps_to
from cdc_sync.core.table.questions import IsSameTopic, RefusedJoin
from cdc_sync.core.table.seen import Seen, Unknown
from cdc_sync.core.table.state import TableState
from cdc_sync.core.table.transitions import ForgetJoin, RecordJoin, Settled, Step

_SHARED = Refused(
    code=Code.JOIN,
    reason="rows of other tables are in the target, where the two may be columns of theirs",
    remedy="snapshot the table into a target of its own, with the rename declared under renames",
)


def join_columns(state: TableState, seen: Seen) -> Step:
    """Record the version that joins two columns, then carry it out, as every version is.

    What forbids it is found before that; then what was said is forgotten, a warning says why, and the table stays as it
    is.
    """
    try:
        return _join_columns(state, seen)
    except Unknown as unknown:
        return unknown.asked


def _join_columns(state: TableState, seen: Seen) -> Step:
    history, join = state.history, seen.join
    if seen.over or history is None or join is None or state.is_of_another_kind:
        return Settled(state=state)
    if _has_rows_to_come(state, history) or not seen.facts.need(IsSameTopic()):
        return Settled(state=state)
    # A join that was recorded and then interrupted is carried out here.
    move = None if state.target.stamped is None else migration_to(state, seen.facts, history)
    if move is not None:
        return move
    if any((item.id, item.into) == (join.joined, join.kept) for item in joined_columns(history.versions)):
        return Settled(state=state, done=True)
    version = _SHARED if state.route.merge is not None else join_version(history, join, state.route.capabilities)
    if isinstance(version, Refused):
        return ForgetJoin(join=join, why=f"{version.reason}; {version.remedy}")
    joined = history.extended(version)
    refused = seen.facts.need(RefusedJoin(version.number, steps_to(state, joined), joined))
    if refused is not None:
        return ForgetJoin(join=join, why=f"{refused.reason}; {refused.remedy}")
    return RecordJoin(join=replace(join, after=history.head.number), version=version)


def _has_rows_to_come(state: TableState, history: History) -> bool:
    """Whether rows of before a column was kept are still to be written, or the history is not made again yet."""
    stamped = state.target.stamped
    if stamped is None:
        return False
    return stamped > history.head.number or any(needs_rows_before(state, it) for it in history.versions[stamped:])
