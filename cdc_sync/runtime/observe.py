"""From the stretches Spark found to observations: sample records fetched and parsed, once for each schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from structlog import get_logger

from cdc_sync.core.debezium.envelope import first_row_betrays_default, first_row_holds_default
from cdc_sync.core.debezium.forms import KnownSchema
from cdc_sync.core.debezium.position import FIRST, Source
from cdc_sync.core.debezium.schema_book import SchemaBook
from cdc_sync.core.history.history import History
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.incarnations import Fall, Moment, Reached, extended, reach
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.planning.column_mappings import with_declared_key
from cdc_sync.core.planning.limits import too_long, too_much
from cdc_sync.core.planning.observation import Observation, Stretch
from cdc_sync.core.planning.stops import Refused
from cdc_sync.errors import TransientError, WireError
from cdc_sync.runtime.context import Context
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.sources.records import FAR_BACK, Record
from cdc_sync.sources.samples import Sample, read_sample
from cdc_sync.spark.eventreader import EventReader
from cdc_sync.spark.falls import Before
from cdc_sync.spark.observe import Survey, schemas, seen_in_stream, survey

_LOOK_AHEAD = 50
_LOOK_BACK = 16
LOOK_BACK = 200
"""Records before a range that tell what its events follow on."""
_OF_THE_LOG = ("c", "u", "d", "t")


def observations_of(
    context: Context, history: History | None, route: Route, stretches: Sequence[Stretch]
) -> tuple[Observation, ...]:
    """Turn the stretches of one table into observations; stretches whose schema cannot be read give none."""
    found: list[Observation] = []
    before = _InEffect.of(history)
    for stretch in sorted(stretches, key=lambda item: (item.position, item.kafka)):
        known = learn(context, stretch.kafka, stretch.digest)
        if known.schema is None or known.fingerprint is None:
            continue
        record = sample(context, stretch.kafka)
        event = _readable(context, record, stretch)
        if event is None:
            continue
        source = event.source
        observation = Observation(
            table=stretch.table,
            position=stretch.position,
            kafka=stretch.kafka,
            schema=with_declared_key(known.schema, route),
            fingerprint=known.fingerprint,
            snapshot=source.op == "r",
            append_only=source.append_only,
            truncate=stretch.truncate,
            partitions=len(context.kafka.ends([stretch.kafka.topic]).get(stretch.kafka.topic, {})),
            exceeded=_exceeded(context, stretch.table, known),
            opaque_key=known.key_schema is None and record.key is not None,
            holds_default=first_row_holds_default(known.schema, event.row),
            betrays_default=first_row_betrays_default(known.schema, event.row),
            before_seen_in_stream=source.op != "r" and _was_streamed(context, before, stretch),
            commit=source.commit,
            reading=source.reading,
            begins_reading=source.marker in FIRST,
            began=stretch.began[: stretch.position.incarnation],
        )
        found.append(observation)
        if not observation.truncate and (before is None or known.fingerprint != before.fingerprint):
            before = _InEffect(
                kafka=stretch.kafka,
                snapshot=observation.snapshot,
                fingerprint=known.fingerprint,
                first=before is None,
            )
    return tuple(found)


def _readable(context: Context, first: Record, stretch: Stretch) -> Sample | None:
    """Return the stretch's first record, or one behind it where that one is damaged inside its payload."""
    record: Record | None = first
    for offset in range(first.offset + 1, first.offset + _LOOK_AHEAD):
        if record is not None and record.value:
            try:
                event = read_sample(context.book, record, digest=stretch.digest if record is first else None)
                if event.known.digest == stretch.digest and event.source.table == stretch.table:
                    return event
            except WireError:
                pass
        record = context.kafka.peek(first.topic, first.partition, offset)
    return None


