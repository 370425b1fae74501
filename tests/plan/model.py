"""A topic and its survey in plain Python: what `spark.observe` and `runtime.observe` do, said again and simply."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from cdc_sync.core.debezium.envelope import first_row_betrays_default, first_row_holds_default, read_source, split
from cdc_sync.core.debezium.forms import KnownSchema
from cdc_sync.core.debezium.position import FIRST, Source
from cdc_sync.core.debezium.schema_book import SchemaBook, digest_of
from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.planning.observation import Observation, TablePlan
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.schema.policy import Policy
from cdc_sync.testing import Record

BOOK = SchemaBook()
SHOP = TableId(database="shop", schema="public", table="t")
ROUTE = Route(
    table=SHOP,
    target=TargetName(namespace="public", name="t"),
    renames={},
    drops=frozenset(),
    initials={},
    policy=Policy(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A record that is a change of a table."""

    kafka: KafkaPosition
    known: KnownSchema
    source: Source
    payload: Mapping[str, Any]


@lru_cache(maxsize=50_000)
def _parsed(record: Record) -> tuple[KnownSchema, Source, Mapping[str, Any]]:
    assert record.value is not None
    digest = digest_of(record.key, record.value)
    known = BOOK.get(digest) or BOOK.learn(record.key, record.value)
    payload: Mapping[str, Any] = json.loads(split(record.value).payload)
    return known, read_source(payload), payload


def topic(records: Sequence[Record], partitions: int = 1) -> list[list[Event]]:
    """Lay records out on partitions by their key's values; tombstones take an offset and are no event."""
    offsets = [0] * partitions
    laid: list[list[Event]] = [[] for _ in range(partitions)]
    for record in records:
        place = _hash(record.key) % partitions if partitions > 1 else 0
        if record.value is not None:
            known, source, payload = _parsed(record)
            at = KafkaPosition(topic="t", partition=place, offset=offsets[place])
            laid[place].append(Event(kafka=at, known=known, source=source, payload=payload))
        offsets[place] += 1
    return laid


def _hash(key: bytes | None) -> int:
    values = json.loads(split(key).payload).values() if key else ()
    return sum(str(list(values)).encode())


def in_source_order(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: (event.source.position, event.kafka))


def stretches(seen: Iterable[Event], within: Iterable[Event], history: History | None) -> list[Event]:
    """Return the first event of each stretch that begins no later than the last event within the range.

    The first event behind the head begins one whatever its schema, and a TRUNCATE is one of its own.
    """
    last = max((event.source.position for event in within), default=None)
    if last is None:
        return []
    found, previous = [], None
    for event in in_source_order(seen):
        behind = history is not None and event.source.position > history.head.position
        empties = event.source.op == "t"
        position = event.source.position
        reading = position if event.source.reading and position.parts else None
        same = (event.known.digest, behind, empties, position.incarnation, reading)
        begins = empties or (event.source.marker in FIRST and not position.parts)
        if (same != previous or begins) and position <= last:
            found.append(event)
        previous = same
    return found


def observations(history: History | None, found: Sequence[Event], all_events: Iterable[Event]) -> list[Observation]:
    """Turn stretches into observations, as `cdc_sync.runtime.observe` does with samples from Kafka."""
    everything = list(all_events)
    look = history.look if history else None
    before = (look.kafka, look.snapshot, look.fingerprint) if look else None
    first = look is None or look.number == 1
    seen = []
    for event in in_source_order(found):
        schema, fingerprint = event.known.schema, event.known.fingerprint
        assert schema is not None
        assert fingerprint is not None
        streamed = before is not None and (not before[1] or _was_streamed(before[0], event, everything, first=first))
        seen.append(observation(event, before_seen_in_stream=streamed))
        if event.source.op != "t" and (before is None or fingerprint != before[2]):
            before, first = (event.kafka, event.source.snapshot, fingerprint), before is None
    return seen


def _was_streamed(since: KafkaPosition, event: Event, everything: Sequence[Event], *, first: bool) -> bool:
    if first:
        return any(not other.source.snapshot and other.source.position < event.source.position for other in everything)
    return any(
        since <= other.kafka < event.kafka and other.kafka.partition == event.kafka.partition == since.partition
        for other in everything
        if not other.source.snapshot
    )


def observation(event: Event, **changes: Any) -> Observation:
    schema, fingerprint = event.known.schema, event.known.fingerprint
    assert schema is not None
    assert fingerprint is not None
    seen = Observation(
        table=event.source.table,
        position=event.source.position,
        kafka=event.kafka,
        schema=schema,
        fingerprint=fingerprint,
        snapshot=event.source.snapshot,
        reading=event.source.reading,
        begins_reading=event.source.marker in FIRST,
        append_only=event.source.append_only,
        truncate=event.source.op == "t",
        holds_default=first_row_holds_default(schema, event.payload["after"] or {}),
        betrays_default=first_row_betrays_default(schema, event.payload["after"] or {}),
    )
    return replace(seen, **changes)


def grown(history: History | None, plan: TablePlan) -> History | None:
    """Return the history with the versions of a plan."""
    if not plan.versions:
        return history
    former = history.versions if history else ()
    return History(table=plan.versions[0].table, versions=(*former, *plan.versions))


def planned(
    history: History | None,
    seen: Sequence[Event],
    within: Sequence[Event],
    everything: Iterable[Event],
    route: Route = ROUTE,
) -> TablePlan:
    """Survey and plan."""
    return plan_table(history, observations(history, stretches(seen, within, history), everything), route, ICEBERG)
