"""The driver's own Kafka client: metadata and single records, never the stream."""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

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
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec  # type: ignore[attr-defined]

from cdc_sync.config.clientnames import why_refused
from cdc_sync.config.sources import Kafka
from cdc_sync.errors import ConfigError, KafkaUnavailable
from cdc_sync.sources.records import Offsets, Place, Record, answers_of, near, record_of
from cdc_sync.sources.retry import Outage, repeated

T = TypeVar("T")

_AT_ONCE = 5_000
"""Offsets that `chunks` reads at a time."""
_PEEKED, _PEEKED_SECONDS = 256, 1.0
_AHEAD_BYTES, _AHEAD_SECONDS = 64_000_000, 1.0

_LOG = logging.getLogger("cdc_sync.librdkafka")
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False

_REFUSED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError._INVALID_ARG,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
    }
)
"""Codes that no repetition fixes."""


def _new_group() -> str:
    return f"cdc-sync-{uuid.uuid4()}"


class _RetryError(Exception):
    """A failure that may pass; never leaves this module."""


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
        self._stop = stop or threading.Event()
        self._servers = config.bootstrap_servers
        self._outage = Outage("Kafka", config.outage_timeout.total_seconds(), servers=self._servers)
        self._attempts = attempts or config.attempts
        self._timeout = config.request_timeout.total_seconds()
        self._settings = config.driver_settings
        self._refusal: KafkaError | None = None
        self._peeked: dict[Place, tuple[float, Record]] = {}
        self._ahead: dict[Place, Record] = {}
        self._topic_ids: dict[str, str] = {}
        self._reader_group = _new_group()
        self._admin = self._made(lambda: AdminClient(self._client_settings(), logger=_LOG))

    @property
    def away_since(self) -> float | None:
        """When a question that had no answer was asked, if none had one since; by a clock that never goes back."""
        return self._outage.since

    def close(self) -> None:
        """Let outstanding callbacks run; the connections end with the client."""
        self._admin.poll(0)

    def topics(self) -> Mapping[str, int]:
        """Return every topic and its number of partitions."""
        metadata = self._asked("list topics", lambda: self._admin.list_topics(timeout=self._timeout))
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

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the brokers' ids of topics; a topic that was deleted and made again has another id."""
        if not topics:
            return {}

        def ask() -> dict[str, str]:
            futures = self._admin.describe_topics(TopicCollection(sorted(topics)), request_timeout=self._timeout)
            answers = answers_of(futures)
            return {name: str(answer.topic_id) for name, answer in answers.items()}

        found = self._asked("describe topics", ask)
        if any(self._topic_ids.get(name, found[name]) != found[name] for name in found):
            self._reader_group = _new_group()
        self._topic_ids.update(found)
        return found

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

    def read(self, topic: str, partition: int, start: int, end: int) -> tuple[Record, ...]:
        """Return the records of a range that are there, in order; meant for topics of few and small records."""
        return self._read(topic, partition, start, end, math.inf)

    def pick(self, topic: str, partition: int, offsets: Sequence[int]) -> Iterator[Record]:
        """Return the records at these offsets that are there; offsets and records in order.

        Those that lie near each other are read at once, with what lies between them.
        """
        wanted = set(offsets)
        for start, end in near(offsets):
            while start < end:
                records = self._read(topic, partition, start, end, _AHEAD_BYTES)
                yield from (record for record in records if record.offset in wanted)
                start = records[-1].offset + 1 if records else end

    def chunks(self, topic: str, partition: int, start: int, end: int) -> Iterator[tuple[int, int, tuple[Record, ...]]]:
        """Read a range as `read` does, some thousand offsets at a time: start, end and records of each part."""
        while start < end:
            upto = min(end, start + _AT_ONCE)
            yield start, upto, self.read(topic, partition, start, upto)
            start = upto

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        """Write one record and wait until the brokers have it; where a reply is lost, it may be there twice."""

        def ask() -> None:
            errors: list[KafkaError | None] = []
            producer = self._made(lambda: Producer(self._client_settings(), logger=_LOG))
            producer.produce(topic, key=key, value=value, on_delivery=lambda error, _: errors.append(error))
            if producer.flush(self._timeout) or not errors:
                raise _RetryError("no reply")
            if errors[0] is not None:
                raise KafkaException(errors[0])

        self._asked(f"write to {topic}", ask)

    def is_compacted(self, topic: str) -> bool:
        """Return whether the brokers may remove records from the middle of a topic."""

        def ask() -> bool:
            resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
            answers = answers_of(self._admin.describe_configs([resource], request_timeout=self._timeout))
            policy = answers[resource]["cleanup.policy"].value if resource in answers else ""
            return "compact" in str(policy)

        return self._asked(f"ask for the settings of {topic}", ask)

    def _read(self, topic: str, partition: int, start: int, end: int, size: float) -> tuple[Record, ...]:
        """Return the first records of a range, at least one of those that are there, until they have so many bytes."""

        def ask() -> tuple[Record, ...]:
            found: list[Record] = []
            left = size
            with self._reading([(topic, partition, start)], self._read_settings()) as consumer:
                while left > 0 and (message := self._polled(consumer)) is not None:
                    record = record_of(message)
                    if record.offset >= end:
                        break
                    found.append(record)
                    left -= len(record.value or b"")
                    if record.offset == end - 1:
                        break
            return tuple(found)

        return self._asked(f"read {topic}[{partition}] from {start} to {end}", ask)

    def _peek(self, topic: str, partition: int, offset: int) -> Record | None:
        def ask() -> Message | None:
            with self._reading([(topic, partition, offset)], self._peek_settings()) as consumer:
                try:
                    return self._polled(consumer)
                except _RetryError:
                    # It waits for ever for a partition that does not exist.
                    if partition < self.topics().get(topic, 0):
                        raise
                    return None

        message = self._asked(f"read {topic}[{partition}]@{offset}", ask)
        if message is None or message.offset() != offset:
            return None
        return record_of(message)

    @contextmanager
    def _reading(self, places: Collection[Place], settings: dict[str, Any]) -> Iterator[Consumer]:
        """Make a consumer that begins at these places: fresh, it finds them in milliseconds; used before, in a second.

        Raises:
            ConfigError: if librdkafka does not know a setting.
        """
        consumer = self._made(lambda: Consumer(settings, logger=_LOG))
        try:
            consumer.assign([TopicPartition(*place) for place in places])
            yield consumer
        finally:
            consumer.close()

    def _polled(self, consumer: Consumer) -> Message | None:
        message = consumer.poll(self._timeout)
        if message is None:
            raise _RetryError("no answer in time")
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
            **self._client_settings(),
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

        return self._asked(what, ask)

    def _asked(self, what: str, ask: Callable[[], T]) -> T:
        """Ask until an answer comes, the brokers refuse, or the attempts are used up."""
        asked = time.monotonic()
        try:
            answer = repeated(
                f"Kafka: {what}",
                lambda: self._once(ask),
                on=lambda error: isinstance(error, _RetryError) and not self._stop.is_set(),
                attempts=self._attempts,
                timeout=self._outage.patience_left(),
            )
        except _RetryError as error:
            self._outage.note_silence(asked, str(error))
            raise KafkaUnavailable(
                f"Cannot {what}: no usable answer from Kafka at {self._servers!r} in {self._attempts} attempts "
                f"({error}); check that the brokers run and can be reached from here"
            ) from None
        self._outage.note_answer()
        return answer

    def _once(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except KafkaException as error:
            found: KafkaError = error.args[0]
            # A refused log-in only shows in a callback, which polling serves; the call itself just times out.
            self._admin.poll(0)
            refusal = found if found.code() in _REFUSED else self._refusal
            if refusal is not None:
                raise ConfigError(
                    f"Cannot use Kafka at {self._servers!r}: {refusal.str()}; fix the kafka section"
                ) from None
            raise _RetryError(found.str()) from None

    def _made(self, make: Callable[[], T]) -> T:
        try:
            return make()
        except KafkaException as error:
            detail = error.args[0].str()
            reason = why_refused(self._settings, detail)
            raise ConfigError(f"Cannot use kafka.properties or kafka.driver_properties: {reason}") from None

    def _client_settings(self) -> dict[str, Any]:
        return {**self._settings, "error_cb": self._on_error}

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in _REFUSED:
            self._refusal = error
