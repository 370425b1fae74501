"""The driver's own Kafka client: metadata and single records, never the stream."""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from statistics import mean
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import ConfigResource, OffsetSpec  # type: ignore[attr-defined]

from cdc_sync.config.sources import Kafka
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.sources.brokers import CLIENT_LOG, Brokers, RetryError
from cdc_sync.sources.records import Offsets, Place, Record, Sent, answers_of, near, record_of

_AT_ONCE = 5_000
"""Offsets that `chunks` reads at a time."""
_PEEKED, _PEEKED_SECONDS = 256, 1.0
_AHEAD_BYTES, _AHEAD_SECONDS = 64_000_000, 1.0
_MOST_BYTES = 1_000_000_000
"""The most that librdkafka can be told to send as one record: what is too large the brokers say."""


def _new_group() -> str:
    return f"cdc-sync-{uuid.uuid4()}"


class KafkaClient:
    """Questions to the brokers, each repeated a bounded number of times.

    Every method raises `KafkaUnavailable` when no attempt succeeded, and `ConfigError` when the brokers refuse the
    log-in or a setting. Thread-safe.
    """

    def __init__(self, config: Kafka, *, attempts: int | None = None, stop: threading.Event | None = None) -> None:
        """Prepare a client; nothing is sent before the first question.

        Args:
            config: where the brokers are and how to log in.
            attempts: overrides `config.attempts`, for callers that would rather not wait.
            stop: where it is set, no question is asked again.
        """
        self._brokers = Brokers(config, attempts=attempts, stop=stop)
        self._admin = self._brokers.admin
        self._timeout = self._brokers.timeout
        self._peeked: dict[Place, tuple[float, Record]] = {}
        self._ahead: dict[Place, Record] = {}
        self._topic_ids: dict[str, tuple[float, str]] = {}
        self._reader_group = _new_group()

    @property
    def away_since(self) -> float | None:
        """When a question that had no answer was asked, if none had one since; by a clock that never goes back."""
        return self._brokers.away_since

    def close(self) -> None:
        """Let outstanding callbacks run; the connections end with the client."""
        self._admin.poll(0)

    def topics(self) -> Mapping[str, int]:
        """Return every topic and its number of partitions."""
        metadata = self._brokers.asked("list topics", lambda: self._admin.list_topics(timeout=self._timeout))
        return {name: len(topic.partitions) for name, topic in sorted(metadata.topics.items()) if topic.error is None}

    def matching_topics(self, config: Kafka) -> tuple[str, ...]:
        """Return the topics a pipeline reads that exist now, ordered by name."""
        return config.matching(self.topics())

    def ends(self, topics: Collection[str]) -> Offsets:
        """Return the offset the next readable record of each partition will have.

        Records of transactions that are still open are not readable. Topics that do not exist are left out.
        """
        return self._offsets("ask for end offsets", topics, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def beginnings(self, topics: Collection[str]) -> Offsets:
        """Return the first offset of each partition that is still there, as `ends`."""
        return self._offsets("ask for first offsets", topics, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def since(self, topic: str, at: int) -> Mapping[int, int]:
        """Return the offset of each partition's first record that is as old as this, or newer; where it ends else.

        Args:
            at: in milliseconds since the epoch.
        """
        found = self._offsets("ask for offsets by time", [topic], OffsetSpec.for_timestamp(at)).get(topic, {})
        ends = self.ends([topic]).get(topic, {})
        return {partition: offset if offset >= 0 else ends[partition] for partition, offset in found.items()}

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the brokers' ids of topics; a topic that was deleted and made again has another id.

        Remembered as what `peek` finds is; confluent-kafka 2.16.1 never lets go of an id that it has told.
        """
        now, before = time.monotonic(), self._topic_ids
        asked = sorted(name for name in topics if name not in before or before[name][0] <= now)

        def ask() -> dict[str, str]:
            answers = answers_of(self._admin.describe_topics(TopicCollection(asked), request_timeout=self._timeout))
            return {name: str(answer.topic_id) for name, answer in answers.items()}

        found = self._brokers.asked("describe topics", ask) if asked else {}
        if any(name in before and before[name][1] != id_ for name, id_ in found.items()):
            self._reader_group = _new_group()
        before.update((name, (now + _PEEKED_SECONDS, id_)) for name, id_ in found.items())
        return found | {name: before[name][1] for name in topics if name not in asked}

    @property
    def reader_group(self) -> str:
        """The consumer group under whose name Spark's tasks read, and keep their consumers from read to read.

        Nothing is committed to it. A consumer may hold records it fetched ahead: where a topic was seen to be another
        one of the same name, the group is a new one, so that none of the old topic's records is taken for its own.
        """
        return self._reader_group

    def topic_id(self, topic: str) -> str | None:
        """Return the brokers' id of one topic, None if it does not exist."""
        return self.topic_ids([topic]).get(topic)

    def peek(self, topic: str, partition: int, offset: int) -> Record | None:
        """Return the record at exactly this offset, None if there is none (deleted, compacted, not written yet).

        What was found is remembered for a moment, for one batch asks for the same record from several places.
        """
        record = self.peek_from(topic, partition, offset)
        return record if record is not None and record.offset == offset else None

    def peek_from(self, topic: str, partition: int, offset: int) -> Record | None:
        """Return the first record at or behind an offset, as `peek`; None if there is none yet."""
        place = (topic, partition, offset)
        ahead = self._ahead.get(place)
        if ahead is not None:
            return ahead
        found = self._peeked.get(place)
        if found is not None and found[0] > time.monotonic():
            return found[1]
        record = self._peek(topic, partition, offset)
        if record is not None:
            if len(self._peeked) >= _PEEKED:
                self._peeked.clear()
            self._peeked[place] = (time.monotonic() + _PEEKED_SECONDS, record)
        return record

    def fetch_ahead(self, places: Collection[Place]) -> None:
        """Fetch many records at once for `peek`, which would take milliseconds for each; forgets those of before.

        What does not come in a moment is left to `peek`, which also knows what is wrong.

        Args:
            places: one in each partition.
        """
        self._ahead = {}
        if len(places) < 2:
            return
        missing = {(topic, partition): offset for topic, partition, offset in places}
        found: dict[Place, Record] = {}
        size = 0
        deadline = time.monotonic() + min(_AHEAD_SECONDS, self._timeout)
        # Whatever goes wrong here `peek` meets again, and tells.
        with suppress(KafkaException), self._reading(places, self._peek_settings()) as consumer:
            while missing and size < _AHEAD_BYTES and time.monotonic() < deadline:
                for message in consumer.consume(len(missing), 0.05):
                    offset = missing.pop((str(message.topic()), int(message.partition() or 0)), None)
                    if offset is not None and message.error() is None and message.offset() == offset:
                        record = record_of(message)
                        found[record.topic, record.partition, record.offset] = record
                        size += len(record.value or b"")
        self._ahead = found

    def record_bytes(self, item: OffsetRange, samples: int) -> float | None:
        """Return how large records of a range are: the mean of some, None if there are none where it was looked.

        Args:
            samples: how many to look at, the last one among them.
        """
        offsets = sorted({item.end - 1 - item.size * number // samples for number in range(samples)})
        found = [record for offset in offsets if (record := self.peek(item.topic, item.partition, offset))]
        return mean(len(record.key or b"") + len(record.value or b"") for record in found) if found else None

    def read(self, topic: str, partition: int, start: int, end: int) -> tuple[Record, ...]:
        """Return the records of a range that are there, in order; meant for topics of few and small records."""
        return self._read(topic, partition, start, end)

    def pick(self, topic: str, partition: int, offsets: Sequence[int]) -> Iterator[Record]:
        """Return the records at these offsets that are there; offsets and records in order.

        Those that lie near each other are read at once, with what lies between them.
        """
        wanted = frozenset(offsets)
        for start, end in near(offsets):
            while start < end:
                records = self._read(topic, partition, start, end, size=_AHEAD_BYTES, wanted=wanted)
                yield from records
                start = next((offset for offset in offsets if records and offset > records[-1].offset), end)

    def chunks(self, topic: str, partition: int, start: int, end: int) -> Iterator[tuple[int, int, tuple[Record, ...]]]:
        """Read a range as `read` does, some thousand offsets at a time: start, end and records of each part."""
        while start < end:
            upto = min(end, start + _AT_ONCE)
            yield start, upto, self.read(topic, partition, start, upto)
            start = upto

    def send(self, topic: str, records: Iterable[Sent]) -> None:
        """Write records and wait until the brokers have them; where a reply is lost, they may be there twice.

        One that is larger than the brokers take is written without key and value, for its headers say what it was.
        """
        self._brokers.asked(f"write to {topic}", lambda: self._sent(topic, list(records)))

    def _sent(self, topic: str, records: Sequence[Sent]) -> None:
        errors: list[KafkaError] = []
        too_large: list[Sent] = []
        left = len(records)

        def told(record: Sent, error: KafkaError | None, _: Message) -> None:
            nonlocal left
            left -= 1
            if error is None:
                return
            if error.code() == KafkaError.MSG_SIZE_TOO_LARGE and (record.key or record.value):
                too_large.append(replace(record, key=None, value=None))
            else:
                errors.append(error)

        settings = {**self._brokers.settings, "message.max.bytes": _MOST_BYTES}
        producer = self._brokers.made(lambda: Producer(settings, logger=CLIENT_LOG))
        for record in records:
            while True:
                with suppress(BufferError):  # the queue is full: it is waited for brokers that take some of it
                    producer.produce(
                        topic, record.value, record.key, headers=list(record.headers), on_delivery=partial(told, record)
                    )
                    break
                if not producer.poll(self._timeout):
                    raise RetryError("no reply")
            producer.poll(0)
        if producer.flush(self._timeout) or left:
            raise RetryError("no reply")
        if errors:
            raise KafkaException(errors[0])
        if too_large:
            self._sent(topic, too_large)

    def is_compacted(self, topic: str) -> bool:
        """Return whether the brokers may remove records from the middle of a topic."""
        return "compact" in self._settings_of([topic])[topic].get("cleanup.policy", "")

    def retention(self, topics: Collection[str]) -> Mapping[str, timedelta | None]:
        """Return how long the brokers keep records of topics; None where they do as long as there is room."""
        found = {name: int(settings.get("retention.ms", "-1")) for name, settings in self._settings_of(topics).items()}
        return {name: None if kept < 0 else timedelta(milliseconds=kept) for name, kept in found.items()}

    def _settings_of(self, topics: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        def ask() -> dict[str, dict[str, str]]:
            resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
            answers = answers_of(self._admin.describe_configs(resources, request_timeout=self._timeout))
            return {
                str(resource.name): {name: str(entry.value) for name, entry in answers.get(resource, {}).items()}
                for resource in resources
            }

        return self._brokers.asked(f"ask for the settings of {', '.join(sorted(topics))}", ask)

    def _read(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        *,
        size: float = math.inf,
        wanted: Container[int] | None = None,
    ) -> tuple[Record, ...]:
        """Return the first records of a range, at least one of those that are there.

        Args:
            size: so many bytes are read from the first of them on, and the record that is more than that.
            wanted: the offsets of those to return; None for all.
        """

        def ask() -> tuple[Record, ...]:
            found: list[Record] = []
            left = size
            with self._reading([(topic, partition, start)], self._read_settings()) as consumer:
                while left > 0 and (message := self._polled(consumer)) is not None:
                    offset = message.offset() or 0
                    if offset < end and (wanted is None or offset in wanted):
                        found.append(record_of(message))
                    if offset >= end - 1:
                        break
                    if found:
                        left -= len(message.value() or b"")
            return tuple(found)

        return self._brokers.asked(f"read {topic}[{partition}] from {start} to {end}", ask)

    def _peek(self, topic: str, partition: int, offset: int) -> Record | None:
        def ask() -> Message | None:
            with self._reading([(topic, partition, offset)], self._peek_settings()) as consumer:
                try:
                    return self._polled(consumer)
                except RetryError:
                    # It waits for ever for a partition that does not exist.
                    if partition < self.topics().get(topic, 0):
                        raise
                    return None

        message = self._brokers.asked(f"read {topic}[{partition}]@{offset}", ask)
        return None if message is None else record_of(message)

    @contextmanager
    def _reading(self, places: Collection[Place], settings: dict[str, Any]) -> Iterator[Consumer]:
        """Make a consumer that begins at these places: fresh, it finds them in milliseconds; used before, in a second.

        Raises:
            ConfigError: if librdkafka does not know a setting.
        """
        consumer = self._brokers.made(lambda: Consumer(settings, logger=CLIENT_LOG))
        try:
            consumer.assign([TopicPartition(*place) for place in places])
            yield consumer
        finally:
            consumer.close()

    def _polled(self, consumer: Consumer) -> Message | None:
        message = consumer.poll(self._timeout)
        if message is None:
            raise RetryError("no answer in time")
        error = message.error()
        if error is None:
            return message
        if error.code() in (
            KafkaError._PARTITION_EOF,
            KafkaError._AUTO_OFFSET_RESET,
            KafkaError.OFFSET_OUT_OF_RANGE,
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError._UNKNOWN_PARTITION,
        ):
            return None
        raise KafkaException(error)

    def _read_settings(self) -> dict[str, Any]:
        return {
            **self._brokers.settings,
            # The group never commits and never joins: librdkafka only insists that it has a name.
            "group.id": "cdc-sync-peek",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }

    def _peek_settings(self) -> dict[str, Any]:
        return {
            **self._read_settings(),
            # One record is wanted, now: no prefetching, no waiting for more.
            "queued.min.messages": 1,
            "fetch.wait.max.ms": 10,
        }

    def _offsets(self, what: str, topics: Collection[str], spec: OffsetSpec) -> Offsets:
        counts = self.topics()
        wanted = {
            TopicPartition(topic, partition): spec
            for topic in sorted(set(topics) & set(counts))
            for partition in range(counts[topic])
        }
        if not wanted:
            return {}

        def ask() -> dict[str, dict[int, int]]:
            futures = self._admin.list_offsets(
                wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self._timeout
            )
            found: dict[str, dict[int, int]] = {}
            for place, answer in answers_of(futures).items():
                found.setdefault(place.topic, {})[place.partition] = answer.offset
            return found

        return self._brokers.asked(what, ask)
