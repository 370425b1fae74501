"""Taking a table up as it is written down and as its target is; after a start, and after anything failed."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.altered import Altered, altered, undoing
from cdc_sync.core.migration.migration import ChangeRegime, Migration
from cdc_sync.core.migration.modes import mode_remedy
from cdc_sync.core.migration.names import held_schema
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.doubts import Doubt
from cdc_sync.core.planning.end_of_table import begun_behind, last_end
from cdc_sync.core.planning.stops import LOGS, Pause, altered_target, held, other_regime, rolled_back, unread_partitions
from cdc_sync.core.table.seen import Loaded
from cdc_sync.core.table.state import TableState, TargetView
from cdc_sync.core.table.transitions import (
    AdoptTarget,
    Become,
    DropLeftovers,
    Fail,
    ForgetRollback,
    LoadStep,
    RewriteLayout,
    RollBackRewrite,
    Settled,
)
from cdc_sync.errors import UnfitTarget

LOOK_EVERY = 60.0
"""Seconds between two looks at the target's columns."""


def take_up(state: TableState, seen: Loaded) -> LoadStep:
    """Return what is to be done before the table can go on, at last how it stands."""
    found, history = seen.found, seen.history
    unfit = None if found is None else _not_ours(state, found)
    if unfit is not None:
        return Fail(error=unfit)
    asked = seen.rollback
    if asked is not None and found is not None and (found.version or 0) >= asked.version:
        return RollBackRewrite(asked=asked) if found.kept == asked.version - 1 else ForgetRollback(asked=asked)
    arrival = None if history is None else history.arrival
    if found is not None and arrival is not None and not _has_arrived(found, arrival):
        return AdoptTarget(arrival=arrival)
    move = _rewriting(state, seen)
    if move is not None:
        return move
    end = None if history is None else last_end(history, found.version if found else None)
    if found is None and end is not None and end.dropped == "drop" and not seen.left_dropped:
        return DropLeftovers()
    return Settled(state=_taken_up(state, seen, end))


def _not_ours(state: TableState, found: TargetState) -> UnfitTarget | None:
    if found.version is None:
        return UnfitTarget(
            Code.NOT_OURS,
            f"Cannot sync {state.table}: the target {state.route.target} exists and was not made by cdc_sync",
            "move the target away and `cdc-sync resume` the table, or route it elsewhere",
        )
    if found.union is not None:
        return UnfitTarget(
            Code.SHARED,
            f"Cannot sync {state.table}: several source tables share the target {state.route.target}",
            "give its rule merge, or route the table elsewhere",
        )
    return None


def _has_arrived(found: TargetState, arrival: Version) -> bool:
    truncated = None if found.progress is None else found.progress.truncated
    return truncated is not None and truncated.position >= arrival.position


def _can_rewrite(state: TableState, seen: Loaded) -> bool:
    """Whether a rewrite in another regime can be carried out now; it waits as long as the configuration differs."""
    asked, found, history = seen.regime, seen.found, seen.history
    is_known = history is not None and found is not None and (found.version or 0) <= history.head.number
    return asked is not None and asked.evolution == state.route.capabilities.evolution and is_known


def _rewriting(state: TableState, seen: Loaded) -> RewriteLayout | Become | None:
    """Rewrite the target in the configured regime if the operator asks for it.

    Readers have to know it, so that a line of the configuration changes no table that has rows. What was asked is
    forgotten once it is done, so what a crash left is ended by the next that reads the table.
    """
    asked, found, history = seen.regime, seen.found, seen.history
    if asked is None or found is None or found.version is None or history is None or not _can_rewrite(state, seen):
        return None
    if state.stop is not None:
        # If it fails it is tried again, which a table that is stopped is not said to be.
        return Become(state=replace(state, stop=None))
    schema = history.version(found.version).schema
    steps = Migration(version=found.version, schema=schema, steps=(ChangeRegime(after=asked.evolution),))
    return RewriteLayout(asked=asked, steps=steps)


