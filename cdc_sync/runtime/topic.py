"""One topic: which tables are in it, what else is in it, and how far each table has to read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from structlog import get_logger

from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.offsets import Ends, OffsetRange, narrowed, within_bytes
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.planning.stops import Pause
from cdc_sync.errors import CdcSyncError, RegistryUnavailable, TransientError
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.between_batches import take_over
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.observe import reached_before, survey_with
from cdc_sync.runtime.other_records import OtherRecords
from cdc_sync.runtime.tables import Tables
from cdc_sync.runtime.transactions import WholeTransactions
from cdc_sync.sources.records import Place
from cdc_sync.spark.observe import Survey

_SHARED = Pause(
    code=Code.TOPIC_SHARED,
    reason="flattened events of several tables share this topic, and a delete does not say whose it is",
    remedy="give each table a topic of its own, or do not flatten the events",
)


_LONG, _SAMPLES, _SIZES_SECONDS = 2_000, 5, 60.0
"""From so many offsets on more than one record tells how large they are; how many do, and for how long it counts."""
_FASTER = 4
"""How many times more offsets each step reads than the one before."""


class TopicSync:
    """Brings the tables of one topic to given offsets. One thread at a time."""

    def __init__(self, context: Context, tables: Tables, topic: str) -> None:
        self._context = context
        self._tables = tables
        self._topic = topic
        # Up to where everything in the topic is accounted for; None until it is worked out from the tables.
        self._accounted: dict[int, int] = {}
        self._failed: set[TableId] = set()
        self._limit = context.first_step
        self._sizes: dict[int, tuple[float | None, float]] = {}
        """How large a partition's records are, in bytes, and until when that is taken for true."""
        self._others = OtherRecords(context, topic)
        self._whole = WholeTransactions(context, topic)
        self.waiting: str | None = None
        """Why the topic stands although no table of it is paused; it is tried again. None if it does not."""

    @property
    def other(self) -> Mapping[str, int]:
        """How many records carried no rows, by kind."""
        return self._others.counts

    def advance(self, ends: Ends) -> None:
        """Bring every table of the topic that can go on to the ends, in steps of bounded size."""
        try:
            self._advance(ends)
            self.waiting = None
        except RegistryUnavailable as error:
            self._wait(error)  # only this topic needs a schema that was never seen
        except TransientError:
            raise
        except Exception as error:
            self._wait(error)

    def _wait(self, error: Exception) -> None:
        """What no table alone is the cause of stops this topic; the others go on."""
        if self.waiting is None:
            trace = None if isinstance(error, CdcSyncError) else error
            get_logger().error("topic waits", topic=self._topic, error=str(error), exc_info=trace)
        self.waiting = str(error)
        for table in self._tables.of(self._topic):
            if table.state.stop is None:
                table.fail(error)

    def _advance(self, ends: Ends) -> None:
        if not self._behind(ends):
            return
        most = self._context.config.job.max_offsets_per_batch
        self._failed.clear()
        while not self._context.stop.is_set():
            beginnings = self._context.kafka.beginnings([self._topic]).get(self._topic, {})
            active = self._active(beginnings)
            step = self._step(ends, beginnings, active, self._limit)
            if self._context.config.job.whole_transactions:
                step = self._whole(step, one_table=len(self._tables.of(self._topic)) < 2)
            if not step:
                for table in active:
                    table.recovered()  # a commit whose reply was lost leaves nothing to do
                return
            if not self._advance_known(step, active):
                self._advance_surveyed(step, active)
            self._limit = min(self._limit * _FASTER, most)

    def first_looks(self, ends: Ends) -> list[Place]:
        """Return the places of the records that `advance` will look at first: the last of what a known table reads."""
        tables = self._tables.of(self._topic)
        if len(tables) != 1 or tables[0].state.stop is not None:
            return []
        return [(self._topic, partition, end - 1) for partition, end in self._behind(ends).items() if end]

    def _behind(self, ends: Ends) -> Mapping[int, int]:
        """Return the ends, by partition, that someone has yet to read up to, or that are before what someone has read.

        A topic that ends before what was read may be another one of the same name. Costs no call to Kafka, for most
        topics of a batch have nothing new.
        """
        waiting = [table for table in self._tables.of(self._topic) if table.state.stop is None]
        return {
            partition: end
            for (topic, partition), end in ends.items()
            if topic == self._topic
            and (
                self._accounted.get(partition, -1) < end
                or any((table.state.next_offset(topic, partition) or 0) != end for table in waiting)
            )
        }

    def _active(self, beginnings: Mapping[int, int]) -> tuple[TableActor, ...]:
        return tuple(
            table
            for table in self._tables.of(self._topic)
            if table.table not in self._failed and self._ready(table) and table.has_all(self._topic, beginnings)
        )

    def _ready(self, table: TableActor) -> bool:
        try:
            with table.lock:  # events of a table may be in several topics
                return table.is_ready(self._topic)
        except TransientError:
            raise
        except Exception as error:
            self._fail(table, error)
            return False

    def _step(
        self, ends: Ends, beginnings: Mapping[int, int], active: Sequence[TableActor], limit: int
    ) -> tuple[OffsetRange, ...]:
        """Return what to look at next: from the first offset that anyone has not seen.

        Where a partition is new to a table, the others are read further than the ends, if need be, and then that one.
        """
        found = []
        for partition, end in sorted(self._with_awaited(ends, active).items()):
            readers = [table for table in active if not table.awaits(self._topic, partition, end)]
            if active and not readers:
                continue
            beginning = beginnings.get(partition, 0)
            accounted = self._accounted.get(partition)
            starts = [
                (beginning if (known := table.state.next_offset(self._topic, partition)) is None else known)
                for table in readers
            ]
            if accounted is None:
                accounted = min(starts, default=beginning)
                self._accounted[partition] = accounted
            start = max(beginning, min([accounted, *starts]))
            if start < end:
                end = min(end, start + limit)
                found.append(OffsetRange(topic=self._topic, partition=partition, start=start, end=end))
        return within_bytes(found, self._record_bytes(found), self._context.config.job.max_bytes_per_batch)

    def _record_bytes(self, ranges: Iterable[OffsetRange]) -> Mapping[int, float]:
        """Return how large records are in ranges that may be too large, by partition.

        Of a long one some records tell, once in a while; of a short one the last, which is looked at anyway.
        """
        config = self._context.config
        found: dict[int, float] = {}
        for item in ranges:
            if item.size * config.limits.max_message_bytes > config.job.max_bytes_per_batch:
                size = self._typical_bytes(item) if item.size > _LONG else self._context.kafka.record_bytes(item, 1)
                if size is not None:
                    found[item.partition] = size
        return found

    def _typical_bytes(self, item: OffsetRange) -> float | None:
        """Return how large the records of a long range are, as it was found within the last minute."""
        now = time.monotonic()
        size, until = self._sizes.get(item.partition, (None, now))
        if until <= now:
            size = self._context.kafka.record_bytes(item, _SAMPLES)
            self._sizes[item.partition] = size, now + _SIZES_SECONDS
        return size

    def _with_awaited(self, ends: Ends, active: Sequence[TableActor]) -> Mapping[int, int]:
        found = {partition: end for (topic, partition), end in ends.items() if topic == self._topic}
        for table in active:
            for partition, end in tuple(found.items()):
                for other, offset in table.awaits(self._topic, partition, end).items():
                    found[other] = max(offset, found.get(other, 0))
        return found

    def _advance_known(self, step: tuple[OffsetRange, ...], active: Sequence[TableActor]) -> bool:
        """Try without looking: worth it when the topic has one table and its newest records look familiar."""
        if len(active) != 1 or len(self._tables.of(self._topic)) != 1:
            return False
        table = active[0]
        if (
            not table.may_take_known
            or any(self._is_read_in_part(item, table) for item in step)
            or not self._familiar(step, table)
        ):
            return False
        try:
            with table.lock:
                written = table.advance_known(step)
        except TransientError:
            raise
        except Exception as error:
            self._fail(table, error)
            return True
        if written:
            table.recovered()
            self._account(step)
        return written

    def _is_read_in_part(self, item: OffsetRange, table: TableActor) -> bool:
        """Whether the beginning of a range was looked through, or is in the table, which another job may write too."""
        held = table.state.next_offset(item.topic, item.partition)
        return max(self._accounted.get(item.partition, 0), held or 0) > item.start

    def _familiar(self, step: Sequence[OffsetRange], table: TableActor) -> bool:
        """Whether the last record of each range has a schema of the head."""
        for item in step:
            for offset in range(item.end - 1, max(item.start, item.end - 4) - 1, -1):
                record = self._context.kafka.peek(item.topic, item.partition, offset)
                if record is not None and record.value is not None:
                    if not table.knows(self._context.book.digest_of(record.key, record.value, record.headers)):
                        return False
                    break
        return True

    def _advance_surveyed(self, step: tuple[OffsetRange, ...], active: Sequence[TableActor]) -> None:
        accounted = {(self._topic, partition): offset for partition, offset in self._accounted.items()}
        fresh = narrowed(step, starts=accounted)
        found = self._others.without_strangers(fresh, self._survey(step, active))
        self._others.account(fresh, found)
        keys = self._others.without_damaged_keys(step, found.stretches, self._tables.of(self._topic))
        found = replace(found, stretches=keys.stretches)
        by_table: dict[TableId, list[Stretch]] = {}
        for stretch in found.stretches:
            by_table.setdefault(stretch.table, []).append(stretch)
        shared = self._is_shared(found, by_table)
        for table_id in sorted({*by_table, *(table.table for table in active)}):
            if self._context.stop.is_set():
                return  # the rest is read again
            table = self._tables.add(table_id, topics=(self._topic,))
            if table is None:
                self._others.counts["change of a table that no rule matches"] += 1
                continue
            if table.table in self._failed or not table.check_topic(self._topic):
                continue
            if shared:
                table.stop(_SHARED)
                continue
            self._advance_table(table, step, by_table.get(table_id, []), keys.ends.get(table_id, {}))
        self._account(step)

    def _is_shared(self, found: Survey, by_table: Mapping[TableId, Sequence[Stretch]]) -> bool:
        """Whether flattened events of several tables are mixed: a delete that is a key alone is then nobody's."""
        if len({*by_table, *(table.table for table in self._tables.of(self._topic))}) < 2:
            return False
        known = (self._context.book.get(stretch.digest) for stretch in found.stretches)
        return any(item is not None and item.flattened is not None for item in known)

    def _survey(self, step: tuple[OffsetRange, ...], active: Sequence[TableActor]) -> Survey:
        """Survey a step; on several partitions look ahead, for an older schema may come first in another one."""
        ranges = step
        if any(table.must_rebuild_history for table in active):
            ranges = tuple(replace(item, start=0) for item in step)
        now = self._context.kafka.ends([self._topic]).get(self._topic, {})
        found = self._survey_of(ranges, step, active, is_all=len(now) == 1)
        if len(now) > 1 and (found.falls or self._holds_news(found)):
            found = self._survey_of(self._ahead(ranges, now), step, active)
        return found

    def _survey_of(
        self,
        ranges: tuple[OffsetRange, ...],
        step: tuple[OffsetRange, ...],
        active: Sequence[TableActor],
        *,
        is_all: bool = True,
    ) -> Survey:
        context = self._context
        ranges = _existing(context, ranges)
        records = context.read(ranges)
        cuts = {table.table: table.cuts for table in active}
        ends = {(item.topic, item.partition): item.end for item in step}
        before = reached_before(context, {(item.topic, item.partition): item.start for item in ranges}, cuts)
        with context.codegen.of_rows(sum(item.size for item in ranges)):
            return survey_with(context, records, ends, cuts, before, is_all=is_all)

    def _holds_news(self, found: Survey) -> bool:
        """Whether a table has more than one schema here or one that is not its head's, or was truncated."""
        if any(stretch.truncate for stretch in found.stretches):
            return True
        digests: dict[TableId, set[str]] = {}
        for stretch in found.stretches:
            digests.setdefault(stretch.table, set()).add(stretch.digest)
        known = {table.table: table for table in self._tables.of(self._topic)}
        return any(
            len(seen) > 1 or (table in known and not all(known[table].knows(digest) for digest in seen))
            for table, seen in digests.items()
        )

    def _ahead(self, ranges: tuple[OffsetRange, ...], now: Mapping[int, int]) -> tuple[OffsetRange, ...]:
        """Extend ranges to the present end of every partition, those with nothing to read in this step too."""
        starts = {partition: self._accounted.get(partition, end) for partition, end in now.items()}
        starts |= {item.partition: item.start for item in ranges}
        ends = dict(now) | {item.partition: max(item.end, now.get(item.partition, 0)) for item in ranges}
        return tuple(
            OffsetRange(topic=self._topic, partition=partition, start=start, end=ends[partition])
            for partition, start in sorted(starts.items())
            if start < ends[partition]
        )

    def _advance_table(
        self, table: TableActor, step: Sequence[OffsetRange], stretches: Sequence[Stretch], before: Ends
    ) -> None:
        """Bring one table on; what is behind the places that it stops before is read with the next batch."""
        starts = {item.partition: item.start for item in step}
        ends = {(item.topic, item.partition): item.end for item in step}
        try:
            with table.lock:
                ranges = narrowed(table.ranges(self._topic, ends), ends=before)
                if any(item.start < starts[item.partition] for item in ranges):
                    return  # found just now, and it has older records: the next step begins at those
                if table.state.stop is None and (ranges or stretches):
                    if table.state.is_detached:
                        take_over(table)
                    table.advance_surveyed(ranges, stretches)
                if table.state.wait is not None or before:
                    self._failed.add(table.table)  # until the next batch
            table.recovered()
        except TransientError:
            raise
        except Exception as error:
            self._fail(table, error)

    def _fail(self, table: TableActor, error: Exception) -> None:
        """One table's failure is its own: it is left out until the next batch."""
        self._failed.add(table.table)
        table.fail(error)

    def _account(self, step: Sequence[OffsetRange]) -> None:
        for item in step:
            self._accounted[item.partition] = max(item.end, self._accounted.get(item.partition, 0))


def _existing(context: Context, ranges: tuple[OffsetRange, ...]) -> tuple[OffsetRange, ...]:
    """Move starts up to the first offset that the broker still has."""
    topics = sorted({item.topic for item in ranges})
    beginnings = context.kafka.beginnings(topics)
    return tuple(
        OffsetRange(
            topic=item.topic,
            partition=item.partition,
            start=max(item.start, beginnings.get(item.topic, {}).get(item.partition, 0)),
            end=item.end,
        )
        for item in ranges
    )
