"""Change events as the JSON converter writes them: schema part, payload, kind, source block.

Source of the form: Apache Kafka, `JsonConverter` with `schemas.enable=true`; Debezium, `Envelope`, `SchemaFactory`,
`SmtManager`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cdc_sync.core.debezium.connect import ConnectSchema, load_json, parse
from cdc_sync.core.debezium.conversions import key_columns, wire_column
from cdc_sync.core.debezium.forms import PAYLOAD_MARKER, SCHEMA_MARKER, RecordKind
from cdc_sync.core.debezium.literals import canonical
from cdc_sync.core.debezium.position import (
    Source,
    commit_of,
    last_commit,
    last_lsn,
    marker_of,
    position_of,
    time_of,
)
from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import WireError


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A message in two parts; `prefix + payload + b"}"` is the message.

    Attributes:
        prefix: from the first byte to the end of `,"payload":`, equal for all messages of one schema.
    """

    prefix: bytes
    payload: bytes


def split(message: bytes) -> Split:
    """Part a record's value or key behind its schema.

    Reads the JSON instead of searching it, so nothing inside a name or a default can pass for the payload.

    Raises:
        WireError: if the message is anything but `{"schema":{...},"payload":...}` and nothing around it.
    """
    text = _text_of(message)
    if not text.startswith(SCHEMA_MARKER + "{"):
        raise WireError(f"Cannot split message: {_why_not(text)}")
    schema_end = _end_of_value(text, len(SCHEMA_MARKER))
    if not text.startswith(PAYLOAD_MARKER, schema_end):
        missing = text[schema_end:] == "}"
        raise WireError(f"Cannot split message: {'the payload is missing' if missing else _LAYOUT}")
    payload_start = schema_end + len(PAYLOAD_MARKER)
    if text[_end_of_value(text, payload_start) :] != "}":
        raise WireError(f"Cannot split message: {_LAYOUT}")
    prefix = text[:payload_start].encode()
    return Split(prefix=prefix, payload=message[len(prefix) : -1])


_LAYOUT = 'it is not laid out as Kafka Connect does it, {"schema":{...},"payload":...}'


def _text_of(message: bytes) -> str:
    if not message:
        raise WireError("Cannot split message: it is empty")
    if message[0] == 0:
        raise WireError("Cannot split message: it begins with a zero byte, as Avro does, and is not JSON")
    try:
        return message.decode()
    except UnicodeDecodeError as error:
        raise WireError(f"Cannot split message: it is not JSON in UTF-8: {error.reason}") from error


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


def _end_of_value(text: str, start: int) -> int:
    try:
        return _SCANNER.raw_decode(text, start)[1]
    except RecursionError as error:
        raise WireError("Cannot split message: it is nested too deeply") from error
    except ValueError as error:
        raise WireError(f"Cannot split message: it is not JSON: {error}") from error


def _why_not(text: str) -> str:
    """Say why a message does not begin as it should."""
    try:
        value = json.loads(text)
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as error:
        return f"it is not JSON: {error}"
    if not isinstance(value, dict) or "schema" not in value:
        return "it carries no schema: set schemas.enable=true in the converter"
    if value["schema"] is None:
        return "its schema is null"
    return _LAYOUT


def read_schema(prefix: bytes) -> ConnectSchema:
    """Read the schema from what `split` returned as the prefix.

    Raises:
        WireError: if it is not a Connect schema, see `connect.parse`.
    """
    head, tail = SCHEMA_MARKER.encode(), PAYLOAD_MARKER.encode()
    if not (prefix.startswith(head) and prefix.endswith(tail)):
        raise WireError("Cannot read schema: the prefix does not reach from the schema to the payload")
    return parse(prefix[len(head) : -len(tail)])


def classify(schema: ConnectSchema) -> RecordKind:
    """Tell what records of a value schema are."""
    name = schema.name or ""
    if schema.type != "struct":
        return RecordKind.UNKNOWN
    if name.endswith(".Envelope"):
        return RecordKind.TABLE_CHANGE
    if name.startswith("io.debezium.connector."):
        return _OTHER_KINDS.get(name.rpartition(".")[2], RecordKind.UNKNOWN)
    return RecordKind.UNKNOWN


