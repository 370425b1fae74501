"""The topics in which a source tells of its DDL, read by the driver itself, up to where they are now."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from structlog import get_logger

from cdc_sync.config.sources import Evidence
from cdc_sync.core.debezium.schema_book import SchemaBook
from cdc_sync.core.lineage.column_log import ColumnLog, Unread
from cdc_sync.core.lineage.ddl_log import DdlLog
from cdc_sync.core.lineage.ddl_records import schema_change
from cdc_sync.core.lineage.messages import MessageLog, logical_message
from cdc_sync.core.lineage.renames import ToldRename, renames
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.errors import TransientError, WireError
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.sources.records import Record
from cdc_sync.sources.samples import read_sample

_REPORTED = 20
"""Statements of one reading that are logged one by one."""


@dataclass(slots=True)
class _Topic:
    """How far one topic was read; `id` tells whether it is still the same."""

    name: str
    id: str | None
    builder: DdlLog | MessageLog
    next: dict[int, int]
    log: ColumnLog


class EvidenceTopics:
    """All evidence topics of a pipeline. Thread-safe."""

    def __init__(self, config: Evidence, kafka: KafkaClient, book: SchemaBook) -> None:
        """Prepare; nothing is read before the first `refresh`.

        Args:
            config: which topics there are.
            kafka: reads them.
            book: knows how their records are to be read.
        """
        self._kafka = kafka
        self._book = book
        self._lock = threading.Lock()
        self._topics: dict[str, _Topic] = {}
        self._kinds: dict[str, Literal["ddl", "message"]] = {
            **dict.fromkeys(config.messages, "message"),
            **dict.fromkeys(config.schema_changes, "ddl"),
        }
        self._logs: tuple[ColumnLog, ...] = ()
        self._renames: tuple[ToldRename, ...] = ()

    @property
    def logs(self) -> tuple[ColumnLog, ...]:
        """What was read so far, one log for each topic."""
        return self._logs

    @property
    def renames(self) -> tuple[ToldRename, ...]:
        """What they say of tables that got another name."""
        return self._renames

    def refresh(self) -> None:
        """Read what came since the last time.

        Raises:
            KafkaUnavailable: if Kafka stays away through the bounded retries.
            RegistryUnavailable: if a record's schema is not known and the registry does not answer.
        """
        if not self._kinds:
            return
        with self._lock:
            ends = self._kafka.ends(self._kinds)
            news = [name for name in sorted(self._kinds) if self._has_news(name, ends.get(name, {}))]
            if not news:
                return
            beginnings = self._kafka.beginnings(news)
            ids = self._kafka.topic_ids(tuple(ends.keys() & set(news)))
            for name in news:
                partitions = ends.get(name, {})  # none while it does not exist
                topic = self._topics.get(name)
                if topic is None or topic.id != ids.get(name):
                    topic = self._topics[name] = _opened(name, self._kinds[name], ids.get(name))
                if self._read(topic, partitions, beginnings.get(name, {})):
                    known = len(topic.log.unread)
                    topic.log = topic.builder.log()
                    _report(name, topic.log.unread[known:])
            self._logs = tuple(self._topics[name].log for name in self._kinds)
            self._renames = tuple(renames(self._logs))

    def _has_news(self, name: str, ends: Mapping[int, int]) -> bool:
        return name not in self._topics or self._topics[name].next != ends

    def _read(self, topic: _Topic, ends: Mapping[int, int], beginnings: Mapping[int, int]) -> bool:
        """Read one topic to its end; return whether there was anything."""
        found = False
        for partition, end in sorted(ends.items()):
            known = topic.next.get(partition)
            start = max(beginnings.get(partition, 0), known or 0)
            if known is not None and start > known:
                _gap(topic)  # deleted before it was read
                found = True
            for begin, upto, records in self._kafka.chunks(topic.name, partition, start, end):
                self._take(topic, records, begin, upto)
                found = True
            topic.next[partition] = end
        return found

    def _take(self, topic: _Topic, records: Sequence[Record], start: int, end: int) -> None:
        """Add a range's records; where some are missing, they may have been compacted away."""
        may_be_lost = len(records) < end - start and self._kafka.is_compacted(topic.name)
        expected = start
        for record in records:
            if may_be_lost and record.offset != expected:
                _gap(topic)
            self._add(topic, record)
            expected = record.offset + 1
        if may_be_lost and expected != end:
            _gap(topic)

    def _add(self, topic: _Topic, record: Record) -> None:
        if record.value is None:
            return
        at = KafkaPosition(topic=record.topic, partition=record.partition, offset=record.offset)
        try:
            payload = read_sample(self._book, record).payload
            if isinstance(topic.builder, DdlLog):
                topic.builder.add(schema_change(payload, at))
            else:
                topic.builder.add(logical_message(payload, at))
        except WireError as error:
            get_logger().warning("record of an evidence topic cannot be read", at=str(at), error=str(error))
        except TransientError:
            raise
        except Exception as error:
            # Whoever writes to the topic must not stop the job; what the record should have said is missing.
            get_logger().error(
                "record of an evidence topic cannot be read", at=str(at), error=repr(error), exc_info=error
            )
            _gap(topic)
            _gap(topic)


def _report(topic: str, unread: Sequence[Unread]) -> None:
    for item in unread[:_REPORTED]:
        tables = ", ".join(map(str, item.tables)) or None
        get_logger().warning(
            "statement not understood",
            topic=topic,
            tables=tables,
            text=item.text,
            why=item.reason,
            at=str(item.position),
        )
    if len(unread) > _REPORTED:
        get_logger().warning("more statements not understood", topic=topic, count=len(unread) - _REPORTED)


def _gap(topic: _Topic) -> None:
    """Let a replay know that something is missing; messages tell of whole tables, so theirs are right all the same."""
    if isinstance(topic.builder, DdlLog):
        topic.builder.gap()


def _opened(name: str, kind: Literal["ddl", "message"], id_: str | None) -> _Topic:
    builder = DdlLog() if kind == "ddl" else MessageLog()
    return _Topic(name=name, id=id_, builder=builder, next={}, log=builder.log())
