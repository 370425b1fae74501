"""One table: holds its state and lock, and brings it from what Kafka holds to what the target holds.

What happens next is decided in `core.table`, from the state and what was seen; here that is asked, answered and carried
out until nothing is left to do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from structlog import get_logger

from cdc_sync.core.lineage.coverage import Coverage
from cdc_sync.core.migration.operator_requests import Hold, RegimeAsked, Rollback, SnapshotReset
from cdc_sync.core.migration.readers import has_logs, regime_of, why_not
from cdc_sync.core.migration.routes import Join, Route
from cdc_sync.core.model.incarnations import fall, reach
from cdc_sync.core.model.offsets import Ends, OffsetRange
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.planning.resync import Resync
from cdc_sync.core.planning.stops import Pause
from cdc_sync.core.table.advance import decide, must_rebuild
from cdc_sync.core.table.checks import audited, failed, of_another_topic
from cdc_sync.core.table.loading import take_up
from cdc_sync.core.table.questions import HasAllEvents
from cdc_sync.core.table.seen import Facts, Loaded, Seen
from cdc_sync.core.table.state import TableState
from cdc_sync.core.table.status import told, with_replaced_nulls
from cdc_sync.core.table.transitions import (
    Ask,
    Become,
    Fail,
    ReleaseTarget,
    Settled,
    Step,
    TruncateTarget,
    WriteRange,
)
from cdc_sync.core.table.truncating import follow_snapshot
from cdc_sync.errors import CdcSyncError, HistoryError, TargetMoved
from cdc_sync.runtime import evidence
from cdc_sync.runtime.bounds import last_source
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.executor import Executor
from cdc_sync.runtime.observe import moment_of
from cdc_sync.runtime.observer import Observer
from cdc_sync.runtime.range_schemas import converters_to
from cdc_sync.runtime.reading import awaited, due, is_same_topic, with_all
from cdc_sync.runtime.table_files import TableFiles
from cdc_sync.targets.protocol import Target


class TableActor:
    """One source table and its target. One thread at a time works on it, under its lock.

    Attributes:
        state: all that is known of it.
        now: tells what is done of it.
        is_to_look: the operator said something that it takes up before its next step; any thread may say so.
    """

    def __init__(
        self, context: Context, route: Route, *, executor: type[Executor] = Executor, takes_known: bool = True
    ) -> None:
        """Begin with nothing known.

        Args:
            executor: what carries out what is decided.
            takes_known: records that look familiar may be written without a look at all of them.
        """
        self.lock = threading.Lock()
        self.state = TableState(route=route)
        self.is_to_look = False
        self.context = context
        self.observer = Observer(context)
        self._execute = executor(context)
        self.now = self._execute.now
        self._takes_known = takes_known
        self._files = TableFiles(context.state, route.table, context.guard)

    @property
    def table(self) -> TableId:
        """The source table."""
        return self.state.table

    @property
    def route(self) -> Route:
        """What the operator wants of it."""
        return self.state.route

    @property
    def target(self) -> Target:
        """Where the rows go; of a target that several tables share, this one's part."""
        return self.context.target

    @property
    def coverage(self) -> Coverage:
        """Since when the evidence tells of the table."""
        return self.context.coverage(self.table, self.state.history)

    @property
    def shows_other_evidence(self) -> bool:
        """Whether the status, as it was written last, says otherwise."""
        return not self._files.shows(self.state, self.coverage)

    # What is said of it.

    def become(self, state: TableState) -> None:
        """Take another state, and write down and log what is new in it."""
        before, self.state = self.state, state
        for level, event, fields in told(before, state):
            getattr(get_logger(), level)(event, table=str(self.table), **fields)
        self._files.keep(state)

    def report(self) -> None:
        """Write the table's status for `cdc-sync status`, if it says something else than the last one."""
        self.become(with_replaced_nulls(self.state))
        self._files.report(self.state, self.coverage)

    def stop(self, pause: Pause) -> None:
        """Let the table wait for a decision."""
        self.become(self.state.stopped(pause))
        self.report()

    def fail(self, error: Exception) -> None:
        """Take note that an attempt failed; the next batch tries again from what the target says."""
        before, after = self.state.failure, failed(self.state, error)
        is_ours, failure = isinstance(error, CdcSyncError), after.failure
        if failure is None or failure is before or (before is not None and failure.text == before.text):
            pass  # the same is in the log once, not with each attempt
        elif isinstance(error, TargetMoved):
            get_logger().warning("table moved", table=str(self.table), why=failure.text)
        else:
            # What nobody thought of is of use only with the place where it happened.
            trace = None if is_ours else error
            get_logger().error("table failed", table=str(self.table), error=failure.text, exc_info=trace)
        self.become(after)
        self.report()

    def recovered(self) -> None:
        """Take note that the last attempt went well."""
        if self.state.failure is not None:
            self.become(self.state.recovered())
            self.report()

    def miss(self, error: Exception) -> None:
        """Take note that something written of the table cannot be read; until it can, the table is read again.

        Raises:
            Exception: always, what went wrong.
        """
        self.become(replace(self.state, is_read=False))
        raise error

    # How it is taken up.

    def load(self) -> None:
        """Read history and target as they are now; after a start, and after anything failed.

        Raises:
            CdcSyncError: if either cannot be read, or the target was not made by this program.
        """
        context, table, name = self.context, self.table, self.route.target
        # First, for the status of a table that cannot be read keeps it; and it is no news.
        found, warnings = self._files.with_journal(self.state), self.state.journal.warnings
        self.state = replace(found, journal=replace(found.journal, warnings=warnings))
        self.become(found)  # only what is wrong with the files is news
        history = context.history.find(table)
        self.state = replace(self.state, history=history)
        self._note_began(())
        config = context.config.target
        wanted = self.route.capabilities.evolution
        regime = regime_of(config.format, config.table_properties, wanted, partitioned=True)
        reasons = ((reader, why_not(reader, regime)) for reader in self.route.readers)
        seen = Loaded(
            history=history,
            found=context.target.state(name),
            hold=context.state.requests.get(Hold, table),
            skips=context.state.requests.skipped(table),
            rollback=context.state.requests.get(Rollback, table),
            regime=context.state.requests.get(RegimeAsked, table),
            snapshot=context.state.requests.get(SnapshotReset, table),
            decisions=context.state.requests.decisions(table),
            joins=context.state.requests.all(Join, table),
            columns=self._files.columns,
            logs=has_logs(config.format, config.table_properties),
            unread_by=tuple((reader, reason) for reader, reason in reasons if reason),
            now=time.monotonic(),
        )
        while True:
            match take_up(self.state, seen):
                case Settled(state=state):
                    self.become(state)
                    break
                case Become(state=state):
                    self.become(state)
                case Fail(error=error):
                    raise error
                case step:
                    state, seen = self._execute.load(self.state, seen, step)
                    self.become(state)
        if self.state.stop is not None or self.state.requests.regime is not None:
            self.report()

    def reload_after_failure(self) -> None:
        """Read history and target again if the last attempt failed: its commit may have happened all the same."""
        if self.state.failure is not None:
            self.load()

    def begin_hour(self) -> None:
        """Count anew what may happen so often within an hour."""
        self.observer.begin_hour()
        self._execute.begin_hour()

    def go_on(self) -> None:
        """Let the table try again; it stays stopped while it cannot be read, or if what is read stops it anew."""
        before = self.state.stop
        self.load()
        stop = None if self.state.stop is before else self.state.stop
        self.state = replace(self.state, stop=stop, failure=None)
        self.report()

    # What it reads.

    def awaits(self, topic: str, partition: int, end: int) -> Mapping[int, int]:
        """Return up to where other partitions are to be read before this one is begun; see `reading.awaited`."""
        state, found = awaited(self.context, self.state, topic, partition, end)
        self.become(state)
        return found

    def ranges(self, topic: str, ends: Ends) -> tuple[OffsetRange, ...]:
        """Return what the table has not read of a topic; stops if some of it is gone from the topic."""
        state, found = due(self.context, self.state, topic, ends)
        self._take(state)
        return found

    def has_all(self, topic: str, beginnings: Mapping[int, int]) -> bool:
        """Stop if something of a topic that the table has not read is gone from it; return whether nothing is."""
        self._take(with_all(self.context, self.state, topic, beginnings))
        return self.state.stop is None

    def _take(self, state: TableState) -> None:
        """Take another state; a stop or a warning is reported."""
        is_news = (state.stop, state.journal) != (self.state.stop, self.state.journal)
        self.become(state)
        if is_news:
            self.report()

    def check_topic(self, topic: str) -> bool:
        """Stop if the topic is not the one whose offsets the target knows; return whether the table may go on."""
        if not is_same_topic(self.context, self.state, topic):
            self.become(of_another_topic(self.state, topic))
            if self.state.stop is not None:
                self.report()
        return self.state.stop is None

    def is_ready(self, topic: str) -> bool:
        """Look whether the table can go on with a topic, and take up what is due before it does."""
        if self.is_to_look:
            self.is_to_look = False
            self.go_on()
        self.reload_after_failure()
        state, findings = evidence.findings(self.context, self.state)
        self._take(audited(state, findings))
        if not self.check_topic(topic):
            return False
        self.run(follow_snapshot, Seen())
        return self.state.stop is None

    def remember_passed(self) -> None:
        """Keep what the table has only passed, for a process that finds it gone from the topic."""
        self._files.remember_passed(self.state)

    @property
    def cuts(self) -> tuple[SourcePosition, ...]:
        """The positions at which stretches of the table begin anew."""
        return evidence.cuts(self.context, self.state)

    def is_behind(self, resyncs: tuple[Resync, ...]) -> bool:
        """Whether what was asked to be read again, or how far that has come, is not in the status yet."""
        shown = self._files.status
        if resyncs != self.state.journal.resyncs:
            return True
        # Without any, marks change by writes alone, which save the status.
        return bool(resyncs) and (shown is None or self.state.marks != shown.needs_resync)

    @property
    def must_rebuild_history(self) -> bool:
        """Whether its history is to be read off the topic again, from its beginning."""
        facts = Facts()
        if self.state.is_ahead:
            facts = Facts({HasAllEvents(): self.observer.answer(self.state, Seen(), HasAllEvents())})
        return must_rebuild(self.state, facts)

    # How it goes on.

    def run(self, decide: Callable[[TableState, Seen], Step], seen: Seen) -> Settled:
        """Carry out what is decided, one step after the other, until nothing is left."""
        for _ in range(_most_steps(self.state, seen)):
            step = decide(self.state, seen)
            match step:
                case Settled(state=state):
                    self.become(state)
                    return step
                case Become(state=state):
                    self.become(state)
                case Fail(error=error):
                    raise error
                case Ask(question=question):
                    answer = self.observer.answer(self.state, seen, question)
                    seen = replace(seen, facts=seen.facts.knowing(question, answer))
                case _:
                    state, seen = self._execute(self.state, seen, step)
                    self.become(state)
                    if isinstance(step, WriteRange | TruncateTarget | ReleaseTarget):
                        self.report()
        raise HistoryError(f"Cannot sync {self.table}: its steps do not come to an end; please report this")

    def knows(self, digest: str) -> bool:
        """Whether records of this schema are rows of the head."""
        return digest in self.state.hints.current

    @property
    def may_take_known(self) -> bool:
        """Whether it is known how records of the head look, and the source told nothing else since."""
        known = self._takes_known and bool(self.state.hints.current)
        return known and not evidence.is_told(self.context, self.state)

    def advance_known(self, ranges: tuple[OffsetRange, ...]) -> bool:
        """Write ranges that probably hold nothing new.

        Returns:
            False if they do hold something new; nothing was written then.
        """
        history = self.state.history
        assert history is not None
        if any(self._may_begin_anew(item) for item in ranges):
            return False
        converters = converters_to(self.context, self.state, history, self.state.hints.current)
        with self.context.codegen.of_rows(self._rows_with(ranges)):
            step = WriteRange(ranges=ranges, history=history)
            written = self._execute.write(self.state, step, converters, exact=False)
        if written is None:
            return False
        self.become(written)
        self.report()
        return True

    def _may_begin_anew(self, item: OffsetRange) -> bool:
        """Whether the source's log may have begun anew within a range, as its last event and the one before it tell."""
        place, began = (item.topic, item.partition), self.context.began.get(self.table, ())
        last = last_source(self.context, item)
        before = self.state.cursor.last.get(place)
        if before is None:
            before = last_source(self.context, replace(item, start=0, end=item.start))
        if last is None:
            return False
        cursor = self.state.cursor
        self.become(replace(self.state, cursor=replace(cursor, last={**cursor.last, place: last})))
        reached = None if before is None else reach((moment_of(before),), began)
        return fall(reached, moment_of(last), began) is not None

    def _note_began(self, stretches: Sequence[Stretch]) -> None:
        """Let everybody know when the source's log began anew, as the history or a survey tells."""
        known = () if self.state.history is None else self.state.history.began
        began = max((known, *(stretch.began for stretch in stretches)), key=len)
        if began:
            self.context.began[self.table] = began
        else:
            self.context.began.pop(self.table, None)

    def advance_surveyed(self, ranges: tuple[OffsetRange, ...], stretches: Sequence[Stretch]) -> None:
        """Plan for the stretches, which cover at least the ranges, then migrate and write."""
        with self.context.codegen.of_rows(self._rows_with(ranges)):
            self._note_began(stretches)
            self.run(decide, Seen.of(ranges, stretches))
        self.report()

    def _rows_with(self, ranges: tuple[OffsetRange, ...]) -> int | None:
        """Return how many rows the target has at most after ranges are written to it, None if that is not known."""
        rows = self.state.target.rows
        return None if rows is None else rows + sum(item.size for item in ranges)

    def plan_only(self, stretches: Sequence[Stretch], *, to_the_end: bool = False) -> None:
        """Record the versions that stretches lead to, and touch no target; at the end, that the table was dropped."""
        wait = self.state.wait
        if self.state.history is None or (wait is not None and wait.table is not None):
            self.state = replace(self.state, history=self.context.history.find(self.table))
        self._note_began(stretches)
        self.run(decide, Seen(stretches=tuple(stretches), replaying=True, to_the_end=to_the_end))


def _most_steps(state: TableState, seen: Seen) -> int:
    """Return a bound that no run reaches: each version and range takes a few steps."""
    versions = len(state.history.versions) if state.history else 0
    return 1000 + 30 * (versions + len(seen.stretches) + len(seen.all_ranges))
