"""The real servers: a row of either database arrives in Kafka, servers come back after a stop, nothing stays behind."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pymysql
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from cdc_sync.errors import SetupError
from cdc_sync.local.mariadb import USER
from cdc_sync.local.ports import LOOPBACK
from cdc_sync.local.stack import LocalStack

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with LocalStack(databases=("postgres", "mariadb"), partitions=2) as started:
        yield started


def read_events(
    stack: LocalStack, topic: str, count: int = 1, *, like: str = "", seconds: float = 30
) -> list[dict[str, Any]]:
    """The first `count` message values of a topic's two partitions that hold a text."""
    events: list[dict[str, Any]] = []
    deadline = time.monotonic() + seconds
    consumer = Consumer({"bootstrap.servers": stack.kafka.bootstrap_servers, "group.id": "test", "log_level": 0})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(2)])
        while len(events) < count:
            assert time.monotonic() < deadline, f"{len(events)} of {count} events after {seconds} s"
            message = consumer.poll(0.2)
            value = message.value() if message is not None and message.error() is None else None
            if value and like in value.decode():
                events.append(json.loads(value))
    finally:
        consumer.close()
    return events


def test_a_row_arrives_as_an_event_and_a_null_stays_null(stack: LocalStack) -> None:
    with psycopg.connect(stack.postgres.dsn, autocommit=True) as source:
        source.execute("create table orders (id int primary key, note text default 'none')")
        stack.register_postgres_connector("shop", tables=["public.orders"])
        source.execute("insert into orders values (1, null), (2, 'two')")

    events = read_events(stack, "shop.public.orders", 2)

    rows = sorted((event["payload"]["after"] for event in events), key=lambda row: int(row["id"]))
    assert rows == [{"id": 1, "note": None}, {"id": 2, "note": "two"}]
    assert all("schema" in event for event in events)


def connection(stack: LocalStack) -> pymysql.connections.Connection[pymysql.cursors.Cursor]:
    return pymysql.connect(host=LOOPBACK, port=stack.mariadb.port, user=USER, autocommit=True)


def test_mariadb_shows_rows_nulls_and_ddl(stack: LocalStack) -> None:
    with connection(stack) as source, source.cursor() as cursor:
        cursor.execute("create database shop")
        cursor.execute("create table shop.orders (id int primary key, note varchar(9) default 'none')")
        stack.register_mariadb_connector("maria", tables=["shop.orders"])
        cursor.execute("insert into shop.orders values (1, null), (2, 'two')")

    events = read_events(stack, "maria.shop.orders", 2)
    rows = sorted((event["payload"]["after"] for event in events), key=lambda row: int(row["id"]))
    assert rows == [{"id": 1, "note": None}, {"id": 2, "note": "two"}]
    with connection(stack) as source, source.cursor() as cursor:
        cursor.execute("alter table shop.orders rename column note to remark")
        cursor.execute("insert into shop.orders values (3, 'three')")
    assert len(read_events(stack, "maria.shop.orders", 3)) == 3
    (change,) = read_events(stack, "maria", like="rename column")
    assert change["payload"]["ddl"] == "alter table shop.orders rename column note to remark"


def test_mariadb_comes_back_with_its_data(stack: LocalStack) -> None:
    stack.mariadb.stop()

    stack.mariadb.start()

    with connection(stack) as source, source.cursor() as cursor:
        cursor.execute("select count(*) from shop.orders")
        assert cursor.fetchall() == ((3,),)


def test_a_connector_that_cannot_work_is_told_with_its_reason(stack: LocalStack) -> None:
    with pytest.raises(SetupError, match=r"Cannot (PUT|start).*"):
        stack.register_postgres_connector("broken", extra={"database.dbname": "nowhere"})


def test_kafka_comes_back_on_its_port_with_its_topics(stack: LocalStack) -> None:
    address = stack.kafka.bootstrap_servers
    stack.kafka.stop()

    stack.kafka.start()

    assert stack.kafka.bootstrap_servers == address
    topics = AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=10).topics
    assert len(topics["shop.public.orders"].partitions) == 2


def test_events_flow_on_after_kafka_was_away(stack: LocalStack) -> None:
    with psycopg.connect(stack.postgres.dsn, autocommit=True) as source:
        source.execute("insert into orders values (3, 'three')")

    assert len(read_events(stack, "shop.public.orders", 3)) == 3


def test_stop_leaves_no_process_and_no_folder(stack: LocalStack) -> None:
    servers = [server.process for server in (stack.connect, stack.kafka, stack.postgres, stack.mariadb)]

    stack.stop()

    for process in servers:
        assert process is not None
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
    assert not stack.folder.exists()
