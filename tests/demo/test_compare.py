"""What the demo's comparison notices, and how it says so."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from cdc_sync.demo.compare import (
    ColumnImage,
    TableImage,
    differences,
    iceberg_type,
    in_iceberg_types,
    plain,
    same,
    shown,
)
from cdc_sync.errors import SchemaError

KEY = ("id",)


def image(columns: str, *rows: tuple[object, ...]) -> TableImage:
    """Columns as `"id integer; name text"`."""
    pairs = [column.split(" ", 1) for column in columns.split("; ")]
    return TableImage(
        name="inv.orders", columns=tuple(ColumnImage(name=name, type=type_) for name, type_ in pairs), rows=rows
    )


SOURCE = image("id integer; name text; price numeric(8,2)", (1, "a", Decimal("1.50")), (2, None, None))
LAKE = in_iceberg_types(SOURCE)


def test_a_source_and_a_lake_that_say_the_same_in_their_own_types_are_equal() -> None:
    assert differences(SOURCE, LAKE, KEY) == ()


def test_the_order_of_rows_is_no_difference() -> None:
    assert differences(SOURCE, replace(LAKE, rows=LAKE.rows[::-1]), KEY) == ()


def test_a_missing_table_is_found() -> None:
    assert differences(SOURCE, None, KEY) == ("table inv.orders is not in the lake",)


def test_a_changed_value_is_found() -> None:
    lake = replace(LAKE, rows=((1, "b", Decimal("1.50")), LAKE.rows[1]))
    assert differences(SOURCE, lake, KEY) == ("row id=1: name is 'a' in the source, 'b' in the lake",)


def test_null_is_not_a_default() -> None:
    lake = replace(LAKE, rows=(LAKE.rows[0], (2, "", None)))
    assert differences(SOURCE, lake, KEY) == ("row id=2: name is NULL in the source, '' in the lake",)


def test_a_missing_row_is_found() -> None:
    assert differences(SOURCE, replace(LAKE, rows=LAKE.rows[:1]), KEY) == ("row id=2 is missing in the lake",)


def test_a_row_that_should_be_gone_is_found() -> None:
    lake = replace(LAKE, rows=(*LAKE.rows, (3, "c", None)))
    assert differences(SOURCE, lake, KEY) == ("row id=3 is in the lake only",)


def test_a_row_that_is_there_twice_is_found() -> None:
    lake = replace(LAKE, rows=(*LAKE.rows, LAKE.rows[0]))
    assert differences(SOURCE, lake, KEY) == ("row id=1 is in the lake 2 times",)


def test_a_wrong_type_is_found() -> None:
    lake = replace(LAKE, columns=(*LAKE.columns[:2], ColumnImage(name="price", type="double")))
    assert differences(SOURCE, lake, KEY) == (
        "column price is numeric(8,2) in the source, which is decimal(8, 2); in the lake it is double",
    )


def test_a_wrong_order_of_columns_is_found() -> None:
    lake = image("id int; price decimal(8, 2); name string", (1, Decimal("1.50"), "a"), (2, None, None))
    assert differences(SOURCE, lake, KEY) == (
        "the order of columns is id, name, price in the source, id, price, name in the lake",
    )


def test_a_rename_that_did_not_arrive_is_a_missing_and_a_left_over_column() -> None:
    lake = replace(LAKE, columns=(LAKE.columns[0], ColumnImage(name="old", type="string"), LAKE.columns[2]))
    assert differences(SOURCE, lake, KEY) == (
        "column name is missing in the lake",
        "column old is in the lake only",
    )


def test_rows_without_their_key_are_not_compared_by_guess() -> None:
    lake = replace(LAKE, columns=(ColumnImage(name="key", type="int"), *LAKE.columns[1:]))
    assert "rows cannot be matched: key column id is missing in the lake" in differences(SOURCE, lake, KEY)


@pytest.mark.parametrize(
    ("source", "iceberg"),
    [
        ("smallint", "int"),
        ("bigint", "long"),
        ("numeric(12,2)", "decimal(12, 2)"),
        ("character varying(40)", "string"),
        ("timestamp(3) with time zone", "timestamptz"),
        ("timestamp without time zone", "timestamp"),
        ("time(0) without time zone", "string"),
        ("text[]", "list<string>"),
        ("bytea", "binary"),
        ("tinyint(1)", "int"),
        ("int(10) unsigned", "long"),
        ("decimal(12,2)", "decimal(12, 2)"),
        ("enum('small','large')", "string"),
        ("datetime(6)", "timestamp"),
        ("timestamp(6)", "timestamptz"),
    ],
)
def test_a_source_type_has_one_iceberg_type(source: str, iceberg: str) -> None:
    assert iceberg_type(source) == iceberg


def test_a_type_nobody_thought_of_is_refused() -> None:
    with pytest.raises(SchemaError, match="Cannot compare a column of type 'inet'"):
        iceberg_type("inet")


def test_values_of_different_kinds_are_different_even_if_python_calls_them_equal() -> None:
    assert not same(True, 1)
    assert not same(1.5, Decimal("1.5"))
    assert not same("1", 1)
    assert same(Decimal("1.50"), Decimal("1.5"))


def test_one_instant_in_two_zones_has_one_form() -> None:
    there = datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert plain(there) == datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert plain(float("nan")) == plain(float("nan"))
    assert plain([1, [2]]) == (1, (2,))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (b"\xde\xad", "\\xdead"),
        ((1, None), "{1, NULL}"),
        (Decimal("0.10"), "0.10"),
        (date(2024, 2, 29), "2024-02-29"),
        (datetime(2024, 2, 29, 1, 2, 3), "2024-02-29 01:02:03"),
        ("a", "'a'"),
    ],
)
def test_values_read_as_in_a_database(value: object, text: str) -> None:
    assert shown(value) == text
