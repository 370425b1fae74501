"""What the source itself tells of one table: what it leads to, when it has to be looked at, and what came too late."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from structlog import get_logger

from cdc_sync.config.routes import route
from cdc_sync.core.history.history import History
from cdc_sync.core.lineage.audit import Joined, Split, audit, unlogged_behind
from cdc_sync.core.lineage.catalogue_proof import refuted
from cdc_sync.core.lineage.column_log import Unlogged, Unread
from cdc_sync.core.lineage.continuity import Compared
from cdc_sync.core.lineage.drops import ToldDrop
from cdc_sync.core.lineage.kept import Kept
from cdc_sync.core.lineage.renames import ToldRename
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.deadline import Patience
from cdc_sync.core.planning.next_version import moment_of
from cdc_sync.core.planning.observation import Observation, Stretch, TablePlan
from cdc_sync.core.planning.plan import first_end, in_time, is_later, plan_table
from cdc_sync.core.planning.table_renames import NO_NAME_CHANGES, NameChanges
from cdc_sync.core.table.questions import PlanOf
from cdc_sync.core.table.state import TableState
from cdc_sync.errors import RefusedError
from cdc_sync.runtime.bounds import position_before
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.observe import observations_of

_UNREAD = 3
"""Statements that `status` shows of one table."""


def cuts(context: Context, state: TableState) -> tuple[SourcePosition, ...]:
    """Return the positions at which stretches of the table begin anew."""
    if state.history is None:
        return context.told_behind(state.table, None)
    head = state.history.head.position
    return (head, *context.told_behind(state.table, head))


def is_told(context: Context, state: TableState) -> bool:
    """Whether the source told something for which no event was looked at yet."""
    if state.history is None:
        return False
    head, settled = state.history.head.position, state.evidence.settled
    return bool(context.told_behind(state.table, head if settled is None else max(head, settled)))


def settled(context: Context, state: TableState, stretches: Sequence[Stretch]) -> TableState:
    """Remember which structures have an event behind them, after all stretches were planned for."""
    if not stretches:
        return state
    last, before = max(stretch.position for stretch in stretches), state.evidence.settled
    behind = context.told_behind(state.table, before)
    now = max((at for at in behind if at < last), default=before)
    return replace(state, evidence=replace(state.evidence, settled=now))


def told_end(context: Context, state: TableState) -> ToldDrop | ToldRename | None:
    """Return a drop or a new name that nothing was made of yet."""
    if state.history is None or state.history.head.dropped is not None or state.is_detached:
        return None
    names = name_changes(context, state.route, state.history)
    return first_end(context.evidence.logs, state.history, names)


def plan_of(
    context: Context, state: TableState, stretches: Sequence[Stretch], patience: Patience, how: PlanOf
) -> TablePlan:
    """Plan with the evidence; where it stays away too long, without."""
    history, table = state.history, state.table
    observations = observations_of(context, history, state.route, stretches)
    values, kept = _values(context, state, observations), _kept(context, history, table, observations)
    planned = partial(
        plan_table,
        history,
        observations,
        state.route,
        state.route.capabilities,
        logs=context.evidence.logs,
        kept=kept,
        values=values,
        names=name_changes(context, state.route, history, state.evidence.strangers),
        coverage=context.coverage(table, history),
        to_the_end=how.to_the_end,
    )
    plan = planned(patient=how.patient)
    if plan.waiting is not None and plan.waiting.table is None and patience.is_over(plan.waiting.kafka):
        get_logger().warning("evidence stayed away", table=str(table), why=plan.waiting.reason)
        plan = planned()
    for version in plan.versions:
        if version.kafka in values:
            context.values.keep(table, version.kafka, values[version.kafka])
    problem = context.catalogue.problem
    if problem is not None and plan.versions:
        said = f"version {plan.versions[-1].number} was made without a reading of the source's catalogue: {problem}"
        plan = replace(plan, warnings=(*plan.warnings, said))
    if plan.versions:
        former = () if history is None else history.versions
        whole = History(table=table, versions=(*former, *plan.versions))
        warnings = refuted(whole, plan.versions[0].number, kept, state.route.left_out)
        plan = replace(plan, warnings=(*plan.warnings, *warnings))
    return _in_time(context, state, plan)


def _kept(context: Context, history: History | None, table: TableId, observations: Sequence[Observation]) -> Kept:
    """Return the readings of the catalogue that these events are judged by."""
    head = None if history is None else history.head.position
    later = (observation for observation in observations if head is None or observation.position >= head)
    moments = [moment for observation in later if (moment := moment_of(observation)) is not None]
    return context.catalogue.prepare(table, head, moments)


def _values(
    context: Context, state: TableState, observations: Sequence[Observation]
) -> Mapping[KafkaPosition, Compared]:
    """Return what rows say about the columns that these events show under other names."""
    if state.route.append:
        return {}
    head = None if state.history is None else state.history.head
    later = [
        item
        for item in sorted(observations, key=lambda item: (item.position, item.kafka))
        if not item.truncate and (head is None or is_later(item.position, item.kafka, head))
    ]
    columns = () if head is None else tuple(column.name for column in head.schema.live)
    return context.values.prepare(state.table, columns, later)


def findings(context: Context, state: TableState) -> tuple[TableState, tuple[Split | Joined | Unread | Unlogged, ...]]:
    """Return what evidence that came since the last time says about what was done without it.

    The last statements about the table that were not understood are part of it, and all that changed rows of it without
    an event for each behind its first event.
    """
    history, table, logs = state.history, state.table, context.evidence.logs
    told = sum(len(log.of(table)) + len(log.unread) + len(log.unlogged) for log in logs)
    if history is None or told == state.evidence.audited:
        return state, ()
    written = None if state.progress is None else _last_written(context, table, state.progress)
    unread = [item for log in logs for item in log.unread if table in item.tables]
    unlogged = (item for log in logs for item in unlogged_behind(history, log))
    found = (*(item for log in logs for item in audit(history, log, written)), *unread[-_UNREAD:], *unlogged)
    return replace(state, evidence=replace(state.evidence, audited=told)), found


def _in_time(context: Context, state: TableState, plan: TablePlan) -> TablePlan:
    """Stop before a version that comes too late to empty the target."""
    progress = state.progress
    if progress is None or all(version.made_anew is None and version.dropped is None for version in plan.versions):
        return plan
    return in_time(plan, _last_written(context, state.table, progress))


def _last_written(context: Context, table: TableId, progress: Progress) -> SourcePosition | None:
    """Return the highest position among the last events of the table that were written."""
    found = (
        position_before(context, table, topic, partition, offset)
        for topic, partitions in progress.offsets.items()
        for partition, offset in partitions.items()
    )
    return max((position for position in found if position is not None), default=None)


def name_changes(
    context: Context, wanted: Route, history: History | None, strangers: Collection[TableId] = ()
) -> NameChanges:
    """Return the name changes of a table behind its newest version.

    What becomes of it is up to the policy of its old name; a name that no rule matches is as good as none, and so is
    one under which no row ever came (`strangers`).
    """
    told = [item for item in context.evidence.renames if wanted.table in (item.old, item.new)]
    if not told:
        return NO_NAME_CHANGES
    head = None if history is None else history.head.position
    told = [item for item in told if head is None or item.position > head]
    away = [item for item in told if item.old == wanted.table and _answer(context, item.new) is not None]
    here = tuple(item for item in told if item.new == wanted.table and item.old not in strangers)
    return NameChanges(
        away=tuple(away) if wanted.policy.rename_table != "stay" else (),
        here=tuple(item for item in here if _answer(context, item.old) == "follow"),
    )


def _answer(context: Context, table: TableId) -> str | None:
    try:
        found = route(context.config, table)
    except RefusedError:
        return None
    return None if found is None else found.policy.rename_table
