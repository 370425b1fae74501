"""A table goes on without the one record that the operator skips, which becomes a dead letter; nothing else is lost."""

from __future__ import annotations

import pytest

import cdc_sync
from cdc_sync.core.model.codes import Code
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_UNCHANGED = "__debezium_unavailable_value"


@pytest.mark.parametrize("code", [Code.ROW_MISSING, Code.VALUE_UNKNOWN])
def test_it_goes_on_behind_the_record(pipeline: NewPipeline, produce: Produce, code: Code) -> None:
    lake = pipeline(f"skip-{code}")
    table = SourceTable("orders", [column("id", INT32, optional=False), column("note", TEXT)], prefix=lake.prefix)
    for id_ in range(5):
        table.insert(id=id_, note="made")
    produce(table.topic, table.records)
    lake.run()
    (before,) = table.update({"id": 3}, note="before")
    # A row that came under another key leaves its value out; an update of one that never came finds none.
    (lost,) = table.insert(id=100, note=_UNCHANGED)
    if code is Code.ROW_MISSING:
        (lost,) = table.update({"id": 100}, note="changed")
    (behind,) = table.update({"id": 4}, note="behind")
    _, offset, _ = produce(table.topic, [before, lost, behind])
    place = f"{table.topic}[0]@{offset}"
    lake.run()
    status = lake.statuses()["orders"]
    assert (status.state, status.code, status.paused_at) == ("paused", code.value, place)

    cdc_sync.skip(lake.config, "orders", at=place, why="nobody needs it")
    lake.run()

    assert lake.statuses()["orders"].state == "running"
    found = cdc_sync.list_dead_letters(lake.config).letters
    assert [(item.place, item.code, item.table) for item in found] == [(place, "record-skipped", str(table.id))]
    rows = {row["id"]: row["note"] for row in lake.read(table.id).to_pylist()}
    assert rows == {0: "made", 1: "made", 2: "made", 3: "before", 4: "behind"}
    lake.run()
    assert len(cdc_sync.list_dead_letters(lake.config).letters) == 1
