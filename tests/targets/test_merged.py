"""Two source tables in one table of a target: what each sees, and what of the other stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from cdc_sync.core.migration.migration import CreateTable, Migration, migration
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import FLOAT64, INT32, INT64, STRING, ListType
from cdc_sync.errors import ShareRefused, UnfitTarget
from cdc_sync.operations.verify.tables import VIEW, TargetTable
from cdc_sync.spark.columns import value_column
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.targets.protocol import Commit, Shareable, Target
from cdc_sync.targets.wrappers.merged import MergedTarget, SharedTable
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake, fresh_name, schema_of

pytestmark = [pytest.mark.spark, pytest.mark.iceberg]
ID, Z, A = (
    Column(id=number, name=name, type=type_)
    for number, name, type_ in ((1, "id", INT32), (2, "z", STRING), (3, "a", INT32))
)
FIRST = schema_of(ID, Z, A)


class Shared:
    """Two shares of one table; both have the same columns, and the same row."""

    def __init__(
        self,
        target: Shareable,
        session: SparkSession,
        first: InternalSchema = FIRST,
        row: Mapping[str, object] = {"id": 1, "z": "z", "a": 5},
    ) -> None:
        self.name = fresh_name()
        self.session = session
        self.real = target
        table = SharedTable(target, "_t")
        self.one, self.two = (self._lake(table.share(TableId(database="d", schema="s", table=name))) for name in "ab")
        for lake in (self.one, self.two):
            lake.create(first)
            lake.write(first, [row], progress=at(1, 10))

    def _lake(self, share: MergedTarget) -> Lake:
        return Lake(target=share, session=self.session, name=self.name)

    def rows(self) -> list[dict[str, Any]]:
        whole = Lake(target=self.real, session=self.session, name=self.name).rows()
        return sorted(whole, key=lambda row: (row["_t"], row["id"]))

    def to(self, lake: Lake, before: InternalSchema, after: InternalSchema, *, number: int = 2) -> None:
        steps = migration(version(number - 1, before), version(number - 1, before), version(number, after))
        lake.target.migrate(self.name, steps, at(number, 10))


def at(number: int, offset: int) -> Progress:
    return Progress(version=number, offsets={"t": {0: offset}})


BOTH = pytest.mark.parametrize("shared", ["iceberg", pytest.param("delta", marks=pytest.mark.delta)], indirect=True)


@pytest.fixture
def shared(request: pytest.FixtureRequest, session: SparkSession) -> Shared:
    return Shared(cast(Shareable, request.getfixturevalue(getattr(request, "param", "iceberg"))), session)


def test_each_sees_its_own_version_progress_and_rows(shared: Shared) -> None:
    more = schema_of(ID, Z, A, Column(id=4, name="n", type=INT32))
    shared.to(shared.one, FIRST, more)
    shared.two.write(FIRST, [{"id": 1, "deleted": True}, {"id": 2, "z": "new", "a": 6}], progress=at(1, 20))

    one, two = (lake.target.state(shared.name) for lake in (shared.one, shared.two))
    assert one is not None
    assert two is not None
    assert (one.version, one.progress, two.version, two.progress) == (2, at(1, 10), 1, at(1, 20))
    assert values(shared.one, FIRST) == [(1, "z", 5)]
    assert values(shared.two, FIRST) == [(2, "new", 6)]
    verified = TargetTable(shared.session, shared.one.target, shared.name, 2, more)
    assert verified.ask(f"SELECT c1, c2, c3, c4 FROM {VIEW}") == [(1, "z", 5, None)]
    assert shared.rows() == [
        {"_t": "d.s.a", "id": 1, "z": "z", "a": 5, "n": None},
        {"_t": "d.s.b", "id": 2, "z": "new", "a": 6, "n": None},
    ]


def test_values_that_existing_rows_get_come_into_the_rows_of_that_table_only(shared: Shared) -> None:
    filled = schema_of(ID, Z, A, Column(id=4, name="n", type=INT32, initial=7))

    shared.to(shared.one, FIRST, filled)

    assert [row["n"] for row in shared.rows()] == [7, None]


@pytest.mark.parametrize("format_", ["memory", "iceberg"])
def test_names_are_swapped_in_the_rows_of_one_table_and_the_key_may_be_another(
    format_: str, request: pytest.FixtureRequest, session: SparkSession
) -> None:
    wide = schema_of(ID, Z, Column(id=3, name="a", type=STRING))
    target = MemoryTarget() if format_ == "memory" else request.getfixturevalue(format_)
    texts = Shared(cast(Shareable, target), session, wide, {"id": 1, "z": "of z", "a": "of a"})
    swapped = schema_of(ID, Column(id=2, name="a", type=STRING), Column(id=3, name="z", type=STRING), key=(1, 2))

    texts.to(texts.one, wide, swapped)
    rows = [{"id": 1, "a": "of z", "z": "changed"}, {"id": 1, "a": "x", "z": "y"}]
    texts.one.write(swapped, rows, progress=at(2, 11))

    assert texts.rows()[-1] == {"_t": "d.s.b", "id": 1, "z": "of z", "a": "of a"}
    assert {(row["z"], row["a"]) for row in texts.rows()[:-1]} == {("changed", "of z"), ("y", "x")}


def test_a_type_that_is_wider_for_others_is_read_as_the_table_knows_it(shared: Shared) -> None:
    wide = schema_of(ID, Z, Column(id=3, name="a", type=INT64))

    shared.to(shared.two, FIRST, wide)
    shared.two.write(wide, [{"id": 1, "z": "z", "a": 2**40}], progress=at(2, 20))
    shared.one.write(FIRST, [{"id": 1, "z": "z", "a": 6}], progress=at(1, 20))

    assert [row["a"] for row in shared.rows()] == [6, 2**40]
    assert shared.one.target.read(shared.name, FIRST, [3]).schema[0].dataType.simpleString() == "int"


def test_values_that_events_leave_out_are_those_of_the_table_s_own_row(shared: Shared) -> None:
    shared.to(shared.one, FIRST, schema_of(ID, Column(id=2, name="y", type=STRING), A))
    renamed = schema_of(ID, Column(id=2, name="y", type=STRING), A)

    shared.one.write(renamed, [{"id": 1, "a": 8, "created": False}], progress=at(2, 11), unchanged=(2,))

    assert values(shared.one, renamed) == [(1, "z", 8)]
    assert values(shared.two, FIRST) == [(1, "z", 5)]


def test_earlier_states_are_those_of_the_table_s_own_commits(shared: Shared) -> None:
    shared.two.write(FIRST, [{"id": 1, "z": "later", "a": 6}], progress=at(1, 20))
    shared.one.write(FIRST, [{"id": 1, "z": "last", "a": 7}], progress=at(1, 30))

    commits = shared.two.target.commits(shared.name, 10)

    assert [commit.progress for commit in commits] == [at(1, 20), at(1, 10), None]
    assert [values(shared.two, FIRST, commit) for commit in commits] == [[(1, "later", 6)], [(1, "z", 5)], []]


@BOTH
def test_states_from_before_values_were_moved_are_not_looked_back_at(shared: Shared) -> None:
    renamed = schema_of(ID, Column(id=2, name="y", type=STRING), A)
    shared.to(shared.one, FIRST, renamed)
    shared.one.write(renamed, [{"id": 1, "y": "new", "a": 6}], progress=at(2, 20))

    commits = shared.one.target.commits(shared.name, 10)

    assert [commit.progress for commit in commits] == [at(2, 20), at(2, 10)]
    assert values(shared.one, renamed, commits[1]) == [(1, "z", 5)]


@BOTH
def test_a_table_that_goes_takes_its_rows_and_its_columns(shared: Shared) -> None:
    more = schema_of(ID, Z, A, Column(id=4, name="n", type=INT32))
    shared.to(shared.one, FIRST, more)

    shared.one.target.drop(shared.name)
    shared.one.target.drop(shared.name)

    assert shared.one.target.state(shared.name) is None
    assert shared.rows() == [{"_t": "d.s.b", "id": 1, "z": "z", "a": 5}]
    steps = Migration(version=4, schema=FIRST, steps=(CreateTable(schema=FIRST),))
    shared.one.target.migrate(shared.name, steps, Progress(version=4))
    state = shared.one.target.state(shared.name)
    assert state is not None
    assert (state.version, state.progress) == (4, None), "what the table before had read is not this one's"
    shared.two.target.drop(shared.name)
    shared.one.target.drop(shared.name)
    assert shared.real.state(shared.name) is None


@BOTH
def test_emptying_a_table_without_rows_keeps_the_place(shared: Shared) -> None:
    shared.one.target.truncate(shared.name, at(1, 20), at(1, 10))
    shared.one.target.truncate(shared.name, at(1, 30), at(1, 20))

    state = shared.one.target.state(shared.name)
    assert state is not None
    assert state.progress == at(1, 30)
    assert [row["_t"] for row in shared.rows()] == ["d.s.b"]


def test_what_concerns_rows_of_others_is_refused_and_changes_nothing(shared: Shared) -> None:
    before = shared.rows(), shared.one.target.state(shared.name)
    refused = (
        (schema_of(ID, Z, Column(id=4, name="a", type=FLOAT64)), "neither can become the other in place"),
        (schema_of(ID, Z, A, Column(id=4, name="_t", type=INT32)), "has the name of the one"),
        (schema_of(ID, Z, A, key=()), "no key"),
        (schema_of(ID, Z, Column(id=3, name="a", type=STRING)), "writing rows anew"),
    )

    for after, reason in refused:
        with pytest.raises(ShareRefused, match=reason):
            shared.to(shared.one, FIRST, after)

    assert (shared.rows(), shared.one.target.state(shared.name)) == before


def test_lists_are_shared(shared: Shared) -> None:
    lists = Column(id=4, name="tags", type=ListType(element_id=5, element=INT32))
    shared.to(shared.one, FIRST, InternalSchema(columns=(*FIRST.columns, lists), primary_key=(1,), last_column_id=5))
    other = Column(id=7, name="tags", type=ListType(element_id=9, element=INT64))
    after = InternalSchema(columns=(*FIRST.columns, other), primary_key=(1,), last_column_id=9)
    shared.to(shared.two, FIRST, after)

    shared.two.write(after, [{"id": 2, "z": None, "a": None, "tags": [2**40]}], progress=at(2, 11))

    assert [row["tags"] for row in shared.rows()] == [None, None, [2**40]]


def test_a_table_that_is_not_shared_is_left_alone(session: SparkSession, iceberg: Target) -> None:
    name = fresh_name()
    alone = Lake(target=iceberg, session=session, name=name)
    alone.create(FIRST)
    share = SharedTable(cast(Shareable, iceberg), "_t").share(TableId(database="d", schema="s", table="a"))

    with pytest.raises(UnfitTarget, match="exists and is not shared"):
        share.state(name)


def test_the_source_column_of_a_shared_table_stays(shared: Shared) -> None:
    other = SharedTable(shared.real, "origin").share(TableId(database="d", schema="s", table="a"))

    with pytest.raises(UnfitTarget, match="there '_t' says which table a row is of"):
        other.state(shared.name)


def values(lake: Lake, schema: InternalSchema, commit: Commit | None = None) -> list[tuple[Any, ...]]:
    ids = [column.id for column in schema.columns]
    rows = lake.target.read(lake.name, schema, ids, commit).collect()
    return sorted(tuple(row[value_column(id_)] for id_ in ids) for row in rows)
