"""A table that is reset is read again from the start of its topics, and what it held before stays beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import cdc_sync
from cdc_sync.core.migration.operator_requests import Reset
from cdc_sync.errors import RefusedError
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.storage.requests import OperatorRequests
from cdc_sync.storage.state import StateStore
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


@pytest.mark.parametrize("dies", [False, True], ids=["", "and the job dies on the way"])
def test_it_begins_anew_beside_what_it_held(
    pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    lake = pipeline(f"reset-{dies}".lower())
    table = SourceTable("orders", [column("id", INT32, optional=False), column("note", TEXT)], prefix=lake.prefix)
    other = SourceTable("others", [column("id", INT32, optional=False)], prefix=lake.prefix)
    table.insert(id=1, note="made")
    table.add_column(column("more", TEXT))
    table.insert(id=2, note="made", more="more")
    table.update({"id": 1}, note="changed")
    other.insert(id=7)
    for each in (table, other):
        produce(each.topic, each.records)
    lake.run()
    history = lake.history_files()

    asked = cdc_sync.reset(lake.config, "orders")

    assert (asked.target, asked.is_running) == ("public.orders", False)
    assert asked.into is not None
    assert asked.into.startswith("public.orders__reset_")
    if dies:
        with monkeypatch.context() as patch:
            patch.setattr(OperatorRequests, "remove", _fail)
            lake.run()
        assert lake.statuses()["orders"].state == "failing"
    lake.run()

    assert {name: status.state for name, status in lake.statuses().items()} == dict.fromkeys(
        ("orders", "others"), "running"
    )
    assert_equal(lake, table)
    assert_equal(lake, other)
    assert lake.history_files() == history
    assert StateStore(lake.config.pipeline.root).requests.get(Reset, table.id) is None
    before = replace(table.id, table=asked.into.partition(".")[2])
    assert lake.read(before).num_rows == 2
    table.update({"id": 2}, note="goes on")
    produce(table.topic, table.records[-1:])
    lake.run()
    assert_equal(lake, table)


def _fail(*_: object) -> None:
    raise OSError("killed")


def test_one_whose_beginning_is_gone_is_not(
    pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = pipeline("reset-not")
    table = SourceTable("orders", [column("id", INT32, optional=False)], prefix=lake.prefix)
    table.insert(id=1)
    table.insert(id=2)
    produce(table.topic, table.records)
    lake.run()
    monkeypatch.setattr(KafkaClient, "beginnings", lambda *_: {table.topic: {0: 1}})

    with pytest.raises(RefusedError, match=r"\[0\] holds nothing before offset 1 any more; `cdc-sync reset CONFIG"):
        cdc_sync.reset(lake.config, "orders")

    assert StateStore(lake.config.pipeline.root).requests.get(Reset, table.id) is None