def _taken_up(state: TableState, seen: Loaded, end: Version | None) -> TableState:
    found, history, stamped = seen.found, seen.history, seen.found.version if seen.found else None
    arrival = None if history is None else history.arrival
    whole_end = None if history is None else last_end(history)
    begins = None if end is None else begun_behind(end, stamped or end.number)
    progress = found.progress if found else None
    regime = seen.regime if found else None
    requests = replace(
        state.requests,
        hold=seen.hold,
        skips=seen.skips,
        rollback=seen.rollback,
        regime=regime,
        snapshot=seen.snapshot,
    )
    state = replace(
        state,
        # A decision counts as heard only once the table goes on by it.
        route=replace(
            state.route,
            decisions=seen.decisions,
            joins=tuple(join for join in seen.joins if join.after < (stamped or 0)),
        ),
        history=history,
        is_detached=found is None and arrival is not None and (whole_end is None or whole_end.number < arrival.number),
        is_read=True,
        progress=progress if progress is not None or history is None else begins,
        target=TargetView(stamped=stamped, rows=found.rows if found else 0, columns=seen.columns).divided_as(found),
        cursor=replace(
            state.cursor,
            passed={},
            last={},
            unread=state.cursor.known_before if progress is None and begins is not None else state.cursor.unread,
            known_before={},
        ),
        hints=replace(state.hints, current=frozenset(), next_look=seen.now + LOOK_EVERY),
        requests=requests,
    )
    if found is not None:
        state = _as_configured(state, seen, found)
    if seen.rollback is not None:
        state = state.stopped(rolled_back(state.table, seen.rollback.version))
    if seen.hold is not None:
        state = state.stopped(held(seen.hold))
    return state if requests.regime is None else state.warned(_pending(state, seen))


def _pending(state: TableState, seen: Loaded) -> str:
    assert seen.regime is not None
    asked, wanted = seen.regime.evolution, state.route.capabilities.evolution
    missing = f"the configuration says {wanted}" if asked != wanted else "its history is not complete"
    return (
        f"all rows are to be rewritten for schema_evolution: {asked}, and {missing}; `cdc-sync regime --undo` forgets "
        "that"
    )


def _as_configured(state: TableState, seen: Loaded, found: TargetState) -> TableState:
    mode = mode_remedy(found.mode, state.mode)
    other = (
        _other_regime(state, seen, found)
        if mode is None
        else Pause(code=Code.OTHER_MODE, reason=mode[0], remedy=mode[1])
    )
    state = replace(state, is_of_another_kind=other is not None)
    return state.stopped(other) if other is not None else look_at_columns(state, found)


def _other_regime(state: TableState, seen: Loaded, found: TargetState) -> Pause | None:
    """Say why the table cannot go on if its target is of another regime than is configured, or not for its readers.

    Files beside which there are no logs are read right by all that know logs; so a table without goes on.
    """
    wanted = state.route.capabilities.evolution
    if found.evolution != wanted:
        return other_regime(state.table, has=found.evolution, wanted=wanted)
    if found.logs and not seen.logs:
        return LOGS
    if not (found.partitioning.fields and state.route.capabilities.partitions_stay):
        return None
    # Readers were looked at when the configuration was read, which need not say how the table was made.
    return next((unread_partitions(name, reason) for name, reason in seen.unread_by), None)


def look_at_columns(state: TableState, found: TargetState) -> TableState:
    """Stop the table if its target's columns are not what they were; mark those that were replaced."""
    now = found.columns
    if now is None or found.version is None:
        return state
    before = state.target.columns
    changes = Altered() if before is None else altered(before, now)
    if changes.must_be_undone:
        target = str(state.route.target)
        return state.stopped(altered_target(*undoing(changes, target), target))
    doubts = [doubt for name in changes.replaced if (doubt := _replaced(state, found, name)) is not None]
    return replace(state.doubted(doubts), target=replace(state.target, columns=now))


def _replaced(state: TableState, found: TargetState, name: str) -> Doubt | None:
    history, version = state.history, found.version or 0
    if history is None or version > history.head.number or found.columns is None:
        return None
    schema = held_schema(history.version(version).schema, state.route.capabilities.columns)
    id_ = next((column.id for column in schema.columns if column.name == name), None)
    if id_ is None:
        return None
    ends = found.progress.offsets if found.progress else {}
    return Doubt(kind="replaced", id=id_, version=version, ends=ends, at=str(found.columns.numbers[name]))
