"""What Debezium's transforms made of real events, through the real job: rows where it can be, words where it cannot."""

from __future__ import annotations

from collections import Counter

import pytest

from cdc_sync.events import TableId
from cdc_sync.testing import Record
from tests.conftest import Produce
from tests.debezium.data import captured
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

EVERYTHING = (
    "op, db, schema, table, connector, lsn, sequence, snapshot, txId, ts_ms, source.ts_ms, "
    "transaction.id, 'source.version:release', before.note"
)
COLUMNS = ["id", "note", "amount", "at", "big", "extra"]


def send(produce: Produce, name: str) -> None:
    for topic in sorted({record.topic for record in captured(name)}):
        produce(topic, [Record(key=item.key, value=item.value) for item in captured(name) if item.topic == topic])


def rows(lake: Pipeline, database: str) -> dict[int, tuple[str | None, str | None]]:
    """Note and amount by key."""
    data = lake.table(TableId(database=database, schema="public", table="orders")).scan().to_arrow()
    assert data.column_names == COLUMNS
    return {row["id"]: (row["note"], str(row["amount"]) if row["amount"] else None) for row in data.to_pylist()}


# The truncate between 20 and 4 never arrives: the transform drops it.
LEFT = {3: (None, None), 20: ("new", "3.50"), 5: ("wider", "5.00")}
REPLACED = LEFT | {3: ("none", None)}
"""The rewriting modes write NULL as the default, unless the transform's `replace.null.with.default` is false."""


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("flattened-tombstone", "{}", LEFT),
        ("flattened-rewrite", f"{{add_fields: [{EVERYTHING}]}}", REPLACED),
        (
            "flattened-rewrite-with-tombstone",
            "{add_fields: ['op:operation', 'source.table:of', sequence], add_fields_prefix: meta.}",
            REPLACED,
        ),
        ("flattened-delete-to-tombstone", "{add_fields: [op, table, lsn]}", LEFT),
        (
            "flattened-drop",
            "{add_fields: [op, lsn]}",
            LEFT | {1: ("read", "1.50"), 2: ("new", "3.50"), 4: ("after the truncate", "4.00")},
        ),
    ],
)
def test_a_flattened_topic_becomes_its_table(
    pipeline: NewPipeline,
    produce: Produce,
    name: str,
    settings: str,
    expected: dict[int, tuple[str | None, str | None]],
) -> None:
    send(produce, name)
    lake = pipeline(name, settings=f"connector: {{flattened: {settings}}}")

    lake.run()

    assert {table: (status.state, status.reason) for table, status in lake.statuses().items()} == {
        "orders": ("running", None)
    }
    assert rows(lake, "postgres" if name == "flattened-rewrite" else name) == expected
    assert lake.set_aside() == []


@pytest.mark.parametrize(
    ("name", "reason", "count"),
    [
        ("flattened-rewrite", "a flattened event, made by ExtractNewRecordState; configure connector.flattened", 10),
        ("cloudevents", "a CloudEvent; set value.converter", 11),
        ("schemaless", "a change event in JSON without its schema; set value.converter.schemas.enable=true", 11),
        ("schemaless-flattened", "a flattened event in JSON without its schema; set value.converter", 10),
    ],
)
def test_what_is_no_table_is_set_aside_in_plain_words(
    pipeline: NewPipeline, produce: Produce, name: str, reason: str, count: int
) -> None:
    for topic in sorted({record.topic for record in captured(name)}):
        produce(f"refused.{topic}", [Record(key=item.key, value=item.value) for item in captured(name)])
    lake = pipeline(f"refused.{name}")

    lake.run()

    told = Counter(record.reason for record in lake.set_aside())
    assert [number for text, number in told.items() if text.startswith(reason)] == [count]
    assert len(told) == 1
    assert lake.statuses() == {}


def test_routed_tables_are_told_apart_and_the_routers_addition_to_the_key_is_no_column(
    pipeline: NewPipeline, produce: Produce
) -> None:
    send(produce, "router")
    lake = pipeline("router")

    lake.run()

    def of(table: str) -> list[dict[str, object]]:
        data = lake.table(TableId(database="postgres", schema="public", table=table)).scan().to_arrow()
        found: list[dict[str, object]] = data.to_pylist()
        return sorted(found, key=lambda row: str(row["id"]))

    assert of("shard_1") == [{"id": 1, "note": "one"}, {"id": 2, "note": "two"}]
    assert of("shard_2") == []
