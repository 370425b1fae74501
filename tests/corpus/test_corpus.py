"""Real captures, through a real Kafka and the real job, end as the source ended, or paused for a true reason."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyiceberg.catalog.sql import SqlCatalog

from cdc_sync.config import parse_config
from cdc_sync.job import run
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.local.ports import free_ports
from cdc_sync.state import TableStatus
from tests.corpus.images import Image, differences, expected_image, lake_image
from tests.corpus.reader import expected, history, topics

pytestmark = [pytest.mark.kafka, pytest.mark.iceberg, pytest.mark.timeout(1500)]

# Tables that end equal to the source, with their final rows, columns, order and types.
RIGHT = {
    "Odd Schema.Odd.Table é",
    "inv.CASE",
    "inv.case",
    "inv.comp",
    "inv.dropadd",
    "inv.inothing",
    "inv.later",
    "inv.metacols",
    "inv.part_2024",
    "inv.wide",
}

# Tables that the source changed without any event afterwards, or that it dropped: equal to what it was at their
# last event. The step of the script is the last one that the events tell of.
RIGHT_AT_LAST_EVENT = {
    "inv.silent": 74,  # ALTER TABLE, and no row after it
    "inv.part": 152,  # rows of a partitioned table arrive under its leaves, only the snapshot under itself
    "inv.oldname": 146,  # renamed: its events go on under the new name
    "inv.dropped": 150,  # DROP TABLE has no event
}

# Tables that stop, and what their status must say. Each is a case where the events do not hold the truth, or a change
# that is not carried out yet.
PAUSED = {
    "inv.burst": "'b1' changed from",
    "inv.casts": "VariableScaleDecimal",
    "inv.defaults": "a value equals its nullable column's default",
    "inv.dropadd_last": "cannot be proven",
    "inv.dropadd_same": "cannot be proven",
    "inv.evolve": "existing rows hold in the new column 'created' is not known",
    "inv.gen": "generated or excluded column",
    "inv.ifull": "cannot be proven",
    "inv.iidx": "REPLICA IDENTITY USING INDEX",
    "inv.newname": "a row that the target never had",
    "inv.nopk": "has no key",
    "inv.pkchange": "the key changed from (id) to (code)",
    "inv.pktype": "'id' changed from",
    "inv.raced": "a value equals its nullable column's default",
    "inv.recreated": "'id' changed from",
    "inv.rename3": "cannot be proven",
    "inv.rename_last": "cannot be proven",
    "inv.swap": "cannot be proven",
    "inv.toast": "unchanged large value",
    "inv.trunc": "truncated",
    "inv.trunc_child": "truncated",
    "inv.types_all": "VariableScaleDecimal",
}

# The captures have replace.null.with.default=true. Where a NULL did arrive as its default, the table is told to stop.
CONFIG = """
pipeline: {{name: {name}, state: {root}/state}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'pgj\\..*'}}
tables:
  - pattern: 'postgres\\.inv\\.(raced|defaults)'
    policy: {{ambiguous_null: pause}}
  - pattern: '.*'
policy: {{unproven_rename: pause}}
target: {{catalog: {{warehouse: {root}/warehouse-{name}}}}}
job: {{max_offsets_per_batch: {size}}}
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    port, controller_port = free_ports(2)
    server = KafkaServer(tmp_path_factory.mktemp("kafka"), port=port, controller_port=controller_port)
    server.start()
    try:
        _produce(server.bootstrap_servers)
        yield server
    finally:
        server.stop()


def _produce(servers: str) -> None:
    """Write every captured message at its own offset."""
    admin = AdminClient({"bootstrap.servers": servers})
    for outcome in admin.create_topics([NewTopic(name, 1, 1) for name in topics()]).values():
        outcome.result()
    producer = Producer({"bootstrap.servers": servers})
    for messages in topics().values():
        for message in messages:
            producer.produce(message.topic, key=message.key, value=message.value, partition=message.partition)
    assert producer.flush(60) == 0


@dataclass(frozen=True)
class Ended:
    """How a run over the whole corpus ended."""

    statuses: dict[str, TableStatus]
    images: dict[str, Image]
    other_records: dict[str, int]


def _run(servers: str, root: Path, *, name: str, size: int) -> Ended:
    config = parse_config(
        CONFIG.format(name=name, root=root, servers=servers, size=size), path=str(root / "corpus.yaml")
    )
    report = run(config, once=True, stop=threading.Event())
    warehouse = root / f"warehouse-{name}"
    catalog = SqlCatalog("lake", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))
    images = {
        ".".join(place): _image(catalog, place)
        for namespace in catalog.list_namespaces()
        for place in catalog.list_tables(namespace)
    }
    statuses = {f"{status.table.schema}.{status.table.table}": status for status in report.tables}
    return Ended(statuses=statuses, images=images, other_records=dict(report.other_records))


def _image(catalog: SqlCatalog, place: tuple[str, ...]) -> Image:
    table = catalog.load_table(place)
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return lake_image(table.schema(), rows)


@pytest.fixture(scope="module", params=[200_000, 1], ids=["in one batch", "one message at a time"])
def ended(request: pytest.FixtureRequest, broker: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    size: int = request.param
    return _run(broker.bootstrap_servers, tmp_path_factory.mktemp("corpus"), name=f"size-{size}", size=size)


def test_every_captured_table_is_accounted_for(ended: Ended) -> None:
    # The leaf part_2025 is right but for a column that no event of its own shows; it has a test of its own.
    assert set(ended.statuses) == RIGHT | set(RIGHT_AT_LAST_EVENT) | set(PAUSED) | {"inv.part_2025"}


def test_tables_end_as_the_source_ended(ended: Ended) -> None:
    found = {name: differences(expected_image(expected()[name]), ended.images[name]) for name in sorted(RIGHT)}
    assert {name: difference for name, difference in found.items() if difference} == {}
    assert {ended.statuses[name].state for name in RIGHT} == {"running"}


def test_tables_without_a_later_event_are_as_the_source_was_then(ended: Ended) -> None:
    steps = {(line["table"], line["step"]): line for line in history()}
    found = {
        name: differences(expected_image(steps[name, step]), ended.images[name])
        for name, step in RIGHT_AT_LAST_EVENT.items()
    }
    assert {name: difference for name, difference in found.items() if difference} == {}


def test_a_leaf_without_a_later_event_lacks_only_the_column_added_after_it(ended: Ended) -> None:
    whole = expected_image(expected()["inv.part_2025"])
    before_the_column = Image(columns=whole.columns[:-1], rows=tuple(row[:-1] for row in whole.rows))
    assert differences(before_the_column, ended.images["inv.part_2025"]) == []


def test_all_other_tables_stop_for_a_true_reason(ended: Ended) -> None:
    found = {name: (ended.statuses[name].state, ended.statuses[name].reason or "") for name in PAUSED}
    assert {name for name, (state, _) in found.items() if state != "paused"} == set()
    assert {name: reason for name, (_, reason) in found.items() if PAUSED[name] not in reason} == {}
    assert all(ended.statuses[name].remedy for name in PAUSED)


def test_logical_messages_are_counted_and_carry_no_rows(ended: Ended) -> None:
    assert ended.other_records == {"logical message": 116}


def test_a_connector_that_replaces_null_is_warned_of(ended: Ended) -> None:
    (warning,) = ended.statuses["inv.wide"].warnings
    assert warning.startswith("a NULL in last_one arrives as the column's default")
