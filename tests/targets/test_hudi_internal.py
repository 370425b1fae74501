"""Columns by their ids, as Hudi's schema-on-read has them; no table and no JVM is needed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import (
    INT8,
    INT64,
    STRING,
    TIMESTAMP,
    DecimalType,
    Field,
    ListType,
    MapType,
    StructType,
)
from cdc_sync.targets.hudi.internal_schema import (
    anew,
    dated,
    fields_of,
    internal_schema,
    is_dated,
    versions_of,
    with_history,
)
from cdc_sync.targets.hudi.misreading import misreads
from cdc_sync.targets.hudi.schema import META, HeldColumns

ID = Column(id=1, name="id", type=INT64)


def schema(*columns: Column) -> str:
    return internal_schema(InternalSchema(columns=(ID, *columns), primary_key=(1,), last_column_id=99), "upsert")


def types(internal: str) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in fields_of(internal) if field["name"] not in META}


def test_ids_are_ours_behind_those_of_hudi_s_own_columns() -> None:
    internal = schema(Column(id=7, name="a", type=STRING, comment="said"))
    assert [field["id"] for field in fields_of(internal)] == [*range(len(META)), 101, 107]
    assert fields_of(internal)[-1] == {"id": 107, "name": "a", "optional": True, "type": "string", "doc": "said"}
    assert json.loads(internal)["max_column_id"] == 199


def test_a_changelog_s_columns_have_ids_below_ours() -> None:
    columns = InternalSchema(columns=(ID,), primary_key=(), last_column_id=1)
    fields = fields_of(internal_schema(columns, "append"))
    assert [(field["id"], field["name"]) for field in fields if field["name"] not in META] == [
        (101, "id"),
        (5, "_cdc_op"),
        (6, "_cdc_topic"),
        (7, "_cdc_partition"),
        (8, "_cdc_offset"),
        (9, "_cdc_position"),
        (10, "_cdc_ts"),
        (11, "_cdc_unchanged"),
    ], "tables that are there have these ids"


def test_everything_inside_a_column_has_its_id() -> None:
    member = Field(id=5, name="m", type=INT8)
    nested = MapType(
        key_id=2, key=STRING, value_id=3, value=ListType(element_id=4, element=StructType(fields=(member,)))
    )
    assert types(schema(Column(id=6, name="a", type=nested)))["a"] == {
        "type": "map",
        "key_id": 102,
        "key": "string",
        "value_id": 103,
        "value": {
            "type": "array",
            "element_id": 104,
            "element": {"type": "record", "fields": [{"id": 105, "name": "m", "optional": True, "type": "int"}]},
            "element_optional": True,
        },
        "value_optional": True,
    }


@pytest.mark.parametrize(
    ("precision", "size"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16)]
)
def test_a_decimal_has_the_bytes_that_spark_s_files_give_it(precision: int, size: int) -> None:
    """Source: Spark 3.5, `Decimal.minBytesForPrecision`."""
    held = types(schema(Column(id=2, name="a", type=DecimalType(precision=precision, scale=0))))["a"]
    assert held == f"decimal_fixed({precision}, 0)[{size}]"


def test_a_local_timestamp_is_the_word_that_hudi_can_read() -> None:
    assert types(schema(Column(id=2, name="a", type=TIMESTAMP)))["a"] == "local_timestamp_micros"


def test_columns_are_dated_by_the_commit_that_brings_them() -> None:
    fresh = schema()
    assert not is_dated(fresh)
    assert is_dated(dated(fresh, "20260101000000000"))
    assert anew(HeldColumns(avro="", internal=dated(fresh, "7"))).internal == fresh
    assert anew(HeldColumns(avro="")).internal is None


def test_of_a_history_the_columns_of_files_that_are_there_are_found() -> None:
    history = ""
    for instant in ("10", "20", "30"):
        history = with_history(dated(schema(), instant), history)
    found = {
        oldest: [json.loads(it)["version_id"] for it in versions_of(history, oldest)] for oldest in (5, 10, 25, 99)
    }
    assert found == {5: [10, 20, 30], 10: [10, 20, 30], 25: [20, 30], 99: [30]}
    assert versions_of("", 5) == ()


X, Y = Column(id=2, name="x", type=STRING), Column(id=3, name="y", type=STRING)


def inside(*names: tuple[int, str]) -> Column:
    return Column(id=4, name="s", type=StructType(fields=tuple(Field(id=i, name=n, type=STRING) for i, n in names)))


NEW = Column(id=9, name="xsuffix", type=STRING)
CASES: dict[str, tuple[str, str, bool]] = {
    "what is there": (schema(X, Y), schema(Y, X), False),
    "a renamed column is asked for by its old name": (schema(X), schema(X, Y), False),
    "what is not there": (schema(NEW), schema(X), False),
    "what is not there, but its name is": (schema(NEW), schema(X, Column(id=8, name="xsuffix", type=STRING)), True),
    "its name, in other letters": (schema(NEW), schema(Column(id=8, name="XSUFFIX", type=STRING)), True),
    "each other's names": (schema(X, Y), schema(X, Y), False),
    "each other's names and places": (
        schema(replace(Y, name="x"), replace(X, name="y")),
        schema(X, Y),
        True,
    ),
    "members that are there": (schema(inside((5, "a"))), schema(inside((6, "b"), (5, "a"))), False),
    "a member that is not there, but its name is": (schema(inside((7, "b"))), schema(inside((6, "b"))), True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_column_is_not_taken_for_another(case: tuple[str, str, bool]) -> None:
    asked, held, expected = case
    assert misreads(asked, held, asked) is expected


def test_what_is_asked_for_under_a_name_that_nobody_gave_it_is_not_read() -> None:
    assert misreads(schema(NEW), schema(X), schema(replace(NEW, name="x")))
    asked, wanted = (schema(inside((5, "a"), (7, name))) for name in ("bsuffix", "b"))
    assert misreads(asked, schema(inside((5, "a"))), wanted)
