"""A table goes on without the one record that the operator skips, which becomes a dead letter; nothing else is lost."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

import cdc_sync
from cdc_sync.core.model.codes import Code
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_UNCHANGED = "__debezium_unavailable_value"


@pytest.mark.parametrize("code", [Code.ROW_MISSING, Code.VALUE_UNKNOWN])
def test_it_goes_on_behind_the_record(pipeline: NewPipeline, produce: Produce, kafka: KafkaServer, code: Code) -> None:
    dead = f"dead-{code}"
    lake = pipeline(f"skip-{code}", settings=f"dead_letters: {{topic: {dead}}}")
    # A topic that takes no record as large as this one is told of it all the same.
    takes = 100_000 if code is Code.ROW_MISSING else 1_000
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(dead, 1, 1, config={"max.message.bytes": str(takes)})])[dead].result()
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
    client = KafkaClient(lake.config.kafka)
    (told,) = client.read(dead, 0, 0, client.ends([dead])[dead][0])
    client.close()
    assert (told.key, told.value) == ((lost.key, lost.value) if takes > 1_000 else (None, None))
    assert {name: value.decode() for name, value in told.headers if value}.items() >= {
        "__connect.errors.topic": table.topic,
        "__connect.errors.offset": str(offset),
        "__connect.errors.exception.class.name": "record-skipped",
        "cdc_sync.table": str(table.id),
    }.items()
    rows = {row["id"]: row["note"] for row in lake.read(table.id).to_pylist()}
    assert rows == {0: "made", 1: "made", 2: "made", 3: "before", 4: "behind"}
    lake.run()
    assert len(cdc_sync.list_dead_letters(lake.config).letters) == 1
