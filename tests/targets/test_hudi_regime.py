"""A Hudi table that goes from one regime to the other and back: in one commit, and no old value comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.migration.capabilities import HUDI, HUDI_ON_READ, SchemaEvolution
from cdc_sync.core.migration.migration import AlterTable, ChangeRegime, Migration, RewriteTable, migration
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32, INT64
from cdc_sync.errors import TargetError
from cdc_sync.spark.columns import value_column
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.hudi.settings import ON_READ, TABLE_TYPE
from cdc_sync.targets.hudi.table import HudiTable
from cdc_sync.targets.protocol import Batch, Target
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake, fresh_name, shown
from tests.targets.test_hudi_on_read import ID, A, B, C, L, M, S, folder_of, hudi_table, row

pytestmark = [pytest.mark.spark, pytest.mark.hudi]

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
COLUMNS = (ID, A, B, C, S, L, M)


@pytest.fixture(scope="module", params=KINDS)
def kept(request: pytest.FixtureRequest, session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Target:
    folder = str(tmp_path_factory.mktemp(request.param))
    properties = {TABLE_TYPE: request.param, "hoodie.compact.inline.max.delta.commits": "100"}
    return open_target(
        TargetConfig(format="hudi", catalog=Catalog(warehouse=folder), table_properties=properties), session
    )


@dataclass
class Switched:
    """A table and what it has to show, by the ids of its columns."""

    lake: Lake
    schema: InternalSchema
    evolution: SchemaEvolution
    rows: dict[int, dict[int, Any]] = field(default_factory=dict)
    number: int = 1
    written: int = 0

    @property
    def state(self) -> TargetState:
        found = self.lake.target.state(self.lake.name)
        assert found is not None
        return found

    @property
    def progress(self) -> Progress:
        return Progress(version=self.number, offsets={"t": {0: self.written}})

    def write(self, *rows: Mapping[int, Any], deleted: Sequence[int] = ()) -> None:
        self.written += 1
        for values in rows:
            self.rows[values[1]] = {column.id: values.get(column.id) for column in self.schema.columns}
        for key in deleted:
            del self.rows[key]
        named: list[dict[str, Any]] = [
            {column.name: shown(values.get(column.id), column.type) for column in self.schema.columns}
            for values in rows
        ]
        named += [{self.schema.column(1).name: key, "deleted": True} for key in deleted]
        self.lake.write(self.schema, named, progress=self.progress)

    def change(self, *columns: Column, kind: type) -> None:
        after = replace(self.schema, columns=columns)
        before = version(self.number, self.schema)
        able = HUDI_ON_READ if self.evolution == "on_read" else HUDI
        steps = migration(before, before, version(self.number + 1, after), capabilities=able)
        assert [type(step) for step in steps.steps] == [kind]
        self.number += 1
        self.lake.migrate(steps, self.progress)
        self.schema = after
        live = {column.id for column in columns}
        self.rows = {key: {id_: it for id_, it in values.items() if id_ in live} for key, values in self.rows.items()}

    def switch(self) -> None:
        self.evolution = "on_read" if self.evolution == "on_write" else "on_write"
        steps = Migration(version=self.number, schema=self.schema, steps=(ChangeRegime(after=self.evolution),))
        self.lake.migrate(steps, self.progress)

    def check(self) -> None:
        """Look as every reader of the regime does; by name, one that was told of ids sees the same."""
        wanted = [
            {column.name: shown(values.get(column.id), column.type) for column in self.schema.columns}
            for values in self.rows.values()
        ]
        told: list[Mapping[str, str]] = [ON_READ] if self.evolution == "on_read" else [{}, ON_READ]
        for options in told:
            frame = self.lake.session.read.format("hudi").options(**options).load(str(folder_of(self.lake)))
            found = [
                {name: value for name, value in it.asDict(recursive=True).items() if not name.startswith("_hoodie_")}
                for it in frame.collect()
            ]
            assert sorted(found, key=repr) == sorted(wanted, key=repr), (self.evolution, options)
            assert all(list(it) == [column.name for column in self.schema.columns] for it in found)
        ids = [column.id for column in self.schema.columns]
        assert self.lake.target.read(self.lake.name, self.schema, ids).count() == len(self.rows)
        state = self.state
        assert (state.version, state.rows, state.evolution) == (self.number, len(self.rows), self.evolution)
        assert state.progress is not None
        assert state.progress.offsets == self.progress.offsets

    def commits(self) -> int:
        return len([stamp for _, stamp in hudi_table(self.lake).stamps() if stamp is not None])

    def files(self) -> set[str]:
        return {path.name for path in folder_of(self.lake).glob("*") if path.is_file() and path.name[0] != "."}


@pytest.fixture
def table(kept: Target, session: SparkSession) -> Switched:
    """A table for all readers, with changed and deleted rows, some of them in logs where it has such."""
    schema = InternalSchema(columns=COLUMNS, primary_key=(1,), last_column_id=1000)
    lake = Lake(target=kept, session=session, name=fresh_name())
    lake.create(schema)
    found = Switched(lake, schema, "on_write")
    found.write(*map(row, range(5)))
    found.write({**row(1), 3: "changed", 20: None}, deleted=[2])
    return found


N = Column(id=100, name="a", type=INT32)


def test_a_table_is_the_same_after_one_commit(table: Switched) -> None:
    assert (hudi_table(table.lake).logs() > 0) is hudi_table(table.lake).is_merged_on_read
    before, commits = table.state, table.commits()
    for evolution in ("on_read", "on_write", "on_read"):
        table.switch()
        table.check()
        assert replace(table.state, size=0) == replace(before, size=0, evolution=evolution)
    assert table.commits() == commits + 3
    assert hudi_table(table.lake).logs() == 0


def test_asked_again_nothing_happens(table: Switched) -> None:
    for evolution in ("on_read", "on_write"):
        table.switch()
        commits, files = table.commits(), table.files()
        steps = Migration(version=1, schema=table.schema, steps=(ChangeRegime(after=evolution),))
        table.lake.migrate(steps, table.progress)
        assert (table.commits(), table.files()) == (commits, files)


def test_on_write_to_on_read_makes_changes_metadata(table: Switched) -> None:
    """What was a rewrite is none any more, and the values that older files have under such names do not come back."""
    table.change(ID, replace(A, name="d"), B, C, S, L, M, kind=RewriteTable)
    table.switch()
    table.write(row(7))
    files = table.files()
    table.change(ID, replace(A, name="c"), B, replace(C, name="d"), L, S, kind=AlterTable)
    table.check()
    table.change(ID, replace(A, name="c", type=INT64), N, S, kind=AlterTable)
    table.check()
    assert table.files() == files, "no row was written"
    table.write({1: 1, 2: 2**40, 100: 5, 20: None}, {1: 9, 2: 9, 100: 9}, deleted=[3])
    table.check()
    hudi_table(table.lake).merge_logs()
    table.check()


def test_on_read_to_on_write_brings_no_old_value_back(table: Switched) -> None:
    """Names that were used again by ids are found by name afterwards, in files and in what batches merge with them."""
    table.switch()
    table.change(ID, replace(A, name="b"), replace(B, name="a"), C, S, L, M, kind=AlterTable)
    table.write(row(8))
    table.change(ID, replace(A, name="b"), S, replace(C, name="x"), kind=AlterTable)
    table.change(ID, replace(A, name="b"), S, replace(C, name="x"), N, kind=AlterTable)
    table.write({1: 8, 2: 1, 100: 2, 4: Decimal("2.50")})
    table.switch()
    table.check()
    table.write({1: 1, 2: 5, 100: 6}, {1: 11, 2: 7, 100: 8, 20: {32: 1, 33: "z", 34: 1.5}}, deleted=[4])
    table.check()
    table.change(ID, replace(A, name="m"), S, replace(C, name="x"), N, kind=RewriteTable)
    table.check()
    table.write({1: 3, 2: 6})
    table.check()
    hudi_table(table.lake).merge_logs()
    table.check()


def test_there_and_back_and_there(table: Switched) -> None:
    """The columns of the first time that they had ids are not those of files of the second."""
    table.switch()
    table.change(ID, replace(A, name="q"), B, S, kind=AlterTable)
    table.switch()
    table.change(ID, replace(A, name="a"), replace(B, name="q"), S, kind=RewriteTable)
    table.write({**row(20), 20: None})
    table.switch()
    table.check()
    table.change(ID, replace(A, name="q"), replace(B, name="a"), S, kind=AlterTable)
    table.write({**row(21), 20: None})
    table.check()
    table.change(ID, replace(A, name="q"), S, N, kind=AlterTable)
    table.write({1: 20, 2: 1, 100: 3})
    table.check()
    hudi_table(table.lake).merge_logs()
    table.check()


def test_earlier_states_are_read_as_they_were(table: Switched) -> None:
    def states(schema: InternalSchema) -> list[list[tuple[Any, ...]]]:
        found = table.lake.target.commits(table.lake.name, 9)
        return [
            sorted(map(tuple, table.lake.target.read(table.lake.name, schema, (1, 2, 3), it).collect())) for it in found
        ]

    first, *rest = states(table.schema)
    table.switch()
    assert states(table.schema) == [first, *rest]
    table.change(ID, replace(A, name="b"), replace(B, name="a"), C, S, L, M, kind=AlterTable)
    table.write(row(8))
    second = states(table.schema)
    assert second[1:] == [first, *rest]
    table.switch()
    assert states(table.schema) == second


def test_a_rewrite_of_before_is_not_rolled_back(table: Switched) -> None:
    """What it led to is of the other regime."""
    table.change(ID, replace(A, name="q"), B, S, kind=RewriteTable)
    assert table.state.kept == 1
    table.switch()
    assert table.state.kept is None
    assert not table.lake.target.roll_back(table.lake.name)
    assert hudi_table(table.lake)._savepoints() == []
    table.check()
    table.change(ID, replace(A, name="q"), replace(B, type=INT32), S, kind=RewriteTable)
    assert table.lake.target.roll_back(table.lake.name)
    assert table.state.evolution == "on_read"


def test_a_changelog_and_a_table_without_a_key(kept: Target, session: SparkSession) -> None:
    for mode, metadata in (("append", ", _cdc_op string, _cdc_offset bigint"), ("upsert", "")):
        lake = Lake(target=kept, session=session, name=fresh_name())
        schema = InternalSchema(columns=(ID, A), primary_key=(), last_column_id=6)
        able = HUDI_ON_READ
        lake.migrate(migration(None, None, version(1, schema), capabilities=able, mode=mode))  # type: ignore[arg-type]
        values = [(1, 7, "c", 5), (1, 7, "u", 6)] if metadata else [(1, 7), (1, 7)]
        rows = session.createDataFrame(values, f"{value_column(1)} bigint, {value_column(2)} int{metadata}")
        batch = Batch(rows=rows, schema=schema, progress=Progress(version=1), behind=None, append=True, mode=mode)  # type: ignore[arg-type]
        kept.write(lake.name, batch)
        for evolution in ("on_write", "on_read"):
            steps = Migration(version=1, schema=schema, steps=(ChangeRegime(after=evolution),))
            lake.migrate(steps)
            frame = session.read.format("hudi").options(**(ON_READ if evolution == "on_read" else {}))
            shown_ = frame.load(str(folder_of(lake))).selectExpr(
                "id", "a", *(["_cdc_op", "_cdc_offset"] * bool(metadata))
            )
            assert sorted(map(tuple, shown_.collect())) == values
            state = kept.state(lake.name)
            assert state is not None
            assert (state.mode, state.rows, state.evolution) == (mode, 2, evolution)


class Died(Exception):
    """What a test ends the process by."""


def _before_the_files(patch: pytest.MonkeyPatch) -> None:
    def died(*_: Any) -> Any:
        raise Died

    patch.setattr(HudiTable, "_records", died)


def _behind_the_files(patch: pytest.MonkeyPatch) -> None:
    collect = HudiTable._collect

    def died(self: HudiTable, statuses: Any) -> Any:
        collect(self, statuses)
        raise Died

    patch.setattr(HudiTable, "_collect", died)


def _behind_the_columns(patch: pytest.MonkeyPatch) -> None:
    """All that the commit needs is written, and it is not there."""
    from cdc_sync.targets.hudi import timeline as hudi_timeline

    option = hudi_timeline.HudiTimeline._option

    def died(self: HudiTable, values: Mapping[str, str]) -> Any:
        if "cdc_sync.table" in values:
            raise Died
        return option(self, values)

    patch.setattr(hudi_timeline.HudiTimeline, "_option", died)


def _behind_the_commit(patch: pytest.MonkeyPatch) -> None:
    commit = HudiTable.commit

    def died(self: HudiTable, *given: Any) -> None:
        commit(self, *given)
        raise Died

    patch.setattr(HudiTable, "commit", died)


def _behind_the_logs(patch: pytest.MonkeyPatch) -> None:
    merge = HudiTable.merge_logs

    def died(self: HudiTable) -> None:
        merge(self)
        raise Died

    patch.setattr(HudiTable, "merge_logs", died)


DEATHS: Sequence[Callable[[pytest.MonkeyPatch], None]] = (
    _behind_the_logs,
    _before_the_files,
    _behind_the_files,
    _behind_the_columns,
    _behind_the_commit,
)


@pytest.mark.parametrize("dies", DEATHS, ids=lambda it: it.__name__.strip("_"))
def test_whoever_dies_on_the_way_leaves_a_table_of_one_regime(
    table: Switched, dies: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    table.change(ID, replace(A, name="q"), B, S, kind=RewriteTable)
    for _ in range(2):
        before, commits = table.state, table.commits()
        with monkeypatch.context() as patch:
            dies(patch)
            with pytest.raises(Died):
                table.switch()
        done = dies is _behind_the_commit
        wished = table.evolution
        table.evolution = wished if done else before.evolution
        table.check()
        if not done:
            assert table.state.kept == before.kept
            table.switch()
        else:
            steps = Migration(version=table.number, schema=table.schema, steps=(ChangeRegime(after=wished),))
            table.lake.migrate(steps, table.progress)
        table.check()
        assert table.commits() == commits + 1
        assert hudi_table(table.lake)._savepoints() == []
        table.write({1: 1, 2: table.written, 3: "later"}, deleted=[*list(table.rows)[2:3]])
        table.check()


def test_columns_that_are_being_joined_are_joined_first(table: Switched) -> None:
    """Between a join's commit and the version's, a column may be wider than the schema says."""
    wider = replace(table.schema, columns=(ID, replace(A, type=INT64), *COLUMNS[2:]))
    steps = Migration(version=1, schema=wider, steps=(ChangeRegime(after="on_read"),))
    with pytest.raises(TargetError, match=r"a join .* is not complete; set schema_evolution: on_write again"):
        table.lake.migrate(steps, table.progress)
    table.check()
