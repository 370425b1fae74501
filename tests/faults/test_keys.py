"""Keys that change: rows written under the old key are found by the new one, or the table says why they cannot be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

Send = Callable[[], None]


def _table(lake: Pipeline, **options: object) -> SourceTable:
    columns = [column("id", INT32, optional=False), column("code", TEXT, optional=False), column("v", INT32)]
    table = SourceTable("t", columns, prefix=lake.prefix, null_is_default=False, **options)  # type: ignore[arg-type]
    for number, code in enumerate("ABCD", 1):
        table.insert(id=number, code=code, v=number)
    return table


def _sender(table: SourceTable, produce: Produce) -> Send:
    sent = 0

    def send() -> None:
        nonlocal sent
        produce(table.topic, table.records[sent:])
        sent = len(table.records)

    return send


@pytest.mark.parametrize("at_once", [True, False], ids=["in one batch", "in many"])
def test_rows_are_found_by_each_key_in_turn(pipeline: NewPipeline, produce: Produce, at_once: bool) -> None:
    lake = pipeline(f"keys-{at_once}")
    table = _table(lake)
    send = _sender(table, produce)

    def step() -> None:
        if not at_once:
            send()
            lake.run()

    step()
    table.update({"id": 1}, v=10)
    table.key = ("code",)
    table.update({"code": "A"}, v=11)
    table.update({"code": "B"}, code="Z")
    table.insert(id=5, code="E", v=5)
    step()
    table.key = ("id", "code")
    table.delete({"id": 3, "code": "C"})
    table.update({"id": 5, "code": "E"}, v=50)
    step()
    table.rename_column("code", "kode")
    table.key = ("kode",)
    table.update({"kode": "D"}, v=40)
    send()
    lake.run()

    status = lake.statuses()["t"]
    assert (status.state, status.version, status.needs_resync) == ("running", 4, ())
    assert_equal(lake, table)


def test_a_key_that_rows_cannot_be_told_apart_by_pauses_the_table(pipeline: NewPipeline, produce: Produce) -> None:
    lake = pipeline("keys-twice")
    table = _table(lake)
    table.update({"id": 2}, code="A")
    send = _sender(table, produce)
    send()
    lake.run()
    before = sorted(lake.table(table.id).scan().to_arrow().to_pylist(), key=repr)
    table.key = ("code",)
    table.insert(id=6, code="F", v=6)
    send()
    lake.run()

    status = lake.statuses()["t"]
    assert (status.state, status.paused_at) == ("paused", f"{table.topic}[0]@5")
    assert status.reason == (
        "the key is (code) from here on, and two rows have the same values in it, so rows cannot be found by it"
    )
    assert sorted(lake.table(table.id).scan().to_arrow().to_pylist(), key=repr) == before
    lake.run()
    assert lake.statuses()["t"].state == "paused"


@pytest.mark.parametrize("key", [b"", b"7"])
def test_records_whose_keys_show_no_schema_are_not_passed_over(
    pipeline: NewPipeline, produce: Produce, key: bytes
) -> None:
    lake = pipeline(f"keys-bare{len(key)}")
    table = _table(lake)
    produce(table.topic, table.records)
    without = [replace(record, key=key) for id_ in (7, 8) for record in table.insert(id=id_, code="G", v=7)]
    produce(table.topic, [*without, *table.insert(id=9, code="H", v=8)])

    lake.run()

    status = lake.statuses()["t"]
    assert (status.state, status.paused_at) == ("paused", f"{table.topic}[0]@4")
    assert status.reason is not None
    assert "the record keys carry no schema" in status.reason


def test_a_column_that_all_rows_read_the_same_in_joins_the_key(pipeline: NewPipeline, produce: Produce) -> None:
    lake = pipeline("keys-joins")
    table = _table(lake)
    send = _sender(table, produce)
    send()
    lake.run()
    table.add_column(column("part", INT32, optional=False, default=1), initial=1)
    table.key = ("id", "part")
    table.update({"id": 1, "part": 1}, v=10)
    table.delete({"id": 2, "part": 1})
    table.insert(id=1, part=2, code="A", v=5)
    send()
    lake.run()

    assert lake.statuses()["t"].state == "running"
    assert_equal(lake, table)


def test_a_declared_key_with_the_columns_of_the_record_key_is_followed_through_several_partitions(
    pipeline: NewPipeline, produce: Produce
) -> None:
    lake = pipeline("keys-within", rules="[{pattern: '.*', key: [id, code]}]")
    table = _table(lake, key=("code",), full_identity=True)
    table.update({"id": 1}, v=10)
    table.update({"id": 2}, code="A")
    table.update({"id": 3}, id=30)
    table.insert(id=3, code="C", v=300)
    table.delete({"id": 4})
    for record in table.records:
        assert record.key is not None
        produce(table.topic, [record], partition=record.key[-4] % 3, partitions=3)
    lake.run()

    assert lake.statuses()["t"].state == "running"
    table.key = ("id", "code")
    assert_equal(lake, table)

    table.key = ("id",)
    produce(table.topic, table.update({"id": 30}, v=31), partition=0)
    lake.run()

    status = lake.statuses()["t"]
    assert status.state == "paused"
    assert "the record key changed from (code) to (id), and the topic has 3 partitions" in str(status.reason)


def test_a_record_without_a_key_among_others_is_met_under_a_declared_key(
    pipeline: NewPipeline, produce: Produce
) -> None:
    lake = pipeline("keys-among", rules="[{pattern: '.*', key: [id]}]", settings="job: {max_offsets_per_batch: 4}")
    table = _table(lake)
    produce(table.topic, table.records, partition=0, partitions=2)
    (record,) = table.insert(id=7, code="G", v=7)
    produce(table.topic, [replace(record, key=None), *table.insert(id=8, code="H", v=8)])

    lake.run()

    status = lake.statuses()["t"]
    assert (status.state, status.paused_at) == ("paused", f"{table.topic}[0]@4")
    assert "the records have no key" in str(status.reason)


def test_one_record_whose_key_is_missing_or_damaged_is_set_aside(pipeline: NewPipeline, produce: Produce) -> None:
    lake = pipeline("keys-one")
    table = _table(lake)
    send = _sender(table, produce)
    send()
    lake.run()

    def beside(**changes: Any) -> None:
        (record,) = table.insert(id=99, code="X", v=0)
        table.records.remove(record)
        table.rows.pop()
        produce(table.topic, [replace(record, **changes)])

    beside(key=None)
    lake.run()
    assert lake.set_aside() == [], "nothing is behind it yet, and the next record tells"
    table.insert(id=5, code="E", v=5)
    send()
    beside(key=b"\xffdamaged")
    table.insert(id=6, code="F", v=6)
    send()
    lake.run()

    status = lake.statuses()["t"]
    assert (status.state, status.version) == ("running", 1)
    assert [record.reason for record in lake.set_aside()] == [
        "the key is missing, and records before and behind it have one",
        "the key cannot be read, and those of records before and behind it can",
    ]
    assert_equal(lake, table)


def test_keys_that_are_missing_from_there_on_are_a_key_that_was_dropped(
    pipeline: NewPipeline, produce: Produce
) -> None:
    lake = pipeline("keys-none")
    table = _table(lake)
    send = _sender(table, produce)
    send()
    lake.run()
    table.key = ()
    for number in (5, 6, 7):
        table.insert(id=number, code="E", v=5)
        send()
        lake.run()

    assert lake.statuses()["t"].version == 2
    assert lake.set_aside() == []
    assert sorted(row["id"] for row in lake.read(table.id).to_pylist()) == [1, 2, 3, 4, 5, 6, 7]


def test_a_delete_of_key_zero_goes_on_once_the_key_is_declared(pipeline: NewPipeline, produce: Produce) -> None:
    lake = pipeline("keys-zero")
    table = _table(lake, full_identity=True)
    table.insert(id=0, code="Z", v=1)
    table.delete({"id": 0})
    table.insert(id=0, code="Z")
    table.delete({"id": 0})
    table.update({"id": 1}, v=10)
    produce(table.topic, table.records)
    lake.run()

    status = lake.statuses()["t"]
    assert (status.state, status.paused_at) == ("paused", f"{table.topic}[0]@8")
    assert "a delete names the key 0" in str(status.reason)
    assert "declare a `key`" in str(status.remedy)

    lake = pipeline("keys-zero", rules="[{pattern: '.*', key: [id]}]")
    lake.run()

    assert lake.statuses()["t"].state == "running"
    assert_equal(lake, table)
