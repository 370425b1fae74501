"""Single records read on the driver: which schema they follow, and what their payload says, whatever the format."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import fastavro

from cdc_sync.core.debezium.avro_names import without_logical_types
from cdc_sync.core.debezium.connect import load_json
from cdc_sync.core.debezium.envelope import read_source, split
from cdc_sync.core.debezium.flattened import read_flattened
from cdc_sync.core.debezium.forms import AvroBody, Form, KnownSchema, Prefix
from cdc_sync.core.debezium.position import Source
from cdc_sync.core.debezium.schema_book import SchemaBook
from cdc_sync.errors import WireError
from cdc_sync.sources.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One record with its schema; `payload` as JSON shows it, bytes as base64."""

    record: Record
    known: KnownSchema
    payload: Mapping[str, object]

    @property
    def source(self) -> Source:
        """Return the source block and the operation.

        Raises:
            WireError: if the payload does not name a table.
        """
        if self.known.flattened is None:
            return read_source(self.payload)
        source = read_flattened(self.payload, self.known.flattened)
        if source is None:
            raise WireError("Cannot read flattened event: it does not name its table")
        return source

    @property
    def row(self) -> Mapping[str, object]:
        """The row after the change by wire field; empty for deletes."""
        if self.known.flattened is not None:
            return self.payload
        after = self.payload.get("after")
        return after if isinstance(after, Mapping) else {}


def read_sample(book: SchemaBook, record: Record, *, digest: str | None = None) -> Sample:
    """Read a record that has a value.

    Args:
        book: learns the record's schema if it is new.
        record: with headers, if ids may be there.
        digest: the schemas' digest as Spark computed it; None to work it out.

    Raises:
        WireError: if the payload cannot be read.
        RegistryUnavailable: if the schema is not known and the registry does not answer.
    """
    assert record.value is not None
    known = book.learn(record.key, record.value, record.headers, digest=digest)
    if known.broken is not None:
        raise WireError(known.broken)
    payload = _payload(known.value_form, record.value)
    if not isinstance(payload, Mapping):
        raise WireError("Cannot read record: its payload is not an object")
    return Sample(record=record, known=known, payload=payload)


def _payload(form: Form, value: bytes) -> object:
    if isinstance(form, AvroBody):
        return avro_payload(form.writer, value[form.start :])
    if isinstance(form, Prefix):
        return load_json(split(value).payload, "event")
    record = load_json(value, "record")
    return record.get("payload") if isinstance(record, dict) else None


def avro_payload(writer: str, body: bytes) -> object:
    """Read an Avro body as the JSON converter would have written it: bytes as base64, numbers with all their digits.

    Raises:
        WireError: if the body does not follow the schema.
    """
    try:
        return _as_json(fastavro.schemaless_reader(io.BytesIO(body), _parsed(writer), handle_unicode_errors="replace"))
    # fastavro lets through whatever its decoder meets in a damaged body.
    except Exception as error:
        raise WireError(f"Cannot read Avro body: {type(error).__name__}: {error}") from error


@lru_cache(maxsize=1024)
def _parsed(writer: str) -> Any:
    return fastavro.parse_schema(json.loads(without_logical_types(writer)))


def _as_json(value: object) -> object:
    match value:
        case dict():
            return {name: _as_json(item) for name, item in value.items()}
        case list():
            return [_as_json(item) for item in value]
        case bytes():
            return base64.b64encode(value).decode()
        case float():
            return Decimal(repr(value)) if value - value == 0 else str(value)
        case _:
            return value
