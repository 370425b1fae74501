"""A schema that contradicts itself cannot be built."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.schema.internal import EMPTY_SCHEMA, Column, InternalSchema
from cdc_sync.core.schema.types import INT32, STRING, ListType, MapType, nested_ids
from cdc_sync.errors import SchemaError
from tests.schema.tables import known

TABLE = known("id a z", retired="a")


@pytest.mark.parametrize(
    ("columns", "key", "last", "message"),
    [
        ((Column(id=1, name="a", type=INT32), Column(id=1, name="b", type=INT32)), (), 9, "id is used twice"),
        ((Column(id=1, name="a", type=ListType(element_id=1, element=INT32)),), (), 9, "id is used twice"),
        ((Column(id=1, name="a", type=INT32), Column(id=2, name="a", type=INT32)), (), 9, "name is used twice"),
        ((Column(id=3, name="a", type=INT32),), (), 2, "id 3 is above"),
        ((Column(id=1, name="a", type=ListType(element_id=3, element=INT32)),), (), 2, "id 3 is above"),
        ((Column(id=1, name="a", type=INT32),), (2,), 9, "names unknown columns"),
    ],
)
def test_contradictions_are_refused(columns: tuple[Column, ...], key: tuple[int, ...], last: int, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        InternalSchema(columns=columns, primary_key=key, last_column_id=last)


def test_columns_are_found_by_id_and_by_exact_name() -> None:
    assert TABLE.column(2).name == "a"
    assert TABLE.find("z") == TABLE.column(3)
    assert TABLE.find("Z") is None
    with pytest.raises(SchemaError, match="no column has id 4"):
        TABLE.column(4)


def test_live_columns_are_those_the_source_has() -> None:
    assert [column.name for column in TABLE.live] == ["id", "z"]
    assert EMPTY_SCHEMA.live == ()


def test_key_columns_come_in_key_order() -> None:
    assert [column.name for column in replace(TABLE, primary_key=(3, 1)).key_columns] == ["z", "id"]


def test_nested_ids_are_listed_depth_first() -> None:
    type_ = MapType(key_id=1, key=STRING, value_id=2, value=ListType(element_id=3, element=INT32))
    assert nested_ids(type_) == (1, 2, 3)
