"""Reading exact ranges of topics with the batch Kafka source."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession

from cdc_sync.config.sources import Kafka
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.spark.columns import HEADERS, KEY, OFFSET, PARTITION, TOPIC, VALUE

_IN_ONE_TASK = 10_000
"""So many records one task reads sooner than several are started and what they found is shuffled."""


def in_one_task(ranges: Iterable[OffsetRange]) -> bool:
    """Whether ranges are so small that one task reads them all; nothing made of them needs a shuffle then."""
    return sum(item.size for item in ranges) <= _IN_ONE_TASK


def spark_kafka_options(kafka: Kafka) -> dict[str, str]:
    """Return the connection options of Spark's Kafka source."""
    # Exactly-once source connectors write in transactions; aborted records are not events.
    # A read that ends at the end of the log would wait half a second for more.
    return {
        "kafka.isolation.level": "read_committed",
        "kafka.fetch.max.wait.ms": "10",
        # Messages carry their schema, so they are large: fewer and larger fetches, a third less time to read.
        "kafka.receive.buffer.bytes": "1048576",
        "kafka.max.partition.fetch.bytes": "8388608",
        "kafka.max.poll.records": "2000",
        **_patience(kafka),
        **kafka.spark_settings,
    }


def _patience(kafka: Kafka) -> dict[str, str]:
    """Return for how long Spark's clients wait: not longer than an outage may last, or the job would end after it.

    Source: Kafka's consumer and admin configuration, whose defaults are a minute and half a minute, and Spark's Kafka
    integration guide, whose `kafkaConsumer.pollTimeoutMs` is two minutes by default (`spark.network.timeout`).
    """
    outage = int(kafka.outage_timeout.total_seconds() * 1000)
    return {
        "kafkaConsumer.pollTimeoutMs": str(min(120_000, outage)),
        "kafka.default.api.timeout.ms": str(min(60_000, outage)),
        "kafka.request.timeout.ms": str(min(30_000, outage)),
    }


def read_ranges(
    spark: SparkSession, kafka: Kafka, ranges: tuple[OffsetRange, ...], *, group: str, headers: bool = False
) -> DataFrame:
    """Return the records of the ranges: `key`, `value`, `topic`, `partition`, `offset`, and `headers` if asked for.

    One Spark task reads one partition, in offset order, or all of them if they are small (see `in_one_task`). Records
    that the broker deleted meanwhile fail the read. Reads of one `group` share their consumers: Spark names a new group
    for each read else, so that each connects anew, and closes another's consumer once it holds 64.
    """
    bounds = {
        name: json.dumps(_by_topic({(r.topic, r.partition): getattr(r, name) for r in ranges}))
        for name in ("start", "end")
    }
    partitions: dict[str, list[int]] = {}
    for item in ranges:
        partitions.setdefault(item.topic, []).append(item.partition)
    frame = (
        spark.read.format("kafka")
        .option("kafka.group.id", group)
        .options(**spark_kafka_options(kafka))
        .option("assign", json.dumps(partitions))
        .option("startingOffsets", bounds["start"])
        .option("endingOffsets", bounds["end"])
        .option("failOnDataLoss", "true")
        .option("includeHeaders", str(headers).lower())
        .load()
    )
    names = (KEY, VALUE, TOPIC, PARTITION, OFFSET)
    records = frame.select(*names, HEADERS) if headers else frame.select(*names)
    return records.coalesce(1) if in_one_task(ranges) else records


def _by_topic(offsets: Mapping[tuple[str, int], int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return nested
