"""The driver's Kafka client, against librdkafka's built-in mock cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace

import pytest
import stamina
import structlog
from confluent_kafka import Producer, TopicCollection

from cdc_sync.config import Kafka
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.errors import ConfigError, KafkaUnavailable
from cdc_sync.sources import kafka
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.sources.records import Sent, lag, near

NOBODY = "127.0.0.1:9"


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with three records in partition 0 of shop.inv.orders, and one tombstone in shop.inv.items."""
    producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0})
    for number in range(3):
        producer.produce("shop.inv.orders", value=b"v%d" % number, key=b"k", partition=0, timestamp=1000 + number)
    producer.produce("shop.inv.items", value=None, key=b"k", partition=1)
    producer.flush(5)
    broker = next(iter(producer.list_topics(timeout=5).brokers.values()))
    yield f"{broker.host}:{broker.port}"
    producer.purge()


def settings(servers: str, **more: object) -> Kafka:
    return Kafka.model_validate(
        {
            "bootstrap_servers": servers,
            "topic_pattern": r"shop\.inv\..*",
            "request_timeout": timedelta(seconds=1),
            "attempts": 2,
            **more,
        }
    )


def test_topics_are_matched_as_a_whole(servers: str) -> None:
    client = KafkaClient(settings(servers))

    assert client.matching_topics(settings(servers)) == ("shop.inv.items", "shop.inv.orders")
    assert client.matching_topics(settings(servers, topic_pattern=r"shop\.inv\.item")) == ()


def test_listed_topics_that_do_not_exist_do_not_match(servers: str) -> None:
    listed = settings(servers, topics=("shop.inv.orders", "none"), topic_pattern=None)

    assert KafkaClient(listed).matching_topics(listed) == ("shop.inv.orders",)


def test_offsets_come_for_every_partition_of_the_topics_that_exist(servers: str) -> None:
    client = KafkaClient(settings(servers))

    assert client.ends(["shop.inv.orders", "none"]) == {"shop.inv.orders": {0: 3, 1: 0, 2: 0, 3: 0}}
    assert client.beginnings(["shop.inv.orders"]) == {"shop.inv.orders": {0: 0, 1: 0, 2: 0, 3: 0}}
    assert client.ends([]) == {}


def test_one_record_is_read_at_its_offset(servers: str) -> None:
    record = KafkaClient(settings(servers)).peek("shop.inv.orders", 0, 1)

    assert record is not None
    assert (record.offset, record.key, record.value, record.timestamp) == (1, b"k", b"v1", 1001)


def test_a_tombstone_has_no_value(servers: str) -> None:
    record = KafkaClient(settings(servers)).peek("shop.inv.items", 1, 0)

    assert record is not None
    assert record.value is None


@pytest.mark.parametrize("offset", [3, 99], ids=["not written yet", "far beyond the end"])
def test_an_offset_without_a_record_gives_none(servers: str, offset: int) -> None:
    assert KafkaClient(settings(servers)).peek("shop.inv.orders", 0, offset) is None


def test_a_partition_that_does_not_exist_gives_none(servers: str) -> None:
    quick = settings(servers, request_timeout=timedelta(milliseconds=300))

    assert KafkaClient(quick).peek("shop.inv.orders", 99, 0) is None


