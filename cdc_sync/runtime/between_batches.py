"""What becomes of one table between two batches: its partitions, its end, and its way to another name."""

from __future__ import annotations

from dataclasses import replace

from structlog import get_logger

from cdc_sync.core.migration.names import held_target
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.offsets import Ends
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.stops import Pause
from cdc_sync.core.table.advance import decide
from cdc_sync.core.table.dividing import divide
from cdc_sync.core.table.seen import Seen
from cdc_sync.core.table.state import Wait
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.evidence import told_end
from cdc_sync.runtime.observer import route_of


def follow_partitioning(actor: TableActor) -> None:
    """Bring the target's partitioning to what is configured, if the table has the columns."""
    before = actor.state
    actor.run(divide, Seen())
    if actor.state is not before:
        actor.report()


def is_told_dropped(actor: TableActor) -> bool:
    """Whether the source told of a drop or a new name that nothing was made of yet, or that was not carried out."""
    state = actor.state
    return state.stop is None and (state.due is not None or told_end(actor.context, state) is not None)


def follow_drop(actor: TableActor, looked_at: Ends) -> None:
    """Take up that the source table was dropped or renamed, if all that is in its topics is read.

    Args:
        actor: of the table.
        looked_at: how far every topic was looked through, whatever tables are in it.
    """
    actor.reload_after_failure()
    if actor.state.due is not None or _has_drained(actor, looked_at):
        actor.run(decide, Seen(to_the_end=True))
        actor.report()


def _has_drained(actor: TableActor, looked_at: Ends) -> bool:
    state, end = actor.state, told_end(actor.context, actor.state)
    if end is None:
        return False
    drains = state.cursor.drains
    if drains is None or drains[0] != end.kafka:
        drains = end.kafka, actor.observer.drains(state)
        if not drains[1]:
            return False
        actor.become(replace(state, cursor=replace(state.cursor, drains=drains)))
    return actor.observer.has_drained(state, drains[1], looked_at)


def is_tired_of_waiting(actor: TableActor) -> bool:
    """Whether the table that this one waits for, and that was never seen, was waited for long enough."""
    other = actor.state.waits_for
    return other is not None and actor.observer.is_tired_of(other)


def go_on_without(actor: TableActor, stranger: TableId) -> None:
    """Begin as a table of its own: under its former name no row ever came."""
    get_logger().warning("table begins without its former name", table=str(actor.table), former=str(stranger))
    state, wait = actor.state, actor.state.wait
    actor.become(
        replace(
            state,
            evidence=replace(state.evidence, strangers=state.evidence.strangers | {stranger}),
            wait=None if wait is None else replace(wait, table=None),
        )
    )


def take_over(actor: TableActor) -> None:
    """Look for the target of a table that came under this name; wait for it, or stop, if it is not there."""
    actor.load()
    if actor.state.is_detached and isinstance(_why_detached(actor), Pause):
        actor.load()  # it may have been renamed between the two looks
    why = _why_detached(actor) if actor.state.is_detached else None
    if isinstance(why, Pause):
        actor.stop(why)
    else:
        actor.become(replace(actor.state, wait=why))
        actor.report()


def _why_detached(actor: TableActor) -> Wait | Pause:
    """Say why there is no target yet, or stop if there is none to come."""
    arrival = None if actor.state.history is None else actor.state.history.arrival
    assert arrival is not None
    assert arrival.renamed_from is not None
    origin = arrival.renamed_from.names[-1]
    found = route_of(actor.context, origin)
    former = None if found is None else held_target(found.target, found.capabilities.tables)
    if former is not None and actor.target.state(former) is not None:
        return Wait(text=f"the table was {origin} before, and its target has yet to be renamed", table=origin)
    return Pause(
        code=Code.ABSENT,
        reason=f"the target, which was that of {origin} before, is not there",
        remedy=f"bring it back as {actor.route.target} and `cdc-sync resume` the table, or snapshot it anew",
    )
