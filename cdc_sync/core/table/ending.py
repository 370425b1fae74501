"""Letting a target go, or leaving it as it is, where the source table was dropped or got another name.

All rows from before are written first; then the version is recorded that says what becomes of the target; then the
target goes. So each step may be repeated: a target that is stamped with an older version than the recorded end is one
that has yet to go. One that goes on under another name is renamed once the history under that name says where it comes
from, and stamped with that at last.
"""

from __future__ import annotations

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.stops import Pause, Refused
from cdc_sync.core.planning.table_renames import arrival_of
from cdc_sync.core.table.migrating import migration_to
from cdc_sync.core.table.questions import Destination, Exists, HistoryOf, RestBefore
from cdc_sync.core.table.seen import Facts, Seen
from cdc_sync.core.table.state import TableState, archived
from cdc_sync.core.table.transitions import EndTable, Fail, Migrate, ReadRest, ReleaseTarget, Settled
from cdc_sync.errors import HistoryError, TargetError


def ending(state: TableState, seen: Seen, end: Version) -> ReadRest | EndTable | Migrate | Settled | Fail:
    """Write what is left from before an end, then record it; what follows is the next run's."""
    rest = seen.facts.need(RestBefore(end.number, end))
    if rest.stop is not None:
        return Settled(state=state.stopped(rest.stop))
    if rest.ranges:
        return ReadRest(ranges=rest.ranges, stretches=rest.stretches)
    stop = _collision(state, seen.facts, end)
    if isinstance(stop, Fail):
        return stop
    if stop is not None:
        return Settled(state=state.stopped(stop))
    if end.renamed_to is not None and state.history is not None:
        move = migration_to(state, seen.facts, state.history)  # what goes on has the columns of this version
        if move is not None:
            return move
    return EndTable(end=end)


def release(state: TableState, seen: Seen, end: Version) -> ReleaseTarget | Settled | Fail:
    """Drop, archive or rename the target of a recorded end, or stop where a table has the name that it is to get."""
    stop = _collision(state, seen.facts, end)
    if isinstance(stop, Fail):
        return stop
    if stop is not None:
        return Settled(state=state.stopped(stop))
    if end.renamed_to is None:
        return ReleaseTarget(end=end, into=archived(state, end) if end.dropped == "archive" else None, arrival=None)
    into, version = (
        seen.facts.need(Destination(end.renamed_to)),
        arrival(state, seen.facts.need(HistoryOf(end.renamed_to)), end),
    )
    if isinstance(version, Refused):
        return Fail(error=HistoryError(f"Cannot rename {state.table}: {version.reason}; {version.remedy}"))
    return ReleaseTarget(end=end, into=None if into is None else into[0], arrival=version)


def _collision(state: TableState, facts: Facts, end: Version) -> Pause | Fail | None:
    if end.renamed_to is not None:
        return _cannot_move(state, facts, end)
    if end.dropped != "archive":
        return None
    into = archived(state, end)
    if not facts.need(Exists(into)) or not facts.need(Exists(state.route.target)):
        return None
    return Pause(
        code=Code.NAME_TAKEN,
        reason=f"the source table was dropped, and its target cannot be archived as {into}, for there is a table of "
        "that name",
        remedy=f"move {into} away and `cdc-sync resume` the table, or set policy.drop_table: keep",
        at=str(end.kafka),
    )


def _cannot_move(state: TableState, facts: Facts, end: Version) -> Pause | Fail | None:
    """Return why the target cannot have the new name."""
    assert end.renamed_to is not None
    there = facts.need(Destination(end.renamed_to))
    if there is None:
        return Fail(
            error=TargetError(
                f"Cannot rename the target of {state.table}: it is {end.renamed_to} now, which no rule of tables "
                "matches any more; bring the rule back"
            )
        )
    into, is_shared = there
    if is_shared:
        return Pause(
            code=Code.RENAME,
            reason=f"the source table was renamed to {end.renamed_to}, whose rows go to {into} with those of other "
            "tables, so the target cannot be renamed to that",
            remedy=f"set policy.rename_table: stay for {state.table}",
            at=str(end.kafka),
        )
    version = arrival(state, facts.need(HistoryOf(end.renamed_to)), end)
    if isinstance(version, Refused):
        return version.pause(end.kafka)
    if into == state.route.target or not facts.need(Exists(into)) or not facts.need(Exists(state.route.target)):
        return None
    return Pause(
        code=Code.NAME_TAKEN,
        reason=f"the source table was renamed to {end.renamed_to}, and the target cannot be renamed to {into}, for "
        "there is a table of that name",
        remedy=f"move {into} away and `cdc-sync resume` the table, or set policy.rename_table: stay for it",
        at=str(end.kafka),
    )


def arrival(state: TableState, own: History | None, end: Version) -> Version | Refused | None:
    """Return the version to record under the new name, None if it is recorded.

    Args:
        own: what is recorded under that name.
    """
    assert state.history is not None
    known = () if own is None else own.versions
    if any(item.renamed_from is not None and item.position == end.position for item in known):
        return None
    left = state.history if state.history.head.number >= end.number else state.history.extended(end)
    return arrival_of(left, end, own)
