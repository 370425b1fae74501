"""Deletes whose key the connector made up in part: no row has it, so the table stops, or says that a row is left."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cdc_sync.testing import INT32, TEXT, Record, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


def _by_index(record: Record) -> Record:
    """Return a delete as Postgres sends it under a REPLICA IDENTITY USING INDEX on `id`: nobody knows the tenant."""

    def without_tenant(text: bytes | None) -> bytes | None:
        return None if text is None else re.sub(rb'"tenant":\d+', b'"tenant":0', text)

    return replace(record, key=without_tenant(record.key), value=without_tenant(record.value))


def _table(lake: Pipeline) -> SourceTable:
    columns = [column("tenant", INT32, optional=False), column("id", INT32, optional=False), column("v", TEXT)]
    table = SourceTable("t", columns, key=("tenant", "id"), prefix=lake.prefix, null_is_default=False)
    for tenant, number in ((0, 1), (7, 2), (8, 3)):
        table.insert(tenant=tenant, id=number, v=str(number))
    return table


def test_a_delete_whose_row_is_there_is_carried_out_and_one_without_stops_the_table(
    pipeline: NewPipeline, produce: Produce
) -> None:
    lake = pipeline("made-up")
    table = _table(lake)
    produce(table.topic, table.records)
    lake.run()
    sent = len(table.records)
    table.delete({"id": 1})
    table.insert(tenant=0, id=4, v="4")
    table.delete({"id": 4})
    real = len(table.records)
    table.delete({"id": 2})
    records = [*table.records[sent:real], *map(_by_index, table.records[real:])]
    produce(table.topic, records)
    lake.run()
    status = lake.statuses()["t"]
    assert (status.state, status.paused_at) == ("paused", f"{table.topic}[0]@{real}")
    assert "no row has it" in (status.reason or "")
    assert [row["id"] for row in lake.read(table.id).to_pylist()] == [2, 3], "what was before it is written"

    by_index = replace(lake, rules="[{pattern: '.*', key: [id]}]")
    by_index.run()
    assert by_index.statuses()["t"].state == "running"
    assert_equal(by_index, table)


def test_where_rows_may_be_missing_the_table_goes_on_and_is_marked(pipeline: NewPipeline, produce: Produce) -> None:
    lake = pipeline("made-up-mark", settings="policy: {missing_rows: insert}")
    table = _table(lake)
    produce(table.topic, table.records)
    lake.run()
    sent = len(table.records)
    table.delete({"id": 2})
    (deleted, tombstone) = map(_by_index, table.records[sent:])
    produce(table.topic, [deleted, tombstone])
    lake.run()
    status = lake.statuses()["t"]
    assert (status.state, [mark.column for mark in status.needs_resync]) == ("running", ["*"])
