"""What records cost that cannot be applied, and whether a table is right once they are redriven. See README.md.

Two topics hold the same creates and then updates of random keys; of one of them a part of the events has a date that no
table holds. One job reads both, by turns, in one JVM. Then the policy is mended, the dead letters are redriven, and the
table is compared with what a pipeline made of the same topic that could read everything from the start.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median

from confluent_kafka import Producer
from figures import show
from measure import Meter
from pyspark.sql import SparkSession

import cdc_sync
from cdc_sync.config import Config, parse_config
from cdc_sync.local.kafka import running_kafka
from cdc_sync.runtime.context import open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.formats import catalog_settings
from cdc_sync.spark.session import build_session
from cdc_sync.testing import DATE, INT32, INT64, TEXT, Record, SourceTable, column

_BATCH, _WARM = 50_000, 2
_GOOD, _BAD = 19_000, 99_999_999
_ID, _DAY, _N = 1_234_567, 12_345, 7_654_321
"""What stands in templates where events differ."""


def _table(name: str) -> SourceTable:
    columns = [column("id", INT32, optional=False), column("day", DATE), column("note", TEXT), column("n", INT64)]
    return SourceTable(name, columns, prefix="bench", null_is_default=False)


def _template(record: Record) -> tuple[bytes, bytes]:
    """Return key and value with a place for each of what differs; a percent sign is nowhere else in them."""
    assert record.key is not None
    assert record.value is not None
    value = re.sub(rb'"lsn":\d+', b'"lsn":%(lsn)d', record.value)
    for name, said in (("id", _ID), ("day", _DAY), ("n", _N)):
        value = value.replace(b":%d" % said, b":%%(%s)d" % name.encode())
    return record.key.replace(b"%d" % _ID, b"%d"), value.replace(b"NOTE", b"%(note)s")


def _events(table: SourceTable, number: int, share: float) -> Iterator[tuple[bytes, bytes]]:
    """Three fifths creates, then updates; `share` of them cannot be applied. Else all tables have the same."""
    chosen, bad, creates = random.Random(1), random.Random(2), number * 3 // 5
    (made,) = table.insert(id=_ID, day=_DAY, note="NOTE", n=_N)
    (changed,) = table.update({"id": _ID}, day=_DAY, note="NOTE", n=_N)
    templates = [_template(made), _template(changed)]
    for at in range(number):
        id_ = at if at < creates else chosen.randrange(creates)
        key, value = templates[at >= creates]
        day = _BAD if bad.random() < share else _GOOD + at % 100
        yield key % id_, value % {b"lsn": 1_000 + at, b"id": id_, b"day": day, b"n": at, b"note": b"note %d" % at}


def _produce(servers: str, topic: str, records: Iterator[tuple[bytes, bytes]]) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "batch.size": 1_000_000})
    for key, value in records:
        while True:
            with suppress(BufferError):
                producer.produce(topic, key=key, value=value)
                break
            producer.poll(0.05)
        producer.poll(0)
    producer.flush()


def _config(folder: Path, servers: str, name: str, out_of_range: str) -> Config:
    return parse_config(
        f"""
        pipeline: {{name: {name}, state: {folder}/state}}
        kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'bench\\..*'}}
        tables: [{{pattern: '.*'}}]
        policy: {{missing_rows: insert, out_of_range: {out_of_range}}}
        target: {{catalog: {{name: {name}, warehouse: {folder}/{name}}}}}
        spark: {{master: 'local[2]', conf: {{spark.driver.memory: 6g}}}}
        """,
        path="bench",
    )


def _contents(spark: SparkSession, catalog: str) -> tuple[int, int]:
    row = spark.sql(
        f"SELECT count(*) AS rows, sum(cast(xxhash64(id, day, note, n) AS decimal(38))) AS hash "
        f"FROM {catalog}.public.poisoned"
    ).first()
    assert row is not None
    return int(row.rows), int(row.hash)


def main() -> int:
    """Return 0 if the table is right in the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-sync-poison-") as text:
        folder = Path(text)
        with running_kafka(folder / "kafka") as kafka:
            found = _run(folder, kafka.bootstrap_servers, given.events, given.share)
    show(found, as_json=given.json)
    return 0 if found["equal"] and not found["dead letters left"] else 1


def _run(folder: Path, servers: str, events: int, share: float) -> dict[str, float | bool]:
    tables = {"clean": _table("clean"), "poisoned": _table("poisoned")}
    for name, table in tables.items():
        _produce(servers, table.topic, _events(table, events, share if name == "poisoned" else 0))
    config = _config(folder, servers, "lake", "quarantine")
    plain = _config(folder, servers, "plain", "clamp")
    conf = {**config.spark.conf, **catalog_settings(plain.target.catalog)}
    config = config.model_copy(update={"spark": config.spark.model_copy(update={"conf": conf})})
    spark, client = build_session(config), KafkaClient(config.kafka)
    meter, job = Meter(spark), SyncJob(open_context(config, spark, client))
    seconds: dict[str, list[float]] = {name: [] for name in tables}
    for end in range(_BATCH, events + 1, _BATCH):
        for name, table in sorted(tables.items(), reverse=bool(end // _BATCH % 2)):
            cost = meter.measure(_BATCH, lambda topic=table.topic, end=end: job.process({(topic, 0): end}))  # type: ignore[misc]
            seconds[name].append(cost.wall)
    letters = sum(count.records for count in cdc_sync.list_dead_letters(config, limit=0).counts)

    mended = config.model_copy(update={"policy": plain.policy})
    cdc_sync.redrive_dead_letters(mended)
    again = SyncJob(open_context(mended, spark, client))
    again.tables.restore()
    began = time.monotonic()
    again.catch_up()
    redriven = time.monotonic() - began
    left = sum(count.records for count in cdc_sync.list_dead_letters(config, limit=0).counts)

    other = SyncJob(open_context(plain, spark, client))
    other.process({(tables["poisoned"].topic, 0): events})
    equal = _contents(spark, "lake") == _contents(spark, "plain")
    rates = {name: _BATCH / median(found[_WARM:]) for name, found in seconds.items()}
    spark.stop()
    client.close()
    return {
        "events of each topic": events,
        "dead letters": letters,
        "clean, events/s": round(rates["clean"]),
        "poisoned, events/s": round(rates["poisoned"]),
        "poisoned, of clean": round(rates["poisoned"] / rates["clean"], 3),
        "redriven in, s": round(redriven, 1),
        "dead letters left": left,
        "equal": equal,
    }


if __name__ == "__main__":
    sys.exit(main())
