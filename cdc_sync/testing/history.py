"""Versions made by hand, for those who drive a target without a source."""

from __future__ import annotations

from cdc_sync.core.history.revision import Version
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.schema.internal import InternalSchema


def version(number: int, schema: InternalSchema) -> Version:
    """Return a version of a table `t` that has a schema, and no changes that led to it."""
    return Version(
        table=TableId(database="shop", schema="public", table="t"),
        number=number,
        fingerprint=f"{number:016x}",
        schema=schema,
        changes=(),
        evidence=(),
        position=SourcePosition(kind="postgresql", parts=(number, number)),
        kafka=KafkaPosition(topic="t", partition=0, offset=number),
        snapshot=False,
        append_only=True,
    )
