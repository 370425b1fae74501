"""Setting records aside: kept whole, with their place and the reason, so that nothing is lost silently."""

from __future__ import annotations

from collections.abc import Iterable

from structlog import get_logger

from cdc_sync.context import Context
from cdc_sync.events import KafkaPosition
from cdc_sync.state import QuarantinedRecord


def set_aside(context: Context, found: Iterable[tuple[KafkaPosition, str]]) -> None:
    """Store records with the reason each was not applied; doing it again changes nothing."""
    kept = []
    for place, reason in found:
        record = context.kafka.peek(place.topic, place.partition, place.offset)
        kept.append(
            QuarantinedRecord(
                topic=place.topic,
                partition=place.partition,
                offset=place.offset,
                timestamp=record.timestamp if record else None,
                reason=reason,
                key=record.key if record else None,
                value=record.value if record else None,
            )
        )
    context.state.quarantine(kept)
    if kept:
        get_logger().warning("records set aside", topic=kept[0].topic, count=len(kept), reason=kept[0].reason)
