"""From the stretches Spark found to sightings: sample records fetched and parsed, once for each schema text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_sync.context import Context
from cdc_sync.debezium.envelope import (
    first_row_betrays_default,
    first_row_holds_default,
    read_source,
    split,
)
from cdc_sync.errors import TransientError
from cdc_sync.events import KafkaPosition
from cdc_sync.history.history import History
from cdc_sync.kafka import Record
from cdc_sync.plan import Sighting
from cdc_sync.spark.observe import Stretch, seen_in_stream
from cdc_sync.spark.source import OffsetRange, read_ranges


def sightings_of(context: Context, history: History | None, stretches: Sequence[Stretch]) -> tuple[Sighting, ...]:
    """Turn the stretches of one table into sightings; stretches whose schema cannot be read give none."""
    found: list[Sighting] = []
    before = _InEffect.of(history)
    for stretch in sorted(stretches, key=lambda item: (item.position, item.kafka)):
        record = sample(context, stretch.kafka)
        assert record.value is not None
        known = context.book.learn(record.key, record.value)
        if known.schema is None or known.fingerprint is None:
            continue
        payload = split(record.value).payload
        source = read_source(payload)
        sighting = Sighting(
            table=stretch.table,
            position=stretch.position,
            kafka=stretch.kafka,
            schema=known.schema,
            fingerprint=known.fingerprint,
            snapshot=source.op == "r",
            append_only=source.append_only,
            truncate=source.op == "t",
            partitions=len(context.kafka.ends([stretch.kafka.topic]).get(stretch.kafka.topic, {})),
            holds_default=first_row_holds_default(known.schema, payload),
            betrays_default=first_row_betrays_default(known.schema, payload),
            before_seen_in_stream=_was_streamed(context, before, stretch),
        )
        found.append(sighting)
        if not sighting.truncate and (before is None or known.fingerprint != before.fingerprint):
            before = _InEffect(kafka=stretch.kafka, snapshot=sighting.snapshot, fingerprint=known.fingerprint)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _InEffect:
    """The schema before a stretch: where it was first seen, and whether a snapshot read that event."""

    kafka: KafkaPosition
    snapshot: bool
    fingerprint: str

    @staticmethod
    def of(history: History | None) -> _InEffect | None:
        if history is None:
            return None
        head = history.head
        return _InEffect(kafka=head.kafka, snapshot=head.snapshot, fingerprint=head.fingerprint)


def _was_streamed(context: Context, before: _InEffect | None, stretch: Stretch) -> bool:
    """Whether the schema in effect before a stretch was also seen in events from the log, not only in a snapshot."""
    if before is None or not before.snapshot:
        return before is not None
    if (before.kafka.topic, before.kafka.partition) != (stretch.kafka.topic, stretch.kafka.partition):
        # What lies between cannot be told by offsets; a wrong "no" pauses the table, a wrong "yes" drops a column.
        return False
    between = OffsetRange(
        topic=before.kafka.topic,
        partition=before.kafka.partition,
        start=before.kafka.offset,
        end=stretch.kafka.offset,
    )
    if not between.size:
        return False
    return seen_in_stream(read_ranges(context.spark, context.config.kafka, (between,)), stretch.table)


def sample(context: Context, at: KafkaPosition) -> Record:
    """Fetch one record that is known to exist.

    Raises:
        TransientError: if the broker no longer has it.
    """
    record = context.kafka.peek(at.topic, at.partition, at.offset)
    if record is None or record.value is None:
        raise TransientError(f"Cannot read sample {at}: the broker no longer has the record")
    return record
