"""The schemas this process has met: each is parsed once, then only recognised by its bytes or its registry id."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Sequence
from typing import Literal, Protocol

from cdc_sync.core.debezium.avro import connect_schema
from cdc_sync.core.debezium.avro_names import without_logical_types
from cdc_sync.core.debezium.connect import ConnectSchema, load_json, schema_of
from cdc_sync.core.debezium.envelope import classify, event_schema, read_schema, split
from cdc_sync.core.debezium.flattened import FlattenedSettings, flattened, flattened_event_schema
from cdc_sync.core.debezium.forms import (
    KEY_WITHOUT_SCHEMA,
    PAYLOAD_MARKER,
    SCHEMA_MARKER,
    Absent,
    AvroBody,
    Document,
    Form,
    KnownSchema,
    Opaque,
    Prefix,
    RecordKind,
    id_headers,
)
from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.core.debezium.wireids import WireId
from cdc_sync.errors import WireError

Headers = Sequence[tuple[str, bytes | None]]
_MARKER = PAYLOAD_MARKER.encode()
_CANONICAL = (SCHEMA_MARKER + "{").encode()


class Registry(Protocol):
    """Where the schemas of Avro records come from."""

    def find_id(self, data: bytes, headers: Headers, part: Literal["key", "value"]) -> tuple[WireId, int] | None:
        """Return the id a record's part names and where its body begins, None if it names none."""
        ...

    def schema(self, id_: WireId) -> str:
        """Return the writer's schema.

        Raises:
            RegistryUnavailable: if it is not known and the registry does not answer.
            WireError: if the registry has no such schema, or it is not Avro.
        """
        ...


def digest_of(key: bytes | None, value: bytes, headers: Headers = ()) -> str:
    """Return the digest of a record's schemas; empty if its value shows none, or only a JSON reader can find it.

    JSON texts end at the first `,"payload":`. Between quotes that sequence cannot occur, because a quote is escaped
    there. Records of one digest have one form: no key is another digest than a key without a schema.
    """
    part, key_part = _part(value, headers, "value"), _part(key, headers, "key")
    if part is None or (key_part is None and _is_document(key)):
        return ""
    if key_part is None:
        key_part = b"" if key is None else KEY_WITHOUT_SCHEMA
    return hashlib.sha256(key_part + b"\n" + part).hexdigest()


def _part(data: bytes | None, headers: Headers, part: Literal["key", "value"]) -> bytes | None:
    """Return the bytes that tell a schema: the text before the payload, or an id."""
    header = _id_header(headers, part)
    if header is not None:
        return header[0].encode() + b":" + header[1]
    if not data:
        return None
    if data[0] == 0 and len(data) >= 5:
        return data[: 9 if data[1:5] == bytes(4) and len(data) >= 9 else 5]
    text, found, _ = data.partition(_MARKER)
    return text if found and text.startswith(_CANONICAL) else None


def _id_header(headers: Headers, part: Literal["key", "value"]) -> tuple[str, bytes] | None:
    by_name = dict(headers)
    return next(((name, value) for name in id_headers(part) if (value := by_name.get(name))), None)


def _is_document(data: bytes | None) -> bool:
    return data is not None and data.lstrip().startswith(b"{") and b'"schema"' in data


