"""In mode `append` a table holds every event as a row, and nothing is ever changed in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from cdc_sync.core.migration.migration import migration
from cdc_sync.core.migration.modes import METADATA
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32, INT64, STRING
from cdc_sync.spark.changelog import TS, WHOLE_BEFORE, changelog
from cdc_sync.spark.columns import HAS_BEFORE, OFFSET, OP, PARTITION, POSITION, before_column, value_column
from cdc_sync.spark.position import POSITION_TYPE
from cdc_sync.spark.types import to_spark
from cdc_sync.targets.protocol import Batch, Target
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake, fresh_name, schema_of

ID, A, B = Column(id=1, name="id", type=INT64), Column(id=2, name="a", type=INT32), Column(id=3, name="b", type=STRING)
SCHEMA = schema_of(ID, A, B)
LABELS = [name for name, _ in METADATA]


def write(lake: Lake, schema: InternalSchema, first: int, *events: Mapping[str, Any], whole: bool = False) -> None:
    """Append events from an offset on, the marker says so; `whole` is whether deletes hold more than the key."""
    fields = [
        T.StructField(PARTITION, T.IntegerType()),
        T.StructField(OFFSET, T.LongType()),
        T.StructField(OP, T.StringType()),
        T.StructField(POSITION, POSITION_TYPE),
        T.StructField(TS, T.LongType()),
        T.StructField(HAS_BEFORE, T.BooleanType()),
        T.StructField(WHOLE_BEFORE, T.BooleanType()),
        *(T.StructField(value_column(column.id), to_spark(column.type)) for column in schema.columns),
        *(T.StructField(before_column(column.id), to_spark(column.type)) for column in schema.columns),
    ]
    rows = [
        (
            *(0, offset, event["op"], (0, "postgresql", [offset, offset + 1]), 0, event["op"] == "d", whole),
            *(
                event.get(column.name) if event["op"] != "d" or column.name == "id" else None
                for column in schema.columns
            ),
            *(event.get(column.name) if event["op"] == "d" else None for column in schema.columns),
        )
        for offset, event in enumerate(events, first)
    ]
    converted = lake.session.createDataFrame(rows, T.StructType(fields))
    batch = Batch(
        rows=changelog(converted, schema, topic="t"),
        schema=schema,
        progress=Progress(version=1, offsets={"t": {0: first + len(events)}}),
        behind=lake.held,
        mode="append",
    )
    lake.target.write(lake.name, batch)


def created(lake: Lake, schema: InternalSchema = SCHEMA) -> Lake:
    lake.migrate(migration(None, None, version(1, schema), capabilities=lake.target.capabilities, mode="append"))
    return lake


def change(lake: Lake, before: InternalSchema, after: InternalSchema) -> None:
    first = version(1, before)
    lake.migrate(migration(first, first, version(2, after), mode="append"))


def logged(lake: Lake) -> list[tuple[Any, ...]]:
    """The rows by offset: values, then operation, offset and position."""
    found = sorted(lake.rows(), key=lambda row: int(row["_cdc_offset"]))
    assert all(list(row)[-len(LABELS) :] == LABELS for row in found)
    return [
        (*list(row.values())[: -len(LABELS)], row["_cdc_op"], row["_cdc_offset"], row["_cdc_position"]) for row in found
    ]


@pytest.mark.spark
def test_every_event_is_a_row(lake: Lake) -> None:
    created(lake)
    write(lake, SCHEMA, 0, {"op": "r", "id": 1, "a": 1}, {"op": "u", "id": 1, "a": 2}, {"op": "u", "id": 1, "a": 2})
    write(lake, SCHEMA, 3, {"op": "d", "id": 1, "a": 2, "b": "x"}, {"op": "t"}, {"op": "c", "id": 1})
    assert logged(lake) == [
        (1, 1, None, "r", 0, "postgresql:0/1"),
        (1, 2, None, "u", 1, "postgresql:1/2"),
        (1, 2, None, "u", 2, "postgresql:2/3"),
        (1, None, None, "d", 3, "postgresql:3/4"),
        (None, None, None, "t", 4, "postgresql:4/5"),
        (1, None, None, "c", 5, "postgresql:5/6"),
    ]


@pytest.mark.spark
def test_a_delete_is_the_whole_row_where_it_is_known(lake: Lake) -> None:
    write(created(lake), SCHEMA, 0, {"op": "d", "id": 1, "a": 2, "b": "x"}, whole=True)
    assert logged(lake) == [(1, 2, "x", "d", 0, "postgresql:0/1")]


@pytest.mark.spark
def test_columns_come_and_go_before_the_metadata_and_no_row_is_filled(lake: Lake) -> None:
    created(lake)
    write(lake, SCHEMA, 0, {"op": "c", "id": 1, "a": 1, "b": "x"})
    first = Column(id=4, name="first", type=INT32, initial=7)
    last = Column(id=5, name="last", type=STRING, initial="old")
    after = replace(SCHEMA, columns=(first, ID, replace(B, name="c"), last), last_column_id=5)
    change(lake, SCHEMA, after)
    write(lake, after, 1, {"op": "c", "first": 1, "id": 2, "c": "y", "last": "new"}, {"op": "d", "id": 2})
    assert logged(lake) == [
        (None, 1, "x", None, "c", 0, "postgresql:0/1"),
        (1, 2, "y", "new", "c", 1, "postgresql:1/2"),
        (None, 2, None, None, "d", 2, "postgresql:2/3"),
    ]
    assert [*lake.rows()[0]] == ["first", "id", "c", "last", *LABELS]


@pytest.mark.spark
@pytest.mark.parametrize(
    "after",
    [
        replace(SCHEMA, columns=(B, A, ID)),
        replace(SCHEMA, columns=(Column(id=4, name="n", type=INT32),), primary_key=(4,), last_column_id=4),
        replace(SCHEMA, primary_key=(2, 1)),
        replace(SCHEMA, primary_key=()),
    ],
    ids=["moved", "all new", "another key", "no key"],
)
def test_metadata_stays_behind_whatever_happens(lake: Lake, after: InternalSchema) -> None:
    created(lake)
    write(lake, SCHEMA, 0, {"op": "c", "id": 1, "a": 1, "b": "x"})
    change(lake, SCHEMA, after)
    write(lake, after, 1, {"op": "c", **{column.name: None for column in after.columns}})
    assert [list(row) for row in lake.rows()] == [[*(column.name for column in after.columns), *LABELS]] * 2


@pytest.mark.spark
def test_the_table_says_what_it_was_made_to_hold(lake: Lake) -> None:
    created(lake)
    write(lake, SCHEMA, 4, {"op": "c", "id": 1})
    state = lake.target.state(lake.name)
    assert state is not None
    assert (state.mode, state.version) == ("append", 1)
    assert state.progress == Progress(version=1, offsets={"t": {0: 5}})


@pytest.mark.spark
@pytest.mark.iceberg
def test_a_changelog_only_grows(session: SparkSession, iceberg: Target) -> None:
    lake = created(Lake(target=iceberg, session=session, name=fresh_name()))
    write(lake, SCHEMA, 0, {"op": "c", "id": 1})
    after = replace(SCHEMA, columns=(ID, A, B, Column(id=4, name="n", type=INT32, initial=7)), last_column_id=4)
    change(lake, SCHEMA, after)
    write(lake, after, 1, {"op": "u", "id": 1, "n": 8}, {"op": "d", "id": 1})
    write(lake, after, 3)
    found = session.sql(f"SELECT operation FROM {lake.sql_name}.snapshots").collect()
    assert [row.operation for row in found] == ["append"] * 3
    properties: dict[str, str] = dict(session.sql(f"SHOW TBLPROPERTIES {lake.sql_name}").collect())
    assert properties["cdc_sync.mode"] == "append"
