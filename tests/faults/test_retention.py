"""Topics that lose their beginning, are made again, or are given more partitions: nothing is lost without a word."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from cdc_sync.local.kafka import KafkaServer
from cdc_sync.testing import INT64, TEXT, SourceTable, Wal, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


@pytest.fixture
def admin(kafka: KafkaServer) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})


def _table(prefix: str) -> SourceTable:
    return SourceTable("t", [column("id", INT64, optional=False), column("a", TEXT)], prefix=prefix)


def _expire(admin: AdminClient, topic: str, partition: int, before: int) -> None:
    place = TopicPartition(topic, partition, before)
    admin.delete_records([place])[place].result(30)


def test_a_start_tells_that_all_that_was_not_read_is_gone(
    pipeline: NewPipeline, produce: Produce, admin: AdminClient
) -> None:
    table, lake = _table("expired"), pipeline("expired")
    table.insert(id=1, a="read")
    produce(table.topic, table.records)
    lake.run()
    table.insert(id=2, a="lost")
    produce(table.topic, table.records[1:])
    _expire(admin, table.topic, 0, 2)

    lake.run()

    status = lake.statuses()["t"]
    assert status.state == "paused"
    assert status.reason == f"offsets 1 to 1 of {table.topic}[0] were deleted from the topic before they were read"


def test_a_quiet_table_of_a_topic_that_others_fill_goes_on_though_what_it_looked_through_is_gone(
    pipeline: NewPipeline, produce: Produce, admin: AdminClient
) -> None:
    wal, columns = Wal(), [column("id", INT64, optional=False), column("a", TEXT)]
    quiet, busy = (SourceTable(name, columns, prefix="quiet", wal=wal) for name in ("quiet", "busy"))
    lake, topic = pipeline("quiet"), "quiet.public.shared"
    for number, table in enumerate((quiet, busy, busy, quiet)):
        sent = len(table.records)
        table.insert(id=number, a="row")
        if number == 3:
            _expire(admin, topic, 0, 3)
        produce(topic, table.records[sent:])

        lake.run()

        assert {status.state for status in lake.statuses().values()} == {"running"}
    assert_equal(lake, quiet, busy)


def test_a_start_tells_that_the_topic_is_another_one_with_fewer_records(
    pipeline: NewPipeline, produce: Produce, admin: AdminClient
) -> None:
    table, lake = _table("shorter"), pipeline("shorter")
    for number in range(4):
        table.insert(id=number, a="old")
    produce(table.topic, table.records)
    lake.run()
    admin.delete_topics([table.topic])[table.topic].result(30)
    _make_again(admin, table.topic)
    produce(table.topic, table.records[:1])

    lake.run()

    status = lake.statuses()["t"]
    assert status.state == "paused"
    assert status.reason == (
        f"topic {table.topic} was deleted and made again, so its offsets no longer mean what they did"
    )


def _make_again(admin: AdminClient, topic: str) -> None:
    for _ in range(50):
        future = admin.create_topics([NewTopic(topic, 1, 1)])[topic]
        if future.exception(30) is None:
            return
        time.sleep(0.2)
    future.result()


def test_a_partition_that_was_empty_when_the_table_began_loses_nothing_unseen(
    pipeline: NewPipeline, produce: Produce, admin: AdminClient
) -> None:
    table, lake = _table("begun"), pipeline("begun")
    table.insert(id=0, a="read")
    produce(table.topic, table.records, partition=0, partitions=2)
    lake.run()
    for number in range(1, 9):
        table.insert(id=number, a="new")
    produce(table.topic, table.records[1:], partition=1)
    _expire(admin, table.topic, 1, 5)

    lake.run()

    status = lake.statuses()["t"]
    assert status.state == "paused"
    assert status.reason == f"offsets 0 to 4 of {table.topic}[1] were deleted from the topic before they were read"
    assert lake.table(table.id).scan().to_arrow().num_rows == 1


def test_a_topic_that_is_given_more_partitions_keeps_the_order_of_a_key(
    pipeline: NewPipeline, produce: Produce, admin: AdminClient, kafka: KafkaServer
) -> None:
    table, lake = _table("grown"), pipeline("grown", settings="job: {max_offsets_per_batch: 4}")
    for number in range(8):
        table.insert(id=number, a="first")
    produce(table.topic, table.records)
    lake.run()
    sent = len(table.records)
    for number in range(8):
        table.update({"id": number}, a="before the growth")
    produce(table.topic, table.records[sent:])
    sent = len(table.records)
    admin.create_partitions([NewPartitions(table.topic, 2)])[table.topic].result(30)
    table.delete({"id": 6})
    table.update({"id": 7}, a="after the growth")
    # A producer of before the growth learns of it only minutes later.
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for record in table.records[sent:]:
        producer.produce(table.topic, key=record.key, value=record.value, partition=1)
    assert producer.flush(60) == 0

    lake.run()

    assert lake.statuses()["t"].state == "running"
    assert_equal(lake, table)
    assert all(marker[0] == 16 for marker in lake.progress_of_snapshots(table) if 1 in marker)
