"""Dividing a target as the configuration says, whenever that changes, between two batches.

One that has rows is never held up by it: it goes on as it is partitioned, with a warning, until what is configured fits
its columns.
"""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.migration.derived import held_partitioning
from cdc_sync.core.migration.migration import Migration, Repartition
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.limits import too_large_to_divide
from cdc_sync.core.planning.partition_fit import misfit
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.table.migrating import FOR_GOOD
from cdc_sync.core.table.questions import TargetNow
from cdc_sync.core.table.seen import Facts, Seen, Unknown
from cdc_sync.core.table.state import TableState
from cdc_sync.core.table.transitions import Ask, Become, DivideTarget, Settled


def is_to_be_divided(state: TableState) -> bool:
    """Whether the target is not partitioned as configured, and no migration of it is under way."""
    wanted, history, stamped = state.route.partition_by, state.history, state.target.stamped
    if wanted is None or history is None or stamped is None or state.target.partition_by == str(wanted):
        return False
    settled = state.progress is None or state.progress.version == stamped
    at_head = stamped == history.head.number and history.head.dropped is None
    sound = state.failure is None or state.requests.is_dividing
    return at_head and settled and sound and state.stop is None and state.wait is None


def divide(state: TableState, seen: Seen) -> DivideTarget | Become | Settled | Ask:
    """Bring the target's partitioning to what is configured, if the table has the columns."""
    try:
        return _divide(state, seen)
    except Unknown as unknown:
        return unknown.asked


def _divide(state: TableState, seen: Seen) -> DivideTarget | Become | Settled:
    wanted, history = state.route.partition_by, state.history
    if wanted is None or history is None or not is_to_be_divided(state):
        requests = replace(state.requests, is_dividing=False) if seen.over else state.requests
        return Settled(state=replace(state, requests=requests).recovered() if seen.over else state)
    step = _step_to(state, wanted)
    why = misfit(wanted, history.head.schema, state.mode) or _stays(state, step)
    if why is None and step.rewrites:
        too_large = state.requests.too_large or _too_large(state, seen.facts)
        state = replace(state, requests=replace(state.requests, too_large=too_large))
        why = too_large
    if why is not None:
        divided = state.target.partitioning
        now = f"partitioned by {divided}" if divided.fields else "not partitioned"
        return Settled(state=state.warned(f"{why.reason}; the target stays {now}; {why.remedy}"))
    if not state.requests.is_dividing:
        return Become(state=replace(state, requests=replace(state.requests, is_dividing=True)))
    # What the target says may be another now: it was begun before, or another writer was there.
    state = replace(state, target=state.target.divided_as(seen.facts.need(TargetNow())))
    if state.target.partition_by == str(wanted):
        return Settled(state=replace(state, requests=replace(state.requests, is_dividing=False)).recovered())
    steps = Migration(version=history.head.number, schema=history.head.schema, steps=(_step_to(state, wanted),))
    return DivideTarget(wanted=wanted, steps=steps, progress=state.progress or Progress(version=history.head.number))


def _step_to(state: TableState, wanted: Partitioning) -> Repartition:
    able, divided = state.route.capabilities, state.target.partitioning
    held = held_partitioning(wanted, able.columns)
    same = set(held.fields) == set(divided.fields)
    return Repartition(before=wanted if same else divided, after=wanted, partitions=able.partitions or "hidden")


def _stays(state: TableState, step: Repartition) -> Refused | None:
    """Refuse to partition a target in another way that is partitioned for good."""
    if not (state.route.capabilities.partitions_stay and step.rewrites):
        return None
    return Refused(code=Code.PARTITIONS, reason=f"partition_by says {str(step.after) or 'nothing'}", remedy=FOR_GOOD)


def _too_large(state: TableState, facts: Facts) -> Refused | None:
    """Ask before a new partitioning writes all rows of a large target anew."""
    found = facts.need(TargetNow())
    return None if found is None else too_large_to_divide(state.route.policy, rows=found.rows, size=found.size)
