"""Events without an envelope, as Debezium's transform ExtractNewRecordState makes them.

The value's schema is the row's, under its own name (`....Value`), with fields added behind the columns: `__deleted`, a
text, in the rewriting modes, then what `add.fields` lists. What a delete is depends on the transform's
`delete.tombstone.handling.mode`:

======================= ==============================================================================================
drop                    nothing: the target keeps the row
rewrite                 the row before, of which only the key is sure, with `__deleted` "true"
rewrite-with-tombstone  the same, then a tombstone
tombstone (default)     a null payload under the row's schema, *without* the added fields; null bytes in Avro
delete-to-tombstone     null bytes
======================= ==============================================================================================

Before 3.2 `delete.handling.mode` drop, rewrite and none (as tombstone), with `drop.tombstones`, gave the same forms. A
null value with a key therefore always is a delete, and to delete twice is to delete. Truncates never arrive.

Source of the form: Debezium, `AbstractExtractNewRecordState.FieldReference`, `ExtractNewRecordState`,
`DefaultDeleteHandlingStrategy`, `LegacyDeleteHandlingStrategy`; checked against captures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_sync.core.debezium.connect import ConnectSchema, load_json
from cdc_sync.core.debezium.conversions import key_columns, wire_column
from cdc_sync.core.debezium.forms import FlattenedSchema
from cdc_sync.core.debezium.position import Source, commit_of, last_commit, last_lsn, marker_of, position_of, time_of
from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import ConfigError, WireError

DELETED_FIELD = "__deleted"
SOURCE_MEMBERS: Mapping[str, str] = {
    "connector": "string",
    "db": "string",
    "schema": "string",
    "table": "string",
    "snapshot": "string",
    "sequence": "string",
    "lsn": "int64",
    "file": "string",
    "pos": "int64",
    "row": "int32",
    "ts_ms": "int64",
}
"""Members of the `source` block that are used where a flattened event has them, with their types in Kafka Connect."""

_OF_TRANSACTION = frozenset(("id", "total_order", "data_collection_order"))
_OF_EVENT = frozenset(("op", "ts_ms", "ts_us", "ts_ns"))
_ONLY_IN = {
    "postgresql": ("lsn", "sequence"),
    "mysql": ("file", "pos", "row"),
}
_REMEDY = (
    "add db, schema and table to add.fields of the transform ExtractNewRecordState, and to "
    "connector.flattened.add_fields"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlattenedSettings:
    """The transform's settings, as the connector has them.

    Attributes:
        add_fields: such as `op`, `source.ts_ms` or `op:operation`; surrounding white space does not count.
        prefix: `add.fields.prefix`.

    Raises:
        ConfigError: if an entry has more than one colon, which the transform refuses too.
    """

    add_fields: tuple[str, ...] = ()
    prefix: str = "__"

    def __post_init__(self) -> None:
        for entry in self._entries():
            if entry.count(":") > 1:
                raise ConfigError(f"Cannot read connector.flattened.add_fields: {entry!r} has more than one colon")

    @property
    def meanings(self) -> dict[str, str]:
        """What each added field means: its name to `op`, `source.lsn`, `transaction.id`, `before.note` and so on."""
        return dict(_reference(entry, self.prefix) for entry in self._entries())

    def _entries(self) -> list[str]:
        parts = (part.strip() for entry in self.add_fields for part in entry.split(","))
        return [part for part in parts if part]


def _reference(entry: str, prefix: str) -> tuple[str, str]:
    """Read one entry of `add.fields`: the field's name in the event, and what it means."""
    path, _, name = entry.partition(":")
    parts = path.split(".")
    field, struct = (parts[0], "") if len(parts) == 1 else (parts[1], parts[0])
    shown = name or (f"{struct}_{field}" if struct else field)
    if not struct and field not in _OF_EVENT:
        struct = "transaction" if field in _OF_TRANSACTION else "source"
    # What a struct does not have the transform takes from the event itself, and no source block has an `op`.
    return prefix + shown, "op" if field == "op" else f"{struct}.{field}" if struct else field


def is_row(value: ConnectSchema) -> bool:
    """Tell whether a value schema is a row's own, so that its records can only be flattened events."""
    return value.type == "struct" and (value.name or "").endswith(".Value")


def flattened(value: ConnectSchema, settings: FlattenedSettings) -> FlattenedSchema | None:
    """Return what the fields of a value schema are; None if it is not a row's schema.

    A field is metadata by its configured name, never by its prefix alone. Where events do not name their table, the
    schema's name does: `<prefix>.<schema>.<table>.Value`, or `<prefix>.<db>.<table>.Value` with fields of a binlog.
    The prefix stands for a database that nothing names.

    Raises:
        WireError: if the table cannot be told, or an added field has a type it cannot have.
    """
    if not is_row(value):
        return None
    meanings = settings.meanings
    fields = {member.field or "": meanings[member.field] for member in value.members if member.field in meanings}
    if (deleted := value.member(DELETED_FIELD)) is not None and deleted.type == "string":
        fields.setdefault(DELETED_FIELD, "deleted")
    by_meaning = {meaning: field for field, meaning in fields.items()}
    source = {name: by_meaning[f"source.{name}"] for name in SOURCE_MEMBERS if f"source.{name}" in by_meaning}
    _check_types(value, by_meaning, source)
    wanted = {meaning.removeprefix("source.") for meaning in meanings.values()}
    by_row = bool(wanted & {"db", "schema", "table"})
    names_table = not by_row or any(field in meanings for field in fields)
    used = {by_meaning.get("op"), by_meaning.get("deleted"), *source.values()}
    return FlattenedSchema(
        name=value.name or "",
        columns=tuple(member for member in value.members if member.field not in fields),
        op=by_meaning.get("op"),
        deleted=by_meaning.get("deleted"),
        source=source,
        constants=_constants(value.name or "", source, wanted) if names_table else {},
        ignored=tuple(field for field in fields if field not in used),
        names_table=names_table,
    )


