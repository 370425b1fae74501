"""What the source itself tells of one table: when it has to be looked at, waited for, or came too late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from structlog import get_logger

from cdc_sync.core.history.history import History
from cdc_sync.core.lineage.audit import Joined, Split, audit, unlogged_behind
from cdc_sync.core.lineage.catalogue_proof import refuted
from cdc_sync.core.lineage.column_log import Unlogged, Unread
from cdc_sync.core.lineage.continuity import Compared
from cdc_sync.core.lineage.kept import Kept
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.deadline import Patience
from cdc_sync.core.planning.next_version import moment_of
from cdc_sync.core.planning.observation import Sighting, Stretch
from cdc_sync.core.planning.plan import TablePlan, in_time, is_later, plan_table
from cdc_sync.runtime.bounds import position_before
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.followed import name_changes

_UNREAD = 3
"""Statements that `status` shows of one table."""


class TableEvidence:
    """The evidence topics as one table sees them. One thread at a time."""

    def __init__(self, context: Context, route: Route) -> None:
        self._context = context
        self.route = route
        self._table = route.table
        self._patience = Patience(context.config.evidence.wait.total_seconds())
        # Structures up to here were compared with an event behind them; known to this process only.
        self._settled: SourcePosition | None = None
        self._audited = 0
        self.strangers: set[TableId] = set()
        """Former names of the table under which no row ever came."""

    def cuts(self, history: History | None) -> tuple[SourcePosition, ...]:
        """Return the positions at which stretches of the table begin anew."""
        if history is None:
            return self._context.told_behind(self._table, None)
        head = history.head.position
        return (head, *self._context.told_behind(self._table, head))

    def is_new(self, history: History) -> bool:
        """Whether the source told something for which no event was looked at yet."""
        head = history.head.position
        known = head if self._settled is None else max(head, self._settled)
        return bool(self._context.told_behind(self._table, known))

    def settle(self, stretches: Sequence[Stretch]) -> None:
        """Remember which structures have an event behind them, after all stretches were planned for."""
        if stretches:
            last = max(stretch.position for stretch in stretches)
            behind = self._context.told_behind(self._table, self._settled)
            self._settled = max((at for at in behind if at < last), default=self._settled)

    def plan(
        self, history: History | None, sightings: Sequence[Sighting], *, patient: bool, to_the_end: bool = False
    ) -> TablePlan:
        """Plan with the evidence; where it stays away too long, without."""
        values = self._values(history, sightings)
        kept = self._kept(history, sightings)
        planned = partial(
            plan_table,
            history,
            sightings,
            self.route,
            self.route.capabilities,
            logs=self._context.evidence.logs,
            kept=kept,
            values=values,
            names=name_changes(self._context, self.route, history, self.strangers),
            coverage=self._context.coverage(self._table, history),
            to_the_end=to_the_end,
        )
        plan = planned(patient=patient)
        if plan.waiting is not None and plan.waiting.table is None and self._patience.is_over(plan.waiting.kafka):
            get_logger().warning("evidence stayed away", table=str(self._table), why=plan.waiting.reason)
            plan = planned()
        for version in plan.versions:
            if version.kafka in values:
                self._context.values.keep(self._table, version.kafka, values[version.kafka])
        problem = self._context.catalogue.problem
        if problem is not None and plan.versions:
            said = f"version {plan.versions[-1].number} was made without a reading of the source's catalogue: {problem}"
            plan = replace(plan, warnings=(*plan.warnings, said))
        if plan.versions:
            former = () if history is None else history.versions
            whole = History(table=self._table, versions=(*former, *plan.versions))
            warnings = refuted(whole, plan.versions[0].number, kept, self.route.left_out)
            plan = replace(plan, warnings=(*plan.warnings, *warnings))
        return plan

    def _kept(self, history: History | None, sightings: Sequence[Sighting]) -> Kept:
        """Return the readings of the catalogue that these events are judged by."""
        head = None if history is None else history.head.position
        later = (sighting for sighting in sightings if head is None or sighting.position >= head)
        moments = [moment for sighting in later if (moment := moment_of(sighting)) is not None]
        return self._context.catalogue.prepare(self._table, head, moments)

    def _values(self, history: History | None, sightings: Sequence[Sighting]) -> Mapping[KafkaPosition, Compared]:
        """Return what rows say about the columns that these events show under other names."""
        if self.route.append:
            return {}
        head = None if history is None else history.head
        later = [
            item
            for item in sorted(sightings, key=lambda item: (item.position, item.kafka))
            if not item.truncate and (head is None or is_later(item.position, item.kafka, head))
        ]
        columns = () if head is None else tuple(column.name for column in head.schema.live)
        return self._context.values.prepare(self._table, columns, later)

    def findings(self, history: History, progress: Progress | None) -> tuple[Split | Joined | Unread | Unlogged, ...]:
        """Return what evidence that came since the last time says about what was done without it.

        The last statements about the table that were not understood are part of it, and all that changed rows of it
        without an event for each behind its first event.
        """
        logs = self._context.evidence.logs
        told = sum(len(log.of(self._table)) + len(log.unread) + len(log.unlogged) for log in logs)
        if told == self._audited:
            return ()
        self._audited = told
        written = None if progress is None else self._last_written(progress)
        unread = [item for log in logs for item in log.unread if self._table in item.tables]
        unlogged = (item for log in logs for item in unlogged_behind(history, log))
        return (*(item for log in logs for item in audit(history, log, written)), *unread[-_UNREAD:], *unlogged)

    def in_time(self, plan: TablePlan, progress: Progress | None) -> TablePlan:
        """Stop before a version that comes too late to empty the target."""
        if progress is None or all(version.made_anew is None and version.dropped is None for version in plan.versions):
            return plan
        return in_time(plan, self._last_written(progress))

    def _last_written(self, progress: Progress) -> SourcePosition | None:
        """Return the highest position among the last events of the table that were written."""
        found = (
            position_before(self._context, self._table, topic, partition, offset)
            for topic, partitions in progress.offsets.items()
            for partition, offset in partitions.items()
        )
        return max((position for position in found if position is not None), default=None)
