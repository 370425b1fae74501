"""What a table is partitioned by where the format takes columns only: names, types, and what becomes of them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.migration.capabilities import DELTA, PARQUET
from cdc_sync.core.migration.derived import derived_columns, derived_name, derived_type, followed, held_partitioning
from cdc_sync.core.migration.migration import with_schemas
from cdc_sync.core.migration.namerules import DERIVED_PREFIX
from cdc_sync.core.migration.names import held_name
from cdc_sync.core.schema.changes import SchemaChange
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import Bucket, Identity, PartitionField, Partitioning, Period, Truncate, Unit
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
)

NAMES = st.text(st.sampled_from("aA_0é 😀16"), min_size=1, max_size=30) | st.lists(
    st.sampled_from(("_x0041", "_", "x", "A", "é", "_x00E9_", "0041", "_x005F_")), min_size=1, max_size=4
).map("".join)
UNITS: st.SearchStrategy[Unit] = st.sampled_from(("year", "month", "day", "hour"))
FIELDS: st.SearchStrategy[PartitionField] = st.one_of(
    st.builds(Identity, column=NAMES),
    st.builds(Period, unit=UNITS, column=NAMES),
    st.builds(Bucket, count=st.integers(1, 200), column=NAMES),
    st.builds(Truncate, width=st.integers(1, 200), column=NAMES),
)


def by(text: str) -> Partitioning:
    return Partitioning.parse([text])


def schema(**types: DataType) -> InternalSchema:
    columns = tuple(Column(id=id_, name=name, type=type_) for id_, (name, type_) in enumerate(types.items(), 1))
    return InternalSchema(columns=columns, primary_key=(), last_column_id=99)


def test_a_column_for_each_field_stands_in_their_order() -> None:
    found = derived_columns(
        by("day(at), bucket(16, id), region"), schema(id=INT32, region=STRING, at=TIMESTAMP_TZ), "upsert", DELTA.columns
    )
    assert [(item.name, item.type, item.source) for item in found] == [
        ("cdc_sync_by_day_at", DATE, TIMESTAMP_TZ),
        ("cdc_sync_by_bucket16_id", INT32, INT32),
        ("cdc_sync_by_value_region", STRING, STRING),
    ]


def test_a_changelog_has_them_of_its_own_columns() -> None:
    (found,) = derived_columns(by("month(_cdc_ts)"), schema(id=INT32), "append", DELTA.columns)
    assert (found.name, found.source) == ("cdc_sync_by_month__cdc_ts", TIMESTAMP_TZ)
    assert derived_columns(by("month(_cdc_ts)"), schema(id=INT32), "upsert", DELTA.columns) == ()


@given(FIELDS, FIELDS)
def test_no_two_fields_have_one_name(one: PartitionField, other: PartitionField) -> None:
    for rules in (PARQUET.columns, DELTA.columns):
        first, second = (replace(item, column=held_name(item.column, rules)) for item in (one, other))
        # Columns that differ only in case do not stand in one table.
        folded = [replace(item, column=item.column.casefold()) for item in (first, second)]
        names = [derived_name(item, rules).casefold() for item in (first, second)]
        assert (names[0] == names[1]) == (folded[0] == folded[1])


@given(st.text(min_size=1, max_size=200), FIELDS)
def test_every_name_is_a_folders_and_no_source_column_has_it(name: str, item: PartitionField) -> None:
    for rules in (PARQUET.columns, DELTA.columns):
        field = replace(item, column=held_name(name, rules))
        found = derived_name(field, rules)
        assert found.startswith(DERIVED_PREFIX)
        assert len(found.encode()) <= 90
        assert re.fullmatch("[A-Za-z0-9_]+", found)


@pytest.mark.parametrize("name", ["cdc_sync_by_day_at", "CDC_SYNC_by_", "Cdc_Sync_By_x"])
def test_a_source_column_that_begins_so_is_held_under_another_name(name: str) -> None:
    held = held_name(name, DELTA.columns)
    assert held == f"_x{ord(name[0]):04X}_{name[1:]}"
    assert held_name("cdc_sync_b", DELTA.columns) == "cdc_sync_b"


@pytest.mark.parametrize(
    ("text", "types", "derived"),
    [
        ("c", [INT8, INT16, INT32, INT64], INT64),
        ("truncate(10, c)", [INT8, INT16, INT32, INT64], INT64),
        ("bucket(4, c)", [INT8, INT64, STRING, BINARY, DATE, TIMESTAMP, DecimalType(precision=38, scale=9)], INT32),
        ("c", [STRING, BINARY, FLOAT64, TIMESTAMP, TIMESTAMP_TZ, DecimalType(precision=38, scale=9)], STRING),
        ("c", [BOOLEAN], BOOLEAN),
        ("c", [DATE], DATE),
        ("c", [DecimalType(precision=9, scale=2)], DecimalType(precision=9, scale=2)),
        ("truncate(5, c)", [DecimalType(precision=9, scale=2)], DecimalType(precision=38, scale=2)),
        ("truncate(5, c)", [STRING, BINARY, DecimalType(precision=9, scale=7)], STRING),
        ("year(c)", [DATE, TIMESTAMP, TIMESTAMP_TZ], INT32),
        ("month(c)", [DATE, TIMESTAMP, TIMESTAMP_TZ], STRING),
        ("day(c)", [DATE, TIMESTAMP, TIMESTAMP_TZ], DATE),
        ("hour(c)", [TIMESTAMP, TIMESTAMP_TZ], STRING),
    ],
)
def test_types_are_those_that_all_readers_read_from_a_folders_name(
    text: str, types: list[DataType], derived: DataType
) -> None:
    (item,) = by(text).fields
    assert {derived_type(item, type_) for type_ in types} == {derived}


def test_a_column_that_is_not_there_or_does_not_fit_has_none() -> None:
    assert derived_columns(by("region, day(id)"), schema(id=INT32), "upsert", DELTA.columns) == ()


def test_the_targets_names_are_those_that_it_holds() -> None:
    assert str(held_partitioning(by("`a b`, day(at)"), PARQUET.columns)) == "a_x0020_b, day(at)"


def steps(before: InternalSchema, after: InternalSchema) -> tuple[tuple[InternalSchema, SchemaChange], ...]:
    return with_schemas(before, diff(before, after))


def test_fields_follow_their_columns() -> None:
    before = schema(id=INT32, region=STRING, at=TIMESTAMP_TZ)
    id_, region, at = before.columns
    swapped = replace(before, columns=(id_, replace(region, name="at"), replace(at, name="region")))
    without = replace(before, columns=(id_, at))
    wider = replace(before, columns=(replace(id_, type=INT64), region, replace(at, type=STRING)))
    divided = by("region, day(at), bucket(4, id)")

    assert str(followed(divided, steps(before, swapped))) == "at, day(region), bucket(4, id)"
    assert str(followed(divided, steps(before, without))) == "day(at), bucket(4, id)"
    assert str(followed(divided, steps(before, wider))) == "region, bucket(4, id)"
    assert followed(divided, ()) == divided
