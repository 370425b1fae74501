"""Payloads of schema-change records become values, whatever their format; anything else is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.lineage.ddl_records import schema_change, table_id
from cdc_sync.core.lineage.records import ColumnEntry
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.errors import WireError
from tests.evidence.ddl_schema_changes import captured

KAFKA = KafkaPosition(topic="maj", partition=0, offset=7)


def payload(**more: object) -> dict[str, Any]:
    column = {"name": "a", "typeName": "VARCHAR", "typeExpression": "VARCHAR", "length": 5, "scale": None}
    return {
        "source": {"connector": "mysql", "snapshot": "false", "file": "binlog.000002", "pos": 9, "row": 1},
        "databaseName": "inv",
        "schemaName": None,
        "ddl": "alter table t add a varchar(5)",
        "tableChanges": [{"type": "ALTER", "id": '"inv"."t"', "table": {"columns": [column]}}],
        **more,
    }


def test_everything_a_record_says() -> None:
    record = schema_change(payload(), KAFKA)
    assert record.position == SourcePosition(kind="binlog", parts=(2, 9, 1))
    assert (record.connector, record.database, record.schema, record.snapshot) == ("mysql", "inv", None, False)
    assert record.ddl == "alter table t add a varchar(5)"
    (entry,) = record.tables
    assert (entry.action, entry.table) == ("ALTER", TableId(database="inv", schema="", table="t"))
    assert entry.columns == (ColumnEntry(name="a", type="VARCHAR(5)"),)


@pytest.mark.parametrize(
    ("told", "snapshot"),
    [("true", True), ("last", True), (True, True), ("false", False), (None, False), (False, False)],
)
def test_snapshots_are_told_apart(told: object, snapshot: bool) -> None:
    source = {**payload()["source"], "snapshot": told}
    assert schema_change(payload(source=source), KAFKA).snapshot is snapshot


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        ({"typeName": "INT", "typeExpression": "INT"}, "INT"),
        ({"typeName": "DECIMAL", "typeExpression": "DECIMAL", "length": 10, "scale": 2}, "DECIMAL(10,2)"),
        ({"typeName": "ENUM", "typeExpression": "ENUM", "length": 1, "enumValues": ["'a'", "'b'"]}, "ENUM(1)"),
        ({"typeName": "INT UNSIGNED", "typeExpression": "INT"}, "INT UNSIGNED INT"),
        ({"typeName": None, "typeExpression": "GEOMETRY"}, "GEOMETRY"),
        ({}, ""),
    ],
)
def test_the_type_text_holds_all_that_is_said_of_the_type(column: dict[str, Any], type_: str) -> None:
    changes = [{"type": "CREATE", "id": '"inv"."t"', "table": {"columns": [{"name": "a", **column}]}}]
    (entry,) = schema_change(payload(tableChanges=changes), KAFKA).tables
    assert entry.columns is not None
    assert entry.columns[0].type.startswith(type_)
    if "enumValues" in column:
        assert "'b'" in entry.columns[0].type


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('"inv"."t"', ("inv", "", "t")),
        ('"PDB"."S"."T"', ("PDB", "S", "T")),
        ('"Odd db"."Odd.Table é"', ("Odd db", "", "Odd.Table é")),
        ('"a""b"."c""."', ('a"b', "", 'c".')),
        ('"a""b"."c"".""d"', ('a"b', "", 'c"."d')),
        ('"t"', None),
        ("inv.t", None),
        ('"a"."b"."c"."d"', None),
        ('"a"."b".', None),
        ('"a".""', None),
        ("", None),
    ],
)
def test_tables_are_named_in_quotes(text: str, parts: tuple[str, str, str] | None) -> None:
    expected = None if parts is None else TableId(database=parts[0], schema=parts[1], table=parts[2])
    assert table_id(text) == expected


@pytest.mark.parametrize(
    "damage",
    [
        {"source": None},
        {"source": {"pos": 1}},
        {"ddl": 5},
        {"databaseName": 5},
        {"tableChanges": "x"},
        {"tableChanges": ["x"]},
        {"tableChanges": [{"type": "ALTER", "id": "t", "table": None}]},
        {"tableChanges": [{"type": "ALTER", "id": '"a"."t"', "table": None}]},
        {"tableChanges": [{"type": "ALTER", "id": '"a"."t"', "table": {}}]},
        {"tableChanges": [{"type": "ALTER", "id": '"a"."t"', "table": {"columns": [{}]}}]},
        {"tableChanges": [{"type": "MOVE", "id": '"a"."t"', "table": {"columns": []}}]},
    ],
    ids=str,
)
def test_what_is_no_schema_change_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        schema_change(payload(**damage), KAFKA)


def test_a_row_event_is_no_schema_change() -> None:
    row = {"before": None, "after": {}, "op": "c", "source": payload()["source"]}
    with pytest.raises(WireError):
        schema_change(row, KAFKA)


def test_json_and_avro_say_the_same() -> None:
    def plain(capture: str) -> list[object]:
        nowhere = KafkaPosition(topic="", partition=0, offset=0)
        return [replace(record, kafka=nowhere) for record in captured(capture)]

    assert plain("mariadb-json") == plain("mariadb-avro")
    assert len(plain("mariadb-json")) == 161
