"""Targets that somebody else altered while the job was away: named, with what fixes it, or marked."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.types import IntegerType, StringType

from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, writable

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


class Altering:
    def __init__(self, new: NewPipeline, produce: Produce, prefix: str) -> None:
        self.lake: Pipeline = new(prefix)
        columns = [column("id", INT32, optional=False), column("a", TEXT), column("n", INT32)]
        self.table = SourceTable("t", columns, prefix=prefix, null_is_default=False)
        self._produce = produce
        self._sent = 0
        self.insert(1)
        self.insert(2)

    def insert(self, number: int) -> Any:
        self.table.insert(id=number, a=f"a{number}", n=number)
        self._produce(self.table.topic, self.table.records[self._sent :])
        self._sent = len(self.table.records)
        self.lake.run()
        return self.lake.statuses()["t"]

    def alter(self) -> Any:
        table = writable(self.lake).load_table((self.table.id.schema, self.table.id.table))
        return table.update_schema(allow_incompatible_changes=True)


def test_columns_that_others_changed_are_named_with_the_statement_that_undoes_it(
    pipeline: NewPipeline, produce: Produce
) -> None:
    it = Altering(pipeline, produce, "altered")
    with it.alter() as change:
        change.delete_column("a")
        change.add_column("mine", IntegerType())
        change.rename_column("n", "m")
    status = it.insert(3)
    assert (status.state, status.reason) == (
        "paused",
        "the target public.t was altered by somebody else: column mine was added, column n was renamed to m, column a "
        "was dropped",
    )
    for statement in ("DROP COLUMN `mine`", "RENAME COLUMN `m` TO `n`", "ADD COLUMN `a` <its type>"):
        assert f"ALTER TABLE public.t {statement}" in status.remedy
    with it.alter() as change:
        change.delete_column("mine")
        change.rename_column("m", "n")
        change.add_column("a", StringType())
    status = it.insert(4)
    assert (status.state, [mark.column for mark in status.needs_resync]) == ("running", ["a"])
    assert [mark.column for mark in it.insert(5).needs_resync] == ["a"], "and it is said once"
    it.table.snapshot(incremental=True)
    it.insert(6)
    rows = sorted(it.lake.read(it.table.id).to_pylist(), key=lambda row: row["id"])
    assert rows == [{"id": number, "n": number, "a": f"a{number}"} for number in range(1, 7)]
