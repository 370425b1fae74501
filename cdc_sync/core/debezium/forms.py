"""How the bytes of a record's key or value tell which schema they follow: a closed union of frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cdc_sync.core.debezium.wireids import WireId


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
