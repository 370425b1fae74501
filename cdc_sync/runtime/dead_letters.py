"""Setting records aside as dead letters, with their place and the reason, so that nothing is lost silently."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

from structlog import get_logger

from cdc_sync.core.debezium.forms import AvroBody, KnownSchema
from cdc_sync.core.debezium.misfits import misfit
from cdc_sync.core.debezium.refusals import OTHER_SCHEMA, Configured, why_not_a_table
from cdc_sync.core.debezium.schema_book import SchemaBook
from cdc_sync.core.model.dead_letters import DeadLetter, headers_of, kept_of, parts_of
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.model.times import utc
from cdc_sync.core.planning.problems import MALFORMED, NOT_READABLE, record_code
from cdc_sync.errors import WireError
from cdc_sync.runtime.context import Context
from cdc_sync.sources.records import Record, Sent
from cdc_sync.sources.samples import read_sample

_AT_ONCE = 500
"""Records that are read and stored at a time."""
_BYTES_AT_ONCE = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Of:
    """Whose rows records are: a table, and the version that its schema has."""

    table: TableId
    version: int | None


def set_aside(context: Context, found: Iterable[tuple[KafkaPosition, str | None]], of: Of | None = None) -> None:
    """Store records with the reason each was not applied; doing it again changes nothing.

    Args:
        context: where the records are, and where they are kept.
        found: places in order; without a reason it is told from the record, and what carries nothing is left out.
        of: None where it is not known whose they are.
    """
    letters = (letter for it in _records(context, found) if (letter := _kept(context, of, *it)) is not None)
    for kept in parts_of(letters, most=_AT_ONCE, most_bytes=_BYTES_AT_ONCE):
        context.state.dead_letters.add(kept)
        _tell(context, kept)
        first = kept[0]
        get_logger().warning(
            "records set aside", topic=first.topic, count=len(kept), code=first.code.value, reason=first.reason
        )


def _records(
    context: Context, found: Iterable[tuple[KafkaPosition, str | None]]
) -> Iterator[tuple[KafkaPosition, str | None, Record | None]]:
    """Return places, reasons, and the records that are there still."""
    places = iter(found)
    while chunk := tuple(islice(places, _AT_ONCE)):
        for (topic, partition), group in groupby(chunk, lambda it: (it[0].topic, it[0].partition)):
            left = {place.offset: (place, reason) for place, reason in group}
            for record in context.kafka.pick(topic, partition, sorted(left)):
                yield *left.pop(record.offset), record
            yield from ((place, reason, None) for place, reason in left.values())


def let_go_of_old(context: Context) -> None:
    """Let go of letters that are older, or more, than `dead_letters` says are kept; it is in the log how many."""
    seconds, most = context.config.dead_letters.kept
    if math.isinf(seconds) and math.isinf(most):
        return
    context.guard()
    number = context.state.dead_letters.expire(seconds, most, at=utc(time.time()))
    if number:
        get_logger().warning("dead letters let go of", count=number, why="older or more than dead_letters keeps")


def _tell(context: Context, letters: Sequence[DeadLetter]) -> None:
    """Write letters to the topic of dead letters, if there is one; a batch that is repeated writes them again."""
    topic = context.config.dead_letters.topic
    if topic is not None and letters:
        name = context.config.pipeline.name
        context.kafka.send(topic, (Sent(key=it.key, value=it.value, headers=headers_of(it, name)) for it in letters))


def _kept(
    context: Context, of: Of | None, place: KafkaPosition, reason: str | None, record: Record | None
) -> DeadLetter | None:
    if reason is None:
        if record is None:
            return None
        refused = why_not(context, record)
        if refused is None and not record.value:
            return None
        reason = refused or NOT_READABLE
    elif reason == MALFORMED and record is not None:
        reason = malformed(context.book, record)
    letter = DeadLetter(
        topic=place.topic,
        partition=place.partition,
        offset=place.offset,
        timestamp=record.timestamp if record else None,
        code=record_code(reason),
        reason=reason,
        table=of.table if of else None,
        version=of.version if of else None,
        key=None,
        value=None,
    )
    return letter if record is None else _with_record(context, letter, record)


def _with_record(context: Context, letter: DeadLetter, record: Record) -> DeadLetter:
    payload = context.config.dead_letters.payload
    return replace(
        letter,
        schema=context.book.digest_of(record.key, record.value, record.headers) if record.value else "",
        size=len(record.key or b"") + len(record.value or b""),
        payload=payload,
        key=kept_of(record.key, payload),
        value=kept_of(record.value, payload),
    )


def malformed(book: SchemaBook, record: Record) -> str:
    """Say what a payload is that does not fit the record's own schema, and where."""
    try:
        sample = read_sample(book, record)
    except WireError:
        return f"{MALFORMED}: it is cut short or damaged"
    if sample.known.schema is None or isinstance(sample.known.value_form, AvroBody):
        return MALFORMED
    found = misfit(sample.payload, sample.known.schema, sample.known.flattened)
    return MALFORMED if found is None else f"{MALFORMED}: {found}"


def why_not(context: Context, record: Record, known: KnownSchema | None = None) -> str | None:
    """Say in plain words what a record is that is no change of a table, and what to do; None if that is not known."""
    config = context.config
    configured = Configured(
        registry=config.registry is not None,
        registry_headers=context.headers,
        flattened=config.connector.flattened is not None,
    )
    refused = why_not_a_table(
        record.value,
        headers=record.headers,
        topic=record.topic,
        schema=known.value_schema if known else None,
        configured=configured,
    )
    if refused is None or (refused is OTHER_SCHEMA and known is not None and known.broken is not None):
        return None  # what is wrong with the schema says more
    return str(refused)
