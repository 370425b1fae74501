"""What the last records before a change tell without a query: whether the table was streamed, or only in a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from cdc_sync.config.sources import Kafka
from cdc_sync.core.debezium.schema_book import SchemaBook
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.runtime.observe import streamed_shortly_before
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.testing import INT32, Record, SourceTable, column
from tests.conftest import Produce

pytestmark = pytest.mark.kafka

Streamed = Callable[..., bool | None]


def table(name: str = "t", *, rows: int = 3) -> SourceTable:
    """A table that nothing was read of yet."""
    made = SourceTable(name, [column("id", INT32, optional=False), column("v", INT32)], prefix="sight")
    for number in range(rows):
        made.insert(id=number, v=0)
    made.records.clear()
    return made


@pytest.fixture
def streamed(kafka: KafkaServer, produce: Produce, request: pytest.FixtureRequest) -> Iterator[Streamed]:
    """Whether `t` was streamed, as records of a topic of their own tell, all of them or those from an offset on."""
    topic = f"observations.{request.node.name}"
    client = KafkaClient(Kafka(bootstrap_servers=kafka.bootstrap_servers, topics=(topic,)))

    def ask(records: list[Record], start: int = 0) -> bool | None:
        produce(topic, records)
        between = OffsetRange(topic=topic, partition=0, start=start, end=len(records))
        return streamed_shortly_before(client, SchemaBook(), between, table().id)

    yield ask
    client.close()


def test_an_update_was_streamed(streamed: Streamed) -> None:
    source = table()
    source.snapshot()
    source.update({"id": 1}, v=1)

    assert streamed(source.records) is True


def test_a_delete_behind_which_a_tombstone_lies_was_streamed(streamed: Streamed) -> None:
    source = table()
    source.snapshot()
    source.delete({"id": 1})

    assert streamed(source.records) is True


def test_rows_of_a_snapshot_alone_were_not(streamed: Streamed) -> None:
    assert streamed([*table().snapshot()]) is False


def test_events_of_another_table_say_nothing(streamed: Streamed) -> None:
    assert streamed([*table().snapshot(), *table("other").insert(id=9, v=9)]) is False


def test_events_before_the_range_say_nothing(streamed: Streamed) -> None:
    source = table()
    first = source.update({"id": 1}, v=1)

    assert streamed([*first, *source.snapshot()], start=1) is False


def test_a_long_snapshot_leaves_open_what_was_before(streamed: Streamed) -> None:
    source = table(rows=40)

    assert streamed([*source.update({"id": 1}, v=1), *source.snapshot()]) is None


def test_a_record_that_cannot_be_read_leaves_it_open(streamed: Streamed) -> None:
    (first, *rest) = table().snapshot()
    assert first.value is not None

    assert streamed([Record(key=first.key, value=first.value[:-40]), *rest]) is None


def test_a_beginning_that_is_gone_leaves_it_open(
    streamed: Streamed, produce: Produce, kafka: KafkaServer, request: pytest.FixtureRequest
) -> None:
    records = [*table().snapshot()]
    topic = f"observations.{request.node.name}"
    produce(topic, records)
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for done in client.delete_records([TopicPartition(topic, 0, 1)]).values():
        done.result()

    assert streamed(records) is None
