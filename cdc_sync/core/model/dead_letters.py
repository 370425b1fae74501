"""Dead letters: records that were not applied, each kept with its place and why."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.offsets import Runs
from cdc_sync.core.model.positions import KafkaPosition, TableId

Payload: TypeAlias = Literal["full", "masked", "none"]
"""What is kept of a record's key and value: all, the shape without any value, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that was not applied.

    Attributes:
        timestamp: the record's own, in milliseconds since the epoch.
        code: of what is wrong with it; stable.
        reason: the same in words, without any value of the record.
        table: whose row it is, None if that is not known.
        version: that the table's schema had then.
        schema: digest of the record's schemas, empty if it shows none.
        size: bytes of key and value.
        payload: what is kept of key and value, as `dead_letters.payload` said then.
        key, value: as they are in the topic, masked, or None.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    code: Code
    reason: str
    table: TableId | None = None
    version: int | None = None
    schema: str = ""
    size: int | None = None
    payload: Payload = "full"
    key: bytes | None
    value: bytes | None

    @property
    def place(self) -> KafkaPosition:
        """Where the record is."""
        return KafkaPosition(topic=self.topic, partition=self.partition, offset=self.offset)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class DeadLetterCount:
    """How many records of a topic are dead letters for one reason."""

    topic: str
    code: Code
    reason: str
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Dead letters of one partition that are none any more.

    Attributes:
        outcome: they were let go, or applied after all.
        by, why: who wanted that, and the reason given.
        at: when, as text.
    """

    outcome: Literal["discarded", "redriven"]
    by: str
    at: str
    why: str
    offsets: Runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrive:
    """The operator's word that dead letters of a table are to be applied after all.

    Attributes:
        id: of the word.
        by, at: who said so, and when.
    """

    table: TableId
    id: str
    by: str
    at: str
    places: tuple[KafkaPosition, ...]


def headers_of(letter: DeadLetter, pipeline: str) -> tuple[tuple[str, bytes], ...]:
    """Return the headers of a dead letter in a topic of them: Kafka Connect's where it has one, else ours.

    Connect's names: Apache Kafka, `DeadLetterQueueReporter` (KIP-298). The values are text, as it writes them.
    """
    said: tuple[tuple[str, object], ...] = (
        ("__connect.errors.topic", letter.topic),
        ("__connect.errors.partition", letter.partition),
        ("__connect.errors.offset", letter.offset),
        ("__connect.errors.connector.name", pipeline),
        ("__connect.errors.task.id", 0),
        ("__connect.errors.stage", "TASK_PUT"),
        ("__connect.errors.class.name", "cdc_sync"),
        ("__connect.errors.exception.class.name", letter.code.value),
        ("__connect.errors.exception.message", letter.reason),
        ("cdc_sync.table", letter.table),
        ("cdc_sync.version", letter.version),
        ("cdc_sync.schema", letter.schema or None),
        ("cdc_sync.timestamp", letter.timestamp),
        ("cdc_sync.size", letter.size),
        ("cdc_sync.payload", letter.payload),
    )
    return tuple((name, str(value).encode(errors="replace")) for name, value in said if value is not None)


def kept_of(data: bytes | None, payload: Payload) -> bytes | None:
    """Return what is kept of a key or a value."""
    if data is None or payload == "none":
        return None
    return data if payload == "full" else _masked(data)


def _masked(data: bytes) -> bytes | None:
    """Return the payload of JSON with a word in place of each value; None of anything else.

    The schema goes as well: it holds defaults, which are values of rows.
    """
    try:
        read = json.loads(data)
    except (ValueError, RecursionError):
        return None
    payload = read["payload"] if isinstance(read, Mapping) and "payload" in read else read
    return json.dumps(_shape(payload), ensure_ascii=False).encode(errors="replace")


def _shape(value: Any) -> Any:
    match value:
        case None:
            return None
        case dict():
            return {name: _shape(item) for name, item in value.items()}
        case list():
            return [_shape(item) for item in value]
        case str():
            return f"text of {len(value)}"
        case bool():
            return "boolean"
        case _:
            return "number"


def parts_of(letters: Iterable[DeadLetter], *, most: int, most_bytes: int) -> Iterator[list[DeadLetter]]:
    """Return letters in parts of at most so many, and so many bytes of records, but of one at least."""
    part: list[DeadLetter] = []
    held = 0
    for letter in letters:
        size = letter.size or 0
        if part and (len(part) == most or held + size > most_bytes):
            yield part
            part, held = [], 0
        part.append(letter)
        held += size
    if part:
        yield part
