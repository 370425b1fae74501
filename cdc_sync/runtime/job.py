"""The job: the batch function behind the Structured Streaming query, which says how far to read (`stream`).

The query's checkpoint lasts as long as the query. What was done stands in the targets' own commits and nowhere else, so
there is nothing in a checkpoint that could be lost or contradict them.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import islice

from pyspark import inheritable_thread_target
from structlog import get_logger

from cdc_sync.core.model.lease import Pulse
from cdc_sync.core.model.offsets import Ends
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.table.dividing import is_to_be_divided
from cdc_sync.errors import CdcSyncError, TransientError
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.between_batches import (
    follow_drop,
    follow_partitioning,
    go_on_without,
    is_tired_of_waiting,
    is_told_dropped,
    take_over,
)
from cdc_sync.runtime.commands import Asked
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.dead_letters import let_go_of_old
from cdc_sync.runtime.executor import Executor
from cdc_sync.runtime.maintenance import MaintenanceSchedule
from cdc_sync.runtime.stream import TURN_SECONDS
from cdc_sync.runtime.tables import Tables
from cdc_sync.runtime.topic import TopicSync
from cdc_sync.sources.records import Offsets
from cdc_sync.spark.session import activate

_REMEMBERED_SECONDS = 600.0
_UNREAD = 20
"""Topics that a pulse names."""
"""Well below what any topic keeps its records for."""


class SyncJob:
    """All tables of one pipeline; `process` is called by one thread at a time."""

    def __init__(self, context: Context, *, executor: type[Executor] = Executor, takes_known: bool = True) -> None:
        """Begin without any table; for the rest see `TableActor`."""
        self._context = context
        self.tables = Tables(context, executor=executor, takes_known=takes_known)
        self._topics: dict[str, TopicSync] = {}
        self.lock = threading.Lock()
        self.batches = 0
        self._batch_began: float | None = None
        self._batch_ended: float | None = None
        self._ends: dict[tuple[str, int], int] = {}
        self._running: dict[str, Future[None]] = {}
        self._late: set[str] = set()
        """Topics that take longer than their turn; the others go on without them."""
        self._passed_over: set[str] = set()
        """Topics that had no turn in a batch, for they still ran."""
        self._asked = Asked(context, self.tables, self._elsewhere)
        self._schedule = MaintenanceSchedule(context)
        self._remembered = time.monotonic()

    def process(self, ends: Ends, *, turn: float | None = None) -> None:
        """Bring all tables to the given ends; topics in parallel.

        Args:
            ends: of partitions, as far as they are to be read.
            turn: how many seconds the topics get; one that takes longer goes on beside the next batches, and is not
                waited for. By default all are.

        Raises:
            TransientError: if Kafka or the stores are away; everything done so far stands.
        """
        with self.lock:
            self._batch_began = time.time()
            self._ends |= {place: max(end, self._ends.get(place, 0)) for place, end in ends.items()}
            self._context.evidence.refresh()
            self._context.catalogue.refresh()
            wanted = {topic for topic, _ in ends}
            self._passed_over = (self._passed_over - wanted) | (wanted & self._running.keys())
            topics = sorted(wanted - self._running.keys())
            for topic in topics:
                self._topics.setdefault(topic, TopicSync(self._context, self.tables, topic))
            kafka = self._context.kafka
            kafka.fetch_ahead([place for topic in topics for place in self._topics[topic].first_looks(ends)])
            try:
                self._advance_all(topics, ends, turn)
            finally:
                kafka.fetch_ahead(())
                self._batch_began, self._batch_ended = None, time.time()
            self.batches += 1
            if time.monotonic() - self._remembered > _REMEMBERED_SECONDS:
                self.tidy()

    def pulse(self) -> Pulse:
        """Return what the job does now, for those who look at it from outside."""
        unread = dict(islice(self.unread().items(), _UNREAD))
        return Pulse(
            batches=self.batches,
            batch_began=self._batch_began,
            batch_ended=self._batch_ended,
            doing={str(table.table): doing for table in self.tables.all() if (doing := table.now.doing) is not None},
            unread=unread,
        )

    def unread(self) -> Mapping[str, str]:
        """Return topics that cannot be read and of which no table is known that could say so, and why not."""
        return {
            topic: sync.waiting
            for topic, sync in sorted(self._topics.copy().items())
            if sync.waiting is not None and not self.tables.of(topic)
        }

    def tidy(self) -> None:
        """Do what is done once in a while, and at the end of a run."""
        self.remember()
        let_go_of_old(self._context)

    def remember(self) -> None:
        """Keep how far tables have come that nothing was written to, for who starts when that is gone from a topic."""
        self._remembered = time.monotonic()
        with ThreadPoolExecutor(self._context.config.job.parallel_tables) as pool:
            for outcome in [pool.submit(table.remember_passed) for table in self.tables.all()]:
                try:
                    outcome.result()
                except CdcSyncError as error:
                    get_logger().warning("what was looked through is not kept this time", error=str(error))

    def finish(self) -> None:
        """Wait for topics that took longer than their turn.

        Raises:
            TransientError: as `process`.
        """
        with self.lock:
            self._collect(None)

    def _advance_all(self, topics: Sequence[str], ends: Ends, turn: float | None) -> None:
        pool = ThreadPoolExecutor(max(1, self._context.config.job.parallel_tables - len(self._running)))
        work = inheritable_thread_target(self._advance)
        self._running |= {topic: pool.submit(work, topic, ends) for topic in topics}
        pool.shutdown(wait=False)
        self._collect(turn)

    def _collect(self, seconds: float | None) -> None:
        """Wait for topics, but not for longer than this; what one of them failed with is raised."""
        done, _ = wait(self._running.values(), timeout=seconds)
        late = {topic for topic, outcome in self._running.items() if outcome not in done}
        ended = [self._running.pop(topic) for topic in sorted(self._running.keys() - late)]
        for topic in sorted(late - self._late):
            get_logger().info("topic takes longer than its turn, the others go on", topic=topic)
        self._late = late
        for outcome in ended:
            outcome.result()

    def _advance(self, topic: str, ends: Ends) -> None:
        if not self._context.stop.is_set():
            activate(self._context.spark)
            self._topics[topic].advance(ends)

    def catch_up(self) -> None:
        """Give tables that lag behind what was processed another try: they failed, wait, or were decided upon."""
        with self.lock:
            self._collect(0)
        if self._running:
            self._asked.follow_while_running()
            self._catch_up_with(self._lagging())
            return  # what is done between two batches is done when nothing runs
        self._asked.follow()
        self.follow_partitionings()
        lagging = self._lagging()
        self._catch_up_with(lagging)
        self._read_again(but={topic for topic, _ in lagging})
        if self._follow_drops():
            self.catch_up()  # rows under a new name wait for the table that came there

    def _lagging(self) -> Ends:
        """Return the ends of partitions that some table, or a topic that was passed over, did not come to."""
        found = {
            place: end
            for place, end in self._ends.items()
            for table in self.tables.of(place[0])
            if table.state.stop is None and (table.state.next_offset(*place) or 0) < end
        }
        waiting = {topic for topic, sync in self._topics.items() if sync.waiting is not None} | self._passed_over
        found |= {place: end for place, end in self._ends.items() if place[0] in waiting}
        return {place: end for place, end in found.items() if place[0] not in self._running}

    def _catch_up_with(self, lagging: Ends) -> None:
        if lagging:
            self.process(lagging, turn=TURN_SECONDS)

    def follow_partitionings(self) -> None:
        """Partition targets as configured that are not, between two batches."""
        for table in self.tables.all():
            if is_to_be_divided(table.state):
                self._elsewhere(table, partial(follow_partitioning, table))

    def maintain(self) -> None:
        """Maintain the table whose turn it is, if it is any's, between two batches and when nothing runs."""
        if self._running:
            return
        table = self._schedule.next(self.tables.all())
        if table is not None:
            self._elsewhere(table, partial(self._schedule.maintain, table))

    def _read_again(self, but: Set[str]) -> None:
        """Look again at tables that could not be read, but for those of topics that were looked at just now."""
        looked_at = {table.table for topic in but for table in self.tables.of(topic)}
        for table in self.tables.all():
            if table.state.is_unread and table.table not in looked_at:
                self._elsewhere(table, partial(self.tables.read_again, table))

    def _follow_drops(self) -> bool:
        """Take up drops and renames, which no event shows; return whether a table came under its new name."""
        try:
            self._context.evidence.refresh()
        except TransientError as error:
            get_logger().warning("evidence is not there, asked again", error=str(error))
            return False
        for table in self.tables.all():
            if is_told_dropped(table):
                self._elsewhere(table, partial(follow_drop, table, self._looked_at()))
        has_come = self._follow_renames()
        if has_come:
            self._follow_drops()  # a table may only have passed under a name
        return has_come

    def _follow_renames(self) -> bool:
        """Go on with tables under their new names; return whether one came there just now."""
        tables = {table.table: table for table in self.tables.all()}
        has_come = False
        for table in tables.values():
            end = table.state.renamed_to
            found = None if end is None or end.renamed_to is None else self.tables.add(end.renamed_to, topics=())
            if end is not None and found is not None and (found.table not in tables or found.state.lacks(end)):
                self._elsewhere(found, partial(take_over, found))
                has_come |= not found.state.lacks(end)
            other = table.state.waits_for
            if other is not None and not self._is_seen(other) and is_tired_of_waiting(table):
                self._elsewhere(table, partial(go_on_without, table, other))
        return has_come

    def _is_seen(self, table: TableId) -> bool:
        return any(known.table == table and known.state.history is not None for known in self.tables.all())

    def _looked_at(self) -> Ends:
        """Return how far each partition was looked through, as far as that is known."""
        stuck = {topic for topic, sync in self._topics.items() if sync.waiting is not None}
        found = {place: end for place, end in self._ends.items() if place[0] not in stuck}
        for table in self.tables.all():
            for topic, partitions in (table.state.progress.offsets if table.state.progress else {}).items():
                for partition, offset in partitions.items():
                    found.setdefault((topic, partition), offset)
        return found

    def _elsewhere(self, table: TableActor, work: Callable[[], None]) -> None:
        """Work on a table between two batches, in a thread of its own.

        Java calls back on the connection of the thread that called it, which PySpark closes when a stream starts later.
        """

        def alone() -> None:
            activate(self._context.spark)
            try:
                with table.lock:
                    work()
            except TransientError:
                raise
            except Exception as error:  # one table's failure is its own
                table.fail(error)

        with self.lock, ThreadPoolExecutor(1) as pool:
            pool.submit(inheritable_thread_target(alone)).result()

    @property
    def waits(self) -> bool:
        """Whether a table stands before a change that the evidence does not tell of yet, or a topic is not done."""
        if self._running or self._passed_over:
            return True
        tables = {table.table: table for table in self.tables.all()}

        def is_stuck(table: TableActor) -> bool:
            """Whether a table stands behind another one that does not go on by itself."""
            seen = {table.table}
            while table.state.waits_for is not None and table.state.waits_for not in seen:
                other = tables.get(table.state.waits_for)
                if other is None:
                    return False  # it is not waited for for ever
                if other.state.stop is not None or other.state.failure is not None:
                    return True
                table = other
                seen.add(table.table)
            return False

        waiting = (table for table in tables.values() if table.state.wait is not None and table.state.stop is None)
        return any(not is_stuck(table) for table in waiting)

    def check_topics(self, ends: Offsets) -> None:
        """Pause tables that cannot go on where they stand in their topics, for no batch comes without new records.

        Args:
            ends: of every topic there is.
        """
        beginnings = self._context.kafka.beginnings(ends)
        odd = {
            (topic, partition): end
            for topic, partitions in ends.items()
            for partition, end in partitions.items()
            for table in self.tables.of(topic)
            if table.state.stop is None
            and (known := table.state.next_offset(topic, partition)) is not None
            and not beginnings.get(topic, {}).get(partition, 0) <= known <= end
        }
        if odd:
            self.process(odd)

    def start_offsets(self, beginnings: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
        """Return where the stream begins: the first offset of each partition that some table has not read."""
        starts: dict[str, dict[str, int]] = {}
        for topic, partitions in beginnings.items():
            tables = self.tables.of(topic)
            starts[topic] = {}
            for partition, beginning in partitions.items():
                known = [table.state.next_offset(topic, partition) or beginning for table in tables]
                starts[topic][str(partition)] = max(beginning, min(known, default=beginning))
        return starts

    def other_records(self) -> Mapping[str, int]:
        """Count the records that carry no rows, by kind."""
        total: Counter[str] = Counter()
        for topic in self._topics.values():
            total.update(topic.other)
        return dict(sorted(total.items()))
