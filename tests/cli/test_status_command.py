"""`cdc-sync status`: how every table stands."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Producer

from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.dead_letters import DeadLetter
from cdc_sync.core.model.lease import Doing, Lease, Process, Pulse
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.times import seconds_of, utc
from cdc_sync.core.planning.resync import Mark
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.operations.overview import retention_left
from cdc_sync.runtime.lease import this_process
from cdc_sync.sources.records import Record, unread
from cdc_sync.storage.leases import Leases
from cdc_sync.storage.state import StateStore
from tests.cli.runner import CommandLine

RUNNING = TableStatus(
    table=TableId(database="shop", schema="inv", table="customers"),
    target="inv.customers",
    state="running",
    version=1,
    offsets={"shop.inv.customers": {0: 10}},
)
PAUSED = TableStatus(
    table=TableId(database="shop", schema="inv", table="orders"),
    target="inv.orders",
    state="paused",
    version=3,
    code="unproven-change",
    reason="column qty vanished and quantity appeared",
    remedy="declare the rename",
    offsets={"shop.inv.orders": {0: 1}},
    paused_at="shop.inv.orders[0]@41",
    counts={"quarantined": 2, "missing": 0},
    warnings=("NULL may have arrived as the default",),
    needs_resync=(Mark(column="created", id=4, version=2, reason="not known"),),
)

LEASE = Lease(
    number=42,
    job="a",
    process=Process(host="web-1", pid=7),
    version="1",
    started=seconds_of("2026-01-02T03:04:05Z"),
    pulse=Pulse(batches=1200),
)
GONE = replace(this_process(), began=0)


def fill(config: Path) -> None:
    store = StateStore(f"{config.parent}/state/inventory", create=True)
    store.save(RUNNING)
    store.save(PAUSED)
    store.dead_letters.add(
        DeadLetter(
            topic="shop.inv.orders",
            partition=0,
            offset=offset,
            timestamp=None,
            code=Code.RECORD_FOREIGN,
            reason="broken",
            key=None,
            value=b"",
        )
        for offset in (4, 7)
    )


def test_a_pipeline_that_just_began_has_seen_no_table(cdc_sync: CommandLine, config: Path) -> None:
    StateStore(f"{config.parent}/state/inventory", create=True)

    ran = cdc_sync("status", config)

    assert (ran.exit_code, ran.out, ran.err) == (
        0,
        "job: none has run yet\nPipeline 'inventory' has seen no table yet.\n",
        "",
    )


@pytest.mark.parametrize(
    "arguments", [("status",), ("history",), ("decide", "orders", "--rename", "a=b"), ("resync", "orders")]
)
def test_where_no_job_ever_wrote_there_is_no_pipeline_to_look_at(
    cdc_sync: CommandLine, config: Path, arguments: tuple[str, ...]
) -> None:
    ran = cdc_sync(arguments[0], config, *arguments[1:])

    assert (ran.exit_code, ran.out) == (2, "")
    assert ran.err == (
        f"cdc-sync: Cannot find pipeline 'inventory': nothing is written at {config.parent}/state/inventory; start it "
        "with `cdc-sync run`; where it has run, check pipeline.state and pipeline.name\n"
    )
    assert not (config.parent / "state").exists()


def test_people_see_tables_reasons_warnings_and_quarantine_even_without_kafka(
    cdc_sync: CommandLine, config: Path
) -> None:
    fill(config)

    ran = cdc_sync("status", config)

    assert (ran.exit_code, ran.err) == (0, "")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert lines == [
        "job: none has run yet",
        "table target state for version lag behind not applied",
        "shop.inv.customers inv.customers running - 1 unknown unknown -",
        "shop.inv.orders inv.orders paused - 3 unknown unknown 2 quarantined",
        "shop.inv.orders is paused (unproven-change) at shop.inv.orders[0]@41: column qty vanished and quantity "
        "appeared; declare the "
        "rename",
        "shop.inv.orders: column 'created' needs resync since version 2: not known",
        "shop.inv.orders: warning: NULL may have arrived as the default",
        "dead letters: 2 of shop.inv.orders (record-not-a-change): broken",
        "Lag is unknown: Cannot list topics: no usable answer from Kafka at '127.0.0.1:9' in 1 attempts (Failed to get "
        "metadata: Local: Broker transport failure); check that the brokers run and can be reached from here",
    ]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("'shop\\.inv\\..*'", "'shop\\.inv\\.o.*'", "no rule under tables matches it"),
        (", shop.inv.customers]", "]", "its topics are not read (shop.inv.customers)"),
    ],
)
def test_a_table_that_is_taken_out_of_the_configuration_is_not_followed(
    cdc_sync: CommandLine, config: Path, before: str, after: str, why: str
) -> None:
    fill(config)
    config.write_text(config.read_text().replace(before, after))

    ran = cdc_sync("status", config)

    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "shop.inv.customers inv.customers not followed - 1 - - -" in lines
    assert f"shop.inv.customers is not followed: {why}; inv.customers stays as it is" in lines


def test_people_see_since_when_evidence_tells_of_a_table_and_each_gap_once(cdc_sync: CommandLine, config: Path) -> None:
    store = StateStore(f"{config.parent}/state/inventory", create=True)
    since: dict[str, str | None] = {"evidence.messages": "postgresql:7/7", "evidence.values": None}
    store.save(replace(RUNNING, evidence=since))
    for name in ("orders", "items"):
        table = replace(RUNNING.table, table=name)
        store.save(
            replace(RUNNING, table=table, offsets={}, evidence={"evidence.messages": None}, evidence_gaps=("x",))
        )

    lines = [" ".join(line.split()) for line in cdc_sync("status", config).out.splitlines()]

    assert lines[1:4] == [
        "table target state for version lag behind not applied evidence",
        "shop.inv.customers inv.customers running - 1 unknown unknown - messages since postgresql:7/7, (values)",
        "shop.inv.items inv.customers running - 1 unknown unknown - (messages)",
    ]
    assert [line for line in lines if line.startswith("evidence of")] == [
        "evidence of shop.inv.items, shop.inv.orders: x"
    ]


def test_machines_see_the_same(cdc_sync: CommandLine, config: Path) -> None:
    fill(config)

    ran = cdc_sync("status", config, "--json")

    assert ran.json["tables"][1] == {
        "table": "shop.inv.orders",
        "target": "inv.orders",
        "state": "paused",
        "code": "unproven-change",
        "since": None,
        "written_at": None,
        "event_at": None,
        "version": 3,
        "reason": "column qty vanished and quantity appeared",
        "remedy": "declare the rename",
        "offsets": {"shop.inv.orders": {"0": 1}},
        "paused_at": "shop.inv.orders[0]@41",
        "counts": {"missing": 0, "quarantined": 2},
        "warnings": ["NULL may have arrived as the default"],
        "needs_resync": [{"column": "created", "id": 4, "version": 2, "reason": "not known"}],
        "replaced_nulls": {},
        "evidence": {},
        "evidence_gaps": [],
        "lag": None,
        "behind_s": None,
        "retention_left_s": None,
        "unfollowed": None,
    }
    assert ran.json["dead_letters"] == [
        {"topic": "shop.inv.orders", "code": "record-not-a-change", "reason": "broken", "records": 2}
    ]
    assert ran.json["kafka_problem"].startswith("Cannot list topics")


def test_lag_is_what_the_brokers_hold_beyond_the_tables_offsets(cdc_sync: CommandLine, config: Path) -> None:
    producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0})
    for _ in range(3):
        producer.produce("shop.inv.orders", value=b"v", partition=0)
    producer.flush(5)
    broker = next(iter(producer.list_topics(timeout=5).brokers.values()))
    config.write_text(config.read_text().replace("127.0.0.1:9", f"{broker.host}:{broker.port}"))
    fill(config)

    tables = cdc_sync("status", config, "--json").json["tables"]

    assert [(table["table"], table["lag"]) for table in tables] == [
        ("shop.inv.customers", None),  # its topic is gone
        ("shop.inv.orders", 2),
    ]


def test_since_when_a_table_is_in_its_state_and_how_far_it_is_behind(cdc_sync: CommandLine, config: Path) -> None:
    producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0})
    for topic in ("shop.inv.orders", "shop.inv.customers"):
        producer.produce(topic, value=b"v", partition=0)
    producer.flush(5)
    broker = next(iter(producer.list_topics(timeout=5).brokers.values()))
    config.write_text(config.read_text().replace("127.0.0.1:9", f"{broker.host}:{broker.port}"))
    store = StateStore(f"{config.parent}/state/inventory", create=True)
    times: dict[str, Any] = {
        "since": utc(time.time() - 5 * 3600),
        "event_at": utc(time.time() - 300),
        "written_at": utc(time.time()),
    }
    store.save(replace(PAUSED, **times, offsets={"shop.inv.orders": {0: 0}}))
    store.save(replace(RUNNING, **times, offsets={"shop.inv.customers": {0: 1}}))

    lines = [" ".join(line.split()) for line in cdc_sync("status", config).out.splitlines()]

    assert "shop.inv.customers inv.customers running 5 h 1 0 0 s -" in lines
    assert "shop.inv.orders inv.orders paused 5 h 3 1 5 min 2 quarantined" in lines


@pytest.mark.parametrize(
    ("lease", "said"),
    [
        ({}, r"running on web-1 \(pid 7\) since 2026-01-02T03:04:05Z, 1,200 batches, heard of \d s ago"),
        ({"pulse": Pulse(batches=1, batch_began=0.0)}, r"running on .*, 1 batch, in one for \d+ d, heard of \d s ago"),
        ({"ended": "stopped"}, r"stopped at 20..-.*Z on web-1 \(pid 7\) after 1,200 batches"),
        ({"ended": "failed"}, r"failed at 20..-.*Z on web-1 \(pid 7\) after 1,200 batches; its log says why"),
        ({"process": GONE}, r"dead since 20..-.*Z: the one on .* ended without a word or cannot reach the store; .*"),
    ],
)
def test_the_job_comes_first(cdc_sync: CommandLine, config: Path, lease: dict[str, Any], said: str) -> None:
    leases = Leases(f"{config.parent}/state/inventory", create=True)
    leases.make(replace(LEASE, **lease))

    ran = cdc_sync("status", config)

    assert re.fullmatch(f"job: {said}", ran.out.splitlines()[0])


def test_what_is_done_of_a_table_is_told_while_the_job_runs(cdc_sync: CommandLine, config: Path) -> None:
    leases = Leases(f"{config.parent}/state/inventory", create=True)
    doing = {"shop.inv.orders": Doing(what="rewrites the target", since=time.time() - 7_300)}
    leases.make(replace(LEASE, pulse=Pulse(doing=doing)))

    assert cdc_sync("status", config).out.splitlines()[1] == "shop.inv.orders: rewrites the target for 2 h"
    assert cdc_sync("status", config, "--json").json["job"]["doing"]["shop.inv.orders"]["what"] == "rewrites the target"
    leases.make(replace(LEASE, number=LEASE.number + 1, ended="stopped", pulse=Pulse(doing=doing)))
    assert "rewrites" not in cdc_sync("status", config).out


def test_an_edit_of_the_configuration_that_was_refused_is_told_while_the_job_runs(
    cdc_sync: CommandLine, config: Path
) -> None:
    leases = Leases(f"{config.parent}/state/inventory", create=True)
    leases.make(replace(LEASE, pulse=Pulse(refused="it names no topics")))

    told = cdc_sync("status", config).out.splitlines()

    assert told[1] == "configuration: the last edit is refused, and the one before goes on: it names no topics"
    leases.make(replace(LEASE, number=LEASE.number + 1, ended="stopped", pulse=Pulse(refused="it names no topics")))
    assert not cdc_sync("status", config).out.splitlines()[1].startswith("configuration")


def test_a_job_that_is_not_heard_of_any_more_is_dead_and_one_that_waits_stands_by(
    cdc_sync: CommandLine, config: Path
) -> None:
    root = config.parent / "state" / "inventory"
    leases = Leases(str(root), create=True)
    leases.make(LEASE)
    leases.stand_by(replace(LEASE, number=0, job="b", process=Process(host="web-2", pid=8)))
    leases.stand_by(replace(LEASE, number=0, job="c", process=GONE))
    minute_ago = time.time() - 60
    os.utime(root / "lease" / "00000042.json", (minute_ago, minute_ago))

    lines = cdc_sync("status", config).out.splitlines()
    found = cdc_sync("status", config, "--json").json

    assert lines[0].startswith("job: dead since ")
    assert lines[1] == "standby: web-2 (pid 8) since 2026-01-02T03:04:05Z"
    assert (found["job"]["state"], found["job"]["lease"], found["job"]["batches"]) == ("dead", 42, 1200)
    assert 59 < found["job"]["silent_s"] < 90
    assert [item["host"] for item in found["standby"]] == ["web-2"]


class _Brokers:
    """Keep records of `short` for an hour and those of `long` for ever; each was written half an hour ago."""

    def __init__(self) -> None:
        self.written = time.time() - 1800

    def retention(self, topics: Collection[str]) -> dict[str, timedelta | None]:
        return {topic: timedelta(hours=1) if topic == "short" else None for topic in topics}

    def fetch_ahead(self, places: Collection[tuple[str, int, int]]) -> None:
        assert all(topic == "short" for topic, _, _ in places)

    def peek(self, topic: str, partition: int, offset: int) -> Record | None:
        if offset == 9:
            return None  # compacted
        at = int(self.written * 1000)
        return Record(topic=topic, partition=partition, offset=offset, timestamp=at, key=None, value=None)


def test_it_is_said_when_retention_takes_what_was_not_read() -> None:
    places = [("short", 0, 5), ("short", 1, 2), ("short", 2, 9), ("long", 0, 5)]

    left = retention_left(cast(Any, _Brokers()), places, {"short": {0: 5, 1: 3}})

    assert {place: round(found.total_seconds(), -1) for place, found in left.items()} == {
        ("short", 0, 5): 1800,
        ("short", 1, 2): 0,
    }


def test_what_a_table_reads_next_is_known_of_each_partition() -> None:
    ends = {"a": {0: 4, 1: 9, 2: 3}, "other": {0: 1}}
    assert unread({"a": {0: 4, 1: 2}}, {"a": {2: 1}}, ends) == [("a", 1, 2), ("a", 2, 1)]
