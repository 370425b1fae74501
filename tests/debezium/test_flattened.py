"""Flattened events, as the real transform wrote them, say what their columns, table, place and operation are."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.envelope import event_schema, read_schema, split
from cdc_sync.core.debezium.flattened import FlattenedSettings, flattened, flattened_event_schema, read_flattened
from cdc_sync.core.debezium.forms import FlattenedSchema
from cdc_sync.core.debezium.position import Source
from cdc_sync.core.debezium.schema_book import structural
from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.core.model.positions import NO_POSITION, SourcePosition, TableId
from cdc_sync.errors import ConfigError, WireError
from cdc_sync.testing import INT32, INT64, TEXT, column, struct
from tests.debezium.data import Captured, captured

COLUMNS = ["id", "note", "amount", "at", "big"]
DEFAULT = FlattenedSettings()
EVERYTHING = FlattenedSettings(
    add_fields=(
        *("op", "db", "schema", "table", "connector", "lsn", "sequence", "snapshot", "txId", "ts_ms", "source.ts_ms"),
        *("transaction.id", "source.version:release", "before.note", "nowhere"),
    )
)
RENAMED = FlattenedSettings(add_fields=("op:operation, source.table:of", " sequence "), prefix="meta.")
SETTINGS = {
    "flattened-tombstone": DEFAULT,
    "flattened-drop": FlattenedSettings(add_fields=("op", "lsn")),
    "flattened-rewrite": EVERYTHING,
    "flattened-rewrite-with-tombstone": RENAMED,
    "flattened-delete-to-tombstone": FlattenedSettings(add_fields=("op", "table", "lsn")),
}


def schemas(record: Captured, settings: FlattenedSettings) -> tuple[FlattenedSchema, EventSchema, bytes]:
    assert record.value is not None
    assert record.key is not None
    parts = split(record.value)
    schema = flattened(read_schema(parts.prefix), settings)
    assert schema is not None
    return schema, flattened_event_schema(schema, read_schema(split(record.key).prefix)), parts.payload


def read(record: Captured, settings: FlattenedSettings) -> Source | None:
    schema, _, payload = schemas(record, settings)
    return read_flattened(None if payload == b"null" else payload, schema)


def story(name: str) -> list[str]:
    """What a topic tells: the operation and the key of every record, `-` for null bytes."""
    told = []
    for record in captured(name):
        assert record.key is not None
        key = json.loads(split(record.key).payload)["id"]
        source = read(record, SETTINGS[name]) if record.value is not None else None
        told.append(f"{source.op if source else '-'}{key}")
    return told


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("flattened-tombstone", "r1 r2 r3 r2 d2 r20 d1 r4 r5 d4"),
        ("flattened-drop", "r1 c2 c3 u2 c20 c4 c5"),
        ("flattened-rewrite", "r1 c2 c3 u2 d2 c20 d1 c4 c5 d4"),
        ("flattened-rewrite-with-tombstone", "r1 c2 c3 u2 d2 -2 c20 d1 -1 c4 c5 d4 -4"),
        ("flattened-delete-to-tombstone", "r1 c2 c3 u2 -2 c20 -1 c4 c5 -4"),
    ],
)
def test_every_mode_tells_the_same_story(name: str, operations: str) -> None:
    assert story(name) == operations.split()


@pytest.mark.parametrize("name", SETTINGS)
def test_only_the_rows_own_fields_are_columns(name: str) -> None:
    for record in captured(name):
        if record.value is not None:
            _, event, _ = schemas(record, SETTINGS[name])
            columns = [column.name for column in event.columns]
            assert columns in (COLUMNS, [*COLUMNS, "extra"])
            assert event.key == ("id",)


def test_a_delete_that_is_a_null_payload_has_the_columns_of_its_rows() -> None:
    fingerprints = [structural(schemas(record, DEFAULT)[1]) for record in captured("flattened-tombstone")]
    assert len(set(fingerprints[:8])) == 1  # rows and deletes
    assert len(set(fingerprints)) == 2  # before and after a column was added


def test_equal_schemas_are_one_in_a_set() -> None:
    first, second, *_ = captured("flattened-rewrite")
    assert len({schemas(first, EVERYTHING)[0], schemas(second, EVERYTHING)[0]}) == 1


def test_where_all_is_added_the_event_says_as_much_as_an_envelope() -> None:
    update = captured("flattened-rewrite")[3]
    source = read(update, EVERYTHING)
    assert source is not None
    assert source.table == TableId(database="postgres", schema="public", table="orders")
    assert source.connector == "postgresql"
    assert source.position == SourcePosition(kind="postgresql", parts=(22112968, 22113024))
    assert (source.last_commit, source.lsn) == (22112968, 22113024)
    assert source.append_only
    assert not source.snapshot


def test_the_metadata_that_is_of_no_use_is_no_column_either() -> None:
    schema, _, _ = schemas(captured("flattened-rewrite")[0], EVERYTHING)
    assert set(schema.ignored) == {"__txId", "__ts_ms", "__transaction_id", "__release", "__before_note"}
    assert schema.source["ts_ms"] == "__source_ts_ms"
    assert (schema.op, schema.deleted, schema.constants) == ("__op", "__deleted", {})


def test_names_and_prefix_of_added_fields_are_those_of_the_transform() -> None:
    schema, _, _ = schemas(captured("flattened-rewrite-with-tombstone")[0], RENAMED)
    assert (schema.op, schema.deleted) == ("meta.operation", "__deleted")
    assert schema.source == {"table": "meta.of", "sequence": "meta.sequence"}


def test_without_metadata_the_schemas_name_is_the_table_and_the_prefix_its_database() -> None:
    source = read(captured("flattened-tombstone")[0], DEFAULT)
    assert source is not None
    assert source.table == TableId(database="flattened-tombstone", schema="public", table="orders")
    assert source.position == NO_POSITION
    assert (source.op, source.snapshot) == ("r", False)  # it may be new or not, and nobody says it was read


def test_a_delete_without_metadata_belongs_to_the_rows_whose_schema_has_its_name() -> None:
    settings = FlattenedSettings(add_fields=("table", "db", "schema"))
    row, delete = captured("flattened-rewrite")[0], captured("flattened-tombstone")[6]
    assert read(delete, settings) is None
    schema, _, _ = schemas(delete, settings)
    assert not schema.names_table
    assert schemas(row, EVERYTHING)[0].names_table


def row(name: str, *members: ConnectSchema) -> ConnectSchema:
    return replace(struct(f"{name}.Value", column("id", INT32, optional=False), *members))


def test_the_binlog_has_databases_and_no_schemas() -> None:
    value = row("shop.sales.orders", column("__file", TEXT), column("__pos", INT64), column("__row", INT32))
    schema = flattened(value, FlattenedSettings(add_fields=("file", "pos", "row")))
    assert schema is not None
    source = read_flattened({"id": 1, "__file": "binlog.000012", "__pos": 340, "__row": 2}, schema)
    assert source is not None
    assert source.table == TableId(database="sales", schema="", table="orders")
    assert source.position == SourcePosition(kind="binlog", parts=(12, 340, 2))
    assert not source.append_only


def test_a_schema_that_was_asked_for_and_is_not_there_is_none() -> None:
    value = row("shop.sales.orders", column("__db", TEXT), column("__table", TEXT))
    schema = flattened(value, FlattenedSettings(add_fields=("db", "schema", "table")))
    assert schema is not None
    source = read_flattened({"id": 1, "__db": "sales", "__table": "orders"}, schema)
    assert source is not None
    assert source.table == TableId(database="sales", schema="", table="orders")


@pytest.mark.parametrize("name", ["shop.public.a.b", "orders", "shop..orders"])
def test_a_name_that_does_not_tell_the_table_is_refused_unless_the_rows_do(name: str) -> None:
    with pytest.raises(WireError, match=r"add db, schema and table to add\.fields"):
        flattened(row(name), DEFAULT)
    named = row(name, column("__db", TEXT), column("__schema", TEXT), column("__table", TEXT))
    settings = FlattenedSettings(add_fields=("db", "schema", "table"))
    schema = flattened(named, settings)
    assert schema is not None
    source = read_flattened({"__db": "d", "__schema": "s", "__table": "a.b"}, schema)
    assert source is not None
    assert source.table == TableId(database="d", schema="s", table="a.b")
    assert flattened(row(name), settings) is not None  # a delete of mode tombstone


def test_database_and_table_alone_do_not_tell_the_schema() -> None:
    value = row("shop.public.orders", column("__db", TEXT), column("__table", TEXT))
    with pytest.raises(WireError, match="nothing tells its table's schema"):
        flattened(value, FlattenedSettings(add_fields=("db", "table")))


def test_a_column_that_only_looks_like_metadata_is_a_column() -> None:
    value = row("shop.public.orders", column("__op", TEXT), column("__deleted", INT32))
    schema = flattened(value, DEFAULT)
    assert schema is not None
    assert [member.field for member in schema.columns] == ["id", "__op", "__deleted"]
    assert (schema.op, schema.deleted) == (None, None)


def test_a_field_that_cannot_be_what_the_settings_say_is_refused() -> None:
    with pytest.raises(WireError, match=r"'__lsn' is of type string, not int64; set connector\.flattened"):
        flattened(row("shop.public.orders", column("__lsn", TEXT)), FlattenedSettings(add_fields=("lsn",)))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"id": 1, "__deleted": "perhaps"}, "'__deleted' is neither true nor false"),
        ({"id": 1, "__op": "t"}, "'__op' is not an operation"),
        ({"id": 1, "__op": 7}, "'__op' is not an operation"),
        (b"[1]", "its payload is not an object"),
    ],
)
def test_a_payload_that_makes_no_sense_is_refused(payload: bytes | dict[str, object], reason: str) -> None:
    value = row("shop.public.orders", column("__deleted", TEXT), column("__op", TEXT))
    schema = flattened(value, FlattenedSettings(add_fields=("op",)))
    assert schema is not None
    with pytest.raises(WireError, match=reason):
        read_flattened(payload, schema)


@pytest.mark.parametrize(
    ("entry", "field", "meaning"),
    [
        ("op", "__op", "op"),
        ("ts_ms", "__ts_ms", "ts_ms"),
        ("ts_us", "__ts_us", "ts_us"),
        ("lsn", "__lsn", "source.lsn"),
        ("source.lsn", "__source_lsn", "source.lsn"),
        ("source.op", "__source_op", "op"),
        ("id", "__id", "transaction.id"),
        ("transaction.total_order", "__transaction_total_order", "transaction.total_order"),
        ("before.name", "__before_name", "before.name"),
        ("table:of", "__of", "source.table"),
        ("source.ts_ms:AT", "__AT", "source.ts_ms"),
        (" table ", "__table", "source.table"),
    ],
)
def test_an_entry_of_add_fields_is_named_as_the_transform_names_it(entry: str, field: str, meaning: str) -> None:
    assert FlattenedSettings(add_fields=(entry,)).meanings == {field: meaning}


def test_an_entry_with_two_colons_is_refused() -> None:
    with pytest.raises(ConfigError, match="more than one colon"):
        FlattenedSettings(add_fields=("a:b:c",))


def test_an_envelope_is_no_flattened_event() -> None:
    value = captured("router")[0].value
    assert value is not None
    assert flattened(read_schema(split(value).prefix), DEFAULT) is None


def test_the_routers_addition_to_the_key_is_no_column() -> None:
    record = captured("router")[0]
    assert record.key is not None
    assert record.value is not None
    key = read_schema(split(record.key).prefix)
    assert [member.field for member in key.members] == ["id", "__dbz__physicalTableIdentifier"]
    event = event_schema(read_schema(split(record.value).prefix), key)
    assert event.key == ("id",)
