"""What only Hudi tables have: files of any age read by name, a timeline that is cleaned and archived, record keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.migration.capabilities import HUDI
from cdc_sync.core.migration.migration import AlterTable, RewriteTable, migration
from cdc_sync.core.migration.names import held_name
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import (
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    DataType,
    Field,
    ListType,
    StructType,
)
from cdc_sync.errors import TargetError
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.hudi.table import HudiTable
from cdc_sync.targets.hudi.target import HudiTarget
from cdc_sync.targets.protocol import Target
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake, fresh_name, schema_of
from tests.targets.test_names import NASTY, by_key, live

pytestmark = [pytest.mark.spark, pytest.mark.hudi]

ID, A, B = (
    Column(id=1, name="id", type=INT64),
    Column(id=2, name="a", type=INT32),
    Column(id=3, name="b", type=STRING),
)
BEFORE = schema_of(ID, A, B)
ROWS = [{"id": 1, "a": 1, "b": "one"}, {"id": 2, "a": 2, "b": "two"}]
PROGRESS = Progress(version=1, offsets={"t": {0: 5}})


@pytest.fixture
def table(hudi: Target, session: SparkSession) -> Lake:
    lake = Lake(target=hudi, session=session, name=fresh_name())
    lake.create(BEFORE)
    lake.write(BEFORE, ROWS, progress=PROGRESS)
    return lake


def read_by_hudi_rs(lake: Lake) -> list[dict[str, Any]]:
    """What a reader that has nothing of Java in it finds, with the types that it finds."""
    from hudi import HudiTableBuilder

    assert isinstance(lake.target, HudiTarget)
    batches = HudiTableBuilder.from_base_uri(lake.target.path(lake.name)).build().read()
    found = pa.Table.from_batches(batches)
    rows = found.select([name for name in found.column_names if not name.startswith("_hoodie_")]).to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


def with_columns(*columns: Column) -> InternalSchema:
    return replace(BEFORE, columns=columns, last_column_id=9)


CASES: dict[str, tuple[InternalSchema, type, Mapping[str, Any]]] = {
    "the same column": (BEFORE, AlterTable, {"id": 2, "a": 2, "b": "two"}),
    "the same column, wider": (
        with_columns(ID, replace(A, type=INT64), B), AlterTable, {"id": 2, "a": 2, "b": "two"},
    ),
    "another name": (with_columns(ID, replace(A, name="c"), B), RewriteTable, {"id": 2, "c": 2, "b": "two"}),
    "another column of the name": (
        with_columns(ID, Column(id=9, name="a", type=INT32), B), RewriteTable, {"id": 2, "a": None, "b": "two"},
    ),
    "another column of the name and of another type": (
        with_columns(ID, Column(id=9, name="b", type=INT32), A), RewriteTable, {"id": 2, "b": None, "a": 2},
    ),
    "a name that was another column's": (
        with_columns(ID, replace(A, name="b"), replace(B, name="a")), RewriteTable, {"id": 2, "b": 2, "a": "two"},
    ),
    "a column that is in no file": (
        with_columns(ID, A, B, Column(id=9, name="n", type=STRING)), AlterTable,
        {"id": 2, "a": 2, "b": "two", "n": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_no_old_value_comes_back_from_an_old_file(
    table: Lake, case: tuple[InternalSchema, type, Mapping[str, Any]]
) -> None:
    after, kind, row = case
    (step,) = table.change(BEFORE, after).steps
    assert isinstance(step, kind)
    assert [found for found in table.rows() if found["id"] == 2] == [row]
    assert [found for found in read_by_hudi_rs(table) if found["id"] == 2] == [row]
    # Another row of the same file is written, so that the old rows go through Hudi's own merge of the two schemas.
    table.write(after, [{"id": 1}], progress=PROGRESS)
    empty = dict.fromkeys(row) | {"id": 1}
    assert table.rows() == read_by_hudi_rs(table) == [empty, row]


POINT = StructType(fields=(Field(id=11, name="x", type=INT32), Field(id=12, name="y y", type=FLOAT32)))
WIDE_X = replace(POINT.fields[0], type=INT64)
WIDENED: list[tuple[DataType, DataType, type, Any]] = [
    (FLOAT32, FLOAT64, RewriteTable, 0.10000000149011612),
    (INT8, INT16, AlterTable, -7),
    (INT16, INT64, AlterTable, -7),
    (ListType(element_id=10, element=INT32), ListType(element_id=10, element=INT64), RewriteTable, [1, None]),
    (
        POINT,
        replace(POINT, fields=(replace(POINT.fields[0], type=INT64), POINT.fields[1])),
        RewriteTable,
        {"x": 1, "y y": 0.5},
    ),
]


@pytest.mark.parametrize(("old", "new", "kind", "value"), WIDENED, ids=["float", "small", "smaller", "list", "struct"])
def test_what_is_widened_reads_as_before(
    hudi: Target, session: SparkSession, old: DataType, new: DataType, kind: type, value: Any
) -> None:
    lake = Lake(target=hudi, session=session, name=fresh_name())
    before = replace(BEFORE, columns=(ID, Column(id=4, name="v", type=old)), last_column_id=20)
    after = replace(before, columns=(ID, Column(id=4, name="v", type=new)))
    lake.create(before)
    lake.write(before, [{"id": 1, "v": value}, {"id": 2, "v": value}])
    (step,) = lake.change(before, after).steps
    assert isinstance(step, kind)
    for _ in range(2):
        found = hudi.read(lake.name, after, (1, 4)).collect()
        assert [row.asDict(recursive=True)["c4"] for row in found] == [value, value]
        lake.write(after, [{"id": 1, "v": value}])


def test_every_name_lives_through_create_add_rename_and_merge(hudi: Target, session: SparkSession) -> None:
    names = [name for name in NASTY if name != "A"]
    lake = Lake(target=hudi, session=session, name=fresh_name())
    expected = live(lake, names)
    assert by_key(lake.rows(), names[0]) == expected
    assert [list(row) for row in lake.rows()] == [list(row) for row in expected]
    held = [held_name(name, HUDI.columns) for name in expected[0]]
    assert list(read_by_hudi_rs(lake)[0]) == held
    assert all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) for name in held)


@pytest.mark.parametrize(
    "name", ["..", "../../../outside", "a/b", "a?b", "a%62", "a:b", "{a,b}*[c]", "漢" * 63, "`; DROP TABLE x; --", " "]
)
def test_a_table_of_any_name_stays_in_its_own_folder(session: SparkSession, tmp_path: Path, name: str) -> None:
    target = open_target(TargetConfig(format="hudi", catalog=Catalog(warehouse=str(tmp_path))), session)
    lake = Lake(target=target, session=session, name=TargetName(namespace=name, name=name))
    lake.create(BEFORE)
    lake.write(BEFORE, ROWS)
    assert lake.rows() == read_by_hudi_rs(lake) == ROWS
    held = held_name(name, HUDI.tables)
    assert [path.relative_to(tmp_path) for path in tmp_path.rglob(".hoodie")] == [Path(held) / held / ".hoodie"]


TRICKY = [("a,b", "c"), ("a", "b,c"), ("a\\", "b"), ("a", "\\,b"), ("", ""), ("1:2", "3"), ("", ","), (",", "")]


def test_no_two_keys_are_one_record(hudi: Target, session: SparkSession) -> None:
    first, second = replace(ID, name="k", type=STRING), Column(id=2, name="l", type=STRING)
    schema = schema_of(first, second, B, key=(1, 2))
    lake = Lake(target=hudi, session=session, name=fresh_name())
    lake.create(schema)
    for text in ("old", "new"):
        lake.write(schema, [{"k": k, "l": l_, "b": f"{text} {k}|{l_}"} for k, l_ in TRICKY])
    assert sorted((row["k"], row["l"]) for row in lake.rows()) == sorted(TRICKY)
    assert all(row["b"] == f"new {row['k']}|{row['l']}" for row in lake.rows())
    lake.write(schema, [{"k": k, "l": l_, "deleted": True} for k, l_ in TRICKY])
    assert lake.rows() == []


def test_a_key_of_other_columns_finds_the_rows_that_are_there(table: Lake) -> None:
    keyed = replace(BEFORE, primary_key=(3,))
    (step,) = table.change(BEFORE, keyed).steps
    assert isinstance(step, RewriteTable)
    table.write(keyed, [{"id": 9, "b": "one", "created": False}], require_rows=True)
    assert sorted(row["id"] for row in table.rows()) == [2, 9]


def test_a_batch_of_every_kind_is_one_commit_without_a_column_of_ours(table: Lake) -> None:
    before = instants(table)
    table.write(BEFORE, [{"id": 1, "a": 10}, {"id": 2, "deleted": True}, {"id": 3}, {"id": 4, "deleted": True}])
    assert len(instants(table)) == len(before) + 1
    assert table.rows() == [{"id": 1, "a": 10, "b": None}, {"id": 3, "a": None, "b": None}]
    state = table.target.state(table.name)
    assert state is not None
    assert state.rows == 2
    assert [file for file in data_files(table) if "_hoodie_is_deleted" in pq.read_schema(file).names] == []


def instants(lake: Lake) -> list[str]:
    return [instant for instant, _ in hudi_table(lake).stamps()]


def said(lake: Lake) -> int:
    """Count our commits."""
    return len([stamp for _, stamp in hudi_table(lake).stamps() if stamp is not None])


def hudi_table(lake: Lake) -> Any:
    assert isinstance(lake.target, HudiTarget)
    return lake.target._table(lake.name)


def data_files(lake: Lake) -> list[Path]:
    assert isinstance(lake.target, HudiTarget)
    return sorted(Path(lake.target.path(lake.name)).glob("*.parquet"))


class Unsaid:
    """What a commit of another program says of us."""

    def to_metadata(self) -> dict[str, str]:
        return {}


class TestTimeline:
    """Few commits are kept here, so that a handful is cleaned and archived."""

    @pytest.fixture
    def short(self, session: SparkSession, tmp_path: Path) -> Lake:
        properties = {
            "hoodie.clean.commits.retained": "2",
            "hoodie.clean.trigger.max.commits": "1",
            "hoodie.keep.min.commits": "4",
            "hoodie.keep.max.commits": "5",
        }
        config = TargetConfig(format="hudi", catalog=Catalog(warehouse=str(tmp_path)), table_properties=properties)
        lake = Lake(target=open_target(config, session), session=session, name=fresh_name())
        lake.create(BEFORE)
        return lake

    def at(self, number: int) -> Progress:
        return replace(PROGRESS, offsets={"t": {0: number}})

    def test_what_is_cleaned_is_no_longer_offered_and_the_rest_can_be_read(self, short: Lake) -> None:
        for number in range(9):
            short.write(BEFORE, [{"id": 1, "a": number}, {"id": 10 + number}], progress=self.at(number))
        archived = Path(short.target.path(short.name)) / ".hoodie" / "archived"  # type: ignore[attr-defined]
        assert list(archived.glob("*")), "nothing was archived"
        commits = short.target.commits(short.name, 99)
        assert 2 <= len(commits) < 9
        assert all(commit.progress is not None for commit in commits)
        for age, commit in enumerate(commits):
            found = short.target.read(short.name, BEFORE, (1, 2), commit).where("c1 = 1").collect()
            assert [row.c2 for row in found] == [8 - age]

    def test_the_marker_is_found_behind_commits_of_others(self, short: Lake) -> None:
        short.write(BEFORE, [{"id": 1}], progress=self.at(7))
        table = hudi_table(short)
        table.begin()
        for _ in range(9):
            table.commit("upsert", None, table.snapshot().columns, lambda _: Unsaid())
        assert all(stamp is None for _, stamp in table.stamps())
        state = short.target.state(short.name)
        assert state is not None
        assert (state.version, state.progress) == (1, self.at(7))

    def test_the_state_before_a_rewrite_outlives_cleaning(self, short: Lake) -> None:
        short.write(BEFORE, ROWS, progress=self.at(1))
        after = with_columns(ID, replace(A, type=STRING), B)
        short.migrate(
            migration(version(1, BEFORE), version(1, BEFORE), version(2, after), capabilities=HUDI),
            replace(self.at(1), version=2),
        )
        for number in range(2, 9):
            short.write(after, [{"id": 1, "a": str(number)}], progress=replace(self.at(number), version=2))
        state = short.target.state(short.name)
        assert state is not None
        assert state.kept == 1
        assert short.target.roll_back(short.name)
        assert short.rows() == ROWS == read_by_hudi_rs(short)
        state = short.target.state(short.name)
        assert state is not None
        assert (state.version, state.progress, state.kept, state.rows) == (1, self.at(1), None, 2)
        newest, *_ = short.target.commits(short.name, 9)
        assert newest.progress == self.at(1)


class TestFailures:
    def test_what_a_crash_left_is_not_seen_and_is_cleared_away(self, table: Lake) -> None:
        before = table.rows()
        with pytest.raises(TargetError, match="missing_row"):
            table.write(BEFORE, [{"id": 1, "a": 7}, {"id": 77, "created": False}], require_rows=True)
        assert table.rows() == before == read_by_hudi_rs(table)
        table.write(BEFORE, [{"id": 1, "a": 8}])
        assert [row["a"] for row in table.rows()] == [8, 2]
        timeline = Path(table.target.path(table.name)) / ".hoodie"  # type: ignore[attr-defined]
        assert list(timeline.glob("*.inflight")) != []
        assert list((timeline / ".temp").glob("*")) == []

    def test_a_table_that_cannot_be_read_is_said_so(self, table: Lake) -> None:
        timeline = Path(table.target.path(table.name)) / ".hoodie"  # type: ignore[attr-defined]
        newest = max(timeline.glob("*.commit"))
        whole = newest.read_bytes()
        newest.write_bytes(b"damaged")
        newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
        with pytest.raises(TargetError, match=f"Cannot read {table.name}: "):
            table.target.state(table.name)
        newest.write_bytes(whole)
        assert table.target.state(table.name) is not None

    def test_a_folder_without_a_first_commit_is_no_table(self, hudi: Target, session: SparkSession) -> None:
        lake = Lake(target=hudi, session=session, name=fresh_name())
        lake.create(BEFORE)
        timeline = Path(hudi.path(lake.name)) / ".hoodie"  # type: ignore[attr-defined]
        for file in (*timeline.glob("*.commit"), *(timeline / ".cdc_sync_turns").iterdir()):
            file.unlink()
        assert hudi.state(lake.name) is None
        lake.create(BEFORE)
        lake.write(BEFORE, ROWS)
        assert lake.rows() == ROWS


@pytest.mark.parametrize("kind", ["hudi", "hudi_merge_on_read", "hudi_on_read"])
@pytest.mark.parametrize("goes_on", ["rewrite", "write", "roll back"])
def test_whoever_dies_in_a_rewrite_leaves_a_table_to_go_on_with(
    kind: str, goes_on: str, request: pytest.FixtureRequest, session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice: of a replacement that is not complete Hudi's reader asks for more than is there when it is undone."""
    lake = Lake(target=request.getfixturevalue(kind), session=session, name=fresh_name())
    first, text = with_columns(ID, replace(A, type=STRING), B), with_columns(ID, A, replace(B, type=INT32))
    lake.create(first)
    lake.write(first, [{"id": 1, "a": "1"}, {"id": 2, "a": "2"}], progress=PROGRESS)
    lake.change(first, BEFORE)
    lake.write(BEFORE, [{"id": 3, "a": 3, "b": "3"}, {"id": 1, "deleted": True}], progress=PROGRESS)
    rows: list[dict[str, Any]] = [{"id": 2, "a": 2, "b": None}, {"id": 3, "a": 3, "b": "3"}]
    state = lake.target.state(lake.name)
    steps = migration(version(2, BEFORE), version(2, BEFORE), version(3, text), capabilities=lake.target.capabilities)
    collect = HudiTable._collect

    def dies(self: HudiTable, statuses: Any) -> Any:
        collect(self, statuses)
        raise KeyboardInterrupt

    assert not is_unfinished(lake)
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(HudiTable, "_collect", dies)
            with pytest.raises(KeyboardInterrupt):
                lake.migrate(steps, replace(PROGRESS, version=3))
        assert (lake.target.state(lake.name), lake.rows()) == (state, rows)
    assert is_unfinished(lake)
    match goes_on:
        case "rewrite":
            lake.migrate(steps, replace(PROGRESS, version=3))
            assert lake.rows() == [rows[0], {**rows[1], "b": 3}]
        case "write":
            lake.write(BEFORE, [{"id": 3, "a": 4, "created": False}], unchanged=(3,), require_rows=True)
            assert lake.rows() == [rows[0], {**rows[1], "a": 4}]
        case _:
            assert lake.target.roll_back(lake.name)
            assert lake.rows() == [{"id": 1, "a": "1", "b": None}, {"id": 2, "a": "2", "b": None}]
    assert not is_unfinished(lake)