def _exceeded(context: Context, table: TableId, known: KnownSchema) -> Refused | None:
    limits = context.config.limits
    found = too_long(table, limits)
    if found is None and known.value_schema is not None:
        found = too_much(known.value_schema, limits)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _InEffect:
    """The schema before a stretch: where it was first seen, whether by a snapshot, and whether none was before it."""

    kafka: KafkaPosition
    snapshot: bool
    fingerprint: str
    first: bool

    @staticmethod
    def of(history: History | None) -> _InEffect | None:
        if history is None:
            return None
        look = history.look
        return _InEffect(kafka=look.kafka, snapshot=look.snapshot, fingerprint=look.fingerprint, first=look.number == 1)


def _was_streamed(context: Context, before: _InEffect | None, stretch: Stretch) -> bool:
    """Whether the schema in effect before a stretch was also seen in events from the log, not only in a snapshot."""
    if before is None or not before.snapshot:
        return before is not None
    topic, partition = stretch.kafka.topic, stretch.kafka.partition
    if before.kafka.topic != topic or not (before.first or before.kafka.partition == partition):
        # What lies between cannot be told by offsets; a wrong "no" pauses the table, a wrong "yes" drops a column.
        return False
    # Which of a snapshot's rows comes first is a matter of the batch. Nothing was before them in any partition.
    is_there = before.kafka.partition == partition
    start = before.kafka.offset if is_there else context.kafka.beginnings([topic])[topic][partition]
    between = OffsetRange(topic=topic, partition=partition, start=start, end=stretch.kafka.offset)
    if between.size:
        found = streamed_shortly_before(context.kafka, context.book, between, stretch.table)
        if found or (found is None and _seen_in_stream(context, (between,), stretch)):
            return True
    return before.first and _seen_in_stream(context, _other_partitions(context, stretch.kafka), stretch)


def _seen_in_stream(context: Context, ranges: tuple[OffsetRange, ...], stretch: Stretch) -> bool:
    size = sum(item.size for item in ranges)
    if not size:
        return False
    records = context.read(ranges)
    with context.codegen.of_rows(size):
        return seen_in_stream(records, events_in(context, records), stretch.table, stretch.position)


def _other_partitions(context: Context, kafka: KafkaPosition) -> tuple[OffsetRange, ...]:
    starts, ends = (ask([kafka.topic])[kafka.topic] for ask in (context.kafka.beginnings, context.kafka.ends))
    return tuple(
        OffsetRange(topic=kafka.topic, partition=partition, start=starts[partition], end=end)
        for partition, end in ends.items()
        if partition != kafka.partition
    )


def streamed_shortly_before(kafka: KafkaClient, book: SchemaBook, between: OffsetRange, table: TableId) -> bool | None:
    """Whether the last records of a range hold an event of the table from the log; None if they do not tell.

    They mostly do, and are read sooner than a query is planned.
    """
    start = max(between.start, between.end - _LOOK_BACK)
    records = kafka.read(between.topic, between.partition, start, between.end)
    is_all = start == between.start and bool(records) and records[0].offset == start
    for record in reversed(records):
        if not record.value:
            continue
        try:
            source = read_sample(book, record).source
        except WireError:
            is_all = False
            continue
        if source.table == table and source.op in _OF_THE_LOG:
            return True
    return False if is_all else None


def survey_with(
    context: Context,
    records: DataFrame,
    ends: Mapping[tuple[str, int], int],
    cuts: Mapping[TableId, Sequence[SourcePosition]],
    before: Before | None = None,
    *,
    is_all: bool = True,
) -> Survey:
    """Survey a range; tables met for the first time are cut where the source tells of their columns.

    Where the source's log begins anew under a table, the context knows it from here on.

    Args:
        cuts: of the tables that are known, see `spark.observe.survey`.
        before: see there.
        is_all: no other partition has anything that tells when a log began anew; else `falls` tells that one did.
    """
    events = events_in(context, records)
    found = survey(records, events, ends, cuts, before)
    while is_all and _begin_anew(context, found.falls):
        events = replace(events, began=tuple(sorted(context.began.items())))
        found = survey(records, events, ends, cuts, before)
    met = {stretch.table for stretch in found.stretches} - cuts.keys()
    told = {table: context.told_behind(table, None) for table in met}
    if any(told.values()):
        found = survey(records, events, ends, {**cuts, **told}, before)
    return found


