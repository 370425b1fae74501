"""How the bytes of a record tell which schema they follow, and what is known of such a schema: frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.core.debezium.wireids import WireId

SCHEMA_MARKER = '{"schema":'
PAYLOAD_MARKER = ',"payload":'
KEY_WITHOUT_SCHEMA = b"?"
"""Stands in a digest for a key that shows no schema."""

DecimalFormat: TypeAlias = Literal["base64", "numeric"]
"""The JSON converter's `decimal.format`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """JSON as Kafka Connect lays it out: `text` reaches from the first byte to the end of `,"payload":`."""

    text: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """JSON with its schema in any other layout: white space, the payload first, further members.

    Attributes:
        digest: SHA-256, in hexadecimal digits, of the schema's text without white space between its parts, as Spark's
            `get_json_object(value, '$.schema')` writes it.
    """

    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroBody:
    """Avro behind, or beside, the id of its writer's schema.

    Attributes:
        raw: the id's bytes as the record has them, magic byte included.
        header: the header that holds them, None if the record's part begins with them.
        start: where the body begins; 0 if the id is in a header.
        writer: the writer's schema: what the bytes mean, without logical types and defaults.
    """

    id: WireId
    raw: bytes
    header: str | None
    start: int
    writer: str


@dataclass(frozen=True, slots=True)
class Absent:
    """No bytes at all, as the key of a table without one."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Bytes whose schema is not known: a key that some other converter wrote. They are not read."""


Form: TypeAlias = Prefix | Document | AvroBody | Absent | Opaque


@dataclass(frozen=True, slots=True, kw_only=True)
class FlattenedSchema:
    """Which field of a flattened event is what.

    Attributes:
        name: the value schema's, such as `shop.public.orders.Value`; sanitised, but the same for all records of a
            table, those of mode tombstone that hold nothing but their schema included.
        columns: the row's columns in the source's order.
        op: the field that holds `c r u d`, None if there is none.
        deleted: the field that holds "true" or "false", None if there is none.
        source: member of the source block -> the field that holds it; see `SOURCE_MEMBERS`.
        constants: members of the source block that no field holds but that are known all the same: `connector`, `db`,
            `schema`, `table`.
        ignored: all other added fields, which are not columns either.
        names_table: False for the schema of mode tombstone's deletes where the rows name their table in added fields:
            such a delete belongs to the table whose rows have a schema of this name, in the same topic.
    """

    name: str
    columns: tuple[ConnectSchema, ...]
    op: str | None
    deleted: str | None
    source: Mapping[str, str]
    constants: Mapping[str, str]
    ignored: tuple[str, ...]
    names_table: bool

    def __hash__(self) -> int:
        # Of what can be hashed; equal schemas have equal names and fields.
        return hash((self.name, self.op, self.deleted, tuple(self.source), self.ignored))


class RecordKind(str, Enum):
    """What a record is, told by the name of its value schema."""

    TABLE_CHANGE = "table change"
    HEARTBEAT = "heartbeat"
    TRANSACTION = "transaction"
    SCHEMA_CHANGE = "schema change"
    NOTIFICATION = "notification"
    LOGICAL_MESSAGE = "logical message"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSchema:
    """One pair of key and value schema.

    Attributes:
        digest: of both schemas' texts or ids, as `spark.recognise` computes it.
        key_form, value_form: how records of these schemas are recognised and where their payload begins.
        kind: what such records are.
        schema, fingerprint: for changes of a table; None for everything else.
        flattened: which fields are not columns, for events without an envelope.
        value_schema: as parsed, None if it could not be.
        key_schema: the record key's, None if there is no key or it cannot be read.
        broken: why records of this schema cannot be read at all, None if they can.
    """

    digest: str
    key_form: Form
    value_form: Form
    kind: RecordKind
    schema: EventSchema | None = None
    fingerprint: str | None = None
    flattened: FlattenedSchema | None = None
    value_schema: ConnectSchema | None = None
    key_schema: ConnectSchema | None = None
    broken: str | None = None


def id_headers(part: Literal["key", "value"]) -> tuple[str, ...]:
    """Return the headers that may hold a schema's id, the one to believe first.

    Source: Confluent, `SchemaId`; Apicurio, `KafkaSerdeHeaders`.
    """
    return (f"__{part}_schema_id", f"apicurio.{part}.globalId", f"apicurio.{part}.contentId")
