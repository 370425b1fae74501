"""The structural fingerprint: equal for schemas whose columns are equal, whatever else their text says."""

from __future__ import annotations

import hashlib
import json

from cdc_sync.core.debezium.conversions import EventSchema


def structural(schema: EventSchema) -> str:
    """Return 16 hexadecimal digits over names, order, types, optionality and key.

    Defaults, comments, enum labels, the envelope and the source block do not take part: a Debezium upgrade or a new
    comment changes a schema's text, not its columns. Recorded in the history, so the form must not change.
    """
    columns = [[column.name, column.optional, column.structure] for column in schema.columns]
    text = json.dumps([columns, schema.key], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
