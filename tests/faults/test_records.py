"""Records that are no changes of a table are counted or set aside with their place and reason; the table goes on."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pytest

from cdc_sync.api import commands
from cdc_sync.testing import (
    DATE,
    INT32,
    INT64,
    TEXT,
    TIMESTAMP_TZ,
    Record,
    SourceTable,
    column,
    decimal,
    heartbeat,
    message,
    struct,
)
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_TRANSACTION = struct(
    "io.debezium.connector.common.TransactionMetadataValue",
    column("status", TEXT, optional=False),
    column("id", TEXT, optional=False),
)
_TEN_MEGABYTES = 10 * 1024 * 1024
_DAY, _WIRE_DAY = date(2022, 1, 8), b'"day":19000'


def _harmless() -> dict[str, Record]:
    """Records that every topic may hold, by what they are counted as."""
    return {
        "heartbeat": heartbeat("odd", 1),
        "transaction": Record(key=None, value=message(_TRANSACTION, {"status": "BEGIN", "id": "7"})),
    }


def _without_schema(value: bytes) -> bytes:
    return json.dumps(json.loads(value)["payload"]).encode()


def _broken(good: Record) -> list[tuple[str, Record]]:
    """Records nobody can apply, with the beginning of the reason to be told."""
    assert good.value is not None
    other = struct("somebody.else.Value", column("x", INT64))
    cut = good.value[: good.value.index(b'"op":')]
    return [
        ("a value whose schema is in a registry", Record(key=b"\x00\xff", value=b"\x00\x01\xfe not json")),
        ("an empty value", Record(key=None, value=b"")),
        ("a change event in JSON without", Record(key=good.key, value=_without_schema(good.value))),
        ("bytes that are neither", Record(key=None, value=b"\xff" * _TEN_MEGABYTES)),
        ("Cannot ", Record(key=good.key, value=b'{"schema":{"type":"struct","fields":7},"payload":{"op":"c"}}')),
        ("a flattened event, made by", Record(key=None, value=message(other, {"x": 1}))),
        ("", Record(key=good.key, value=cut)),
        ("does not convert: column", Record(key=good.key, value=good.value.replace(_WIRE_DAY, b'"day":99999999'))),
    ]


def test_the_table_goes_on_past_records_that_cannot_be_applied(pipeline: NewPipeline, produce: Produce) -> None:
    table = SourceTable(
        "orders",
        [column("id", INT32, optional=False), column("note", TEXT), column("day", DATE)],
        prefix="odd",
        null_is_default=False,
    )
    unreadable = SourceTable("unreadable", [column("id", INT32, optional=False)], prefix="odd")
    (event,) = unreadable.insert(id=1)
    assert event.value is not None
    lake = pipeline("odd")
    produce(unreadable.topic, [Record(key=event.key, value=event.value.replace(b'"int32"', b'"int33"'))] * 2)
    amounts = SourceTable("amounts", [column("id", INT32, optional=False), column("a", decimal(10, 2))], prefix="odd")
    expected: dict[int, str] = {}
    # The first run meets them when the table is new, the second when its schema is known.
    for run in range(2):
        (good,) = table.insert(id=run, note="x" * _TEN_MEGABYTES if run else "é", day=_DAY)
        (after,) = table.insert(id=100 + run, note=None, day=_DAY)
        broken = _broken(table.insert(id=200 + run, note="small", day=_DAY)[0])
        assert broken[-1][1].value != good.value
        produce(table.topic, [good, *_harmless().values(), Record(key=b"no event", value=None)])
        for reason, record in broken:
            (offset,) = produce(table.topic, [record])
            expected[offset] = reason
        produce(table.topic, [after])
        (kept,) = table.update({"id": 200 + run}, note="big enough", day=_DAY)
        table.records.clear()
        produce(table.topic, [_as_create(kept)])
        produce(amounts.topic, _amounts(amounts, run))

        report = lake.run()

        assert report.other_records == dict.fromkeys(_harmless(), 1)
        assert_equal(lake, table)

    aside = [record for record in lake.set_aside() if record.topic == table.topic]
    assert {record.offset for record in aside} == set(expected)
    assert {record.partition for record in aside} == {0}
    wrong = {record.offset: record.reason for record in aside if not record.reason.startswith(expected[record.offset])}
    assert wrong == {}
    counts = commands.status(lake.config).dead_letters
    assert sum(count.records for count in counts if count.topic == table.topic) == len(expected)
    assert [count.records for count in counts if count.topic == unreadable.topic] == [2]
    assert lake.statuses()["orders"].state == "running"
    amounts_read = {row["id"]: row["a"] for row in lake.read(amounts.id).to_pylist()}
    assert amounts_read == {0: Decimal("1.50"), 1: Decimal("1.50"), 10: Decimal("12.30"), 11: Decimal("12.30")}
    told = {record.reason for record in lake.set_aside() if record.topic == amounts.topic}
    assert [text.partition(" where")[0] for text in told] == ["malformed payload: after.a is a number"]


def _amounts(table: SourceTable, run: int) -> list[Record]:
    """Records of a connector that is switched to `decimal.format=NUMERIC`, and one that no decimal fits."""
    return [
        table.insert(id=run, a=Decimal("1.50"))[0],
        *(
            Record(key=record.key, value=(record.value or b"").replace(b'"AJY="', number))
            for id_, number in ((10 + run, b"12.30"), (20 + run, b"123456789.00"))
            for record in table.insert(id=id_, a=Decimal("1.50"))
        ),
    ]


def _as_create(update: Record) -> Record:
    """The same row image as a create: the first record of its key was set aside."""
    assert update.value is not None
    return Record(key=update.key, value=update.value.replace(b'"op":"u"', b'"op":"c"'))


def test_values_that_are_null_for_being_out_of_range_are_counted(pipeline: NewPipeline, produce: Produce) -> None:
    lake = pipeline("records-infinite", settings="policy: {out_of_range: 'null'}")
    columns = [column("id", INT32, optional=False), column("day", DATE), column("at", TIMESTAMP_TZ)]
    table = SourceTable("terms", columns, prefix=lake.prefix, null_is_default=False)
    table.insert(id=1, day=19000, at="2022-01-08T00:00:00Z")
    table.insert(id=2, day=99999999, at="+10000-01-01T00:00:00Z")
    table.insert(id=3, day=None, at="infinity")
    produce(table.topic, table.records)
    lake.run()
    counted = "values out of range, NULL stored"
    assert lake.statuses()["terms"].counts == {counted: 2}

    sent = len(table.records)
    table.insert(id=4, day=99999999, at=None)
    table.insert(id=5, day=19000, at="no moment")
    table.delete({"id": 2})
    produce(table.topic, table.records[sent:])
    lake.run()
    assert lake.statuses()["terms"].counts == {counted: 3}
    assert [found.records for found in commands.status(lake.config).dead_letters] == [1]
    rows = sorted(lake.table(table.id).scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], row["day"], row["at"] is None) for row in rows] == [
        (1, _DAY, False),
        (3, None, True),
        (4, None, True),
    ]
