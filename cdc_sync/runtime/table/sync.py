"""One table: from what Kafka holds to what the target holds, by way of observe, plan, record, migrate, write."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from structlog import get_logger

from cdc_sync.core.debezium.envelope import Source
from cdc_sync.core.debezium.schema_book import KnownSchema
from cdc_sync.core.history.history import History
from cdc_sync.core.history.revision import Version
from cdc_sync.core.lineage.audit import Joined, Split
from cdc_sync.core.lineage.column_log import Unlogged, Unread
from cdc_sync.core.migration.modes import mode_remedy
from cdc_sync.core.migration.routes import Join, Route
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.incarnations import fall, reach
from cdc_sync.core.model.offsets import Ends, OffsetRange, narrowed
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.planning.deadline import Patience
from cdc_sync.core.planning.limits import Window, too_many_versions
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.planning.plan import Refusal, TablePlan, Waiting
from cdc_sync.core.planning.replaced_nulls import noted, shown_defaults
from cdc_sync.core.planning.stops import Pause, rolled_back, too_late
from cdc_sync.core.planning.truncation import Truncate
from cdc_sync.errors import HistoryError, UnfitTarget, VersionExists
from cdc_sync.runtime.bounds import last_source
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.observe import flattened_before, moment_of, sightings_of
from cdc_sync.runtime.table.dropping import TableDropping
from cdc_sync.runtime.table.evidence import TableEvidence
from cdc_sync.runtime.write import write_range
from cdc_sync.runtime.write_plan import Outcome, WritePlan, converters_for
from cdc_sync.spark.converter import Converter
from cdc_sync.targets.protocol import Target

_RACES = 10
_LOOK_EVERY = 60.0
"""Seconds between two looks at the target's columns."""


