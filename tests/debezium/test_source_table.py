"""The fake source behaves as the captured one: records, keys, positions, what `before` holds."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from cdc_sync.core.debezium.envelope import event_schema, read_schema, read_source, split
from cdc_sync.errors import SchemaError
from cdc_sync.testing import INT32, INT64, TEXT, Record, SourceTable, Wal, column, decimal, json_text


def table(**options: Any) -> SourceTable:
    columns = [
        column("id", INT32, optional=False),
        column("name", TEXT, optional=False),
        column("price", decimal(6, 2), default=Decimal("1.50")),
    ]
    return SourceTable("t", columns, **options)


def payload(record: Record) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(split(record.value or b"").payload)
    return loaded


def key(record: Record) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(split(record.key or b"").payload)
    return loaded


def test_an_insert_an_update_and_a_delete_write_what_debezium_writes() -> None:
    t = table()
    (created,) = t.insert(id=1, name="a", price=Decimal("2.25"))
    (updated,) = t.update({"id": 1}, name="b")
    deleted, tombstone = t.delete({"id": 1})
    assert [payload(record)["op"] for record in (created, updated, deleted)] == ["c", "u", "d"]
    assert payload(created)["after"] == {"id": 1, "name": "a", "price": "AOE="}
    assert payload(updated)["before"] is None
    assert payload(deleted)["before"] == {"id": 1, "name": "", "price": "AJY="}
    assert key(deleted) == key(tombstone) == {"id": 1}
    assert tombstone.value is None
    assert t.records == [created, updated, deleted, tombstone]
    assert t.rows == []


def test_full_identity_shows_the_whole_row_before() -> None:
    t = table(full_identity=True)
    t.insert(id=1, name="a", price=None)
    (updated,) = t.update({"id": 1}, {"name": "b"})
    deleted, _ = t.delete({"id": 1})
    assert payload(updated)["before"]["name"] == "a"
    assert payload(deleted)["before"]["name"] == "b"


def test_a_changed_key_is_a_delete_a_tombstone_and_an_insert_at_one_place() -> None:
    t = table()
    t.insert(id=1, name="a")
    deleted, tombstone, created = t.update({"id": 1}, id=2)
    assert (key(deleted), key(tombstone), key(created)) == ({"id": 1}, {"id": 1}, {"id": 2})
    assert payload(deleted)["source"]["lsn"] == payload(created)["source"]["lsn"]


def test_a_truncate_has_no_key_and_a_table_without_key_neither() -> None:
    t = table(key=())
    (created,) = t.insert(id=1, name="a")
    (truncated,) = table().truncate()
    assert created.key is truncated.key is None
    assert payload(truncated)["op"] == "t"


def test_null_shows_as_the_default_unless_the_converter_keeps_it() -> None:
    (bad,) = table().insert(id=1, name="a", price=None)
    (good,) = table(null_is_default=False).insert(id=1, name="a", price=None)
    assert payload(bad)["after"]["price"] == "AJY="
    assert payload(good)["after"]["price"] is None
    assert read_source(split(bad.value or b"").payload).null_is_default is True
    assert read_source(split(good.value or b"").payload).null_is_default is False


def test_changed_columns_show_in_the_next_record_only() -> None:
    t = table()
    t.insert(id=1, name="a")
    t.add_column(column("flag", INT64, default=7), initial=7)
    t.rename_column("name", "label")
    t.alter_column("id", lambda c: column("id", INT64, optional=False))
    t.drop_column("price")
    assert len(t.records) == 1
    (updated,) = t.update({"id": 1}, label="b")
    assert payload(updated)["after"] == {"id": 1, "label": "b", "flag": 7}
    schema = event_schema(
        read_schema(split(updated.value or b"").prefix), read_schema(split(updated.key or b"").prefix)
    )
    assert [c.name for c in schema.columns] == ["id", "label", "flag"]
    assert schema.key == ("id",)


def test_a_renamed_key_column_and_converted_rows_follow() -> None:
    t = table()
    t.insert(id=1, name="7")
    t.rename_column("id", "key")
    t.alter_column("name", lambda c: replace(column("name", INT32), optional=False), convert=lambda v: int(str(v)))
    (updated,) = t.update({"key": 1}, price=None)
    assert key(updated) == {"key": 1}
    assert payload(updated)["after"]["name"] == 7
    t.drop_column("key")
    assert t.key == ()


def test_tables_of_one_source_share_places_and_transactions() -> None:
    wal = Wal()
    first, second = table(wal=wal), SourceTable("u", [column("id", INT32, optional=False)], wal=wal)
    first.insert(id=1, name="a")
    with wal.transaction():
        second.insert(id=1)
        first.update({"id": 1}, name="b")
    second.insert(id=2)
    records = [first.records[0], second.records[0], first.records[1], second.records[1]]
    sources = [read_source(split(record.value or b"").payload) for record in records]
    assert [source.position for source in sources] == sorted(source.position for source in sources)
    assert sources[0].last_commit is None
    assert sources[1].last_commit == sources[2].last_commit
    assert len({source.lsn for source in sources}) == 4


def test_a_snapshot_reads_all_rows_at_one_place() -> None:
    t = table()
    for number in range(3):
        t.insert(id=number, name="a")
    read = t.snapshot()
    sources = [read_source(split(record.value or b"").payload) for record in read]
    assert all(source.snapshot for source in sources)
    assert len({source.position for source in sources}) == 1
    marks = [payload(record)["source"]["snapshot"] for record in read]
    assert marks == ["first_in_data_collection", "true", "last_in_data_collection"]


def test_topics_are_sanitised_and_the_source_block_is_not() -> None:
    t = SourceTable("Odd.Table é", [column("id", INT32)], schema="Odd Schema", prefix="pgj")
    (created,) = t.insert(id=1)
    assert t.topic == "pgj.Odd_Schema.Odd.Table__"
    assert payload(created)["source"]["table"] == "Odd.Table é"


def test_statements_on_columns_that_are_not_there_are_refused() -> None:
    t = table()
    for statement in (lambda: t.insert(no=1), lambda: t.drop_column("no"), lambda: t.add_column(column("id", TEXT))):
        with pytest.raises(SchemaError):
            statement()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        (0.0, "0.0"),
        (-2.5e-300, "-2.5E-300"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (5e-324, "4.9E-324"),
        (123456789.0, "1.23456789E8"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
        ('\x1f\n"\\/é😀', '"\\u001F\\n\\"\\\\/é\\uD83D\\uDE00"'),
    ],
)
def test_values_are_written_as_java_writes_them(value: object, text: str) -> None:
    assert json_text(value) == text


def test_a_value_that_is_not_encoded_is_refused() -> None:
    with pytest.raises(TypeError, match="encode it first"):
        json_text(object())
