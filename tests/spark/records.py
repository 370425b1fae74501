"""Records as the Kafka source shows them, without Kafka."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from cdc_sync.testing import Record

Place = tuple[int, Record]
"""A partition and a record; offsets count on from 0 in each."""


def frame(session: SparkSession, records: Iterable[Place], topic: str = "t") -> DataFrame:
    offsets: dict[int, int] = {}
    rows = []
    for partition, record in records:
        offset = offsets.get(partition, 0)
        offsets[partition] = offset + 1
        key, value = (None if part is None else bytearray(part) for part in (record.key, record.value))
        rows.append((topic, partition, offset, key, value))
    return session.createDataFrame(rows, "topic string, partition int, offset bigint, key binary, value binary")


def one(records: Iterable[Record]) -> list[Place]:
    """Everything in partition 0."""
    return [(0, record) for record in records]
