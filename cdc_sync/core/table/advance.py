"""What happens to a table next when events of it came, or when none is left and the source told of its end."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.planning.limits import too_large_to_rewrite
from cdc_sync.core.planning.observation import Refusal, TablePlan, Waiting
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.table.ending import ending, release
from cdc_sync.core.table.migrating import rewrites_rows, too_short, toward
from cdc_sync.core.table.questions import Fingerprints, HasAllEvents, PlanOf, RoomFor, TargetNow
from cdc_sync.core.table.seen import Facts, Seen, Unknown
from cdc_sync.core.table.state import TableState, Wait
from cdc_sync.core.table.transitions import Record, Settled, Step
from cdc_sync.core.table.truncating import emptying, first_truncate, in_effect_at, late


def decide(state: TableState, seen: Seen) -> Step:
    """Return the one transition that comes next. Total; no I/O, no clock, no lock.

    Order follows from what is recorded, then stamped, then written: a version is recorded before the target has its
    columns, and has them before rows are written to it, so whoever starts between two steps finds what is left to do.
    """
    try:
        return _decide(state, seen)
    except Unknown as unknown:
        return unknown.asked


def _decide(state: TableState, seen: Seen) -> Step:
    if seen.over or state.stop is not None or state.is_detached:
        return Settled(state=state)
    if not seen.replaying:
        due = state.due or seen.ended
        if due is not None:
            return release(state, seen, due)
        if state.history is not None and state.is_ahead and not must_rebuild(state, seen.facts):
            return too_short(state, state.history)
    if not seen.recorded:
        return _record(state, seen)
    if seen.replaying:
        return Settled(state=_halted(state, seen))
    ranges, stop = seen.ranges, seen.stop
    if stop is not None:
        ranges = seen.before(ranges, stop.position, stop.kafka)
    history = state.history
    if history is not None:
        move = _with_history(state, seen, history, ranges)
        if move is not None:
            return move
    if isinstance(stop, Version):
        return ending(replace(state, wait=None), seen, stop)
    return Settled(state=_finished(state, seen))


def _with_history(state: TableState, seen: Seen, history: History, ranges: tuple[OffsetRange, ...]) -> Step | None:
    """Return what comes next up to the end of ranges, None if nothing does."""
    truncate = first_truncate(state, ranges, seen.stretches)
    if truncate is not None:
        shorter = in_effect_at(state, truncate, history)
        before = seen.before(ranges, truncate.position, truncate.kafka)
        return toward(state, seen, shorter, before) or emptying(state, seen, truncate, shorter.head.number)
    rebuilding = not ranges and state.is_ahead
    if state.is_gone or rebuilding or (seen.to_the_end and state.target.stamped is None):
        return None
    return toward(state, seen, history, ranges)


def must_rebuild(state: TableState, facts: Facts) -> bool:
    """Whether the target holds rows of versions that the history does not have: it is read off the topic again.

    Another pipeline name, a lost state folder, or an older one that was brought back. What an older one lacks can be
    told only if the topics still have all events; else versions that were several would be taken for one.
    """
    if state.progress is None:
        return False
    return state.history is None or (state.is_ahead and facts.need(HasAllEvents()))


def _record(state: TableState, seen: Seen) -> Record:
    plan = seen.facts.need(PlanOf(to_the_end=seen.to_the_end, patient=not seen.replaying))
    if seen.replaying:
        return Record(versions=plan.versions, warnings=plan.warnings, stop=plan.refusal or plan.waiting)
    plan = _within_the_limit(state, seen.facts, _within_the_hour(seen.facts, plan))
    end = next((version for version in plan.versions if version.ends_target), None)
    versions = plan.versions if end is None else plan.versions[: plan.versions.index(end)]
    return Record(versions=versions, warnings=plan.warnings, stop=end or plan.refusal or plan.waiting)


def _within_the_hour(facts: Facts, plan: TablePlan) -> TablePlan:
    """Stop before a version for which there is no room any more."""
    if not plan.versions:
        return plan
    granted, said = facts.need(RoomFor(len(plan.versions)))
    return plan if said is None else _stopped(plan, granted, said)


def _within_the_limit(state: TableState, facts: Facts, plan: TablePlan) -> TablePlan:
    """Stop before a version that rewrites a larger target than may be rewritten without asking."""
    stamped = state.target.stamped
    for place, version in enumerate(plan.versions):
        if stamped is None or version.number <= stamped or not rewrites_rows(state, version):
            continue
        found = facts.need(TargetNow())
        policy = state.route.policy
        said = None if found is None else too_large_to_rewrite(policy, rows=found.rows, size=found.size)
        if said is not None:
            return _stopped(plan, place, said)
    return plan


def _stopped(plan: TablePlan, place: int, why: Refused) -> TablePlan:
    """Return a plan that is refused before one of its versions."""
    version = plan.versions[place]
    refusal = Refusal(why=why, position=version.position, kafka=version.kafka)
    return replace(plan, versions=plan.versions[:place], refusal=refusal, waiting=None)


def _finished(state: TableState, seen: Seen) -> TableState:
    """Return the table once everything that can be is written."""
    history, rebuilding = state.history, not seen.all_ranges and state.is_ahead
    if history is not None and not rebuilding:
        if not state.is_gone and seen.stretches:
            state = replace(state, hints=replace(state.hints, current=_current(history, seen)))
        said = late(state, seen.stretches)
        state = state if said is None else state.warned(said)
    if seen.stop is None and not rebuilding:
        ends = {(item.topic, item.partition): item.end for item in seen.all_ranges}
        state = replace(state, cursor=state.cursor.passing(ends))
    return _halted(state, seen)


def _current(history: History, seen: Seen) -> frozenset[str]:
    """Return which schema texts mean the head: those of events at or after its first one."""
    head = history.head
    now = frozenset(stretch.digest for stretch in seen.stretches if stretch.position >= head.position)
    known = seen.facts.need(Fingerprints(now)) if now else {}
    return frozenset(digest for digest, fingerprint in known.items() if fingerprint == head.fingerprint)


def _halted(state: TableState, seen: Seen) -> TableState:
    """Return the table as it stands before what stops it."""
    stop = seen.stop
    if isinstance(stop, Refusal):
        state = state.stopped(stop.why.pause(stop.kafka))
    return replace(state, wait=waiting(stop) if isinstance(stop, Waiting) else None)


def waiting(stop: Waiting) -> Wait:
    """Say what a table waits for."""
    if stop.table is None:
        return Wait(text=f"the change at {stop.kafka} is not explained yet; {stop.reason}")
    return Wait(text=f"{stop.kafka}: {stop.reason}", table=stop.table)
