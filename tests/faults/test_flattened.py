"""What Debezium's transforms made of real events, through the real job: rows where it can be, words where it cannot."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import pytest

from cdc_sync.core.model.positions import TableId
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


Row: TypeAlias = tuple[str | None, str | None, int]


def rows(lake: Pipeline, database: str) -> dict[int, Row]:
    """Note, amount and the length of the big value, by key."""
    data = lake.table(TableId(database=database, schema="public", table="orders")).scan().to_arrow()
    assert data.column_names == COLUMNS
    return {
        row["id"]: (row["note"], str(row["amount"]) if row["amount"] else None, len(row["big"] or ""))
        for row in data.to_pylist()
    }


# The truncate between 20 and 4 never arrives: the transform drops it. The create of 20 leaves the big value out, and it
# is that of 2, the key before; only an event with its place in the log tells that.
LEFT: dict[int, Row] = {3: (None, None, 0), 20: ("new", "3.50", 0), 5: ("wider", "5.00", 0)}
LINKED = LEFT | {3: ("none", None, 0), 20: ("new", "3.50", 3000)}
"""The rewriting modes write NULL as the default, unless the transform's `replace.null.with.default` is false."""
KEPT = {1: ("read", "1.50", 3000), 2: ("new", "3.50", 3000), 4: ("after the truncate", "4.00", 0)}
INSERT = "policy: {missing_rows: insert}"


@pytest.mark.parametrize(
    ("name", "settings", "policy", "expected"),
    [
        ("flattened-tombstone", "{}", INSERT, LEFT),
        ("flattened-rewrite", f"{{add_fields: [{EVERYTHING}]}}", "", LINKED),
        (
            "flattened-rewrite-with-tombstone",
            "{add_fields: ['op:operation', 'source.table:of', sequence], add_fields_prefix: meta.}",
            "",
            LINKED,
        ),
        ("flattened-delete-to-tombstone", "{add_fields: [op, table, lsn]}", INSERT, LEFT),
        ("flattened-drop", "{add_fields: [op, lsn]}", INSERT, LEFT | KEPT),
    ],
)
def test_a_flattened_topic_becomes_its_table(
    pipeline: NewPipeline, produce: Produce, name: str, settings: str, policy: str, expected: dict[int, Row]
) -> None:
    send(produce, name)
    lake = pipeline(name, settings=f"connector: {{flattened: {settings}}}\n{policy}")

    lake.run()

    assert {table: (status.state, status.reason) for table, status in lake.statuses().items()} == {
        "orders": ("running", None)
    }
    assert rows(lake, "postgres" if name == "flattened-rewrite" else name) == expected
    assert lake.set_aside() == []


@pytest.mark.parametrize(
    ("name", "settings"),
    [("flattened-tombstone", "{}"), ("flattened-delete-to-tombstone", "{add_fields: [op, table, lsn]}")],
)
def test_a_delete_that_is_a_key_alone_finds_its_row_also_in_a_batch_of_its_own(
    pipeline: NewPipeline, produce: Produce, name: str, settings: str
) -> None:
    topic = f"apart.{name}.public.orders"
    lake = pipeline(f"apart.{name}", settings=f"connector: {{flattened: {settings}}}\n{INSERT}")
    records = [Record(key=item.key, value=item.value) for item in captured(name)]
    for part in (records[:4], records[4:5], records[5:6], records[6:7], records[7:9], records[9:]):
        produce(topic, part)
        lake.run()
    assert {status.state for status in lake.statuses().values()} == {"running"}
    assert rows(lake, name) == LEFT
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
    produce("routed.public.shards", [Record(key=item.key, value=item.value) for item in captured("router")])
    lake = pipeline("routed")

    lake.run()

    def of(table: str) -> list[dict[str, object]]:
        data = lake.table(TableId(database="postgres", schema="public", table=table)).scan().to_arrow()
        found: list[dict[str, object]] = data.to_pylist()
        return sorted(found, key=lambda row: str(row["id"]))

    assert of("shard_1") == [{"id": 1, "note": "one"}, {"id": 2, "note": "two"}]
    assert of("shard_2") == []
