"""Ranges of a topic are read as they are in the log."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from cdc_sync.config import Kafka
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.source import read_ranges
from cdc_sync.testing import Record
from tests.conftest import Produce

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

_TOPIC = "source.anew"


def test_records_that_were_fetched_of_a_topic_since_made_again_are_not_read(
    session: SparkSession, kafka: KafkaServer, produce: Produce
) -> None:
    settings = Kafka(bootstrap_servers=kafka.bootstrap_servers, topics=(_TOPIC,))
    client, admin = KafkaClient(settings), AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def values(start: int, end: int) -> set[bytes]:
        between = OffsetRange(topic=_TOPIC, partition=0, start=start, end=end)
        rows = read_ranges(session, settings, (between,), group=client.reader_group).select("value").collect()
        return {bytes(row["value"]) for row in rows}

    produce(_TOPIC, [Record(key=None, value=b"old")] * 20)
    client.topic_ids([_TOPIC])
    group = client.reader_group
    assert values(0, 5) == {b"old"}  # the consumer has fetched all 20
    assert client.topic_ids([_TOPIC])
    assert client.reader_group == group

    admin.delete_topics([_TOPIC])[_TOPIC].result(30)
    until = time.monotonic() + 30
    while _TOPIC in client.topics() and time.monotonic() < until:
        time.sleep(0.1)
    produce(_TOPIC, [Record(key=None, value=b"new")] * 20)

    while client.reader_group == group and time.monotonic() < until:  # an id is remembered for a second
        client.topic_ids([_TOPIC])
    assert client.reader_group != group
    assert values(5, 10) == {b"new"}
