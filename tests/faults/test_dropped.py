"""DROP TABLE of the source, told by its evidence: what becomes of the target, and of a table created again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from cdc_sync.api import commands
from cdc_sync.cli.render import show
from cdc_sync.demo.lake import Lake
from cdc_sync.operations.replay import replay
from cdc_sync.targets.iceberg.target import IcebergTarget
from cdc_sync.testing import INT32, INT64, TEXT, Record, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.lost import LostCalls
from tests.faults.pipeline import Pipeline, assert_equal, files
from tests.faults.told import ToldTable

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]
_ID = column("id", INT32, optional=False)


class Source:
    """A table with four rows, and what of it was sent."""

    def __init__(self, prefix: str, produce: Produce) -> None:
        self.table = ToldTable(prefix)
        self.prefix = prefix
        self._produce = produce
        self._sent = 0
        self._told = 0
        for number in range(4):
            self.table.insert(id=number, z="old", a=f"old {number}")

    def send(self) -> None:
        self._produce(f"{self.prefix}.message", self.table.messages[self._told :])
        self._produce(self.table.topic, self.table.records[self._sent :])
        self._told, self._sent = len(self.table.messages), len(self.table.records)

    def again(self, records: list[Record]) -> None:
        """Send events once more, as a connector does after its own restart."""
        self._produce(self.table.topic, records)

    def drop(self) -> None:
        self.table.drop()

    def create(self) -> None:
        self.table.recreate(_ID, column("a", INT64), column("w", TEXT))
        self.table.insert(id=1, a=10, w="new")
        self.table.insert(id=7, a=70, w="new")
        self.table.update({"id": 7}, a=71)


def lake_of(pipeline: NewPipeline, prefix: str, policy: str, format: str = "iceberg", wait: str = "0s") -> Pipeline:
    settings = f"evidence: {{messages: [{prefix}.message], wait: {wait}}}\npolicy: {{drop_table: {policy}}}"
    return pipeline(prefix, settings=settings, format=format)


def catalogue(lake: Pipeline) -> SqlCatalog:
    settings = lake.config.target.catalog
    uri = Lake(name=settings.name, service=settings.service or "").uri
    return SqlCatalog(settings.name, uri=uri, init_catalog_tables="false", schema_version="v1")


def names(lake: Pipeline) -> list[str]:
    return sorted(name for _, name in catalogue(lake).list_tables("public"))


def iceberg(lake: Pipeline, name: str) -> Table:
    return catalogue(lake).load_table(("public", name))


def ids(lake: Pipeline, name: str) -> list[int]:
    return sorted(row["id"] for row in iceberg(lake, name).scan().to_arrow().to_pylist())


def test_by_default_the_target_stays_and_status_and_history_tell_of_it(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = Source("dropped-keep", produce)
    lake = pipeline("dropped-keep", settings="evidence: {messages: [dropped-keep.message]}")
    source.send()
    lake.run()
    source.drop()
    source.send()

    lake.run()

    (line,) = commands.status(lake.config).tables
    assert (line.state, line.version, line.lag, line.remedy) == ("gone", 2, 0, None)
    assert line.reason is not None
    assert line.reason.startswith("the source table was dropped, by drop table t (postgresql:")
    assert line.reason.endswith(" (message): the target keeps its rows")
    assert ids(lake, "t") == [0, 1, 2, 3]
    (told,) = commands.history(lake.config)
    assert [phrase.text for phrase in told.versions[1].changes] == [
        "the source table was dropped: the target keeps its rows"
    ]
    assert told.versions[1].kafka.topic == "dropped-keep.message"
    before = lake.commits(source.table)
    lake.run()
    assert lake.commits(source.table) == before, "nothing is done twice"

    source.create()
    source.send()
    lake.run()

    assert lake.statuses()["t"].state == "running"
    assert_equal(lake, source.table)
    spark()
    again = tmp_path_factory.mktemp("again")
    replay(lake.config, into=str(again), batch_size=2)
    assert files(again) == lake.history_files()


@pytest.mark.parametrize(("policy", "batches"), [("drop", 1), ("archive", 5)])
def test_a_target_that_goes_has_all_rows_and_the_next_table_gets_one_of_its_own(
    policy: str,
    batches: int,
    pipeline: NewPipeline,
    produce: Produce,
    spark: Callable[[], None],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    prefix = f"dropped-{policy}-{batches}"
    source, lake = Source(prefix, produce), lake_of(pipeline, prefix, policy)
    steps: list[Callable[[], Any]] = [
        lambda: source.table.insert(id=9, z="last", a="last"),
        source.drop,
        source.create,
        lambda: source.table.insert(id=8, a=8, w="newer"),
    ]
    for number, step in enumerate(steps):
        if number >= len(steps) - batches + 1:
            source.send()
            lake.run()
        step()
    source.send()

    lake.run()

    assert lake.statuses()["t"].state == "running"
    assert_equal(lake, source.table)
    assert names(lake) == (["t", "t__dropped_2"] if policy == "archive" else ["t"])
    if policy == "archive":
        assert ids(lake, "t__dropped_2") == [0, 1, 2, 3, 9]
        assert iceberg(lake, "t").location() != iceberg(lake, "t__dropped_2").location()
    spark()
    again = tmp_path_factory.mktemp("again")
    replay(lake.config, into=str(again), batch_size=2)
    assert files(again) == lake.history_files()
    before = lake.commits(source.table)
    lake.run()
    assert lake.commits(source.table) == before, "nothing is done twice"


def test_a_dropped_target_does_not_come_back(pipeline: NewPipeline, produce: Produce) -> None:
    """Not by events that come late or again, not by a start."""
    source, lake = Source("dropped-late", produce), lake_of(pipeline, "dropped-late", "drop")
    old = list(source.table.records)
    source.send()
    lake.run()
    source.drop()
    source.send()
    lake.run()
    assert names(lake) == []
    status = lake.statuses()["t"]
    assert (status.state, (status.reason or "").rpartition(": ")[2]) == ("gone", "the target is dropped")

    lake.run()
    source.again(old[-2:])
    lake.run()
    lake.run()

    assert names(lake) == []
    assert lake.statuses()["t"].state == "gone"
    source.create()
    source.send()
    source.again(old)
    lake.run()
    assert_equal(lake, source.table)


@pytest.mark.parametrize("policy", ["drop", "archive"])
def test_whatever_commit_is_the_last_before_the_process_dies(
    policy: str, pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"dropped-killed-{policy}"
    source, lake = Source(prefix, produce), lake_of(pipeline, prefix, policy)
    source.drop()
    source.create()
    source.send()
    lost = LostCalls(monkeypatch, *((IcebergTarget, call) for call in ("write", "migrate", policy)))
    for _ in range(20):
        lake.run()
        if lake.statuses()["t"].state == "running":
            break
    assert {f"{policy} before", f"{policy} behind", "migrate behind", "write behind"} <= set(lost.failed)
    assert_equal(lake, source.table)
    if policy == "archive":
        assert ids(lake, "t__dropped_2") == [0, 1, 2, 3]
    assert [len(item.versions) for item in commands.history(lake.config)] == [3]


def test_plan_says_what_goes_where(pipeline: NewPipeline, produce: Produce, capsys: pytest.CaptureFixture[str]) -> None:
    source, lake = Source("dropped-plan", produce), lake_of(pipeline, "dropped-plan", "archive")
    source.send()
    lake.run()
    source.drop()
    source.create()
    source.send()

    planned = commands.plan(lake.config)

    (table,) = planned.tables
    assert [step.statements for step in table.steps] == [
        ("ALTER TABLE public.t RENAME TO public.t__dropped_2",),
        ("CREATE TABLE public.t (id INT, a BIGINT, w STRING)",),
    ]
    assert planned.exit_code == 2
    assert names(lake) == ["t"]
    capsys.readouterr()
    show(planned, as_json=False)
    text = capsys.readouterr().out
    assert "the source table was dropped: the target is archived" in text
    assert "because of t: drop table t (postgresql:" in text


@pytest.mark.delta
@pytest.mark.parametrize("policy", ["drop", "archive"])
def test_folders_of_delta_tables(policy: str, pipeline: NewPipeline, produce: Produce) -> None:
    prefix = f"dropped-delta-{policy}"
    source, lake = Source(prefix, produce), lake_of(pipeline, prefix, policy, format="delta")
    source.send()
    lake.run()
    source.drop()
    source.send()
    lake.run()
    folder = lake.folder / "warehouse" / "public"
    kept = ["t__dropped_2"] if policy == "archive" else []
    assert sorted(path.name for path in folder.iterdir()) == kept
    if kept:
        archived = lake.read(replace(source.table.id, table=kept[0]))
        assert sorted(archived["id"].to_pylist()) == [0, 1, 2, 3]

    source.create()
    source.send()
    lake.run()

    assert_equal(lake, source.table)


@pytest.mark.hudi
def test_folders_of_hudi_tables(pipeline: NewPipeline, produce: Produce) -> None:
    source, lake = Source("dropped-hudi", produce), lake_of(pipeline, "dropped-hudi", "archive", format="hudi")
    source.send()
    lake.run()
    source.drop()
    source.create()
    source.send()

    lake.run()

    assert_equal(lake, source.table)
    folder = lake.folder / "warehouse" / "public"
    assert sorted(path.name for path in folder.iterdir()) == ["t", "t__dropped_2"]
