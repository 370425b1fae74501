"""A whole snapshot taken again, through a broker and the real job: marked, and by policy all that the target shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

import cdc_sync
from cdc_sync.config import parse_config
from cdc_sync.core.migration.operator_requests import SnapshotReset
from cdc_sync.core.planning.resync import ALL_ROWS
from cdc_sync.spark.session import build_session
from cdc_sync.storage.state import StateStore
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.corpus.runs import memory_job, session_of_its_own
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


def snapshot_of(prefix: str) -> SourceTable:
    """Four rows, read by the first snapshot, and one that came behind it."""
    columns = [column("id", INT32, optional=False), column("a", TEXT)]
    it = SourceTable("t", columns, prefix=prefix, null_is_default=False)
    for number in range(4):
        it.insert(id=number, a="first")
    it.records.clear()
    connect_anew(it)
    it.insert(id=5, a="streamed")
    return it


def connect_anew(table: SourceTable) -> None:
    table.wal.last_commit = None
    table.snapshot()


def delete_unheard(table: SourceTable, number: int) -> None:
    table.rows = [row for row in table.rows if row["id"] != number]


def test_rows_that_went_unheard_are_marked_and_go_by_policy(pipeline: NewPipeline, produce: Produce) -> None:
    it, lake = snapshot_of("again"), pipeline("again")
    produce(it.topic, it.records)
    lake.run()

    sent = len(it.records)
    delete_unheard(it, 1)
    it.add_column(column("n", INT32))
    connect_anew(it)
    it.update({"id": 2}, a="behind")
    it.delete({"id": 3})
    it.insert(id=6, a="behind", n=6)
    produce(it.topic, it.records[sent:])
    lake.run()
    held = lake.read(it.id)
    assert sorted(held["id"].to_pylist()) == [0, 1, 2, 5, 6], "1 is gone at the source, and no event says so"
    assert [mark.column for mark in lake.statuses()["t"].needs_resync] == [ALL_ROWS, "n"]

    applied = replace(lake, settings="policy: {second_snapshot: apply}")
    applied.run()
    assert_equal(applied, it)
    status = applied.statuses()["t"]
    assert (status.state, status.needs_resync) == ("running", ())
    it.delete({"id": 0})
    produce(it.topic, it.records[-2:])
    applied.run()
    assert_equal(applied, it)


def test_one_that_the_operator_asked_for_takes_the_place_of_what_was_there(
    pipeline: NewPipeline, produce: Produce
) -> None:
    it = snapshot_of("asked")
    lake = pipeline("asked", settings="connector: {signals: {topic: signals, prefix: asked}}")
    produce(it.topic, it.records)
    lake.run()

    asked = cdc_sync.reset_from_snapshot(lake.config, "t")
    assert (asked.topic, asked.into, asked.statement) == ("signals", None, None)
    lake.run()
    assert lake.read(it.id).num_rows == 5, "nothing is done before the snapshot comes"
    sent = len(it.records)
    delete_unheard(it, 1)
    connect_anew(it)
    it.update({"id": 2}, a="behind")
    produce(it.topic, it.records[sent:])
    lake.run()
    assert_equal(lake, it)
    assert lake.statuses()["t"].needs_resync == ()
    lake.run()
    assert StateStore(lake.config.pipeline.root).requests.get(SnapshotReset, it.id) is None

    sent = len(it.records)
    delete_unheard(it, 2)
    connect_anew(it)
    produce(it.topic, it.records[sent:])
    lake.run()
    assert 2 in lake.read(it.id)["id"].to_pylist(), "another one is marked, as the policy says"


@pytest.fixture
def sessions(_spark: SparkSession) -> Iterator[None]:
    with session_of_its_own(_spark):
        yield


@pytest.mark.usefixtures("sessions")
def test_it_is_noticed_where_nothing_else_is_new(pipeline: NewPipeline, produce: Produce) -> None:
    """Records of schemas that are known are written without a look at them, but for the ends of snapshots."""
    it = snapshot_of("unlooked")
    it.insert(id=6, a="streamed")
    start = len(it.records)
    it.insert(id=7, a="streamed")
    delete_unheard(it, 1)
    connect_anew(it)
    it.insert(id=8, a="behind")
    produce(it.topic, it.records)
    config = parse_config(pipeline("unlooked", format="memory", settings="policy: {second_snapshot: apply}").text)
    with memory_job(config, build_session(config)) as (job, context):
        for end in (start - 1, start, len(it.records)):
            job.process({(it.topic, 0): end})
        (sync,) = job.tables.all()
        assert sync.state.history is not None
        assert [version.read_again for version in sync.state.history.versions] == [False, True]
        assert isinstance(context.target, MemoryTarget)
        rows = context.target.rows(sync.route.target)
    assert sorted((row["id"], row["a"]) for row in rows) == sorted((row["id"], row["a"]) for row in it.rows)
