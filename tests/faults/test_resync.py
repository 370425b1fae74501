"""Columns that need a resync: asked for by a signal, followed by notifications, or done by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cdc_sync.api import requests
from cdc_sync.core.planning.resync import Resync, ResyncAsked
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.errors import RefusedError
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.storage.state import StateStore
from cdc_sync.testing import INT32, TEXT, Record, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


class Shop:
    """A table with a column whose default is a function, and a connector of which the tests play the part."""

    def __init__(self, new: NewPipeline, produce: Produce, prefix: str, *, told: bool = True) -> None:
        asked, answers = f"{prefix}-asked", f"{prefix}-answers"
        connector = f"connector: {{signals: {{topic: {asked}, prefix: shop}}, notifications: {answers}}}"
        self.lake: Pipeline = new(prefix, settings=connector if told else "")
        columns = [column("id", INT32, optional=False), column("note", TEXT)]
        self.table = SourceTable("t", columns, prefix=prefix, null_is_default=False)
        self._asked, self._answers = asked, answers
        self._produce, self._sent = produce, 0
        for number in (1, 2):
            self.table.insert(id=number, note=f"n{number}")
        self.table.add_column(column("made", INT32, optional=False, default=0), initial=77)
        self.table.insert(id=3, note="n3", made=78)
        assert self.marks() == ["made"]

    def run(self) -> TableStatus:
        self._produce(self.table.topic, self.table.records[self._sent :])
        self._sent = len(self.table.records)
        self.lake.run()
        return self.lake.statuses()["t"]

    def marks(self) -> list[str]:
        return [mark.column for mark in self.run().needs_resync]

    def ask(self, *columns: str, done: bool = False) -> ResyncAsked:
        return requests.resync(self.lake.config, "t", columns=columns, done=done)

    def signals(self) -> list[Record]:
        kafka = KafkaClient(self.lake.config.kafka)
        end = kafka.ends([self._asked])[self._asked][0]
        return [Record(key=item.key, value=item.value) for item in kafka.read(self._asked, 0, 0, end)]

    def answer(self, signal: str, type_: str, **data: str) -> None:
        said: dict[str, Any] = {"id": signal, "aggregate_type": "Incremental Snapshot", "type": type_}
        value = {"schema": {"type": "struct", "name": "io.debezium.connector.common.Notification", "fields": []}}
        payload = {**said, "additional_data": data, "timestamp": 1}
        self._produce(self._answers, [Record(key=None, value=json.dumps({**value, "payload": payload}).encode())])


@pytest.fixture
def shop(pipeline: NewPipeline, produce: Produce) -> Callable[..., Shop]:
    return lambda prefix, **options: Shop(pipeline, produce, prefix, **options)


def test_a_mark_goes_when_all_rows_have_arrived(shop: Callable[..., Shop]) -> None:
    it = shop("resynced")
    asked = it.ask()
    assert (asked.columns, asked.statement, asked.followed) == (("made",), None, True)
    (signal,) = it.signals()
    assert signal.key == b"shop"
    assert json.loads(signal.value or b"") == {
        "id": asked.signal,
        "type": "execute-snapshot",
        "data": {"data-collections": ["public[.]t"], "type": "incremental"},
    }
    it.answer(asked.signal, "STARTED")
    assert it.marks() == ["made"]
    it.table.snapshot(incremental=True)
    it.answer(asked.signal, "TABLE_SCAN_COMPLETED", status="SUCCEEDED")
    assert it.marks() == ["made"]
    it.answer("another's", "COMPLETED")
    assert it.marks() == ["made"]
    it.answer(asked.signal, "COMPLETED")
    assert it.marks() == []
    assert_equal(it.lake, it.table)
    assert it.marks() == [], "also after a start"


def test_a_snapshot_that_failed_leaves_the_mark_and_says_so(shop: Callable[..., Shop]) -> None:
    it = shop("unsynced")
    asked = it.ask("made")
    it.answer(asked.signal, "TABLE_SCAN_COMPLETED", status="NO_PRIMARY_KEY")
    it.answer(asked.signal, "COMPLETED")
    status = it.run()
    assert [mark.column for mark in status.needs_resync] == ["made"]
    assert "the connector could not read the rows again (NO_PRIMARY_KEY)" in status.warnings[-1]
    again = it.ask()
    it.answer(again.signal, "COMPLETED")
    assert it.marks() == []


def test_a_scan_counts_whose_signal_another_one_has_taken_the_place_of(shop: Callable[..., Shop]) -> None:
    it = shop("replaced")
    it.answer(
        "before", "TABLE_SCAN_COMPLETED", status="SUCCEEDED", scanned_collection="public.t", connector_name="replaced"
    )
    first, second = it.ask(), it.ask()
    scan = {"status": "SUCCEEDED", "connector_name": "replaced"}
    it.answer(
        "another's", "TABLE_SCAN_COMPLETED", **scan | {"connector_name": "a stranger"}, scanned_collection="public.t"
    )
    it.answer("another's", "TABLE_SCAN_COMPLETED", **scan, scanned_collection="public.other")
    assert it.marks() == ["made"], "neither the one from before nor another table's is ours"
    it.table.snapshot(incremental=True)
    it.answer("another's", "TABLE_SCAN_COMPLETED", **scan, scanned_collection="public.t")
    assert it.marks() == []
    assert_equal(it.lake, it.table)
    ended = {
        item.signal: bool(item.ends)
        for item in StateStore(it.lake.config.pipeline.root).requests.all(Resync, it.table.id)
    }
    assert sorted(ended.values()) == [False, True], "one scan is the end of one question"
    assert ended.keys() == {first.signal, second.signal}
    it.answer("another's", "TABLE_SCAN_COMPLETED", **scan, scanned_collection="public.t")
    it.run()
    assert all(item.ends for item in StateStore(it.lake.config.pipeline.root).requests.all(Resync, it.table.id))


def test_a_failed_scan_of_another_table_is_not_ours(shop: Callable[..., Shop]) -> None:
    it = shop("not-ours")
    asked = it.ask()
    failed = {"status": "SQL_EXCEPTION", "connector_name": "not-ours"}
    it.answer(asked.signal, "TABLE_SCAN_COMPLETED", **failed, scanned_collection="public.other")
    assert it.run().warnings == ()
    it.answer("another's", "TABLE_SCAN_COMPLETED", **failed, scanned_collection="public.t")
    assert "the connector could not read the rows again (SQL_EXCEPTION)" in it.run().warnings[-1]


def test_the_operator_may_do_it_all_by_hand(shop: Callable[..., Shop]) -> None:
    it = shop("by-hand", told=False)
    with pytest.raises(RefusedError, match="'gone' is none of its columns"):
        it.ask("gone")
    asked = it.ask()
    assert asked.statement is not None
    assert asked.statement.startswith(f"INSERT INTO <signal.data.collection> (id, type, data) VALUES ('{asked.signal}'")
    assert not asked.followed
    it.table.snapshot(incremental=True)
    assert it.marks() == ["made"]
    assert it.ask(done=True).columns == ("made",)
    assert it.marks() == []
    assert_equal(it.lake, it.table)
    assert it.ask().columns == (), "the whole table, of which nothing is marked"
    it.ask(done=True)
    with pytest.raises(RefusedError, match="no column of it is marked"):
        it.ask(done=True)


def test_values_that_are_right_need_no_snapshot(shop: Callable[..., Shop]) -> None:
    it = shop("right", told=False)
    assert it.ask(done=True).columns == ("made",)
    assert it.marks() == []
    assert StateStore(it.lake.config.pipeline.root).requests.all(Resync, it.table.id)[0].ends
