"""What every target does, said once and run over each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from pyspark.sql import functions as F

from cdc_sync.core.history.joined import Joined
from cdc_sync.core.migration.capabilities import MEMORY, can_change_in_place
from cdc_sync.core.migration.migration import AlterTable, Backfill, Migration, RewriteTable, migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import (
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    BinaryType,
    DateType,
    DecimalType,
    ListType,
    TimestampType,
)
from cdc_sync.errors import FilesGone, TargetError
from cdc_sync.spark.columns import value_column
from cdc_sync.spark.types import to_spark
from cdc_sync.targets.delta.target import DeltaTarget
from cdc_sync.targets.hudi.target import HudiTarget
from cdc_sync.targets.parquet.target import ParquetTarget
from cdc_sync.targets.protocol import MISSING_ROW, UNKNOWN_VALUE, Commit
from cdc_sync.testing.targets import check_target, version
from tests.targets.conftest import Lake, schema_of

pytestmark = pytest.mark.spark

ID, A, B, Z = (
    Column(id=1, name="id", type=INT64, optional=False),
    Column(id=2, name="a", type=INT32),
    Column(id=3, name="b", type=STRING),
    Column(id=4, name="z", type=FLOAT32),
)
BEFORE = schema_of(ID, A, B, Z)
ROW = {"id": 1, "a": 10, "b": "x", "z": 0.5}
PROGRESS = Progress(
    version=1, offsets={"töpic": {0: 5, 1: 0}}, topic_ids={"töpic": "AbC"}, high_water={"töpic": {0: 2**40}}
)


def with_columns(*columns: Column) -> InternalSchema:
    return replace(BEFORE, columns=columns, last_column_id=9)


def test_it_keeps_what_every_target_promises(lake: Lake) -> None:
    """As packages with a format of their own check theirs."""
    check_target(lake.target, lake.session, lake.name, lake.rows)


def test_rows_are_inserted_changed_and_deleted(lake: Lake) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [{"id": 1, "a": 1}, {"id": 2, "a": 2, "b": "y"}, {"id": 3}])
    lake.write(
        BEFORE,
        [
            {"id": 1, "b": "new", "created": False},
            {"id": 2, "deleted": True, "created": False},
            {"id": 4, "a": 4},
            {"id": 5, "deleted": True},
        ],
    )
    assert lake.rows() == [
        {"id": 1, "a": None, "b": "new", "z": None},
        {"id": 3, "a": None, "b": None, "z": None},
        {"id": 4, "a": 4, "b": None, "z": None},
    ]


def test_writing_twice_is_writing_once(lake: Lake) -> None:
    lake.create(BEFORE)
    for _ in range(2):
        lake.write(BEFORE, [ROW, {"id": 2, "deleted": True}])
    assert lake.rows() == [ROW]


def test_progress_is_what_the_last_write_said(lake: Lake) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW], progress=PROGRESS)
    state = lake.target.state(lake.name)
    assert state is not None
    assert state.progress == PROGRESS
    further = replace(PROGRESS, offsets={"töpic": {0: 9, 1: 1}})
    lake.write(BEFORE, [], progress=further)
    state = lake.target.state(lake.name)
    assert state is not None
    assert state.progress == further


def test_a_truncated_table_is_empty_and_its_past_can_be_read(lake: Lake) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW, {"id": 2}], progress=PROGRESS)
    behind = replace(PROGRESS, offsets={"töpic": {0: 6, 1: 0}})
    for held in (PROGRESS, behind):
        lake.target.truncate(lake.name, behind, held)
    state = lake.target.state(lake.name)
    assert state is not None
    assert (lake.rows(), state.progress, state.version) == ([], behind, 1)
    now, before, *_ = lake.target.commits(lake.name, 9)
    assert (now.progress, before.progress) == (behind, PROGRESS)
    assert lake.target.read(lake.name, BEFORE, [1], now).count() == 0
    assert lake.target.read(lake.name, BEFORE, [1], before).count() == 2
    lake.write(BEFORE, [ROW], progress=PROGRESS)
    assert lake.rows() == [ROW]


def test_a_table_that_was_never_written_can_be_truncated(lake: Lake) -> None:
    lake.create(BEFORE)
    lake.target.truncate(lake.name, PROGRESS, None)
    state = lake.target.state(lake.name)
    assert state is not None
    assert (lake.rows(), state.progress) == ([], PROGRESS)


def test_a_file_that_is_gone_is_named_and_nothing_is_written(lake: Lake) -> None:
    if lake.target.capabilities == MEMORY or isinstance(lake.target, HudiTarget):
        pytest.skip("it has no files, or finds them by what lies in its folders")
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW, {"id": 2}], progress=PROGRESS)
    rows = lake.target.read(lake.name, BEFORE, [1])
    for (uri,) in rows.select(F.input_file_name()).distinct().collect():
        Path(unquote(urlsplit(uri).path)).unlink()
    with pytest.raises(FilesGone, match=r"Cannot (write|read) "):
        lake.write(BEFORE, [{"id": 1, "a": 11, "created": False}], progress=replace(PROGRESS, version=2))
    state = lake.target.state(lake.name)
    assert state is not None
    assert state.progress == PROGRESS


def test_a_dropped_table_is_gone_and_another_one_may_have_its_name(lake: Lake) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW], progress=PROGRESS)
    for _ in range(2):
        lake.target.drop(lake.name)
        assert lake.target.state(lake.name) is None
    lake.create(with_columns(ID, Z))
    assert lake.rows() == []
    lake.write(with_columns(ID, Z), [{"id": 7, "z": 1.5}])
    assert lake.rows() == [{"id": 7, "z": 1.5}]


def test_an_archived_table_keeps_its_rows_under_its_other_name(lake: Lake) -> None:
    into = replace(lake.name, name=f"{lake.name.name}__dropped_2")
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW], progress=PROGRESS)
    for _ in range(2):
        lake.target.archive(lake.name, into)
        assert lake.target.state(lake.name) is None
    archived = lake.target.state(into)
    assert archived is not None
    assert (archived.version, archived.progress) == (1, PROGRESS)

    lake.create(with_columns(ID, Z))
    lake.write(with_columns(ID, Z), [{"id": 7, "z": 1.5}])

    assert lake.rows() == [{"id": 7, "z": 1.5}]
    (row,) = lake.target.read(into, BEFORE, [1, 2]).collect()
    assert tuple(row) == (1, 10)
    with pytest.raises(TargetError, match="Cannot archive"):
        lake.target.archive(lake.name, into)
    assert lake.rows() == [{"id": 7, "z": 1.5}]
    lake.target.drop(lake.name)
    assert lake.target.read(into, BEFORE, [1]).count() == 1


def test_a_table_that_was_renamed_goes_on_under_its_other_name(lake: Lake) -> None:
    """Marked and stamped anew without a row or column being changed, then changed, then renamed back."""
    old, new = lake.name, replace(lake.name, name=f"{lake.name.name}_renamed")
    behind = replace(PROGRESS, version=5, offsets={"t": {0: 9}})
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW], progress=PROGRESS)
    lake.target.archive(old, new)
    stamp = Migration(version=5, schema=BEFORE, steps=(AlterTable(steps=()),))
    for held in (PROGRESS, behind):
        lake.target.migrate(new, stamp, held)
        lake.target.mark(new, behind, held)
    state = lake.target.state(new)
    assert state is not None
    assert (state.version, state.progress) == (5, behind)
    lake.name = new
    assert lake.rows() == [ROW]
    lake.write(BEFORE, [{**ROW, "id": 1, "created": False}, {**ROW, "id": 2}], progress=behind)
    lake.target.archive(new, old)
    lake.name = old
    lake.write(BEFORE, [{"id": 1, "deleted": True}], progress=behind)
    assert lake.rows() == [{**ROW, "id": 2}]


def test_changed_and_deleted_rows_are_truncated_too(lake: Lake) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW, {"id": 2}, {"id": 3}], append=True)
    lake.write(BEFORE, [{"id": 1, "created": False}, {"id": 2, "deleted": True}])
    lake.target.truncate(lake.name, PROGRESS, None)
    assert lake.rows() == []
    lake.write(BEFORE, [{**ROW, "id": 2}])
    assert lake.rows() == [{**ROW, "id": 2}]


def test_appended_rows_are_rows(lake: Lake) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW], append=True, progress=PROGRESS)
    lake.write(BEFORE, [{"id": 2}], append=True, progress=PROGRESS)
    assert [row["id"] for row in lake.rows()] == [1, 2]
    state = lake.target.state(lake.name)
    assert state is not None
    assert state.progress == PROGRESS


@pytest.mark.parametrize("keyed", [True, False], ids=["key", "no key"])
def test_columns_may_have_the_names_that_the_job_s_own_have(lake: Lake, keyed: bool) -> None:
    own = ("c2", "c1", "created", "deleted", "u3", "h3", "found", "there", "given", "t", "s", "op", "key", "value")
    columns = [Column(id=id_, name=name, type=STRING) for id_, name in enumerate(own, 1)]
    schema = replace(schema_of(*columns), primary_key=(1,) if keyed else ())
    first, second, changed = ({name: f"{name} {text}" for name in own} for text in ("first", "second", "changed"))
    lake.create(schema)
    lake.write(schema, [first, second], append=True)
    assert lake.rows() == [first, second]
    if not keyed:
        return
    lake.write(schema, [{**changed, "c2": second["c2"]}, {"c2": "c2 third"}])
    half = {"c2": first["c2"], "c1": "c1 other"}
    lake.write(schema, [half], unchanged=tuple(range(3, len(own) + 1)))
    assert lake.rows() == [{**first, **half}, {**changed, "c2": second["c2"]}, {**dict.fromkeys(own), "c2": "c2 third"}]
    after = replace(schema, columns=(columns[0], *columns[2:], columns[1]))
    lake.change(schema, after)
    assert lake.rows() == [{**first, **half}, {**changed, "c2": second["c2"]}, {**dict.fromkeys(own), "c2": "c2 third"}]


def test_an_update_without_its_row_fails_and_nothing_is_written(lake: Lake) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW], progress=PROGRESS)
    changes = [{"id": 1, "a": 11, "created": False}, {"id": 2, "created": False}]
    with pytest.raises(TargetError, match=MISSING_ROW):
        lake.write(BEFORE, changes, require_rows=True)
    state = lake.target.state(lake.name)
    assert state is not None
    assert (lake.rows(), state.progress) == ([ROW], PROGRESS)
    lake.write(BEFORE, changes, require_rows=False)
    assert [row["id"] for row in lake.rows()] == [1, 2]


def test_required_rows_do_not_hinder_creates_and_deletes(lake: Lake) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW, {"id": 2, "deleted": True}], require_rows=True)
    assert lake.rows() == [ROW]


def test_a_row_keeps_the_values_that_are_left_out(lake: Lake) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW, {**ROW, "id": 2}, {**ROW, "id": 3}])
    changes: list[dict[str, Any]] = [
        {"id": 1, "a": 11, "created": False},
        {"id": 2, "a": 12, "b": None, "created": False},
        {"id": 3, "deleted": True},
        {"id": 4, "b": "new", "z": 1.0},
    ]
    lake.write(BEFORE, changes, unchanged=(3, 4), require_rows=True)
    assert lake.rows() == [
        {"id": 1, "a": 11, "b": "x", "z": 0.5},
        {"id": 2, "a": 12, "b": None, "z": 0.5},
        {"id": 4, "a": None, "b": "new", "z": 1.0},
    ]


@pytest.mark.parametrize("require_rows", [True, False])
@pytest.mark.parametrize("row", [{"id": 2, "z": 0.1}, {"id": 1, "z": 0.1, "forgotten": True}], ids=["no row", "other"])
def test_a_value_that_nobody_knows_fails_the_write_or_is_null(
    lake: Lake, row: dict[str, Any], require_rows: bool
) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW], progress=PROGRESS)
    with pytest.raises(TargetError, match=UNKNOWN_VALUE):
        lake.write(BEFORE, [row, {"id": 3, "b": "y"}], unchanged=(3,), require_rows=require_rows)
    state = lake.target.state(lake.name)
    assert state is not None
    assert (lake.rows(), state.progress) == ([ROW], PROGRESS)
    lake.write(BEFORE, [row], unchanged=(3,), require_rows=require_rows, require_values=False)
    (found,) = (found for found in lake.rows() if found["id"] == row["id"])
    assert found["b"] is None


def test_an_update_without_its_row_is_missing_whatever_it_leaves_out(lake: Lake) -> None:
    lake.create(BEFORE)
    with pytest.raises(TargetError, match=MISSING_ROW):
        lake.write(BEFORE, [{"id": 1, "created": False}], unchanged=(3,), require_rows=True)


def read(lake: Lake, schema: InternalSchema, *ids: int, commit: Commit | None = None) -> list[tuple[Any, ...]]:
    found = lake.target.read(lake.name, schema, ids, commit)
    assert found.columns == [value_column(id_) for id_ in ids]
    return sorted(tuple(row) for row in found.collect())


def test_rows_are_read_by_column_id(lake: Lake) -> None:
    lake.create(BEFORE)
    assert read(lake, BEFORE, 1) == []
    lake.write(BEFORE, [ROW, {**ROW, "id": 2, "a": 20}])
    assert read(lake, BEFORE, 3, 1) == [("x", 1), ("x", 2)]


def test_values_of_every_kind_are_read_as_they_were_written(lake: Lake) -> None:
    columns = (
        Column(id=1, name="id", type=INT64),
        Column(id=2, name="instant", type=TimestampType(zoned=True)),
        Column(id=3, name="local", type=TimestampType(zoned=False)),
        Column(id=4, name="bytes", type=BinaryType()),
        Column(id=5, name="list", type=ListType(element=STRING, element_id=6)),
    )
    schema = InternalSchema(columns=columns, primary_key=(1,), last_column_id=6)
    at = datetime(2026, 3, 29, 2, 30, 0, 123456)
    row = {"id": 1, "instant": at.replace(tzinfo=timezone.utc), "local": at, "bytes": b"\x00\xff", "list": ["a", None]}
    lake.create(schema)
    lake.write(schema, [row])
    found = lake.target.read(lake.name, schema, (2, 3, 4, 5))
    assert [field.dataType for field in found.schema] == [to_spark(column.type) for column in columns[1:]]
    texts = found.select("c2", "c3", "c4", "c5").selectExpr("string(c2)", "string(c3)", "hex(c4)", "string(c5)")
    assert [tuple(row) for row in texts.collect()] == [(str(at), str(at), "00FF", "[a, null]")]


def test_what_the_table_held_after_earlier_commits_is_read(lake: Lake) -> None:
    lake.create(BEFORE)
    progress = [replace(PROGRESS, offsets={"t": {0: number}}) for number in range(3)]
    lake.write(BEFORE, [ROW], progress=progress[0])
    lake.write(BEFORE, [{"id": 2, "a": 2}], progress=progress[1])
    lake.write(BEFORE, [{"id": 1, "deleted": True}], progress=progress[2])
    commits = lake.target.commits(lake.name, 10)
    assert [commit.progress for commit in commits] == [*reversed(progress), None]
    assert [read(lake, BEFORE, 1, 2, commit=commit) for commit in commits] == [
        [(2, 2)],
        [(1, 10), (2, 2)],
        [(1, 10)],
        [],
    ]
    assert lake.target.commits(lake.name, 2) == commits[:2]


def test_old_rows_are_read_by_the_columns_of_today(lake: Lake) -> None:
    widens = can_change_in_place(lake.target.capabilities, INT32, INT64)
    after = with_columns(
        ID,
        replace(A, name="b", type=INT64 if widens else INT32),
        replace(B, name="a"),
        Z,
        Column(id=9, name="n", type=STRING, initial="first"),
        Column(id=8, name="m", type=INT32),
    )
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW], progress=PROGRESS)
    steps = migration(version(1, BEFORE), version(1, BEFORE), version(2, after))
    lake.migrate(steps, replace(PROGRESS, version=2))
    lake.write(after, [{"id": 1}], progress=Progress(version=2, offsets={"töpic": {0: 6}}))
    present, past, empty = lake.target.commits(lake.name, 10)
    ids = (1, 2, 3, 9, 8)
    assert read(lake, after, *ids, commit=present) == [(1, None, None, None, None)]
    assert read(lake, after, *ids, commit=past) == [(1, 10, "x", "first", None)]
    assert read(lake, after, *ids, commit=empty) == []


@dataclass(frozen=True)
class Change:
    after: InternalSchema
    row: dict[str, Any]


CHANGES = {
    "add": Change(with_columns(ID, A, B, Z, Column(id=9, name="n", type=STRING)), {**ROW, "n": None}),
    "add before others": Change(
        with_columns(ID, Column(id=9, name="n", type=DecimalType(precision=5, scale=2)), A, B, Z),
        {"id": 1, "n": None, "a": 10, "b": "x", "z": 0.5},
    ),
    "drop": Change(with_columns(ID, B, Z), {"id": 1, "b": "x", "z": 0.5}),
    "rename": Change(with_columns(ID, replace(A, name="c"), B, Z), {"id": 1, "c": 10, "b": "x", "z": 0.5}),
    "swap": Change(
        with_columns(ID, replace(A, name="b"), replace(B, name="a"), Z), {"id": 1, "b": 10, "a": "x", "z": 0.5}
    ),
    "rotate": Change(
        with_columns(ID, replace(A, name="b"), replace(B, name="z"), replace(Z, name="a")),
        {"id": 1, "b": 10, "z": "x", "a": 0.5},
    ),
    "widen": Change(with_columns(ID, replace(A, type=INT64), B, replace(Z, type=FLOAT64)), ROW),
    "move": Change(with_columns(Z, B, ID, A), {"z": 0.5, "b": "x", "id": 1, "a": 10}),
    "comment": Change(with_columns(ID, replace(A, comment='it\'s "é"\n'), B, Z), ROW),
    "drop and add again": Change(with_columns(ID, Column(id=9, name="a", type=INT32), B, Z), {**ROW, "a": None}),
    "drop and rename to it": Change(with_columns(ID, replace(B, name="a"), Z), {"id": 1, "a": "x", "z": 0.5}),
    "retire": Change(with_columns(ID, replace(A, retired=True, default=1, optional=False), B, Z), ROW),
    "nothing": Change(with_columns(ID, A, B, Z), ROW),
    "all at once": Change(
        with_columns(
            replace(Z, name="a", type=FLOAT64, comment="c"),
            Column(id=9, name="z", type=STRING),
            replace(ID, name="key"),
            replace(B, name="é`b"),
        ),
        {"a": 0.5, "z": None, "key": 1, "é`b": "x"},
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_keeps_the_rows_and_takes_one_commit(lake: Lake, change: Change) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW], progress=PROGRESS)
    before = commits(lake)
    steps = lake.change(BEFORE, change.after, progress=PROGRESS)
    (step,) = steps.steps
    in_place = not rewrites(diff(BEFORE, change.after), lake.target.capabilities, change.after)
    assert isinstance(step, AlterTable if in_place else RewriteTable)
    (found,) = lake.rows()
    assert (list(found), found) == (list(change.row), change.row)
    state = lake.target.state(lake.name)
    assert state is not None
    assert (state.version, state.progress) == (2, PROGRESS)
    assert commits(lake) == before + 1
    lake.migrate(steps, PROGRESS)
    assert (lake.rows(), commits(lake)) == ([change.row], before + 1)


def commits(lake: Lake) -> int:
    """Count files of metadata; a target in memory makes one commit by nature, so a number that fits."""
    target: Any = lake.target
    if isinstance(target, DeltaTarget):
        return len(list((Path(target.path(lake.name)) / "_delta_log").glob("*.json")))
    if isinstance(target, HudiTarget):
        return len(list((Path(target.path(lake.name)) / ".hoodie").glob("*commit")))
    if isinstance(target, ParquetTarget):
        snapshot = target.table(lake.name).snapshot()
        assert snapshot is not None
        return snapshot.stamp.number
    if not hasattr(target, "_load"):
        state = target.state(lake.name)
        return int(state.version)
    return int(target._load(lake.name).operations().current().previousFiles().size())


def test_a_table_that_had_no_moments_without_zone_gets_them(lake: Lake) -> None:
    local, day = TimestampType(zoned=False), Column(id=2, name="day", type=DateType())
    before = replace(BEFORE, columns=(ID, day))
    listed = Column(id=4, name="list", type=ListType(element=local, element_id=5))
    more = replace(before, columns=(ID, day, Column(id=3, name="local", type=local), listed), last_column_id=9)
    converted = replace(more, columns=(ID, replace(day, type=local), *more.columns[2:]))
    at = datetime(2026, 3, 29, 2, 30, 0, 123456)
    first: dict[str, Any] = {"id": 1, "day": date(2026, 3, 29), "local": None, "list": None}
    second = {"id": 2, "day": None, "local": at, "list": [at, None]}
    lake.create(before)
    lake.write(before, [first])
    lake.change(before, more)
    lake.write(more, [second])
    assert lake.rows() == [first, second]
    steps = migration(version(2, more), version(2, more), version(3, converted), capabilities=lake.target.capabilities)
    lake.migrate(steps)
    assert lake.rows() == [{**first, "day": datetime(2026, 3, 29)}, second]


def test_a_table_that_converts_to_its_first_moment_without_zone_is_rewritten(lake: Lake) -> None:
    day = Column(id=2, name="day", type=DateType())
    before = replace(BEFORE, columns=(ID, day))
    after = replace(before, columns=(ID, replace(day, type=TimestampType(zoned=False))))
    lake.create(before)
    lake.write(before, [{"id": 1, "day": date(2026, 3, 29)}])
    lake.change(before, after)
    assert lake.rows() == [{"id": 1, "day": datetime(2026, 3, 29)}]


def test_a_change_within_one_type_of_the_format_is_no_error(lake: Lake) -> None:
    small = replace(BEFORE, columns=(ID, replace(A, type=INT8), B, Z))
    lake.create(small)
    lake.write(small, [{**ROW, "a": 7}])
    lake.change(small, replace(BEFORE, columns=(ID, replace(A, type=INT16), B, Z)))
    assert lake.rows() == [{**ROW, "a": 7}]


def filled() -> InternalSchema:
    return with_columns(
        *BEFORE.columns,
        Column(id=8, name="n", type=INT32, initial=7),
        Column(id=9, name="it's", type=STRING, initial="'; DROP --"),
    )


def test_rows_get_the_initial_values_of_new_columns(lake: Lake) -> None:
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW, {"id": 2}], progress=PROGRESS)
    steps = migration(version(1, BEFORE), version(1, BEFORE), version(2, filled()))
    assert [type(step) for step in steps.steps] == [AlterTable, Backfill]
    for _ in range(2):
        lake.migrate(steps, replace(PROGRESS, version=2))
        assert [(row["id"], row["n"], row["it's"]) for row in lake.rows()] == [
            (1, 7, "'; DROP --"),
            (2, 7, "'; DROP --"),
        ]
        state = lake.target.state(lake.name)
        assert state is not None
        assert state.progress == replace(PROGRESS, version=2)


def test_a_back_fill_leaves_rows_that_are_filled_alone(lake: Lake) -> None:
    lake.create(filled())
    lake.write(filled(), [{"id": 1, "n": 1, "it's": "mine"}, {"id": 2, "n": 2}, {"id": 3}])
    lake.migrate(migration(version(2, filled()), version(1, BEFORE), version(2, filled())))
    assert [(row["n"], row["it's"]) for row in lake.rows()] == [
        (1, "mine"),
        (2, None),
        (7, "'; DROP --"),
    ]


def test_a_name_that_comes_back_does_not_bring_old_values_back(lake: Lake) -> None:
    without = with_columns(ID, B, Z)
    again = with_columns(ID, B, Z, Column(id=9, name="a", type=INT32))
    lake.create(BEFORE)
    lake.write(BEFORE, [ROW])
    lake.change(BEFORE, without)
    lake.migrate(migration(version(2, without), version(2, without), version(3, again)))
    assert lake.rows() == [{"id": 1, "b": "x", "z": 0.5, "a": None}]
    lake.write(again, [{"id": 1, "a": 5}])
    assert lake.rows() == [{"id": 1, "b": None, "z": None, "a": 5}]


CRAFTED: dict[str, Callable[[str], str]] = {
    "quotes": lambda name: f"{name}`\"'; DROP TABLE x; --${{system:user.name}}",
    "dots and spaces": lambda name: f"{name}.a b.c",
    "letters": lambda name: f"{name}é😀ß",
}


@pytest.mark.parametrize("craft", CRAFTED.values(), ids=CRAFTED.keys())
def test_whatever_stands_in_names_is_part_of_the_name(lake: Lake, craft: Callable[[str], str]) -> None:
    lake.name = TargetName(namespace=lake.name.namespace, name=craft(lake.name.name))
    names = [craft("c"), "select", "`", "a.b", "a", "t.*", "c2", "deleted", "\\", "\n", "${env:HOME}"]
    if not lake.target.capabilities.columns.folds_case:
        names.append("A")
    columns = [Column(id=id_, name=name, type=STRING) for id_, name in enumerate(names, 1)]
    schema = schema_of(*columns)
    row = {name: f"value of {name}" for name in names}
    lake.create(schema)
    lake.write(schema, [row], require_rows=True)
    lake.write(schema, [{**row, "a": None}])
    assert lake.rows() == [{**row, "a": None}]
    renamed = replace(schema, columns=tuple(replace(c, name=c.name + craft("-")) for c in columns))
    lake.change(schema, renamed)
    assert [list(found) for found in lake.rows()] == [[c.name for c in renamed.columns]]


KEPT = replace(B, retired=True)
NEWER = Column(id=5, name="b2", type=STRING)
PARTED, JOINED = with_columns(ID, A, KEPT, NEWER), with_columns(ID, A, replace(B, name="b2"))
JOINS = (Joined(version=3, id=5, into=3),)


def _joining(schema: InternalSchema = PARTED) -> Migration:
    parted = version(2, schema)
    return migration(parted, parted, version(3, replace(JOINED, primary_key=schema.primary_key)), joined=JOINS)


def test_columns_are_joined_by_what_events_said(lake: Lake) -> None:
    lake.create(with_columns(ID, A, B))
    lake.write(with_columns(ID, A, B), [{"id": number, "a": 0, "b": f"old {number}"} for number in (1, 2, 3)])
    lake.change(with_columns(ID, A, B), PARTED)
    rows: list[dict[str, Any]] = [{"id": 1, "b2": "new"}, {"id": 2, "b2": None}, {"id": 4, "b2": "x"}]
    lake.write(PARTED, rows, progress=replace(PROGRESS, version=2))
    said = lake.session.createDataFrame(
        [(1, "new"), (2, None), (4, "x"), (9, "gone")], f"{value_column(1)} bigint, {value_column(3)} string"
    )
    steps = _joining()

    values_only = replace(steps, steps=steps.steps[:1])
    for _ in range(2):  # what is interrupted is begun again
        lake.target.migrate(lake.name, values_only, PROGRESS, {3: said})
        assert list(lake.rows()[0]) == ["id", "a", "b", "b2"], "nobody sees the new name before all is there"
    state = lake.target.state(lake.name)
    assert state is not None
    assert (state.version, state.progress) == (2, replace(PROGRESS, version=3))
    lake.target.migrate(lake.name, steps, PROGRESS, {3: said})

    expected = [(1, "new"), (2, None), (3, "old 3"), (4, "x")]
    assert [(row["id"], row["b2"]) for row in lake.rows()] == expected
    assert list(lake.rows()[0]) == ["id", "a", "b2"]
    joined = lake.target.state(lake.name)
    assert joined is not None
    assert replace(joined, size=state.size) == replace(state, version=3)


def test_columns_of_rows_that_never_change_are_joined_by_themselves(lake: Lake) -> None:
    before, parted = replace(with_columns(ID, A, B), primary_key=()), replace(PARTED, primary_key=())
    lake.create(before)
    lake.write(before, [{"id": 1, "b": "old"}, {"id": 2, "b": None}], append=True)
    lake.change(before, parted)
    rows: list[dict[str, Any]] = [{"id": 3, "b2": "new"}, {"id": 4, "b2": None}]
    lake.write(parted, rows, append=True, progress=replace(PROGRESS, version=2))

    lake.migrate(_joining(parted))

    assert [(row["id"], row["b2"]) for row in lake.rows()] == [(1, "old"), (2, None), (3, "new"), (4, None)]
