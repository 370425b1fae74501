"""Makes the captures beside it anew, with real servers: `python -m tests.debezium.data.capture`."""

from __future__ import annotations

import base64
import json
import lzma
import time
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from cdc_sync.local.stack import LocalStack

_HERE = Path(__file__).parent
_FLATTEN = {
    "transforms": "flatten",
    "transforms.flatten.type": "io.debezium.transforms.ExtractNewRecordState",
}
_ADDED = (
    "op,db,schema,table,connector,lsn,sequence,snapshot,txId,ts_ms,source.ts_ms,"
    "transaction.id,source.version:release,before.note,nowhere"
)


def _flatten(mode: str, **settings: str) -> dict[str, str]:
    options = {
        "delete.tombstone.handling.mode": mode,
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return _FLATTEN | {f"transforms.flatten.{name}": value for name, value in options.items()}


_ORDERS = {"table.include.list": "public.orders"}
_SCHEMALESS = {"key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}
CONNECTORS: dict[str, dict[str, str]] = {
    "flattened-tombstone": _ORDERS | _flatten("tombstone"),
    "flattened-drop": _ORDERS | _flatten("drop", add_fields="op,lsn"),
    "flattened-rewrite": _ORDERS | _flatten("rewrite", add_fields=_ADDED),
    "flattened-rewrite-with-tombstone": _ORDERS
    | _flatten("rewrite-with-tombstone", add_fields="op:operation,source.table:of,sequence", add_fields_prefix="meta."),
    "flattened-delete-to-tombstone": _ORDERS
    | _flatten("delete-to-tombstone", add_fields="op,table,lsn", replace_null_with_default="false"),
    "router": {
        "table.include.list": "public.shard_.*",
        "transforms": "route",
        "transforms.route.type": "io.debezium.transforms.ByLogicalTableRouter",
        "transforms.route.topic.regex": "(.*)shard_.*",
        "transforms.route.topic.replacement": "$1shards",
    },
    "outbox": {
        "table.include.list": "public.outbox",
        "transforms": "outbox",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
    },
    "cloudevents": _ORDERS
    | {
        "value.converter": "io.debezium.converters.CloudEventsConverter",
        "value.converter.serializer.type": "json",
        "value.converter.data.serializer.type": "json",
    },
    "schemaless": _ORDERS | _SCHEMALESS,
    "schemaless-flattened": _ORDERS | _SCHEMALESS | _flatten("rewrite", add_fields="op,table,lsn"),
}
BEFORE = """
create table orders (id int primary key, note text default 'none', amount numeric(10,2), at timestamptz, big text);
alter table orders alter column big set storage external;
create table shard_1 (id int primary key, note text);
create table shard_2 (id int primary key, note text);
create table outbox (id uuid primary key, aggregatetype text, aggregateid text, type text, payload jsonb);
insert into orders values (1, 'read', 1.50, '2026-01-01 00:00:00+00', repeat('x', 3000));
insert into shard_1 values (1, 'one');
insert into shard_2 values (1, 'uno')
"""
AFTER = """
insert into orders values (2, 'new', 2.50, '2026-01-02 00:00:00+00', repeat('y', 3000)), (3, null, null, null, null);
update orders set amount = 3.50 where id = 2;
update orders set id = 20 where id = 2;
delete from orders where id = 1;
truncate orders;
insert into orders values (4, 'after the truncate', 4, null, null);
alter table orders add column extra bigint;
insert into orders values (5, 'wider', 5, null, null, 55);
delete from orders where id = 4;
insert into shard_1 values (2, 'two');
delete from shard_2 where id = 1;
insert into outbox values ('7a1c2f7e-0000-4000-8000-000000000001', 'order', '4', 'made', '{"id": 4}')
"""


def capture() -> None:
    """Run the statements under every connector and write one file for each."""
    with LocalStack() as stack, psycopg.connect(stack.postgres.dsn, autocommit=True) as source:
        for statement in BEFORE.split(";\n"):
            source.execute(statement)
        for name, extra in CONNECTORS.items():
            stack.register_postgres_connector(name, extra=extra)
            _wait_for(stack, name, 1)
        for statement in AFTER.split(";\n"):
            source.execute(statement)
        time.sleep(15)
        for name in CONNECTORS:
            lines = [json.dumps(_line(message)) for message in _messages(stack, name)]
            (_HERE / f"{name}.jsonl.xz").write_bytes(lzma.compress("\n".join(lines).encode() + b"\n", preset=9))


def _wait_for(stack: LocalStack, name: str, number: int) -> None:
    deadline = time.monotonic() + 20
    while name != "outbox" and len(_messages(stack, name)) < number and time.monotonic() < deadline:
        time.sleep(0.2)
    if name == "outbox":
        time.sleep(8)


def _messages(stack: LocalStack, name: str) -> list[Message]:
    settings: dict[str, Any] = {"bootstrap.servers": stack.kafka.bootstrap_servers, "group.id": "capture"}
    consumer = Consumer(settings)
    try:
        known = consumer.list_topics(timeout=10).topics
        prefix = "outbox.event." if name == "outbox" else f"{name}."
        found: list[Message] = []
        for topic in sorted(topic for topic in known if topic.startswith(prefix)):
            partition = TopicPartition(topic, 0, OFFSET_BEGINNING)
            end = consumer.get_watermark_offsets(partition, timeout=10)[1]
            consumer.assign([partition])
            while end and (message := consumer.poll(10)) is not None:
                found.append(message)
                if (message.offset() or 0) + 1 >= end:
                    break
        return found
    finally:
        consumer.close()


def _line(message: Message) -> dict[str, Any]:
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "headers": [[header[0], _base64(header[1])] for header in message.headers() or []],
        "key_b64": _base64(message.key()),
        "value_b64": _base64(message.value()),
    }


def _base64(data: Any) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


if __name__ == "__main__":
    capture()
