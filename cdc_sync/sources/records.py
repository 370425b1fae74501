"""Records of Kafka and places of them, as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message

FAR_BACK = 1000
"""Records: other tables of the topic may lie between."""

K = TypeVar("K")
T = TypeVar("T")

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""topic -> partition -> offset."""
Place: TypeAlias = tuple[str, int, int]
"""Topic, partition and offset of a record."""
_NEAR = 500
"""So many records are read sooner than a reading begins anew, unless they are large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One Kafka record; `timestamp` in milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A record that is to be written."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def record_of(message: Message) -> Record:
    """Return a message as a value."""
    kind, timestamp = message.timestamp()
    return Record(
        topic=str(message.topic()),
        partition=int(message.partition() or 0),
        offset=int(message.offset() or 0),
        timestamp=timestamp if kind else None,
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=tuple((str(header[0]), _bytes(header[1])) for header in message.headers() or ()),
    )


def _bytes(data: bytes | str | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def near(offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return the ranges, ends exclusive, in which offsets lie near each other; they are in order."""
    start = last = None
    for offset in offsets:
        if start is None or last is None:
            start = offset
        elif offset - last > _NEAR:
            yield start, last + 1
            start = offset
        last = offset
    if start is not None and last is not None:
        yield start, last + 1


def unread(offsets: Offsets, beginnings: Offsets, ends: Offsets) -> list[Place]:
    """Return the first record of each partition that a table has not read, where there is any.

    The arguments are those of `lag`. It is below the partition's beginning where the topic does not hold it any more.
    """
    return [place for place, end in _next_places(offsets, beginnings, ends) if place[2] < end]


def lag(offsets: Offsets, beginnings: Offsets, ends: Offsets) -> int:
    """Count the offsets between what a table has read and the ends of its topics.

    Args:
        offsets: the next offset to read; its topics are the table's topics.
        beginnings: where partitions that the table has not begun count from.
        ends: may hold other topics too; they do not count.
    """
    return sum(max(0, end - place[2]) for place, end in _next_places(offsets, beginnings, ends))


def _next_places(offsets: Offsets, beginnings: Offsets, ends: Offsets) -> Iterator[tuple[Place, int]]:
    """Return where a table goes on in each partition of its topics, and the partition's end."""
    for topic, read in offsets.items():
        for partition, end in ends.get(topic, {}).items():
            yield (topic, partition, read.get(partition, beginnings.get(topic, {}).get(partition, 0))), end


def answers_of(futures: Mapping[K, Future[T]]) -> dict[K, T]:
    """Wait for answers; leave out topics that do not exist."""
    answers = {}
    for key, future in futures.items():
        try:
            answers[key] = future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return answers
