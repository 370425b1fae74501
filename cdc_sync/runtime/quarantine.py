"""Setting records aside: kept whole, with their place and the reason, so that nothing is lost silently."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, islice

from structlog import get_logger

from cdc_sync.core.debezium.forms import AvroBody, KnownSchema
from cdc_sync.core.debezium.misfits import misfit
from cdc_sync.core.debezium.refusals import OTHER_SCHEMA, Configured, why_not_a_table
from cdc_sync.core.debezium.schema_book import SchemaBook
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.core.planning.problems import MALFORMED
from cdc_sync.errors import WireError
from cdc_sync.runtime.context import Context
from cdc_sync.sources.records import Record
from cdc_sync.sources.samples import read_sample
from cdc_sync.storage.quarantine import QuarantinedRecord

NOT_READABLE = "not JSON with a schema, as Kafka Connect's JsonConverter writes it, nor Avro of a registry"
_AT_ONCE = 500
"""Records that are read and stored at a time."""


def set_aside(context: Context, found: Iterable[tuple[KafkaPosition, str | None]]) -> None:
    """Store records with the reason each was not applied; doing it again changes nothing.

    Args:
        context: where the records are, and where they are kept.
        found: places in order; without a reason it is told from the record, and what carries nothing is left out.
    """
    places = iter(found)
    while chunk := tuple(islice(places, _AT_ONCE)):
        records: dict[KafkaPosition, Record] = {}
        for (topic, partition), group in groupby((place for place, _ in chunk), lambda it: (it.topic, it.partition)):
            for found_record in context.kafka.pick(topic, partition, sorted(place.offset for place in group)):
                at = KafkaPosition(topic=topic, partition=partition, offset=found_record.offset)
                records[at] = found_record
        told = ((place, reason, records.get(place)) for place, reason in chunk)
        kept = [record for item in told if (record := _kept(context, *item)) is not None]
        context.state.quarantine.add(kept)
        if kept:
            get_logger().warning("records set aside", topic=kept[0].topic, count=len(kept), reason=kept[0].reason)


def _kept(
    context: Context, place: KafkaPosition, reason: str | None, record: Record | None
) -> QuarantinedRecord | None:
    if reason is None:
        if record is None:
            return None
        refused = why_not(context, record)
        if refused is None and not record.value:
            return None
        reason = refused or NOT_READABLE
    elif reason == MALFORMED and record is not None:
        reason = malformed(context.book, record)
    return QuarantinedRecord(
        topic=place.topic,
        partition=place.partition,
        offset=place.offset,
        timestamp=record.timestamp if record else None,
        reason=reason,
        key=record.key if record else None,
        value=record.value if record else None,
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
