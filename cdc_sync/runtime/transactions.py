"""Ranges of a topic that end where transactions of the source do."""

from __future__ import annotations

import time
from collections.abc import Mapping

from cdc_sync.core.debezium.transactions import Part, TransactionEnd, end_of, part_of, whole
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.errors import ConfigError, WireError
from cdc_sync.runtime.context import Context
from cdc_sync.sources.records import Record
from cdc_sync.sources.samples import read_sample

_WAIT_SECONDS, _LOOK_SECONDS = 1.0, 0.05
"""How long it is waited for the rest of a transaction, where nothing else is there to write."""
_CLOCKS_MS = 5_000
"""By how much the clocks of brokers and connector may differ, where it is the brokers' that say when a record came."""
_FAR = 20_000
"""Records among which an END is looked for."""


class WholeTransactions:
    """Knows where the transactions in one topic end. One thread at a time."""

    def __init__(self, context: Context, topic: str) -> None:
        self._context = context
        self._topic = topic
        self._looked: tuple[str | None, dict[int, int]] = (None, {})
        """Whose END was looked for, and up to which offset of each partition."""

    def __call__(self, step: tuple[OffsetRange, ...], *, one_table: bool) -> tuple[OffsetRange, ...]:
        """Return a step that takes no transaction apart; empty if all that is there is a part of one.

        Args:
            one_table: the topic has no events of other tables, so that what is said of a table tells of the topic.

        Raises:
            ConfigError: if the topic's events do not tell.
        """
        if not step:
            return step
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            ends = self._context.kafka.ends([self._topic]).get(self._topic, {})
            if len(ends) > 1:
                raise ConfigError(
                    f"Cannot keep transactions whole: {self._topic} has {len(ends)} partitions, and events of one "
                    "transaction may be in several; have a topic of one partition, or remove job.whole_transactions"
                )
            found = self._whole(step[0], ends.get(step[0].partition, step[0].end), one_table=one_table)
            if found is not None:
                return (found,)
            if time.monotonic() > deadline or self._context.stop.wait(_LOOK_SECONDS):
                return ()

    def _whole(self, item: OffsetRange, upto: int, *, one_table: bool) -> OffsetRange | None:
        return whole(
            item,
            max(upto, item.end),
            lambda offset: self._next_at(item.partition, offset),
            lambda part: part.transaction is None or (one_table and self._is_last(item.partition, part)),
        )

    def _next_at(self, partition: int, offset: int) -> Part | None:
        while (record := self._context.kafka.peek_from(self._topic, partition, offset)) is not None:
            offset = record.offset + 1
            if record.value is None:
                continue
            try:
                sample = read_sample(self._context.book, record)
                source = sample.source
            except WireError:
                continue  # it becomes a dead letter, or is no event
            try:
                return part_of(record.offset, source, sample.payload)
            except WireError as error:
                raise ConfigError(
                    f"Cannot keep transactions whole: {error} ({self._topic}[{partition}]@{record.offset}); set "
                    "provide.transaction.metadata=true for the connector, or remove job.whole_transactions"
                ) from error
        return None

    def _is_last(self, partition: int, part: Part) -> bool:
        """Whether an END says that the table has no more events in the transaction."""
        record = self._context.kafka.peek(self._topic, partition, part.offset)
        if record is None:
            return False  # it was there just now
        sample = read_sample(self._context.book, record)
        block = sample.payload.get("source")
        assert isinstance(block, Mapping)
        topic = f"{block.get('name')}.transaction"
        ends = self._context.kafka.ends([topic]).get(topic)
        if ends is None:
            raise ConfigError(
                f"Cannot keep transactions whole: there is no topic {topic}; leave the connector's topic.transaction "
                "as it is, let the job read it, or remove job.whole_transactions"
            )
        if self._looked[0] != part.transaction:
            # When the connector handled the event; the END came behind it.
            at = sample.payload.get("ts_ms")
            since = (at if isinstance(at, int) else sample.record.timestamp or 0) - _CLOCKS_MS
            self._looked = part.transaction, dict(self._context.kafka.since(topic, max(0, since)))
        looked = self._looked[1]
        for number, start in looked.items():
            upto = min(ends[number], start + _FAR)
            for told in self._context.kafka.read(topic, number, start, upto) if start < upto else ():
                found = self._end_in(told, sample.source.connector)
                if found is not None and found.transaction == part.transaction:
                    return part.number >= found.events_of(sample.source.table)
            looked[number] = max(start, upto)
        return False

    def _end_in(self, record: Record, connector: str) -> TransactionEnd | None:
        try:
            return None if record.value is None else end_of(connector, read_sample(self._context.book, record).payload)
        except WireError:
            return None  # it tells of no end
