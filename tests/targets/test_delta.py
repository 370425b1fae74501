"""What is Delta's own: columns in the table's metadata, the log, and readers that are not Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.changes import UpdateColumnType
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.evolve import apply
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT16, INT32, INT64, STRING, ListType
from cdc_sync.errors import TargetError, UnfitTarget
from cdc_sync.targets.common.properties import VERSION_PROPERTY
from cdc_sync.targets.delta.fields import PHYSICAL_NAME, Field
from cdc_sync.targets.delta.log import forget
from cdc_sync.targets.delta.schema import altered, new_fields
from cdc_sync.targets.delta.target import DeltaTarget
from cdc_sync.targets.protocol import Batch, Target
from tests.targets.conftest import Lake, fresh_name, schema_of

pytestmark = pytest.mark.spark

ID, A, B = Column(id=1, name="id", type=INT64), Column(id=2, name="a", type=INT32), Column(id=3, name="b", type=STRING)
SCHEMA = schema_of(ID, A, B)
PROGRESS = Progress(version=1, offsets={"t": {0: 5}})


def with_columns(*columns: Column) -> InternalSchema:
    return replace(SCHEMA, columns=columns, last_column_id=9)


def changed(after: InternalSchema) -> list[Field]:
    """The fields of a table of `SCHEMA`, as Delta would have named them, after a migration."""
    fields = [{**field, "metadata": {PHYSICAL_NAME: f"col-{field['name']}"}} for field in new_fields(SCHEMA, "upsert")]
    steps, schema = [], SCHEMA
    for change in diff(SCHEMA, after):
        steps.append((schema, change))
        schema = apply(schema, change)
    return altered(fields, steps)


def physical(fields: list[Field]) -> dict[str, str | None]:
    return {field["name"]: field["metadata"].get(PHYSICAL_NAME) for field in fields}


class TestFields:
    def test_small_integers_are_held_as_32_bits_wherever_they_stand(self) -> None:
        schema = with_columns(ID, replace(A, type=INT16), replace(B, type=ListType(element_id=4, element=INT16)))
        _, number, many = new_fields(schema, "upsert")
        assert (number["type"], many["type"]["elementType"]) == ("integer", "integer")

    def test_a_swap_exchanges_names_and_nothing_else(self) -> None:
        after = changed(with_columns(ID, replace(A, name="b"), replace(B, name="a")))
        assert physical(after) == {"id": "col-id", "b": "col-a", "a": "col-b"}

    def test_a_name_that_comes_back_is_another_column(self) -> None:
        after = changed(with_columns(ID, Column(id=4, name="a", type=INT32), B))
        assert physical(after) == {"id": "col-id", "a": None, "b": "col-b"}
        assert list(physical(after)) == ["id", "a", "b"]

    def test_a_column_of_another_type_is_another_column_in_its_place(self) -> None:
        assert physical(changed(with_columns(ID, replace(A, type=STRING), B))) == {
            "id": "col-id",
            "a": None,
            "b": "col-b",
        }

    def test_an_integer_that_grows_within_32_bits_is_untouched(self) -> None:
        small = replace(SCHEMA, columns=(ID, replace(A, type=INT16), B))
        fields = new_fields(small, "upsert")
        assert altered(fields, [(small, UpdateColumnType(id=2, old=INT16, new=INT32))]) == fields

    def test_comments_come_and_go_and_leave_the_column_what_it_is(self) -> None:
        said = changed(with_columns(ID, replace(A, comment="it's"), B))
        assert said[1]["metadata"] == {PHYSICAL_NAME: "col-a", "comment": "it's"}

    def test_columns_move_to_the_front_and_behind_others(self) -> None:
        assert list(physical(changed(with_columns(B, ID, A)))) == ["b", "id", "a"]


def commits(lake: Lake) -> list[dict[str, Any]]:
    """What each commit says about itself, oldest first."""
    assert isinstance(lake.target, DeltaTarget)
    files = sorted((Path(lake.target.path(lake.name)) / "_delta_log").glob("*.json"))
    return [json.loads(file.read_text().splitlines()[0])["commitInfo"] for file in files]


def read_by_delta_rs(lake: Lake) -> list[dict[str, Any]]:
    """What a reader that has nothing of Spark in it finds."""
    assert isinstance(lake.target, DeltaTarget)
    table = DeltaTable(lake.target.path(lake.name))
    found = QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
    rows: list[dict[str, Any]] = pa.table(found).to_pylist()
    return sorted(rows, key=lambda row: row["id"])


@pytest.fixture
def table(delta: Target, session: SparkSession) -> Lake:
    lake = Lake(target=delta, session=session, name=fresh_name())
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"id": 1, "a": 1, "b": "x"}, {"id": 2, "a": 2}], progress=PROGRESS)
    return lake


@pytest.mark.delta
class TestTables:
    def test_a_migration_is_one_commit(self, table: Lake) -> None:
        before = len(commits(table))
        new = Column(id=4, name="a", type=STRING, comment="new")
        table.change(SCHEMA, with_columns(ID, new, replace(A, name="b"), replace(B, name="c")))
        assert len(commits(table)) == before + 1
        assert table.rows() == [
            {"id": 1, "a": None, "b": 1, "c": "x"},
            {"id": 2, "a": None, "b": 2, "c": None},
        ]
        assert read_by_delta_rs(table) == table.rows()

    def test_rows_schema_and_marker_of_a_rewrite_are_one_commit_and_so_is_its_rollback(self, table: Lake) -> None:
        before, rows = len(commits(table)), table.rows()
        after = with_columns(ID, replace(A, type=INT64), B)
        table.change(SCHEMA, after, progress=replace(PROGRESS, version=2))
        assert len(commits(table)) == before + 1
        assert read_by_delta_rs(table) == rows
        state = table.target.state(table.name)
        assert state is not None
        assert (state.version, state.kept, state.progress) == (2, 1, replace(PROGRESS, version=2))

        assert table.target.roll_back(table.name)
        state = table.target.state(table.name)
        assert state is not None
        assert (state.version, state.kept, state.progress) == (1, None, PROGRESS)
        assert (table.rows(), read_by_delta_rs(table)) == (rows, rows)
        table.write(SCHEMA, [{"id": 3}], progress=replace(PROGRESS, offsets={"t": {0: 9}}))
        told = [found.progress.offsets["t"][0] for found in table.target.commits(table.name, 9) if found.progress]
        assert told == [9, 5], "what was rolled back is not among the states that can be read"

    def test_the_marker_is_found_through_commits_without_one(self, table: Lake) -> None:
        assert isinstance(table.target, DeltaTarget)
        table.session.sql(f"OPTIMIZE delta.`{table.target.path(table.name)}`")
        table.session.sql(f"DELETE FROM delta.`{table.target.path(table.name)}` WHERE id = 2")
        state = table.target.state(table.name)
        assert state is not None
        assert state.progress == PROGRESS

    def test_a_table_somebody_set_back_is_as_far_as_it_was_then(self, table: Lake) -> None:
        assert isinstance(table.target, DeltaTarget)
        held = table.session.sql(f"DESCRIBE HISTORY delta.`{table.target.path(table.name)}` LIMIT 1").first()
        assert held is not None
        table.write(SCHEMA, [{"id": 3}], progress=replace(PROGRESS, offsets={"t": {0: 9}}))
        table.session.sql(f"RESTORE delta.`{table.target.path(table.name)}` TO VERSION AS OF {held.version}")
        state = table.target.state(table.name)
        assert state is not None
        assert state.progress == PROGRESS

    def test_a_table_whose_commits_have_expired_is_not_read_anew(self, table: Lake) -> None:
        assert isinstance(table.target, DeltaTarget)
        path = table.target.path(table.name)
        for _ in range(11):
            table.session.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('someone' = 'else')")
        assert list((Path(path) / "_delta_log").glob("*.checkpoint.parquet"))
        for number in range(9):
            (Path(path) / "_delta_log" / f"{number:020}.json").unlink()
        with pytest.raises(UnfitTarget, match="Cannot tell what"):
            table.target.state(table.name)

    def test_a_table_that_cannot_be_read_is_said_so(self, table: Lake) -> None:
        assert isinstance(table.target, DeltaTarget)
        path = table.target.path(table.name)
        first = Path(path) / "_delta_log" / f"{0:020}.json"
        first.rename(first.with_suffix(".gone"))
        forget(table.session, path)
        with pytest.raises(TargetError, match=f"Cannot read {table.name}: "):
            table.target.state(table.name)
        first.with_suffix(".gone").rename(first)
        assert table.target.state(table.name) is not None

    @pytest.mark.parametrize("append", [True, False])
    def test_nothing_is_written_when_the_job_raises(self, table: Lake, append: bool) -> None:
        before = len(commits(table))
        failing = F.when(F.col("id") < 40, F.col("id")).otherwise(F.raise_error(F.lit("found it")).cast("bigint"))
        rows = table.session.range(20, 60, 1, 4).select(
            F.lit(False).alias("deleted"),
            F.lit(True).alias("created"),
            failing.alias("c1"),
            F.lit(1).alias("c2"),
            F.lit("x").alias("c3"),
        )
        batch = Batch(rows=rows, schema=SCHEMA, progress=PROGRESS, behind=table.held, append=append)
        with pytest.raises(TargetError, match="found it"):
            table.target.write(table.name, batch)
        assert len(commits(table)) == before

    def test_stamp_and_comments_are_what_any_reader_sees(self, table: Lake) -> None:
        table.change(SCHEMA, with_columns(ID, replace(A, comment="the é"), B))
        assert isinstance(table.target, DeltaTarget)
        path = table.target.path(table.name)
        properties = {row.key: row.value for row in table.session.sql(f"SHOW TBLPROPERTIES delta.`{path}`").collect()}
        assert properties[VERSION_PROPERTY] == "2"
        (described,) = table.session.sql(f"DESCRIBE delta.`{path}`").where("col_name = 'a'").collect()
        assert described.comment == "the é"

    def test_a_table_that_is_not_ours_has_no_stamp(self, delta: Target, session: SparkSession) -> None:
        assert isinstance(delta, DeltaTarget)
        name = fresh_name()
        session.range(3).write.format("delta").save(delta.path(name))
        state = delta.state(name)
        assert state is not None
        assert (state.version, state.progress) == (None, None)
