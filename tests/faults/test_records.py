"""Records that are no changes of a table are counted or set aside with their place and reason; the table goes on."""

from __future__ import annotations

import json
from datetime import date

import pytest

from cdc_sync import commands
from cdc_sync.testing import (
    DATE,
    INT32,
    INT64,
    TEXT,
    Record,
    SourceTable,
    column,
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

        report = lake.run()

        assert report.other_records == dict.fromkeys(_harmless(), 1)
        assert_equal(lake, table)

    aside = [record for record in lake.set_aside() if record.topic == table.topic]
    assert {record.offset for record in aside} == set(expected)
    assert {record.partition for record in aside} == {0}
    wrong = {record.offset: record.reason for record in aside if not record.reason.startswith(expected[record.offset])}
    assert wrong == {}
    counts = commands.status(lake.config).quarantine
    assert sum(count.records for count in counts if count.topic == table.topic) == len(expected)
    assert [count.records for count in counts if count.topic == unreadable.topic] == [2]
    assert lake.statuses()["orders"].state == "running"


def _as_create(update: Record) -> Record:
    """The same row image as a create: the first record of its key was set aside."""
    assert update.value is not None
    return Record(key=update.key, value=update.value.replace(b'"op":"u"', b'"op":"c"'))
