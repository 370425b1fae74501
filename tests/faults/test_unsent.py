"""NULLs that may stand for unchanged arrays, through the real job: kept and marked, taken for NULL, or stopped at."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from cdc_sync.api import requests
from cdc_sync.testing import INT32, TEXT, SourceTable, array, column, decimal
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


class Arrays:
    """A table with an array that has no placeholder, as events show it: an unchanged large value is NULL in them."""

    def __init__(self, new: NewPipeline, produce: Produce, prefix: str, policy: str = "") -> None:
        self.lake: Pipeline = new(prefix, settings=f"policy: {{unsent_values: {policy}}}" if policy else "")
        columns = [column("id", INT32, optional=False), column("nums", array(decimal(12, 2))), column("note", TEXT)]
        self.table = SourceTable("t", columns, prefix=prefix, null_is_default=False)
        self._produce, self._sent = produce, 0
        self.table.insert(id=1, nums=[Decimal("1.50")], note="a")
        self.table.insert(id=2, note="a")
        self.run()

    def run(self) -> Any:
        self._produce(self.table.topic, self.table.records[self._sent :])
        self._sent = len(self.table.records)
        self.lake.run()
        return self.lake.statuses()["t"]

    def rows(self) -> dict[int, tuple[Any, Any]]:
        return {row["id"]: (row["nums"], row["note"]) for row in self.lake.read(self.table.id).to_pylist()}


def test_a_value_stays_where_null_may_be_unsent_and_the_column_is_marked(
    pipeline: NewPipeline, produce: Produce
) -> None:
    it = Arrays(pipeline, produce, "unsent")
    it.table.update({"id": 2}, note="b")
    assert it.run().needs_resync == (), "NULL is right, whether it was sent or not"
    it.table.update({"id": 1}, nums=None, note="b")
    status = it.run()
    assert [(mark.column, mark.reason[:24]) for mark in status.needs_resync] == [("nums", "an update shows NULL in ")]
    assert it.rows() == {1: ([Decimal("1.50")], "b"), 2: (None, "b")}

    it.table.snapshot(incremental=True)
    it.run()
    requests.resync(it.lake.config, "t", columns=(), done=True)
    assert it.run().needs_resync == ()
    assert_equal(it.lake, it.table)
    it.table.update({"id": 1}, nums=[Decimal(2)])
    it.table.update({"id": 1}, nums=None)
    assert [mark.column for mark in it.run().needs_resync] == ["nums"], "a resync ends no doubt that comes behind it"
    assert it.rows()[1] == ([Decimal("2.00")], "b")


def test_the_operator_may_take_it_for_null_or_stop(pipeline: NewPipeline, produce: Produce) -> None:
    it = Arrays(pipeline, produce, "unsent-null", "'null'")
    it.table.update({"id": 1}, nums=None)
    assert it.run().needs_resync == ()
    assert_equal(it.lake, it.table)

    it = Arrays(pipeline, produce, "unsent-pause", "pause")
    it.table.update({"id": 2}, note="b")
    assert it.run().state == "running"
    it.table.update({"id": 1}, nums=None)
    status = it.run()
    assert (status.state, status.paused_at) == ("paused", f"{it.table.topic}[0]@3")
    assert "shows NULL in nums" in status.reason
    assert it.rows()[1] == ([Decimal("1.50")], "a")
