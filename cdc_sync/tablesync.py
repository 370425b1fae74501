"""One table: from what Kafka holds to what the target holds, by way of observe, plan, record, migrate, write."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from structlog import get_logger

from cdc_sync.context import Context
from cdc_sync.errors import HistoryError, TargetError, VersionExists
from cdc_sync.events import TableId
from cdc_sync.history.history import History
from cdc_sync.migrate.migration import migration
from cdc_sync.naming import Route
from cdc_sync.plan import Refusal, plan_table
from cdc_sync.progress import Progress
from cdc_sync.schema.internal import InternalSchema
from cdc_sync.schemabook import KnownSchema
from cdc_sync.sightings import sightings_of
from cdc_sync.spark.compile import Converter
from cdc_sync.spark.observe import Stretch, first_offsets_from
from cdc_sync.spark.source import OffsetRange, read_ranges
from cdc_sync.state import TableStatus
from cdc_sync.stops import Pause
from cdc_sync.targets.base import TargetState
from cdc_sync.write import Outcome, WritePlan, converters_for, write_range

Ends = Mapping[tuple[str, int], int]
"""(topic, partition) -> offset after the last one to consume."""


_RACES = 10


class TableSync:
    """One source table and its target. One thread at a time works on it."""

    def __init__(self, context: Context, route: Route) -> None:
        self._context = context
        self.route = route
        self.lock = threading.Lock()
        self.pause: Pause | None = None
        self.history: History | None = None
        self.progress: Progress | None = None
        self._stamped: int | None = None
        self._current: frozenset[str] = frozenset()
        # Read without finding anything of this table; not worth a commit, so known to this process only.
        self._passed: dict[tuple[str, int], int] = {}
        self._unread: dict[str, dict[int, int]] = {}
        self._appends_failed = 0
        self._warnings: tuple[str, ...] = ()
        self._failing: str | None = None

    @property
    def table(self) -> TableId:
        """The source table."""
        return self.route.table

    def load(self) -> None:
        """Read history and target as they are now; after a start, and after anything failed.

        Raises:
            CdcSyncError: if either cannot be read, or the target was not made by this program.
        """
        self.history = self._context.history.find(self.table)
        state = self._context.target.state(self.route.target)
        self._stamped = state.version if state else None
        self.progress = state.progress if state else None
        self._current = frozenset()
        self._passed.clear()
        if state is not None:
            self._check_ours(state)

    def reload_after_failure(self) -> None:
        """Read history and target again if the last attempt failed: its commit may have happened all the same."""
        if self._failing is not None:
            self.load()

    @property
    def must_rebuild_history(self) -> bool:
        """Whether the target holds rows but the history is empty: another pipeline name, or a lost state folder."""
        return self.history is None and self.progress is not None

    def _check_ours(self, state: TargetState) -> None:
        if state.version is None:
            raise TargetError(
                f"Cannot sync {self.table}: the target {self.route.target} exists and was not made by cdc_sync; "
                "route the table elsewhere or move the target away"
            )

    def next_offset(self, topic: str, partition: int) -> int | None:
        """Return where the table goes on in a partition, None if it holds nothing of it."""
        committed = self.progress.next_offset(topic, partition) if self.progress else None
        passed = self._passed.get((topic, partition))
        return max((offset for offset in (committed, passed) if offset is not None), default=None)

    def ranges(self, topic: str, ends: Ends) -> tuple[OffsetRange, ...]:
        """Return what the table has not read of a topic; pauses if some of it is gone from the topic."""
        wanted = [place for place in ends if place[0] == topic]
        beginnings = self._context.kafka.beginnings([topic]).get(topic, {})
        found = []
        for place in sorted(wanted):
            known = self.next_offset(*place)
            beginning = beginnings.get(place[1], 0)
            start = beginning if known is None else known
            end = ends[place]
            if known is None:
                self._unread.setdefault(topic, {})[place[1]] = start
            if start < beginning < ends[place]:
                self._pause(
                    Pause(
                        reason=f"offsets {start} to {beginning - 1} of {topic}[{place[1]}] were deleted from the topic "
                        "before they were read",
                        remedy="snapshot the table again into a new target; raise the topic's retention",
                    )
                )
                return ()
            if start < end:
                found.append(OffsetRange(topic=topic, partition=place[1], start=start, end=end))
        return tuple(found)

    def check_topic(self, topic: str) -> bool:
        """Pause if the topic is not the one whose offsets the target knows; return whether the table may go on."""
        known = self.progress.topic_ids.get(topic) if self.progress else None
        if known is not None and known != self._context.kafka.topic_ids([topic]).get(topic, known):
            self._pause(
                Pause(
                    reason=f"topic {topic} was deleted and made again, so its offsets no longer mean what they did",
                    remedy="snapshot the table again into a new target",
                )
            )
        return self.pause is None

    def knows(self, digest: str) -> bool:
        """Whether records of this schema are rows of the head."""
        return digest in self._current

    @property
    def knows_any(self) -> bool:
        """Whether it is known how records of the head look."""
        return bool(self._current)

    def advance_known(self, ranges: tuple[OffsetRange, ...]) -> bool:
        """Write ranges that probably hold nothing new.

        Returns:
            False if they do hold something new; nothing was written then.
        """
        assert self.history is not None
        plan = self._write_plan(
            ranges, exact=False, converters=converters_for(self.history, self._known(self._current))
        )
        return self._write(plan)

    def advance_surveyed(self, ranges: tuple[OffsetRange, ...], stretches: Sequence[Stretch]) -> None:
        """Plan for the stretches, which cover at least the ranges, then migrate and write."""
        refusal = self._plan_and_record(stretches)
        if refusal is not None:
            ranges = self._before(ranges, refusal)
        rebuilding = not ranges and self._stamped is not None and self._stamped > self._head_number()
        if self.history is not None and not rebuilding:
            if stretches:
                self._mark_current(stretches)
            self._migrate()
            mine = frozenset(stretch.digest for stretch in stretches)
            converters = converters_for(self.history, self._known(mine), stretches)
            if ranges and converters:
                self._write(self._write_plan(ranges, exact=True, converters=converters))
                ranges = ()
        if refusal is None and not rebuilding:
            self._passed |= {(item.topic, item.partition): item.end for item in ranges}
        if refusal is not None and self.pause is None:
            self._pause(Pause(reason=refusal.reason, remedy=refusal.remedy, at=str(refusal.kafka)))

    def _head_number(self) -> int:
        return self.history.head.number if self.history else 0

    def plan_only(self, stretches: Sequence[Stretch]) -> None:
        """Record the versions that stretches lead to, and touch no target."""
        if self.history is None:
            self.history = self._context.history.find(self.table)
        refusal = self._plan_and_record(stretches)
        if refusal is not None:
            self.pause = Pause(reason=refusal.reason, remedy=refusal.remedy, at=str(refusal.kafka))

    def _known(self, digests: frozenset[str]) -> list[KnownSchema]:
        found = [self._context.book.get(digest) for digest in sorted(digests)]
        return [known for known in found if known is not None and known.schema is not None]

    def _plan_and_record(self, stretches: Sequence[Stretch]) -> Refusal | None:
        """Record the versions the stretches lead to; a lost race reloads and plans again, a bounded number of times."""
        for _ in range(_RACES):
            sightings = sightings_of(self._context, self.history, stretches)
            plan = plan_table(
                self.history,
                sightings,
                self.route,
                self._context.target.capabilities,
                max_columns=self._context.config.limits.max_columns,
            )
            try:
                for version in plan.versions:
                    self._context.history.append(version)
            except VersionExists:
                self.history = self._context.history.find(self.table)
                continue
            if plan.versions:
                former = self.history.versions if self.history else ()
                self.history = History(table=self.table, versions=(*former, *plan.versions))
                for version in plan.versions:
                    get_logger().info("schema version recorded", table=str(self.table), version=version.number)
            self._warnings = tuple(dict.fromkeys((*self._warnings, *plan.warnings)))
            return plan.refusal
        raise HistoryError(
            f"Cannot record the schema of {self.table}: another writer keeps recording versions; "
            "run one job per pipeline"
        )

    def _mark_current(self, stretches: Sequence[Stretch]) -> None:
        """Remember which schema texts mean the head: those of events at or after its first one."""
        assert self.history is not None
        head = self.history.head
        now = frozenset(stretch.digest for stretch in stretches if stretch.position >= head.position)
        self._current = frozenset(known.digest for known in self._known(now) if known.fingerprint == head.fingerprint)

    def _before(self, ranges: tuple[OffsetRange, ...], refusal: Refusal) -> tuple[OffsetRange, ...]:
        """Cut ranges where the refused change begins, in every partition."""
        context = self._context
        cuts: dict[tuple[str, int], int] = {}
        if refusal.position.parts and len(ranges) > 1:
            records = read_ranges(context.spark, context.config.kafka, ranges)
            cuts = first_offsets_from(records, self.table, refusal.position)
        own = (refusal.kafka.topic, refusal.kafka.partition)
        cuts[own] = refusal.kafka.offset
        cut = (replace(item, end=min(item.end, cuts.get((item.topic, item.partition), item.end))) for item in ranges)
        return tuple(item for item in cut if item.size)

    def _migrate(self) -> None:
        assert self.history is not None
        head = self.history.head
        if self._stamped is not None and self._stamped > head.number:
            raise HistoryError(
                f"Cannot sync {self.table}: the target is stamped with version {self._stamped}, the history ends at "
                f"{head.number}; restore the pipeline's state folder"
            )
        stamped = self.history.version(self._stamped) if self._stamped is not None else None
        rows_at = self.history.version(self.progress.version) if self.progress else None
        steps = migration(stamped, rows_at, head)
        if not steps.steps:
            return
        progress = replace(self.progress or Progress(version=head.number), version=head.number)
        self._context.target.migrate(self.route.target, steps, progress)
        self._stamped = head.number
        if self.progress is not None:
            self.progress = progress
        get_logger().info("target migrated", table=str(self.table), version=head.number)

    def _write_plan(
        self, ranges: tuple[OffsetRange, ...], *, exact: bool, converters: tuple[Converter, ...]
    ) -> WritePlan:
        assert self.history is not None
        return WritePlan(
            table=self.table,
            route=self.route,
            head=self.history.head,
            ranges=ranges,
            converters=converters,
            exact=exact,
            progress=self.progress,
            may_append=self._appends_failed < 3,
        )

    def _write(self, plan: WritePlan) -> bool:
        outcome: Outcome = write_range(self._context, plan)
        if outcome.progress is None:
            return False
        self.progress = outcome.progress
        self._appends_failed = 0 if outcome.appended else self._appends_failed + (1 if outcome.tried_append else 0)
        if outcome.replaces_null:
            self._warn_of_replaced_null(plan.head.schema)
        if outcome.stop is not None:
            self._pause(outcome.stop)
        self.save_status()
        return True

    def _warn_of_replaced_null(self, schema: InternalSchema) -> None:
        names = [column.name for column in schema.live if column.optional and column.default is not None]
        if names:
            self._warn(
                f"a NULL in {', '.join(names)} arrives as the column's default; set "
                "value.converter.replace.null.with.default=false in the connector, or policy.ambiguous_null: pause"
            )

    def refuse(self, pause: Pause) -> None:
        """Pause from outside."""
        self._pause(pause)

    def _pause(self, pause: Pause) -> None:
        if self.pause is None:
            get_logger().warning(
                "table paused", table=str(self.table), reason=pause.reason, remedy=pause.remedy, at=pause.at
            )
        self.pause = pause
        self.save_status()

    def fail(self, error: Exception) -> None:
        """Note that an attempt failed; the next batch tries again from what the target says."""
        self._failing = str(error)
        get_logger().error("table failed", table=str(self.table), error=str(error))
        self.save_status()

    def recovered(self) -> None:
        """Note that the last attempt went well."""
        if self._failing is not None:
            self._failing = None
            self.save_status()

    def _warn(self, text: str) -> None:
        """Keep a warning for `status`; the same text once."""
        if text not in self._warnings:
            self._warnings = (*self._warnings, text)
            get_logger().warning("warning", table=str(self.table), warning=text)

    def save_status(self) -> None:
        """Write the table's status for `cdc-sync status`."""
        state: Literal["running", "paused", "failing"] = (
            "paused" if self.pause else "failing" if self._failing else "running"
        )
        self._context.state.save(
            TableStatus(
                table=self.table,
                target=str(self.route.target),
                state=state,
                version=self.history.head.number if self.history else None,
                reason=self.pause.reason if self.pause else self._failing,
                remedy=self.pause.remedy if self.pause else None,
                paused_at=self.pause.at if self.pause else None,
                # Without progress the topics are kept all the same: a later run must find the table there again.
                offsets=self.progress.offsets if self.progress else self._unread,
                warnings=self._warnings,
            )
        )
