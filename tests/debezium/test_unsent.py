"""Which columns may show NULL in place of a value that did not change, by connector and type."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.conversions import wire_column
from cdc_sync.core.debezium.unsent import may_lose_elements, null_may_be_unsent, unread_fields, unsigned_fields
from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.testing import BYTES, DATE, FLOAT64, INT16, INT32, INT64, TEXT, array, column, decimal, struct

BOOLEAN = ConnectSchema(type="boolean")
UUID, JSON = (replace(TEXT, name=f"io.debezium.data.{name}") for name in ("Uuid", "Json"))
GEOMETRY = struct("io.debezium.data.geometry.Geometry", column("wkb", BYTES), column("srid", INT32))
CIRCLE = struct("io.debezium.data.geometry.Circle", column("radius", FLOAT64))
POINT = struct("io.debezium.data.geometry.Point", column("x", FLOAT64), column("y", FLOAT64), column("wkb", BYTES))


def _schema(type_: ConnectSchema, connector: str | None, source: str = "") -> EventSchema:
    parameters = {"__debezium.source.column.type": source} if source else {}
    found = wire_column(replace(column("a", type_), parameters=parameters))
    return EventSchema(columns=(found,), key=(), record_key=(), connector=connector)


def _in_doubt(type_: ConnectSchema, connector: str | None = "postgresql", source: str = "") -> bool:
    schema = _schema(type_, connector, source)
    return null_may_be_unsent(schema, schema.columns[0])


@pytest.mark.parametrize("element", [decimal(12, 2), BOOLEAN, FLOAT64, INT16, TEXT])
def test_null_in_an_array_without_a_placeholder_may_be_unsent(element: ConnectSchema) -> None:
    assert _in_doubt(array(element))
    assert _in_doubt(array(element), connector=None), "a connector that is not known may be Postgres'"
    assert not _in_doubt(array(element), connector="mysql")


@pytest.mark.parametrize("element", [INT32, INT64, DATE, BYTES, UUID, JSON])
def test_null_is_null_in_an_array_that_has_a_placeholder(element: ConnectSchema) -> None:
    assert not _in_doubt(array(element))


@pytest.mark.parametrize("type_", [TEXT, INT32, decimal(12, 2), BYTES, POINT, CIRCLE, JSON])
def test_null_is_null_where_a_placeholder_is_sent_or_nothing_is_stored_out_of_line(type_: ConnectSchema) -> None:
    assert not _in_doubt(type_)


def test_a_geometry_is_stored_out_of_line_and_has_no_placeholder() -> None:
    assert _in_doubt(GEOMETRY)


@pytest.mark.parametrize(("source", "in_doubt"), [("_TEXT", False), ("_VARCHAR", False), ("_BPCHAR", True), ("", True)])
def test_the_source_s_type_tells_arrays_of_texts_apart_where_it_is_propagated(source: str, *, in_doubt: bool) -> None:
    assert _in_doubt(array(TEXT), source=source) is in_doubt


@pytest.mark.parametrize(
    ("type_", "propagated", "told", "unsigned"),
    [
        (INT64, "BIGINT UNSIGNED", "", True),
        (INT64, "", "bigint(20) unsigned", True),
        (INT64, "BIGINT UNSIGNED ZEROFILL", "", True),
        (INT64, "BIGINT", "bigint unsigned", False),
        (INT64, "", "bigint", False),
        (INT64, "", "", False),
        (INT32, "INT UNSIGNED", "", False),
        (decimal(20, 0), "BIGINT UNSIGNED", "", False),
    ],
)
def test_numbers_that_are_unsigned_at_the_source_are_known_by_its_type(
    type_: ConnectSchema, propagated: str, told: str, *, unsigned: bool
) -> None:
    schema = _schema(type_, "mysql", propagated)
    assert unsigned_fields(schema, {"a": told}) == ({"a"} if unsigned else set())


def test_columns_of_the_type_name_are_known_by_the_source_s_type() -> None:
    assert unread_fields(_schema(TEXT, "postgresql", "NAME")) == {"a"}
    assert unread_fields(_schema(TEXT, "postgresql"), {"a": "name"}) == {"a"}
    assert unread_fields(_schema(TEXT, "postgresql"), {"a": "text"}) == set()


def test_an_array_of_nulls_may_be_one_of_several_dimensions() -> None:
    for type_, connector, wanted in ((array(INT32), "postgresql", True), (array(INT32), "mysql", False)):
        schema = _schema(type_, connector)
        assert may_lose_elements(schema, schema.columns[0]) is wanted
    text = _schema(TEXT, "postgresql")
    assert not may_lose_elements(text, text.columns[0])
