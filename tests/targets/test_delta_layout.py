"""What becomes of a Delta table's partition columns when its columns change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.migration.migration import with_schemas
from cdc_sync.core.schema.changes import SchemaChange
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning
from cdc_sync.core.schema.types import DATE, INT16, INT32, STRING, TIMESTAMP_TZ
from cdc_sync.targets.common.partition_values import Division, assignments, insertion
from cdc_sync.targets.common.properties import PARTITION_PROPERTY
from cdc_sync.targets.delta.fields import COLUMN_ID, PHYSICAL_NAME
from cdc_sync.targets.delta.layout import Layout, divided, new_layout, relabelled, rewritten
from tests.targets.conftest import schema_of

pytestmark = pytest.mark.spark

ID, REGION = Column(id=1, name="id", type=INT16), Column(id=2, name="region", type=STRING)
AT = Column(id=3, name="at", type=TIMESTAMP_TZ)
SCHEMA = schema_of(ID, REGION, AT)


def made(text: str, schema: InternalSchema = SCHEMA) -> Layout:
    """A table as Delta would have named its columns."""
    layout = new_layout(schema, "upsert", Partitioning.parse([text]), {PARTITION_PROPERTY: text})
    fields = [
        {**field, "metadata": {PHYSICAL_NAME: f"col-{field['name']}", COLUMN_ID: number}}
        for number, field in enumerate(layout.fields, 1)
    ]
    return replace(layout, fields=fields)


def steps(after: InternalSchema, before: InternalSchema = SCHEMA) -> tuple[tuple[InternalSchema, SchemaChange], ...]:
    return with_schemas(before, diff(before, after))


def physical(layout: Layout) -> dict[str, str | None]:
    """The partition columns, and what data files know them by."""
    found = {field["name"]: field.get("metadata", {}).get(PHYSICAL_NAME) for field in layout.fields}
    return {name: found[name] for name in layout.divided_by}


def names(layout: Layout) -> list[str]:
    return [field["name"] for field in layout.fields]


def stamped(layout: Layout) -> tuple[str, str]:
    return str(layout.partitioning), layout.properties[PARTITION_PROPERTY]


def test_derived_columns_stand_behind_all_others_of_a_changelog_too() -> None:
    layout = new_layout(SCHEMA, "append", Partitioning.parse(["day(_cdc_ts), region"]), {})
    assert names(layout)[-3:] == ["_cdc_unchanged", "cdc_sync_by_day__cdc_ts", "cdc_sync_by_value_region"]
    assert layout.divided_by == ("cdc_sync_by_day__cdc_ts", "cdc_sync_by_value_region")


def test_a_table_of_which_nothing_is_said_has_no_property_of_it() -> None:
    layout = new_layout(SCHEMA, "upsert", None, {})
    assert (layout.properties, layout.divided_by, layout.partitioning) == ({}, (), UNPARTITIONED)


def test_columns_that_swap_names_swap_those_of_their_partitions_and_keep_their_files() -> None:
    other = replace(REGION, id=4, name="zone")
    schema = schema_of(ID, REGION, AT, other)
    layout = made("region, zone, day(at)", schema)
    after = schema_of(ID, replace(REGION, name="zone"), AT, replace(other, name="region"))
    found = relabelled(layout, steps(after, schema), after, "upsert")
    assert physical(found) == {
        "cdc_sync_by_value_zone": "col-cdc_sync_by_value_region",
        "cdc_sync_by_value_region": "col-cdc_sync_by_value_zone",
        "cdc_sync_by_day_at": "col-cdc_sync_by_day_at",
    }
    assert stamped(found) == ("zone, region, day(at)", "region, zone, day(at)")


def test_what_was_computed_from_a_dropped_column_stays_and_gives_its_name_away() -> None:
    layout = made("region, day(at), bucket(4, id)")
    after = schema_of(ID, replace(AT, name="region"))
    found = relabelled(layout, steps(after), after, "upsert")
    assert physical(found) == {
        "cdc_sync_by_dropped_4": "col-cdc_sync_by_value_region",
        "cdc_sync_by_day_region": "col-cdc_sync_by_day_at",
        "cdc_sync_by_bucket4_id": "col-cdc_sync_by_bucket4_id",
    }
    assert stamped(found) == ("day(region), bucket(4, id)", "day(region), bucket(4, id)")
    derived = found.derived(after, "upsert")
    assert [column.name for column in derived] == ["cdc_sync_by_day_region", "cdc_sync_by_bucket4_id"]
    assert found.left(derived) == {"cdc_sync_by_dropped_4": "string"}


def test_new_and_moved_columns_and_types_that_widen_in_place_leave_partitions_alone() -> None:
    layout = made("region, bucket(4, id), truncate(2, id)")
    new = Column(id=4, name="new", type=STRING)
    after = schema_of(new, AT, replace(ID, type=INT32), REGION, Column(id=5, name="last", type=STRING))
    found = relabelled(layout, steps(after), after, "upsert")
    assert names(found) == [*("new", "at", "id", "region", "last"), *layout.divided_by]
    assert physical(found) == physical(layout)
    assert stamped(found) == stamped(layout)


def test_a_rewrite_leaves_nothing_behind() -> None:
    layout = made("region, day(at), bucket(4, at)")
    after = schema_of(ID, replace(AT, type=STRING))
    found = rewritten(layout, steps(after), after, "upsert")
    assert physical(found) == {"cdc_sync_by_bucket4_at": None}
    assert names(found) == ["id", "at", "cdc_sync_by_bucket4_at"]
    assert stamped(found) == ("bucket(4, at)", "bucket(4, at)")

    fewer = schema_of(ID, REGION)
    left = relabelled(made("region, day(at)"), steps(fewer), fewer, "upsert")
    assert "cdc_sync_by_dropped_5" in names(left)
    found = rewritten(left, (), fewer, "upsert")
    assert names(found) == ["id", "region", "cdc_sync_by_value_region"]


def test_a_new_partitioning_takes_the_place_of_the_one_before() -> None:
    layout = divided(made("region, day(at)"), Partitioning.parse(["hour(at)"]), SCHEMA, "upsert")
    assert names(layout) == ["id", "region", "at", "cdc_sync_by_hour_at"]
    assert str(layout.partitioning) == "hour(at)"
    assert divided(layout, UNPARTITIONED, SCHEMA, "upsert").divided_by == ()


def test_a_type_that_changes_without_rows_is_divided_anew_later() -> None:
    layout = made("region")
    after = schema_of(ID, replace(REGION, type=DATE), AT)
    found = relabelled(layout, steps(after), after, "upsert")
    assert stamped(found) == ("", "")
    assert list(physical(found)) == ["cdc_sync_by_dropped_4"]


def test_statements_name_derived_columns_where_their_source_gets_a_value() -> None:
    layout = made("bucket(4, id), region")
    division = Division(derived=layout.derived(SCHEMA, "upsert"), left={"cdc_sync_by_dropped_4": "date"})
    found = division.also({"id": "s.c1", "at": "s.c3"})
    assert list(found) == ["cdc_sync_by_bucket4_id"]
    assert "s.c1" in found["cdc_sync_by_bucket4_id"]
    whole = division.of_new_row({"id": "s.c1", "region": "s.c2", "at": "s.c3"})
    assert list(whole) == ["cdc_sync_by_bucket4_id", "cdc_sync_by_value_region", "cdc_sync_by_dropped_4"]
    assert assignments({"a`b": "1", "c": "2"}) == "`a``b` = 1, `c` = 2"
    assert insertion({"a`b": "1", "c": "2"}) == "(`a``b`, `c`) VALUES (1, 2)"