def test_records_that_were_fetched_ahead_are_not_asked_for_again(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_sync.sources.kafka._AHEAD_SECONDS", 5.0)  # a moment is short on a machine that is busy
    client = KafkaClient(settings(servers, request_timeout=timedelta(seconds=5)))
    asked: list[tuple[str, int, int]] = []
    monkeypatch.setattr(client, "_peek", lambda *place: asked.append(place))

    client.fetch_ahead([("shop.inv.orders", 0, 2), ("shop.inv.items", 1, 0), ("shop.inv.orders", 1, 7)])
    found = [client.peek("shop.inv.orders", 0, 2), client.peek("shop.inv.items", 1, 0)]

    assert [record and (record.topic, record.offset, record.value) for record in found] == [
        ("shop.inv.orders", 2, b"v2"),
        ("shop.inv.items", 0, None),
    ]
    assert asked == []
    client.peek("shop.inv.orders", 1, 7)
    assert asked == [("shop.inv.orders", 1, 7)]


def test_only_the_last_records_fetched_ahead_are_remembered(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_sync.sources.kafka._AHEAD_SECONDS", 5.0)
    client = KafkaClient(settings(servers, request_timeout=timedelta(seconds=5)))
    asked: list[tuple[str, int, int]] = []
    monkeypatch.setattr(client, "_peek", lambda *place: asked.append(place))
    client.fetch_ahead([("shop.inv.orders", 0, 2), ("shop.inv.items", 1, 0)])

    client.fetch_ahead(())
    client.peek("shop.inv.orders", 0, 2)

    assert asked == [("shop.inv.orders", 0, 2)]


def test_absent_brokers_are_asked_a_bounded_number_of_times() -> None:
    client = KafkaClient(settings(NOBODY, request_timeout=timedelta(milliseconds=100)))

    with stamina.set_testing(True, attempts=2), pytest.raises(KafkaUnavailable) as failure:
        client.topics()

    assert str(failure.value) == (
        "Cannot list topics: no usable answer from Kafka at '127.0.0.1:9' in 2 attempts (Failed to get metadata: "
        "Local: Broker transport failure); check that the brokers run and can be reached from here"
    )


def test_a_setting_that_the_client_does_not_know_is_a_mistake_of_the_configuration() -> None:
    with pytest.raises(ConfigError) as refusal:
        KafkaClient(settings(NOBODY, properties={"ssl.truststore.location": "x"}))

    assert str(refusal.value) == (
        "Cannot use kafka.properties or kafka.driver_properties: ssl.truststore.location is a setting of Java's client "
        "only; move it to kafka.spark_properties"
    )


def test_lag_counts_what_is_unread_in_the_tables_own_topics() -> None:
    assert (
        lag(
            offsets={"a": {0: 5, 1: 10}},
            beginnings={"a": {0: 0, 1: 0, 2: 3}, "b": {0: 0}},
            ends={"a": {0: 7, 1: 10, 2: 4}, "b": {0: 100}},
        )
        == 2 + 0 + 1
    )


def test_records_at_given_offsets_are_read_at_once(servers: str) -> None:
    client = KafkaClient(settings(servers))

    found = list(client.pick("shop.inv.orders", 0, [0, 2]))

    assert [(record.offset, record.value) for record in found] == [(0, b"v0"), (2, b"v2")]
    assert list(client.pick("shop.inv.orders", 0, [7, 9])) == []
    assert list(client.pick("shop.inv.orders", 0, [0, 7])) == found[:1]


def test_what_lies_between_large_records_is_not_read(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_sync.sources.kafka._AHEAD_BYTES", 1)
    client = KafkaClient(settings(servers))

    assert [record.offset for record in client.pick("shop.inv.orders", 0, [0, 1, 2])] == [0, 1, 2]


def test_some_records_tell_how_large_all_are(servers: str) -> None:
    client = KafkaClient(settings(servers))
    whole = OffsetRange(topic="shop.inv.orders", partition=0, start=0, end=3)
    assert client.record_bytes(whole, 5) == client.record_bytes(whole, 1) == 3
    assert client.record_bytes(OffsetRange(topic="shop.inv.orders", partition=0, start=7, end=9), 2) is None


def test_records_are_written_with_their_headers(servers: str) -> None:
    client = KafkaClient(settings(servers))
    headers = (("__connect.errors.topic", b"shop.inv.orders"),)

    client.send("dead", [Sent(key=b"k", value=b"v", headers=headers), Sent(key=None, value=None, headers=headers)])

    found = [item for partition in range(4) for item in client.read("dead", partition, 0, 2)]
    assert sorted((item.value or b"", item.headers) for item in found) == [(b"", headers), (b"v", headers)]


@pytest.mark.parametrize(
    ("offsets", "ranges"),
    [
        ([], []),
        ([3], [(3, 4)]),
        ([3, 4, 503], [(3, 504)]),
        ([3, 504], [(3, 4), (504, 505)]),
        ([0, 1, 999, 1000], [(0, 2), (999, 1001)]),
    ],
)
def test_offsets_near_each_other_are_one_range(offsets: list[int], ranges: list[tuple[int, int]]) -> None:
    assert list(near(offsets)) == ranges


def test_an_outage_is_told_once_when_it_begins_and_once_when_it_ends(servers: str) -> None:
    short = timedelta(milliseconds=50)
    client = KafkaClient(settings(NOBODY, request_timeout=short, outage_timeout=timedelta(seconds=9)))
    nobody, somebody = client._admin, KafkaClient(settings(servers))._admin

    with structlog.testing.capture_logs() as logs:
        for admin in (nobody, somebody, somebody, nobody, nobody, somebody):
            client._admin = admin
            with suppress(KafkaUnavailable):
                client.topics()
            assert (client.away_since is not None) == (admin is nobody)

    told = [it for it in logs if "Kafka" in it["event"]]
    assert [it["event"] for it in told] == ["Kafka does not answer", "Kafka answers again"]
    assert told[0]["waited_for_s"] == 9


def test_all_questions_of_one_outage_share_its_timeout() -> None:
    given = settings(
        NOBODY, request_timeout=timedelta(milliseconds=50), outage_timeout=timedelta(milliseconds=200), attempts=100
    )
    client = KafkaClient(given)
    began = time.monotonic()

    for _ in range(3):
        with pytest.raises(KafkaUnavailable):
            client.topics()

    assert time.monotonic() - began < 5, "a hundred attempts would take minutes"


def test_a_client_that_is_to_stop_asks_no_second_time() -> None:
    stop = threading.Event()
    client = KafkaClient(settings(NOBODY, request_timeout=timedelta(milliseconds=50), attempts=100), stop=stop)
    stop.set()
    began = time.monotonic()

    with pytest.raises(KafkaUnavailable):
        client.topics()

    assert time.monotonic() - began < 5


def test_the_ids_of_topics_are_asked_once_in_a_moment(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    ids = {"a": "A", "b": "B"}

    def describe(topics: TopicCollection, **_: object) -> dict[str, Future[SimpleNamespace]]:
        asked.append(list(topics.topic_names))
        answers: dict[str, Future[SimpleNamespace]] = {name: Future() for name in topics.topic_names}
        for name, answer in answers.items():
            answer.set_result(SimpleNamespace(topic_id=ids[name]))
        return answers

    client = KafkaClient(settings(servers))
    monkeypatch.setattr(client, "_admin", SimpleNamespace(describe_topics=describe))
    now = [0.0]
    monkeypatch.setattr(kafka, "time", SimpleNamespace(monotonic=lambda: now[0]))

    assert [client.topic_ids(names) for names in (["a"], ["a", "b"], ["b"])] == [{"a": "A"}, ids, {"b": "B"}]
    assert asked == [["a"], ["b"]]

    group, ids["a"], now[0] = client.reader_group, "another", 2.0
    assert client.topic_ids(["a"]) == {"a": "another"}
    assert client.reader_group != group