def is_unfinished(lake: Lake) -> bool:
    """Whether something has to be taken back before the next write, which costs it a moment."""
    return bool(hudi_table(lake)._unfinished())


def test_changes_of_the_tables_that_every_target_is_compared_with_lie_in_logs(
    hudi_merge_on_read: Target, session: SparkSession
) -> None:
    """Fails if the suite of all targets would look at merged files, under the name of tables with logs."""
    lake = Lake(target=hudi_merge_on_read, session=session, name=fresh_name())
    lake.create(BEFORE)
    lake.write(BEFORE, ROWS)
    for number in range(3):
        lake.write(BEFORE, [{"id": 1, "a": number}, {"id": 2, "deleted": True}])
        assert hudi_table(lake).logs() > 0


class TestMergeOnRead:
    """The other type of table: changes are logs, which are merged into the files after a while."""

    @pytest.fixture
    def merging(self, session: SparkSession, tmp_path: Path) -> Lake:
        properties = {
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.compact.inline.max.delta.commits": "4",
        }
        config = TargetConfig(format="hudi", catalog=Catalog(warehouse=str(tmp_path)), table_properties=properties)
        lake = Lake(target=open_target(config, session), session=session, name=fresh_name())
        lake.create(BEFORE)
        lake.write(BEFORE, [*ROWS, {"id": 3, "a": 3}], progress=PROGRESS)
        return lake

    def test_a_batch_of_every_kind_is_one_commit(self, merging: Lake) -> None:
        before = said(merging)
        merging.write(
            BEFORE, [{"id": 1, "a": 10, "created": False}, {"id": 2, "deleted": True}, {"id": 4}], require_rows=True
        )
        merging.write(BEFORE, [{"id": 3, "created": False}], unchanged=(2, 3))
        assert said(merging) == before + 2
        expected = [{"id": 1, "a": 10, "b": None}, {"id": 3, "a": 3, "b": None}, {"id": 4, "a": None, "b": None}]
        assert merging.rows() == read_by_hudi_rs(merging) == expected
        state = merging.target.state(merging.name)
        assert state is not None
        assert state.rows == 3
        merging.write(BEFORE, [{"id": 1, "deleted": True}, {"id": 3, "deleted": True}])
        merging.write(BEFORE, [{"id": 1, "a": 1}])
        expected = [{"id": 1, "a": 1, "b": None}, {"id": 4, "a": None, "b": None}]
        assert merging.rows() == read_by_hudi_rs(merging) == expected

    def test_logs_with_dates_of_the_other_calendar_are_merged(self, merging: Lake) -> None:
        """Fails if the tasks that merge are not told the calendar: Spark refuses to read and write such dates then."""
        old = {"born": date(1, 1, 1), "at": datetime(1582, 10, 4, 1, 2, 3)}
        schema = schema_of(ID, Column(id=20, name="born", type=DATE), Column(id=21, name="at", type=TIMESTAMP))
        lake = replace(merging, name=fresh_name())
        lake.create(schema)
        lake.write(schema, [{"id": 1, **old}, {"id": 2}])
        for _ in range(2):
            lake.write(schema, [{"id": 2, **old, "created": False}])
            assert hudi_table(lake).logs() == 1
            hudi_table(lake).merge_logs()
            assert hudi_table(lake).logs() == 0
            assert lake.rows() == [{"id": 1, **old}, {"id": 2, **old}]

    def test_logs_are_merged_and_the_marker_stays(self, merging: Lake) -> None:
        for number in range(9):
            progress = replace(PROGRESS, offsets={"t": {0: number}})
            merging.write(BEFORE, [{"id": 1, "a": number, "created": False}], progress=progress)
        state = merging.target.state(merging.name)
        assert state is not None
        assert (state.progress, [row["a"] for row in merging.rows()]) == (progress, [8, 2, 3])
        assert None in [stamp for _, stamp in hudi_table(merging).stamps()], "logs were merged by a commit of Hudi's"
        commits = merging.target.commits(merging.name, 5)
        found = [
            merging.target.read(merging.name, BEFORE, (2,), it).where("c2 is not null").collect() for it in commits
        ]
        assert [sorted(row.c2 for row in rows) for rows in found] == [sorted([8 - age, 2, 3]) for age in range(5)]

    @pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
    def test_no_old_value_comes_back(self, merging: Lake, case: tuple[InternalSchema, type, Mapping[str, Any]]) -> None:
        after, _, row = case
        merging.write(BEFORE, [{"id": 3, "deleted": True}, {"id": 1, "a": 11, "b": "changed"}])
        merging.change(BEFORE, after)
        assert [found for found in merging.rows() if found["id"] == 2] == [row]
        merging.write(after, [{"id": 1}], progress=PROGRESS)
        assert merging.rows() == [dict.fromkeys(row) | {"id": 1}, row]

    def test_a_rewrite_is_rolled_back(self, merging: Lake) -> None:
        merging.write(BEFORE, [{"id": 3, "deleted": True}], progress=PROGRESS)
        before = merging.rows()
        after = with_columns(ID, replace(A, type=STRING), B)
        merging.change(BEFORE, after)
        merging.write(after, [{"id": 9}])
        assert merging.target.roll_back(merging.name)
        assert merging.rows() == read_by_hudi_rs(merging) == before
