"""The schema texts this process has met: each is parsed once, then only recognised by its bytes."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass

from cdc_sync.debezium.conversions import EventSchema
from cdc_sync.debezium.envelope import PAYLOAD_MARKER, RecordKind, classify, event_schema, read_schema, split
from cdc_sync.debezium.fingerprint import structural
from cdc_sync.errors import WireError


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSchema:
    """One pair of key and value schema text.

    Attributes:
        digest: SHA-256 of both texts, as `spark.observe` computes it.
        key_prefix, value_prefix: the bytes a record of this schema begins with; `key_prefix` is empty without a key.
        kind: what such records are.
        schema, fingerprint: for changes of a table; None for everything else.
        broken: why records of this schema cannot be read at all, None if they can.
    """

    digest: str
    key_prefix: bytes
    value_prefix: bytes
    kind: RecordKind
    schema: EventSchema | None = None
    fingerprint: str | None = None
    broken: str | None = None


def digest_of(key: bytes | None, value: bytes) -> str:
    """Return the digest of a record's schema texts, empty if its value holds none.

    The texts end at the first `,"payload":`. Between quotes that sequence cannot occur, because a quote is escaped
    there.
    """
    marker = PAYLOAD_MARKER.encode()
    text, found, _ = value.partition(marker)
    if not found:
        return ""
    key_text, key_found, _ = (key or b"").partition(marker)
    return hashlib.sha256((key_text if key_found else b"") + b"\n" + text).hexdigest()


class SchemaBook:
    """Known schemas by digest. Thread-safe; entries are never changed or removed."""

    def __init__(self) -> None:
        self._known: dict[str, KnownSchema] = {}
        self._lock = threading.Lock()

    def get(self, digest: str) -> KnownSchema | None:
        """Return the schema with this digest if it was learnt."""
        return self._known.get(digest)

    def learn(self, key: bytes | None, value: bytes) -> KnownSchema:
        """Parse the schema of a sample record, once for each digest.

        A schema that cannot be read is learnt too, as broken, so that its records are set aside and not parsed again.
        """
        digest = digest_of(key, value)
        with self._lock:
            known = self._known.get(digest)
            if known is None:
                known = _parse(digest, key, value)
                self._known[digest] = known
            return known


def _prefix(value: bytes) -> bytes:
    """Return the schema part alone: a payload that is cut short must not spoil the schema of its neighbours."""
    text, found, _ = value.partition(PAYLOAD_MARKER.encode())
    return text + found if found else split(value).prefix


def _parse(digest: str, key: bytes | None, value: bytes) -> KnownSchema:
    value_prefix = key_prefix = b""
    kind = RecordKind.UNKNOWN
    try:
        value_prefix = _prefix(value)
        key_prefix = split(key).prefix if key else b""
        connect = read_schema(value_prefix)
        kind = classify(connect)
        if kind is not RecordKind.TABLE_CHANGE:
            return KnownSchema(digest=digest, key_prefix=key_prefix, value_prefix=value_prefix, kind=kind)
        schema = event_schema(connect, read_schema(key_prefix) if key_prefix else None)
        return KnownSchema(
            digest=digest,
            key_prefix=key_prefix,
            value_prefix=value_prefix,
            kind=kind,
            schema=schema,
            fingerprint=structural(schema),
        )
    except WireError as error:
        return KnownSchema(
            digest=digest, key_prefix=key_prefix, value_prefix=value_prefix, kind=kind, broken=str(error)
        )
