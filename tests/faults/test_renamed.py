"""RENAME TABLE of the source, told by its evidence: the target goes on under the new name, or stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cdc_sync.api import commands
from cdc_sync.operations.replay import replay
from cdc_sync.targets.iceberg.target import IcebergTarget
from cdc_sync.testing import TEXT, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.lost import LostCalls
from tests.faults.pipeline import Pipeline, assert_equal, files, writable
from tests.faults.test_dropped import names
from tests.faults.told import ToldTable

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


class Source:
    """A table `t` with four rows, whose events go to the topic of the name that it has when they are written."""

    def __init__(self, prefix: str, produce: Produce) -> None:
        self.table = ToldTable(prefix)
        self.prefix = prefix
        self._produce = produce
        self._written: list[str] = []
        self._sent = 0
        self._told = 0
        self.table.tell("create table t", tag="CREATE TABLE")
        for number in range(4):
            self.table.insert(id=number, z="first", a=f"old {number}")
        self._note()

    def _note(self) -> None:
        self._written += [self.table.topic] * (len(self.table.records) - len(self._written))

    def rename(self, name: str) -> None:
        self._note()
        self.table.rename_to(name)

    def row(self, id: int, **values: object) -> None:
        self.table.insert(id=id, **values)

    def send(self) -> None:
        self._note()
        self._produce(f"{self.prefix}.message", self.table.messages[self._told :])
        for topic in sorted(set(self._written)):
            rows = zip(self._written[self._sent :], self.table.records[self._sent :], strict=True)
            self._produce(topic, [record for written, record in rows if written == topic])
        self._told, self._sent = len(self.table.messages), len(self.table.records)


def lake_of(pipeline: NewPipeline, prefix: str, policy: str = "follow", format: str = "iceberg") -> Pipeline:
    settings = f"evidence: {{messages: [{prefix}.message], wait: 0s}}\npolicy: {{rename_table: {policy}}}"
    return pipeline(prefix, settings=settings, format=format)


def assert_replayed(lake: Pipeline, spark: Callable[[], None], folder: pytest.TempPathFactory) -> None:
    """Nothing is done twice, and the topics alone lead to the same histories."""
    before = {name: writable(lake).load_table(("public", name)).metadata for name in names(lake)}
    lake.run()
    assert {name: writable(lake).load_table(("public", name)).metadata for name in names(lake)} == before
    spark()
    again = folder.mktemp("again")
    replay(lake.config, into=str(again), batch_size=100)
    assert files(again) == lake.history_files()


def test_the_target_goes_on_under_the_new_name_with_all_its_rows(
    pipeline: NewPipeline,
    produce: Produce,
    spark: Callable[[], None],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """An update and a delete of rows from before need them; a column renamed right before it keeps its id."""
    prefix = "renamed-1"
    source, lake = Source(prefix, produce), lake_of(pipeline, prefix)
    steps: list[Callable[[], Any]] = [
        lambda: source.row(9, z="last", a="last"),
        lambda: source.table.rename_column("a", "b"),
        lambda: source.rename("u"),
        lambda: source.table.update({"id": 1}, z="updated"),
        lambda: source.table.delete({"id": 2}),
        lambda: source.table.add_column(column("w", TEXT)),
        lambda: source.row(10, z="new", b="new", w="new"),
    ]
    for number, step in enumerate(steps):
        if number == len(steps) - 1:
            source.send()
            lake.run()
        step()
    source.send()

    lake.run()

    statuses = lake.statuses()
    assert (statuses["u"].state, statuses["t"].state) == ("running", "gone")
    assert (statuses["t"].reason or "").endswith("(message): the target is renamed with it")
    assert_equal(lake, source.table)
    assert names(lake) == ["u"]
    told = {item.table.table: item.versions for item in commands.history(lake.config)}
    assert [phrase.text for phrase in told["t"][-1].changes] == [
        "the source table was renamed to shop.public.u: the target is renamed with it"
    ]
    assert told["u"][0].changes[0].text == "the table came under this name: it was shop.public.t, version 1"
    assert [phrase.kind for phrase in told["u"][1].changes] == ["RenameColumn"]
    assert_replayed(lake, spark, tmp_path_factory)


def test_a_chain_and_the_way_back_without_a_row_in_between(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    source, lake = Source("renamed-chain", produce), lake_of(pipeline, "renamed-chain")
    source.send()
    lake.run()
    source.rename("u")
    source.rename("v")
    source.send()

    lake.run()

    assert names(lake) == ["v"]
    assert {name: status.state for name, status in lake.statuses().items()} == {
        "t": "gone",
        "u": "gone",
        "v": "running",
    }
    source.table.update({"id": 3}, a="as v")
    source.rename("t")
    source.table.update({"id": 0}, a="as t again")
    source.table.drop_column("z")
    source.row(11, a="as t again")
    source.send()
    lake.run()
    assert lake.statuses()["t"].state == "running"
    assert_equal(lake, source.table)
    assert names(lake) == ["t"]
    assert_replayed(lake, spark, tmp_path_factory)


def test_whatever_step_is_the_last_before_the_process_dies(
    pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, lake = Source("renamed-killed", produce), lake_of(pipeline, "renamed-killed")
    source.send()
    lake.run()
    source.row(9, z="last", a="last")
    source.rename("u")
    source.table.update({"id": 1}, a="updated")
    source.send()
    from cdc_sync.storage.history import HistoryStore

    lost = LostCalls(monkeypatch, (IcebergTarget, "archive"), (IcebergTarget, "migrate"), (HistoryStore, "append"))
    for _ in range(20):
        lake.run()
        if lake.statuses().get("u") is not None and lake.statuses()["u"].state == "running":
            break
    assert {
        "archive before",
        "archive behind",
        "migrate before",
        "migrate behind",
        "append before",
        "append behind",
    } == {*lost.failed}
    assert_equal(lake, source.table)
    assert names(lake) == ["u"]
    assert [len(item.versions) for item in commands.history(lake.config)] == [2, 1]


def test_a_target_that_is_there_is_never_taken(pipeline: NewPipeline, produce: Produce) -> None:
    source, lake = Source("renamed-taken", produce), lake_of(pipeline, "renamed-taken")
    source.send()
    lake.run()
    other = str(lake.folder / "other")
    writable(lake).create_table(("public", "u"), writable(lake).load_table(("public", "t")).schema(), location=other)
    source.rename("u")
    source.table.update({"id": 1}, a="updated")
    source.send()

    lake.run()

    statuses = lake.statuses()
    assert (statuses["t"].state, statuses["t"].paused_at) == ("paused", "renamed-taken.message[0]@1")
    assert "there is a table of that name" in (statuses["t"].reason or "")
    assert statuses["u"].state in ("waiting", "paused")
    assert names(lake) == ["t", "u"]
    writable(lake).drop_table(("public", "u"))
    lake.run()
    assert_equal(lake, source.table)
    assert names(lake) == ["u"]