def _check_types(value: ConnectSchema, by_meaning: Mapping[str, str], source: Mapping[str, str]) -> None:
    wanted = {field: SOURCE_MEMBERS[name] for name, field in source.items()}
    wanted |= {by_meaning[meaning]: "string" for meaning in ("op", "deleted") if meaning in by_meaning}
    for member in value.members:
        if member.field in wanted and member.type != wanted[member.field]:
            raise WireError(
                f"Cannot read flattened event: its field {member.field!r} is of type {member.type}, not "
                f"{wanted[member.field]}; set connector.flattened as the transform is set"
            )


def _constants(name: str, source: Mapping[str, str], wanted: set[str]) -> dict[str, str]:
    """Return what is known of the source block without a field for it."""
    found: dict[str, str] = {}
    connector = next((kind for kind, only in _ONLY_IN.items() if any(member in source for member in only)), None)
    if connector is not None and "connector" not in source:
        found["connector"] = connector
    missing = [member for member in ("db", "schema", "table") if member not in source]
    if "schema" in missing and (connector == "mysql" or ("schema" in wanted and source)):
        found["schema"] = ""  # the transform leaves out what a source block does not have
        missing.remove("schema")
    if not missing:
        return found
    parts = name.removesuffix(".Value").split(".")
    if len(parts) != 3 or "" in parts:
        raise WireError(f"Cannot read flattened event: the name of its schema does not tell its table; {_REMEDY}")
    if missing == ["schema"]:
        raise WireError(f"Cannot read flattened event: nothing tells its table's schema; {_REMEDY}")
    prefix, middle, table = parts
    told = {"db": middle if "schema" in found else prefix, "schema": middle, "table": table}
    return found | {member: told[member] for member in missing}


def flattened_event_schema(schema: FlattenedSchema, key: ConnectSchema | None) -> EventSchema:
    """Return the columns and the key, as `envelope.event_schema` does for an event with an envelope.

    Raises:
        WireError: if the key is not a struct.
    """
    columns = tuple(wire_column(member) for member in schema.columns)
    names = key_columns(key, columns)
    return EventSchema(columns=columns, key=names, record_key=names)


def read_flattened(payload: bytes | Mapping[str, object] | None, schema: FlattenedSchema) -> Source | None:
    """Read table, position and operation of one flattened event.

    Without a field for the operation every row is read as `r`, for it may be new or not, and every record that says so
    as `d`; `snapshot` is False then. Whether a converter or the transform writes NULL as the default does not show: the
    metadata of a flattened event has no defaults.

    Args:
        payload: None is a delete of mode tombstone.
        schema: of this very record's value.

    Returns:
        None for a delete that does not name its table, see `FlattenedSchema.names_table`.

    Raises:
        WireError: if the payload is not an object, does not name its table, or has an operation that is none.
    """
    event = load_json(payload, "event") if isinstance(payload, bytes) else payload
    if event is None:
        event = {}
        op = "d"
        if not schema.names_table or schema.source.keys() & {"db", "schema", "table"}:
            return None
    elif isinstance(event, Mapping):
        op = _operation(event, schema)
    else:
        raise WireError("Cannot read flattened event: its payload is not an object")
    source = {**schema.constants, **{member: event.get(field) for member, field in schema.source.items()}}
    connector = source.get("connector")
    connector = connector if isinstance(connector, str) else ""
    source["connector"] = connector
    return Source(
        table=_table(source),
        position=position_of(source),
        connector=connector,
        snapshot=op == "r" and schema.op is not None,
        incremental=source.get("snapshot") == "incremental",
        null_is_default=None,
        op=op,
        last_commit=last_commit(source) if connector == "postgresql" else None,
        lsn=last_lsn(source) if connector == "postgresql" else None,
        commit=commit_of(source, snapshot=op == "r"),
        marker=marker_of(source),
        at=time_of(source),
    )


def _operation(event: Mapping[str, object], schema: FlattenedSchema) -> str:
    deleted = event.get(schema.deleted) if schema.deleted else None
    if deleted not in (None, "true", "false"):
        raise WireError(f"Cannot read flattened event: its field {schema.deleted!r} is neither true nor false")
    if deleted == "true":
        return "d"
    op = event.get(schema.op) if schema.op else None
    if op is None:
        return "r"
    if op not in ("c", "r", "u", "d"):
        raise WireError(f"Cannot read flattened event: its field {schema.op!r} is not an operation")
    return str(op)


def _table(source: Mapping[str, object]) -> TableId:
    database, schema, table = (source.get(name) for name in ("db", "schema", "table"))
    if not (isinstance(database, str) and isinstance(table, str)) or not isinstance(schema, (str, type(None))):
        raise WireError(f"Cannot read flattened event: it does not name its table; {_REMEDY}")
    return TableId(database=database, schema=schema or "", table=table)