def _begin_anew(context: Context, falls: Mapping[TableId, Fall]) -> bool:
    """Take note of logs that begin anew; return whether any does."""
    for table, found in falls.items():
        began = context.began.get(table, ())
        context.began[table] = extended(began, (found,))
        get_logger().warning("the source's log begins anew", table=str(table), at=found.at, before=found.latest)
    return bool(falls)


def reached_before(
    context: Context, starts: Mapping[tuple[str, int], int], tables: Iterable[TableId]
) -> dict[TableId, dict[tuple[str, int], Reached]]:
    """Return what the last records before some places have come to, for each table and partition.

    Args:
        starts: topic and partition -> the offset before which to look.
    """
    found: dict[TableId, dict[tuple[str, int], Reached]] = {table: {} for table in tables}
    for place, start in starts.items():
        sources = _sources_before(context, *place, start) if found and start else []
        for table, places in found.items():
            moments = (moment_of(source) for source in sources if source.table == table)
            reached = reach(moments, context.began.get(table, ()))
            if reached is not None:
                places[place] = reached
    return found


def moment_of(source: Source) -> Moment:
    """Return what tells whether an event begins a new incarnation of its source's log."""
    return Moment(position=source.position, at=source.at, incremental=source.incremental)


def _sources_before(context: Context, topic: str, partition: int, start: int) -> list[Source]:
    begins = context.kafka.beginnings([topic]).get(topic, {}).get(partition, 0)
    records = context.kafka.read(topic, partition, max(begins, start - LOOK_BACK), start) if begins < start else ()
    found = []
    for record in records:
        try:
            if record.value:
                found.append(read_sample(context.book, record).source)
        except WireError:
            continue
    return found


def events_in(context: Context, records: DataFrame) -> EventReader:
    """Return how to read the events of a range; schemas that are needed for it are learnt first.

    Raises:
        RegistryUnavailable: if one of them is not known and the registry does not answer.
    """
    reader = context.events()
    if not context.must_learn_first:
        return reader
    found = schemas(records, reader)
    for digest, place in found.items():
        if digest and context.book.get(digest) is None:
            learn(context, place, digest)
    return context.events(found)


def learn(context: Context, at: KafkaPosition, digest: str) -> KnownSchema:
    """Return the schema of a record that is known to exist, parsed if it is new.

    Raises:
        TransientError: if the broker no longer has the record.
        RegistryUnavailable: if the schema is not known and the registry does not answer.
    """
    record = sample(context, at)
    assert record.value is not None
    return context.book.learn(record.key, record.value, record.headers, digest=digest)


def sample(context: Context, at: KafkaPosition) -> Record:
    """Fetch one record that is known to exist.

    Raises:
        TransientError: if the broker no longer has it.
    """
    record = context.kafka.peek(at.topic, at.partition, at.offset)
    if record is None or record.value is None:
        raise TransientError(f"Cannot read sample {at}: the broker no longer has the record")
    return record


def flattened_before(context: Context, item: OffsetRange) -> str | None:
    """Return the digest of the newest flattened event before a range, None if there is none near it."""
    for offset in range(item.start - 1, max(-1, item.start - FAR_BACK), -1):
        record = context.kafka.peek(item.topic, item.partition, offset)
        if record is not None and record.value:
            known = context.book.learn(record.key, record.value, record.headers)
            if known.flattened is not None:
                return known.digest
    return None


def schemas_again(
    context: Context, table: TableId, ranges: tuple[OffsetRange, ...]
) -> tuple[tuple[Stretch, ...], tuple[KnownSchema, ...]]:
    """Return the stretches of a table in ranges that it has passed, and their schemas."""
    ends = {(item.topic, item.partition): item.end for item in ranges}
    stretches = survey_with(context, context.read(ranges), ends, {}).stretches
    mine = tuple(stretch for stretch in stretches if stretch.table == table)
    first = {stretch.digest: stretch.kafka for stretch in reversed(mine)}
    return mine, tuple(learn(context, place, digest) for digest, place in sorted(first.items()))
