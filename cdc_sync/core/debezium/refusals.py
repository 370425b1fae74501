"""What a record is that cannot be read as a change of a table, in plain words.

Reasons hold no value and no number of the record, so that records can be counted by them.

Sources: Debezium, `EventRouterDelegate`, `CloudEventsConverter`, `MongoDbSourceInfoStructMaker`,
`ExtractNewDocumentState`; CloudEvents, "Kafka Protocol Binding"; Apicurio Registry, `ExtJsonConverter`; Confluent
schema-registry, `SchemaId`; checked against captures of the first two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdc_sync.core.debezium.connect import ConnectSchema, load_json, schema_of
from cdc_sync.core.debezium.envelope import classify
from cdc_sync.core.debezium.flattened import is_row
from cdc_sync.core.debezium.forms import RecordKind
from cdc_sync.errors import WireError

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotATable:
    """Why a record is not used, and what to do if it should be, or should not be there."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """Which optional ways of reading are configured: `registry.url`, `registry.headers`, `connector.flattened`."""

    registry: bool = False
    registry_headers: bool = False
    flattened: bool = False


_LEAVE_OUT = "leave its topic out of kafka.topics or kafka.topic_pattern"
_SCHEMAS = "set value.converter.schemas.enable=true and key.converter.schemas.enable=true in the connector"

OUTBOX = NotATable(reason="an event of an outbox, made by EventRouter: it is no row of a table", remedy=_LEAVE_OUT)
CLOUD_EVENT = NotATable(
    reason="a CloudEvent",
    remedy="set value.converter to JsonConverter or an Avro converter in the connector",
)
MONGODB = NotATable(
    reason="an event of MongoDB, whose documents have no columns",
    remedy=_LEAVE_OUT,
)
FLATTENED = NotATable(
    reason="a flattened event, made by ExtractNewRecordState",
    remedy="configure connector.flattened as the transform is set, or take the transform out of the connector",
)
WITHOUT_SCHEMA = NotATable(reason="a change event in JSON without its schema", remedy=_SCHEMAS)
FLATTENED_WITHOUT_SCHEMA = NotATable(
    reason="a flattened event in JSON without its schema", remedy=f"{_SCHEMAS}, and configure connector.flattened"
)
PLAIN_JSON = NotATable(
    reason="JSON without a schema",
    remedy=f"if Debezium wrote it, {_SCHEMAS}; if not, {_LEAVE_OUT}",
)
NULL_SCHEMA = NotATable(reason="JSON whose schema is null", remedy=f"{_LEAVE_OUT}: no source connector writes this")
OTHER_SCHEMA = NotATable(
    reason="JSON whose schema is none of Kafka Connect", remedy=f"{_LEAVE_OUT}, or set value.converter to JsonConverter"
)
EXT_JSON = NotATable(
    reason="JSON of Apicurio's ExtJsonConverter, whose schema is in a registry",
    remedy="set value.converter to JsonConverter with schemas.enable=true, or to an Avro converter, in the connector",
)
JSON_SCHEMA = NotATable(
    reason="JSON behind a schema id (JSON Schema)",
    remedy="set value.converter to JsonConverter with schemas.enable=true, or to an Avro converter, in the connector",
)
NO_REGISTRY = NotATable(
    reason="a value whose schema is in a registry (Avro, Protobuf), and no registry is configured",
    remedy="configure registry.url, if it is Avro",
)
NO_HEADERS = NotATable(
    reason="a value whose schema id is in a header, and ids in headers are not configured",
    remedy="configure registry.url, and registry.headers: true",
)
UNKNOWN_ID = NotATable(
    reason="a value that begins as Avro of a registry does, but cannot be read as such",
    remedy="check registry.type and registry.ids; Protobuf is not read",
)
COMPRESSED = NotATable(
    reason="a value compressed by its producer",
    remedy=f"have Kafka compress instead (compression.type), or {_LEAVE_OUT}",
)
XML = NotATable(reason="XML", remedy=_LEAVE_OUT)
OTHER_TOOL = NotATable(reason="an event of Maxwell or Canal, not of Debezium", remedy=_LEAVE_OUT)
MARKED = NotATable(reason="text that begins with a byte order mark, which JSON must not", remedy=_LEAVE_OUT)
BINARY = NotATable(reason="bytes that are neither JSON nor Avro", remedy=_LEAVE_OUT)
DAMAGED_JSON = NotATable(
    reason="JSON that cannot be read: it is cut short, damaged or nested too deeply",
    remedy="find out what wrote it; the record itself is set aside",
)
TEXT = NotATable(reason="bare text", remedy=_LEAVE_OUT)
BARE_VALUE = NotATable(reason="a bare value, not a row", remedy=_LEAVE_OUT)
EMPTY = NotATable(reason="an empty value, which is not a tombstone", remedy=_LEAVE_OUT)
OTHER_STRUCT = NotATable(
    reason="a record that is neither a change of a table nor of Debezium's own",
    remedy=f"{_LEAVE_OUT}, or take the transform that made it out of the connector",
)

_ID_HEADERS = ("__value_schema_id", "apicurio.value.globalId", "apicurio.value.contentId")
_COMPRESSIONS = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"\x82SNAPPY\x00", b"BZh", b"PK\x03\x04")
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def why_not_a_table(
    value: bytes | None,
    *,
    headers: Headers = (),
    topic: str = "",
    schema: ConnectSchema | None = None,
    configured: Configured | None = None,
) -> NotATable | None:
    """Say what a record is if it is no change of a table that can be read; None if it may be one.

    None is also returned for tombstones and for Debezium's own records, such as heartbeats.

    Args:
        value: the record's.
        headers: the record's, names and values.
        topic: where the record is.
        schema: the value's if it is known, as for Avro; the schema in JSON is found without.
        configured: what else can be read; nothing by default.
    """
    configured = configured or Configured()
    if value is None:
        return None
    names = {name for name, _ in headers}
    if {"ce_specversion", "ce_type"} & names:
        return CLOUD_EVENT
    routed = topic.startswith("outbox.event.") or "id" in names
    if schema is not None:
        return _by_schema(schema, configured, routed=routed)
    if names.intersection(_ID_HEADERS) and not configured.registry_headers:
        return NO_HEADERS
    return _by_bytes(value, configured, routed=routed)


def _by_schema(schema: ConnectSchema, configured: Configured, *, routed: bool) -> NotATable | None:
    if schema.type != "struct":
        return OUTBOX if routed else BARE_VALUE
    if schema.member("specversion") is not None:
        return CLOUD_EVENT
    if _is_mongodb(schema):
        return MONGODB
    if classify(schema) is not RecordKind.UNKNOWN:
        return None
    if is_row(schema):
        return None if configured.flattened else FLATTENED
    return OUTBOX if routed else OTHER_STRUCT


def _is_mongodb(schema: ConnectSchema) -> bool:
    name = schema.name or ""
    after, source = schema.member("after"), schema.member("source")
    if name.endswith(".Envelope"):
        from_mongodb = source is not None and (source.name or "").startswith("io.debezium.connector.mongo")
        return from_mongodb or (after is not None and after.type == "string")
    # Flattened documents: the schema is made up for each and named as the collection.
    return schema.member("_id") is not None and not name.endswith(".Value")


def _by_bytes(value: bytes, configured: Configured, *, routed: bool) -> NotATable | None:
    if not value:
        return EMPTY
    if value[0] == 0:
        if value[5:6] == b"{" and value[-1:] == b"}":
            return JSON_SCHEMA
        return UNKNOWN_ID if configured.registry else NO_REGISTRY
    if value.startswith(_COMPRESSIONS):
        return COMPRESSED
    if value.startswith(_MARKS):
        return MARKED
    try:
        value.decode()
    except UnicodeDecodeError:
        return BINARY
    text = value.lstrip()
    if text.startswith(b"<"):
        return XML
    try:
        record = load_json(value, "record")
    except WireError:
        return DAMAGED_JSON if text.startswith((b"{", b"[")) else OUTBOX if routed else TEXT
    return _by_json(record, configured, routed=routed)


def _by_json(record: object, configured: Configured, *, routed: bool) -> NotATable | None:
    if not isinstance(record, Mapping):
        return OUTBOX if routed else BARE_VALUE
    if "specversion" in record:
        return CLOUD_EVENT
    if record.keys() == {"schemaId", "payload"}:
        return EXT_JSON
    if record.keys() >= {"schema", "payload"}:
        return _by_wrapped(record, configured, routed=routed)
    source = record.get("source")
    if isinstance(source, Mapping) and "op" in record:
        return MONGODB if source.get("connector") == "mongodb" else WITHOUT_SCHEMA
    if routed:
        return OUTBOX
    if record.keys() & {"__deleted", "__op"}:
        return FLATTENED_WITHOUT_SCHEMA
    if record.keys() >= {"database", "table", "type", "data"}:
        return OTHER_TOOL
    return PLAIN_JSON


def _by_wrapped(record: Mapping[str, object], configured: Configured, *, routed: bool) -> NotATable | None:
    if record["schema"] is None:
        return None if record["payload"] is None else OUTBOX if routed else NULL_SCHEMA
    try:
        schema = schema_of(record)
    except WireError:
        return OTHER_SCHEMA
    return _by_schema(schema, configured, routed=routed)
