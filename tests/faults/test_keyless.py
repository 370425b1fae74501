"""Tables without a key, and changelogs, through a broker and the real job."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cdc_sync.api import commands
from cdc_sync.testing import INT32, TEXT, SourceTable, Wal, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


def rows(pipeline: Pipeline, source: SourceTable) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in pipeline.table(source.id).scan().to_arrow().to_pylist())


def logged(pipeline: Pipeline, source: SourceTable) -> list[tuple[Any, ...]]:
    """A changelog's values and operations, by offset."""
    found = pipeline.table(source.id).scan().to_arrow().to_pylist()
    found.sort(key=lambda row: int(row["_cdc_offset"]))
    return [(row["_cdc_op"], *(row[part.field or ""] for part in source.columns)) for row in found]


def source(name: str, prefix: str, *, key: tuple[str, ...] = (), full: bool = False, wal: Wal) -> SourceTable:
    columns = [column("id", INT32, optional=False), column("a", TEXT), column("n", INT32, optional=False)]
    return SourceTable(name, columns, key=key, prefix=prefix, wal=wal, full_identity=full, null_is_default=False)


def test_a_table_without_a_key_has_the_sources_rows(pipeline: NewPipeline, produce: Produce) -> None:
    heap = source("heap", "keyless", full=True, wal=Wal())
    lake = pipeline("keyless")
    for _ in range(3):
        heap.insert(id=1, a="same", n=1)
    heap.insert(id=2, n=2)
    produce(heap.topic, heap.records)
    lake.run()
    written = len(heap.records)
    assert rows(lake, heap) == Counter(tuple(row.values()) for row in heap.rows)

    heap.update({"id": 2}, a="changed")
    heap.add_column(column("late", TEXT))
    heap.update({"id": 1}, late="x")
    heap.insert(id=3, n=3)
    heap.delete({"id": 2})
    produce(heap.topic, heap.records[written:])
    lake.run()
    lake.run()

    assert rows(lake, heap) == Counter(tuple(row.values()) for row in heap.rows)
    assert {line.state for line in commands.status(lake.config).tables} == {"running"}


def test_without_the_row_before_the_change_the_table_pauses_there(pipeline: NewPipeline, produce: Produce) -> None:
    heap = source("heap", "blind", wal=Wal())
    heap.insert(id=1, n=1)
    heap.update({"id": 1}, n=2)
    produce(heap.topic, heap.records)
    lake = pipeline("blind")

    lake.run()

    assert rows(lake, heap) == Counter([(1, None, 1)])
    (line,) = commands.status(lake.config).tables
    assert (line.state, line.paused_at) == ("paused", f"{heap.topic}[0]@1")


def test_a_changelog_holds_every_event(pipeline: NewPipeline, produce: Produce) -> None:
    wal = Wal()
    keyed = source("keyed", "log", key=("id",), wal=wal)
    full = source("full", "log", key=("id",), full=True, wal=wal)
    heap = source("heap", "log", full=True, wal=wal)
    lake = pipeline("log", rules="[{pattern: '.*', mode: append}]")
    tables = (keyed, full, heap)
    for each in tables:
        each.insert(id=1, a="x", n=7)
        each.update({"id": 1}, a="y")
        each.delete({"id": 1})
        produce(each.topic, each.records)
    lake.run()
    for each in tables:
        written = len(each.records)
        each.add_column(column("late", INT32))
        each.insert(id=2, n=8, late=9)
        each.truncate()
        produce(each.topic, each.records[written:])
    lake.run()
    lake.run()

    start = [("c", 1, "x", 7, None), ("u", 1, "y", 7, None)]
    end = [("c", 2, None, 8, 9), ("t", None, None, None, None)]
    assert logged(lake, keyed) == [*start, ("d", 1, None, None, None), *end]
    assert logged(lake, full) == [*start, ("d", 1, "y", 7, None), *end]
    assert logged(lake, heap) == [*start, ("d", 1, "y", 7, None), *end]
    operations = [snapshot.summary for snapshot in lake.table(heap.id).snapshots()]
    assert {str(summary.operation.value) for summary in operations if summary is not None} == {"append"}
