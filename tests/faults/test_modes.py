"""Modes that do not follow every change, through the real job: what is left out, kept, and wanted later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


def _rows(lake: Pipeline, table: SourceTable) -> list[dict[str, object]]:
    return sorted(lake.table(table.id).scan().to_arrow().to_pylist(), key=lambda row: int(row["id"]))


def test_a_column_that_was_ignored_is_marked_when_it_is_wanted(pipeline: NewPipeline, produce: Produce) -> None:
    lake = pipeline("modes-ignore", settings="policy: {mode: ignore}")
    columns = [column("id", INT32, optional=False), column("a", TEXT)]
    table = SourceTable("t", columns, prefix=lake.prefix, null_is_default=False)
    table.insert(id=1, a="one")
    table.add_column(column("n", INT32, default=5), initial=5)
    table.insert(id=2, a="two", n=7)
    table.update({"id": 1}, a="uno")
    produce(table.topic, table.records)
    lake.run()
    sent = len(table.records)

    assert _rows(lake, table) == [{"id": 1, "a": "uno"}, {"id": 2, "a": "two"}]
    (warning,) = lake.statuses()["t"].warnings
    assert warning == "n: its values are left out: policy.add_column is ignore"

    table.insert(id=3, a="three", n=9)
    produce(table.topic, table.records[sent:])
    follows = replace(lake, settings="policy: {mode: evolve}")
    follows.run()

    assert [(row["id"], row["n"]) for row in _rows(lake, table)] == [(1, None), (2, None), (3, 9)]
    ((mark),) = follows.statuses()["t"].needs_resync
    assert (mark.column, "left out" in mark.reason) == ("n", True)


def test_a_column_that_is_kept_reads_null_from_then_on(pipeline: NewPipeline, produce: Produce) -> None:
    lake = pipeline("modes-keep", settings="policy: {mode: lenient}")
    columns = [column("id", INT32, optional=False), column("a", TEXT), column("z", TEXT)]
    table = SourceTable("t", columns, prefix=lake.prefix, null_is_default=False)
    table.insert(id=1, a="one", z="z")
    table.insert(id=2, a="two", z="z")
    table.drop_column("a")
    table.update({"id": 1}, z="y")
    table.insert(id=3, z="z")
    produce(table.topic, table.records)
    lake.run()

    assert _rows(lake, table) == [
        {"id": 1, "a": "one", "z": "y"},
        {"id": 2, "a": "two", "z": "z"},
        {"id": 3, "a": None, "z": "z"},
    ]
