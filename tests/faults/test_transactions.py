"""With `job.whole_transactions` no commit of a table holds a part of a transaction of the source."""

from __future__ import annotations

import pytest

from cdc_sync.testing import INT32, TEXT, SourceTable, column
from cdc_sync.testing.postgres import Wal
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_WHOLE = "job: {whole_transactions: true, max_offsets_per_batch: 2}"
_COLUMNS = (column("id", INT32, optional=False), column("note", TEXT))


def _ids(lake: Pipeline, table: SourceTable) -> list[list[int]]:
    """Return the ids that each state of the table had, in order."""
    found = lake.table(table.id)
    return [
        sorted(found.scan(snapshot_id=snapshot.snapshot_id).to_arrow().column("id").to_pylist())
        for snapshot in sorted(found.snapshots(), key=lambda it: it.sequence_number or 0)
    ]


def test_each_commit_ends_where_a_transaction_does(pipeline: NewPipeline, produce: Produce) -> None:
    wal = Wal(provides_transactions=True)
    table = SourceTable("orders", _COLUMNS, prefix="whole", wal=wal)
    lake = pipeline("whole", settings=_WHOLE)
    with wal.transaction():
        for id_ in range(5):
            table.insert(id=id_)
    produce("whole.transaction", [wal.end])
    with wal.transaction():  # a renumbered row is deleted, and there again
        table.update({"id": 4}, id=14)
        table.delete({"id": 3})
    produce("whole.transaction", [wal.end])
    with wal.transaction():
        table.insert(id=20)
        table.insert(id=21)
    produce("whole.transaction", [wal.end])
    last = table.records.pop()  # it is on its way
    produce(table.topic, table.records)
    lake.run()
    assert _ids(lake, table) == [[0, 1, 2, 3, 4], [0, 1, 2, 14]]
    produce(table.topic, [last])
    lake.run()
    assert _ids(lake, table)[2:] == [[0, 1, 2, 14, 20, 21]]


def test_a_transaction_waits_for_its_end(pipeline: NewPipeline, produce: Produce) -> None:
    wal = Wal(provides_transactions=True)
    table = SourceTable("orders", _COLUMNS, prefix="open", wal=wal)
    lake = pipeline("open", settings=_WHOLE)
    with wal.transaction():
        table.insert(id=1)
    produce("open.transaction", [wal.end])
    with wal.transaction():
        table.insert(id=2)
    produce(table.topic, table.records)
    lake.run()
    assert _ids(lake, table) == [[1]]
    produce("open.transaction", [wal.end])
    lake.run()
    assert _ids(lake, table)[1:] == [[1, 2]]


def test_what_names_no_transaction_is_not_written(pipeline: NewPipeline, produce: Produce) -> None:
    table = SourceTable("orders", _COLUMNS, prefix="unnamed")
    table.insert(id=1)
    produce(table.topic, table.records)
    report = pipeline("unnamed", settings=_WHOLE).run()
    assert "provide.transaction.metadata=true" in report.unread[table.topic]