class TableSync(TableDropping):
    """One source table and its target. One thread at a time works on it."""

    def __init__(self, context: Context, route: Route) -> None:
        super().__init__(context, route)
        self.lock = threading.Lock()
        self._appends_failed = 0
        # At most so many rows are in the target, None if nobody knows.
        self._rows: int | None = None
        self._is_read = False
        self._is_of_another_kind = False
        self._keeps_unchanged = False
        self._next_look = 0.0
        self._numbers = False
        # The last event that was read of each partition.
        self._last: dict[tuple[str, int], Source] = {}
        self._versions = Window(context.config.limits.max_versions_per_hour)
        self._evidence = TableEvidence(context, route)
        self._patience = Patience(context.config.evidence.wait.total_seconds())

    def load(self) -> None:
        """Read history and target as they are now; after a start, and after anything failed.

        Raises:
            CdcSyncError: if either cannot be read, or the target was not made by this program.
        """
        self._is_read = False
        self._load_counts()  # first, for the status of a table that cannot be read keeps them
        self.history = self._context.history.find(self.table)
        self._note_began(())
        found = self._context.target.state(self.route.target)
        if found is not None:
            self._check_ours(found)
        state = self._in_regime(self._claim(self._rolled_back(found)))
        self._stamped = state.version if state else None
        self._rows = state.rows if state else 0
        self._take_partitioning(state)
        decisions = self._context.state.decisions(self.table)
        joins = tuple(join for join in self._context.state.joins(self.table) if join.after < (self._stamped or 0))
        self.progress = state.progress if state else None
        self._current = frozenset()
        self._passed.clear()
        self._last.clear()
        self._begin_behind_end(is_there=state is not None)
        # Last, for a decision counts as heard only once the table goes on by it.
        self._evidence.route = self.route = replace(self.route, decisions=decisions, joins=joins)
        self._told_before = {}
        self._is_read = True
        if state is not None:
            mode = mode_remedy(state.mode, self._mode)
            other = self._other_regime(state) if mode is None else Pause(reason=mode[0], remedy=mode[1])
            self._is_of_another_kind = other is not None
            stop = other or self._look_at_columns(state)
            self._next_look = time.monotonic() + _LOOK_EVERY
            if stop is not None:
                self.refuse(stop)
        if self.rollback is not None:
            self.refuse(rolled_back(self.table, self.rollback.version))
        if self.regime_asked is not None:
            self.save_status()  # it says what that waits for

    def follow_rollback(self) -> None:
        """Undo a rewrite if the operator asks for it, and go on if no longer."""
        asked = self._context.state.rollback(self.table)
        if asked == self.rollback:
            return
        self._go_on()
        get_logger().info("table goes on" if asked is None else "table rolled back", table=str(self.table))

    def follow_regime(self) -> None:
        """Rewrite the target in the configured regime if the operator asks for it by now, and go on."""
        if self._context.state.regime(self.table) != self.regime_asked:
            self._go_on()

    @property
    def is_decided(self) -> bool:
        """Whether the operator decided something since the table was looked at."""
        return self._context.state.decisions(self.table) != self.route.decisions

    def go_on_if_decided(self) -> None:
        """Let a paused table try again if the operator decided something since it stopped; another one takes note."""
        if not self.is_decided:
            return
        if self.pause is None:
            self._take_note()
        else:
            self._go_on()
            if self.pause is None:
                get_logger().info("table goes on", table=str(self.table), reason="the operator decided")

    def _take_note(self) -> None:
        """Take up what was said of columns that were kept; where it stands in the history is part of it."""
        head = 0 if self.history is None else self.history.head.number
        for item in self._context.state.decisions(self.table):
            if item not in self.route.decisions and item.after is not None and item.after < head:
                self._context.state.decide(replace(item, after=head))
        decisions = self._context.state.decisions(self.table)
        self._evidence.route = self.route = replace(self.route, decisions=decisions)

    def _go_on(self) -> None:
        """Let the table try again; it stays paused while it cannot be read, or if what is read pauses it anew."""
        before = self.pause
        self.load()
        if self.pause is before:
            self.pause = None
        self.failing = None
        self.save_status()

    def join_columns(self, join: Join) -> bool:
        """Carry out what the operator said after the fact; return whether it is done. A paused table then goes on."""
        self.reload_after_failure()
        if self.history is None or self._is_of_another_kind:
            return False
        done = self.take_up(join)
        if done and self.pause is not None:
            self._go_on()
        return done

    @property
    def target(self) -> Target:
        """Where the rows go; of a target that several tables share, this one's part."""
        return self._context.target

    def reload_after_failure(self) -> None:
        """Read history and target again if the last attempt failed: its commit may have happened all the same."""
        if self.failing is not None:
            self.load()

    @property
    def is_unread(self) -> bool:
        """Whether the table fails for its history or target could not be read, the last time that was tried."""
        return self.failing is not None and self.pause is None and not self._is_read

    def miss(self, error: Exception) -> None:
        """Take note that something written of the table cannot be read; until it can, the table is read again.

        Raises:
            Exception: always, what went wrong.
        """
        self._is_read = False
        raise error

    @property
    def must_rebuild_history(self) -> bool:
        """Whether the target holds rows of versions that the history does not have: it is read off the topic again.

        Another pipeline name, a lost state folder, or an older one that was brought back. What an older one lacks can
        be told only if the topics still have all events; else versions that were several would be taken for one.
        """
        if self.progress is None:
            return False
        return self.history is None or (self._is_ahead and self._has_all_events())

    def _has_all_events(self) -> bool:
        """Whether nothing is gone from the beginnings of the topics that the target was filled from."""
        topics = self.progress.offsets if self.progress is not None else {}
        beginnings = self._context.kafka.beginnings(topics)
        return not any(offset for found in beginnings.values() for offset in found.values())

    def _check_ours(self, state: TargetState) -> None:
        if state.version is None:
            raise UnfitTarget(
                f"Cannot sync {self.table}: the target {self.route.target} exists and was not made by cdc_sync",
                "route the table elsewhere or move the target away, and start the job again",
            )
        if state.union is not None:
            raise UnfitTarget(
                f"Cannot sync {self.table}: several source tables share the target {self.route.target}",
                "give its rule merge, or route the table elsewhere, and start the job again",
            )

    def knows(self, digest: str) -> bool:
        """Whether records of this schema are rows of the head."""
        return digest in self._current

    @property
    def has_key(self) -> bool:
        """Whether its rows are known to be found by a key."""
        return self.history is not None and bool(self.history.head.schema.primary_key)

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
        if any(self._may_begin_anew(item) for item in ranges):
            return False
        plan = self._write_plan(ranges, exact=False, converters=self._converters_for(self._current))
        with self._context.codegen.of_rows(self._rows_with(ranges)):
            return self._write(plan)

    def _may_begin_anew(self, item: OffsetRange) -> bool:
        """Whether the source's log may have begun anew within a range, as its last event and the one before it tell."""
        place, began = (item.topic, item.partition), self._context.began.get(self.table, ())
        last = last_source(self._context, item)
        before = self._last.get(place)
        if before is None:
            before = last_source(self._context, replace(item, start=0, end=item.start))
        if last is None:
            return False
        self._last[place] = last
        reached = None if before is None else reach((moment_of(before),), began)
        return fall(reached, moment_of(last), began) is not None

    def _note_began(self, stretches: Sequence[Stretch]) -> None:
        """Let everybody know when the source's log began anew, as the history or a survey tells."""
        known = () if self.history is None else self.history.began
        began = max((known, *(stretch.began for stretch in stretches)), key=len)
        if began:
            self._context.began[self.table] = began
        else:
            self._context.began.pop(self.table, None)

    def advance_surveyed(self, ranges: tuple[OffsetRange, ...], stretches: Sequence[Stretch]) -> None:
        """Plan for the stretches, which cover at least the ranges, then migrate and write."""
        with self._context.codegen.of_rows(self._rows_with(ranges)):
            self._advance_surveyed(ranges, stretches)

    def _rows_with(self, ranges: tuple[OffsetRange, ...]) -> int | None:
        """Return how many rows the target has at most after ranges are written to it, None if that is not known."""
        return None if self._rows is None else self._rows + sum(item.size for item in ranges)

    def _advance_surveyed(self, ranges: tuple[OffsetRange, ...], stretches: Sequence[Stretch]) -> None:
        if self._is_homeless:
            self.take_over()
        if self._is_homeless or self.pause is not None:
            return
        due = self._due()
        if due is not None:
            self._let_go(due)
            return  # the next step goes on behind it
        if self.history is not None and self._is_ahead and not self.must_rebuild_history:
            raise self._too_short(self.history)
        stop = self._plan_and_record(stretches)
        if stop is not None:
            ranges = self._before(ranges, stop)
        else:
            self._evidence.settle(stretches)
        truncate = self._first_truncate(ranges, stretches)
        if truncate is not None:
            self._advance_to(truncate, ranges, stretches)
            return  # the next step goes on behind it, with what was planned for here
        rebuilding = not ranges and self._is_ahead
        if self.is_gone:
            self._warn_of_late_events(stretches)
        elif self.history is not None and not rebuilding:
            if stretches:
                self._mark_current(stretches)
            self._warn_of_late_events(stretches)
            ranges = self._write_before_changes(ranges, stretches)
            if self.pause is None:
                self._migrate()
            if self.pause is not None:
                return
            if self._write_surveyed(ranges, stretches):
                ranges = ()
        if stop is None and not rebuilding:
            self._passed |= {(item.topic, item.partition): item.end for item in ranges}
        if isinstance(stop, Refusal) and self.pause is None:
            self.refuse(Pause(reason=stop.reason, remedy=stop.remedy, at=str(stop.kafka)))
        self._wait_for(stop if isinstance(stop, Waiting) else None)
        if isinstance(stop, Version) and self.pause is None:
            self._advance_to_end(stop)

    def _advance_to_end(self, end: Version) -> None:
        """Write what is left from before the source table was dropped, then end it; what follows is the next step's."""
        rest = self._rest_before(end)
        if rest:
            self.advance_surveyed(rest, self._stretches_in(rest))
        elif self.pause is None:
            self._end(end)

    def is_tired_of_waiting(self) -> bool:
        """Whether the table that this one waits for, and that was never seen, was waited for long enough."""
        return self.waits_for is not None and self._patience.is_over(self.waits_for)

    def go_on_without(self, stranger: TableId) -> None:
        """Begin as a table of its own: under its former name no row ever came."""
        get_logger().warning("table begins without its former name", table=str(self.table), former=str(stranger))
        self._evidence.strangers.add(stranger)
        self.waits_for = None

    def take_over(self) -> None:
        """Look for the target of a table that came under this name; wait for it, or pause, if it is not there."""
        self.load()
        if self._is_homeless and isinstance(self._why_homeless(), Pause):
            self.load()  # it may have been renamed between the two looks
        why = self._why_homeless() if self._is_homeless else None
        if isinstance(why, Pause):
            self.refuse(why)
        else:
            self.waiting = why
            self.waits_for = self._origin if why is not None else None
            self.save_status()

    def follow_drop(self, looked_at: Ends) -> None:
        """Take up that the source table was dropped or renamed, if all that is in its topics is read.

        Args:
            looked_at: how far every topic was looked through, whatever tables are in it.
        """
        self.reload_after_failure()
        due, told = self._due(), self._told()
        if due is not None:
            self._let_go(due)
        elif told is not None and self._has_read_all(told, looked_at):
            stop = self._plan_and_record((), to_the_end=True)
            self._wait_for(stop if isinstance(stop, Waiting) else None)
            match stop:
                case Refusal():
                    self.refuse(Pause(reason=stop.reason, remedy=stop.remedy, at=str(stop.kafka)))
                case Version():
                    self._advance_to_end(stop)
                case None if self._stamped is not None:
                    self._migrate()
                    self.save_status()
                case _:
                    pass

    def _advance_to(self, truncate: Truncate, ranges: tuple[OffsetRange, ...], stretches: Sequence[Stretch]) -> None:
        """Write what lies before a TRUNCATE, to the version in effect there, and empty the target.

        Rows behind it may have to be written before a later version retires or rewrites their columns.
        """
        history = self.history
        assert history is not None
        self.history = self._in_effect_at(truncate, history)
        try:
            left = self._write_before_changes(self._before(ranges, truncate), stretches)
            if self.pause is None:
                self._migrate()
            if self.pause is None:
                self._write_surveyed(left, stretches)
            if self.pause is None:
                self._truncate(truncate)
        finally:
            self.history = history
            self._current = frozenset()  # the target may not have the head's columns yet

    @property
    def cuts(self) -> tuple[SourcePosition, ...]:
        """The positions at which stretches of the table begin anew."""
        return self._evidence.cuts(self.history)

    @property
    def is_told(self) -> bool:
        """Whether the source told something for which no event was looked at yet."""
        return self.history is not None and self._evidence.is_new(self.history)

    def audit(self) -> None:
        """Look at evidence that came late: pause if it shows that a column was taken for another."""
        if self.history is None:
            return
        for item in self._evidence.findings(self.history, self.progress):
            match item:
                case Split(version=version, old=old, new=new):
                    self._warn(
                        f"version {version}: {old!r} and {new!r} are one column, as the source told later; "
                        f"`cdc-sync decide` with --rename {old}={new} joins them"
                    )
                case Unread(text=text, reason=reason):
                    self._warn(
                        f"a statement was not understood, so columns are told by name across it: {text} ({reason})"
                    )
                case Unlogged():
                    self.doubt_rows(item)
                case Joined(version=version, name=name, statement=statement):
                    self.refuse(too_late(version, name, statement))

    def _write_surveyed(self, ranges: tuple[OffsetRange, ...], stretches: Sequence[Stretch]) -> bool:
        """Write ranges to the head; return whether there was anything of the table in them."""
        assert self.history is not None
        shown = self._shown_in(ranges, frozenset(stretch.digest for stretch in stretches))
        mine = shown or self._for_deletes(ranges)
        converters = self._converters_for(mine, stretches)
        if not ranges or not converters:
            return False
        self._write(self._write_plan(ranges, exact=True, converters=converters))
        return True

    def _write_before_changes(
        self, ranges: tuple[OffsetRange, ...], stretches: Sequence[Stretch]
    ) -> tuple[OffsetRange, ...]:
        """Write what lies before a version that retires or rewrites columns to the one before; return what is left."""
        history = self.history
        assert history is not None
        for version in history.versions[self._first_unseen :]:
            if not self._needs_rows_before(version):
                continue
            before = self._before(ranges, version)
            self.history = History(table=self.table, versions=history.versions[: version.number - 1])
            try:
                if before:
                    self._migrate()
                    if self.pause is None:
                        self._write_surveyed(before, stretches)
            finally:
                self.history = history
            if self.pause is not None:
                return ()
            ranges = narrowed(ranges, starts={(item.topic, item.partition): item.end for item in before})
        return ranges

    def _wait_for(self, waiting: Waiting | None) -> None:
        before = self.waiting
        said = "the change at {} is not explained yet; {}" if waiting is None or waiting.table is None else "{}: {}"
        self.waiting = None if waiting is None else said.format(waiting.kafka, waiting.reason)
        self.waits_for = None if waiting is None else waiting.table
        if self.waiting != before:
            if self.waiting is not None:
                get_logger().warning("table waits for evidence", table=str(self.table), why=self.waiting)
            self.save_status()

    def _for_deletes(self, ranges: tuple[OffsetRange, ...]) -> frozenset[str]:
        """Return the schemas that tell the keys of a range without rows: of flattened events, deletes have no more."""
        if self._context.config.connector.flattened is None:
            return frozenset()
        if not self._current:
            found = (flattened_before(self._context, item) for item in ranges)
            self._current = frozenset(digest for digest in found if digest is not None)
        return self._current

    def plan_only(self, stretches: Sequence[Stretch], *, to_the_end: bool = False) -> None:
        """Record the versions that stretches lead to, and touch no target; at the end, that the table was dropped."""
        if self.history is None or self.waits_for is not None:
            self.history = self._context.history.find(self.table)
        stop = self._plan_and_record(stretches, replaying=True, to_the_end=to_the_end)
        self.waits_for = stop.table if isinstance(stop, Waiting) else None
        if isinstance(stop, Refusal):
            self.pause = Pause(reason=stop.reason, remedy=stop.remedy, at=str(stop.kafka))

    def _converters_for(self, digests: frozenset[str], stretches: Sequence[Stretch] = ()) -> tuple[Converter, ...]:
        assert self.history is not None
        logs = self._context.evidence.logs
        return converters_for(self.history, self.route, self._known(digests), stretches, logs)

    def _known(self, digests: frozenset[str]) -> list[KnownSchema]:
        found = [self._context.book.get(digest) for digest in sorted(digests)]
        return [known for known in found if known is not None and known.schema is not None]

    def _within_the_hour(self, plan: TablePlan) -> TablePlan:
        """Stop before a version for which there is no room any more."""
        granted = self._versions.take(len(plan.versions))
        if granted == len(plan.versions):
            return plan
        first, said = plan.versions[granted], too_many_versions(self._context.config.limits)
        refusal = Refusal(reason=said.reason, remedy=said.remedy, position=first.position, kafka=first.kafka)
        return replace(plan, versions=plan.versions[:granted], refusal=refusal, waiting=None)

    def _plan_and_record(
        self, stretches: Sequence[Stretch], *, replaying: bool = False, to_the_end: bool = False
    ) -> Refusal | Waiting | Version | None:
        """Record the versions the stretches lead to; a lost race reloads and plans again, a bounded number of times.

        Returns:
            What stops the table; a version is one that ends its target, and is recorded once all rows are written.
        """
        self._note_began(stretches)
        for _ in range(_RACES):
            sightings = sightings_of(self._context, self.history, self.route, stretches)
            plan = self._evidence.plan(self.history, sightings, patient=not replaying, to_the_end=to_the_end)
            plan = self._evidence.in_time(plan, self.progress)
            if not replaying:
                plan = self._within_the_limit(self._within_the_hour(plan))
            end = None if replaying else next((version for version in plan.versions if version.ends_target), None)
            if end is not None:
                plan = replace(plan, versions=plan.versions[: plan.versions.index(end)])
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
                    if version.renamed_to is not None:
                        self._record_arrival(version)  # a replay; a run does it with the target
            self._keep(plan.warnings)
            return end or plan.refusal or plan.waiting
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
            progress=self.reached,
            held=self.progress,
            may_append=self._appends_failed < 3,
            keep_unchanged=self._keeps_unchanged,
            numbers=self._numbers,
            columns_since=self._columns_since(self.history),
        )

    def _has_its_columns(self) -> bool:
        """Look once in a while whether somebody altered the target, and pause if so; writes tell only of some of it."""
        if time.monotonic() < self._next_look:
            return True
        self._next_look = time.monotonic() + _LOOK_EVERY
        state = self._context.target.state(self.route.target)
        stop = None if state is None else self._look_at_columns(state)
        if stop is not None:
            self.refuse(stop)
        return stop is None

    def _write(self, plan: WritePlan) -> bool:
        if not self._has_its_columns():
            return True
        outcome: Outcome = write_range(self._context, plan)
        if outcome.progress is None:
            return False
        self.progress = outcome.progress
        self._rows = self._rows_with(plan.ranges)
        self._appends_failed = 0 if outcome.appended else self._appends_failed + (1 if outcome.tried_append else 0)
        self._keeps_unchanged = self._keeps_unchanged or outcome.left_out
        self._numbers = self._numbers or outcome.numbers
        if outcome.in_doubt:
            self._doubts = self._state.doubts(self.table)
        if outcome.unknown_values:
            self._count("values unknown, NULL stored", outcome.unknown_values)
        if outcome.out_of_range:
            self._count("values out of range, NULL stored", outcome.out_of_range)
        self._replaced_nulls = noted(
            self._replaced_nulls,
            shown_defaults(plan.converters),
            replaces=outcome.replaces_null,
            version=plan.head.number,
        )
        if outcome.stop is not None:
            self.refuse(outcome.stop)
        self.save_status()
        return True