_OTHER_KINDS = {
    "Heartbeat": RecordKind.HEARTBEAT,
    "TransactionMetadataValue": RecordKind.TRANSACTION,
    "SchemaChangeValue": RecordKind.SCHEMA_CHANGE,
    "Notification": RecordKind.NOTIFICATION,
    "MessageValue": RecordKind.LOGICAL_MESSAGE,
}


def event_schema(value: ConnectSchema, key: ConnectSchema | None) -> EventSchema:
    """Return the columns and the key of a change event's schemas.

    Args:
        value: a schema that `classify` calls a table change.
        key: None if the record has no key.

    Raises:
        WireError: if the envelope has no `before` and `after` of one struct, or the key is not a struct.
    """
    before, after = value.member("before"), value.member("after")
    if before is None or after is None:
        raise WireError("Cannot read envelope: it has no fields `before` and `after`")
    if after.type != "struct":
        raise WireError(f"Cannot read envelope: its rows are a {after.type}, not a struct")
    if replace(before, field=None) != replace(after, field=None):
        raise WireError("Cannot read envelope: `before` and `after` have different columns")
    columns = tuple(wire_column(member) for member in after.members)
    names = key_columns(key, columns)
    return EventSchema(
        columns=columns,
        key=names,
        record_key=names,
        connector=_connector(value.member("source")),
    )


def _connector(source: ConnectSchema | None) -> str | None:
    """Return the connector that a source block is of, told by its name: `io.debezium.connector.mysql.Source`."""
    found = re.fullmatch(r"io\.debezium\.connector\.(\w+)\.Source", (source.name if source else None) or "")
    return found[1] if found else None


def read_source(payload: bytes | Mapping[str, object]) -> Source:
    """Read the source block and the operation of a change event's payload.

    Raises:
        WireError: if the payload has no source block that names a connector, a database and a table.
    """
    event = _object(payload)
    source = event.get("source")
    if not isinstance(source, Mapping):
        raise WireError("Cannot read event: it has no source block")
    connector, database, table = (source.get(name) for name in ("connector", "db", "table"))
    if not (isinstance(connector, str) and isinstance(database, str) and isinstance(table, str)):
        raise WireError("Cannot read event: its source block does not name connector, db and table")
    op = event.get("op")
    lsn = last_lsn(source) if connector == "postgresql" else None
    return Source(
        table=TableId(database=database, schema=str(source.get("schema") or ""), table=table),
        position=position_of(source),
        connector=connector,
        snapshot=op == "r",
        incremental=source.get("snapshot") == "incremental",
        null_is_default=_null_is_default(source.get("snapshot"), op),
        op=op if isinstance(op, str) else "",
        last_commit=last_commit(source) if connector == "postgresql" else None,
        lsn=lsn,
        commit=commit_of(source, snapshot=op == "r"),
        marker=marker_of(source),
        at=time_of(source),
    )


def _null_is_default(snapshot: object, op: object) -> bool | None:
    # Streaming leaves `snapshot` unset and its default is "false": which of the two is seen tells the setting.
    if op == "r":
        return None
    if snapshot is None:
        return False
    return True if snapshot == "false" else None


def first_row_holds_default(schema: EventSchema, row: Mapping[str, object]) -> frozenset[str]:
    """Return the names of the columns whose value in a row, by wire field, is the default the schema shows."""
    return frozenset(
        column.name
        for column in schema.columns
        if column.default is not None and canonical(column.wire, row.get(column.field)) == column.default
    )


def first_row_betrays_default(schema: EventSchema, row: Mapping[str, object]) -> frozenset[str]:
    """Return the names of text columns whose default was cut off at a quote, as this very row shows.

    The Postgres connector sends the default `'it''s'` as `it`; a row that got the default then holds more than that.
    """
    return frozenset(
        column.name
        for column in schema.columns
        if isinstance(column.default, str) and str(row.get(column.field)).startswith(f"{column.default}'")
    )


def _object(payload: bytes | Mapping[str, object]) -> Mapping[str, object]:
    event = load_json(payload, "event") if isinstance(payload, bytes) else payload
    if not isinstance(event, Mapping):
        raise WireError("Cannot read event: its payload is not an object")
    return event