class SchemaBook:
    """Known schemas by digest. Thread-safe; entries are never changed or removed."""

    def __init__(
        self,
        registry: Registry | None = None,
        *,
        use_headers: bool = False,
        flattened: FlattenedSettings | None = None,
    ) -> None:
        """Begin with nothing known.

        Args:
            registry: where Avro schemas come from; None if records are JSON.
            use_headers: whether schema ids may be in record headers.
            flattened: settings of the transform that flattens events, None if there is none.
        """
        self._registry = registry
        self._use_headers = use_headers
        self._flattened = flattened
        self._known: dict[str, KnownSchema] = {}
        self._lock = threading.Lock()

    def get(self, digest: str) -> KnownSchema | None:
        """Return the schema with this digest if it was learnt."""
        return self._known.get(digest)

    def digest_of(self, key: bytes | None, value: bytes, headers: Headers = ()) -> str:
        """Return the digest of a record's schemas, see the function of this name."""
        return digest_of(key, value, headers if self._use_headers else ())

    def learn(
        self, key: bytes | None, value: bytes, headers: Headers = (), *, digest: str | None = None
    ) -> KnownSchema:
        """Parse the schema of a sample record, once for each digest.

        A schema that cannot be read is learnt too, as broken, so that its records are set aside and not parsed again.

        Args:
            key, value, headers: the sample's.
            digest: as Spark computed it; None to work it out from the bytes.

        Raises:
            RegistryUnavailable: if the registry would have to be asked and does not answer.
        """
        digest = self.digest_of(key, value, headers) if digest is None else digest
        if not digest:
            return self._parse(digest, key, value, headers)  # records of any kind have none
        known = self._known.get(digest)
        if known is None:
            known = self._parse(digest, key, value, headers)
            with self._lock:
                known = self._known.setdefault(digest, known)
        return known

    def _parse(self, digest: str, key: bytes | None, value: bytes, headers: Headers) -> KnownSchema:
        value_form: Form = Opaque()
        key_form: Form = Absent()
        kind = RecordKind.UNKNOWN
        connect: ConnectSchema | None = None
        try:
            value_form, connect = self._part(digest, value, headers, "value")
            key_form, key_schema = self._key(digest, key, headers)
            if isinstance(value_form, Document) or isinstance(key_form, Document):
                # The digest covers both.
                value_form, key_form = Document(digest=digest), Opaque()
            flat = flattened(connect, self._flattened) if self._flattened else None
            kind = RecordKind.TABLE_CHANGE if flat else classify(connect)
            if kind is not RecordKind.TABLE_CHANGE:
                return KnownSchema(
                    digest=digest, key_form=key_form, value_form=value_form, kind=kind, value_schema=connect
                )
            schema = flattened_event_schema(flat, key_schema) if flat else event_schema(connect, key_schema)
            return KnownSchema(
                digest=digest,
                key_form=key_form,
                value_form=value_form,
                kind=kind,
                schema=schema,
                fingerprint=structural(schema),
                flattened=flat,
                value_schema=connect,
                key_schema=key_schema,
            )
        except WireError as error:
            return KnownSchema(
                digest=digest,
                key_form=key_form,
                value_form=value_form,
                kind=kind,
                value_schema=connect,
                broken=str(error),
            )

    def _key(self, digest: str, key: bytes | None, headers: Headers) -> tuple[Form, ConnectSchema | None]:
        if key is None:
            return Absent(), None
        try:
            form, schema = self._part(digest, key, headers, "key")
        except WireError:
            if key.startswith(b"\0") or b'"schema":{' in key:
                raise
            return Opaque(), None  # a key without a schema: text, or JSON with schemas.enable=false
        return form, schema

    def _part(
        self, digest: str, data: bytes, headers: Headers, part: Literal["key", "value"]
    ) -> tuple[Form, ConnectSchema]:
        if self._registry is not None and (found := self._registry.find_id(data, headers, part)) is not None:
            id_, start = found
            header = _id_header(headers, part) if not start else None
            writer = self._registry.schema(id_)
            form = AvroBody(
                id=id_,
                raw=header[1] if header else data[:start],
                header=header[0] if header else None,
                start=start,
                writer=without_logical_types(writer),
            )
            schema = connect_schema(writer)
            if re.search(r'"type"\s*:\s*"(enum|fixed)"', writer):
                raise WireError(
                    "Cannot read schema: it has Avro's enum or fixed, which Debezium's converters do not write"
                )
            return form, schema
        text, marked, _ = data.partition(_MARKER)
        if marked and text.startswith(_CANONICAL):
            try:
                return Prefix(text=text + marked), read_schema(text + marked)
            except WireError:
                # The marker may have been found inside the schema: a parameter of that name. A payload that is cut
                # short must not spoil the schema of its neighbours, so this is only the second try.
                prefix = split(data).prefix
                if prefix != text + marked:
                    return Document(digest=digest), read_schema(prefix)
                raise
        return Document(digest=digest), schema_of(load_json(data, "record"))


def structural(schema: EventSchema) -> str:
    """Return 16 hexadecimal digits over names, order, types, optionality and key.

    Defaults, comments, enum labels, the envelope and the source block do not take part: a Debezium upgrade or a new
    comment changes a schema's text, not its columns. Recorded in the history, so the form must not change.
    """
    columns = [[column.name, column.optional, column.structure] for column in schema.columns]
    text = json.dumps([columns, schema.key], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
