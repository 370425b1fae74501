"""What records cost that cannot be applied, and whether a table is right once they are redriven. See README.md.

Two topics hold the same creates and then updates of random keys; of one of them a part of the events has a date that no
table holds. One job reads both, by turns, in one JVM. Then the policy is mended, the dead letters are redriven, and
`cdc-sync verify` compares both tables with those of a Postgres that holds what the events say.
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

import psycopg
from confluent_kafka import Producer
from figures import show
from measure import Meter

import cdc_sync
from cdc_sync.config import Config, parse_config
from cdc_sync.local.kafka import running_kafka
from cdc_sync.local.ports import free_ports
from cdc_sync.local.postgres import DATABASE, PostgresServer
from cdc_sync.runtime.context import open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.session import build_session
from cdc_sync.testing import DATE, INT32, INT64, TEXT, Record, SourceTable, column

_BATCH, _WARM = 50_000, 2
_GOOD, _BAD = 19_000, 99_999_999
_ID, _DAY, _N = 1_234_567, 12_345, 7_654_321
"""What stands in templates where events differ."""


def _table(name: str) -> SourceTable:
    columns = [column("id", INT32, optional=False), column("day", DATE), column("note", TEXT), column("n", INT64)]
    return SourceTable(name, columns, prefix="bench", database=DATABASE, null_is_default=False)


def _template(record: Record) -> tuple[bytes, bytes]:
    """Return key and value with a place for each of what differs; a percent sign is nowhere else in them."""
    assert record.key is not None
    assert record.value is not None
    value = re.sub(rb'"lsn":\d+', b'"lsn":%(lsn)d', record.value)
    for name, said in (("id", _ID), ("day", _DAY), ("n", _N)):
        value = value.replace(b":%d" % said, b":%%(%s)d" % name.encode())
    return record.key.replace(b"%d" % _ID, b"%d"), value.replace(b"NOTE", b"%(note)s")


def _changes(number: int, share: float) -> Iterator[tuple[int, int]]:
    """Key and day of each event: three fifths creates, then updates, of which `share` cannot be applied."""
    chosen, bad, creates = random.Random(1), random.Random(2), number * 3 // 5
    for at in range(number):
        yield at if at < creates else chosen.randrange(creates), _BAD if bad.random() < share else _GOOD + at % 100


def _events(table: SourceTable, number: int, share: float) -> Iterator[tuple[bytes, bytes]]:
    """Return keys and values of a table's records."""
    (made,) = table.insert(id=_ID, day=_DAY, note="NOTE", n=_N)
    (changed,) = table.update({"id": _ID}, day=_DAY, note="NOTE", n=_N)
    templates = [_template(made), _template(changed)]
    for at, (id_, day) in enumerate(_changes(number, share)):
        key, value = templates[at >= number * 3 // 5]
        yield key % id_, value % {b"lsn": 1_000 + at, b"id": id_, b"day": day, b"n": at, b"note": b"note %d" % at}


def _fill(dsn: str, name: str, number: int, share: float) -> None:
    """Give the source the rows that the events lead to."""
    rows = {id_: (at, day) for at, (id_, day) in enumerate(_changes(number, share))}
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute(f"create table {name} (id int primary key, day date, note text, n bigint)")
        cursor.execute("create temporary table made (id int, at bigint, day int)")
        with cursor.copy("copy made from stdin") as copy:
            for id_, (at, day) in rows.items():
                copy.write_row((id_, at, day))
        last = "date '9999-12-31'"  # what the mended policy makes of a date that no table holds
        days = f"least(date '1970-01-01' + day, {last})"
        cursor.execute(f"insert into {name} select id, {days}, 'note ' || at, at from made")


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


def _config(folder: Path, servers: str, dsn: str, out_of_range: str) -> Config:
    return parse_config(
        f"""
        pipeline: {{name: lake, state: {folder}/state}}
        kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'bench\\..*'}}
        tables: [{{pattern: '.*'}}]
        policy: {{missing_rows: insert, out_of_range: {out_of_range}}}
        source: {{dsn: '{dsn}'}}
        target: {{catalog: {{warehouse: {folder}/lake}}}}
        verify: {{settle: 0s}}
        spark: {{master: 'local[2]', conf: {{spark.driver.memory: 6g}}}}
        """,
        path="bench",
    )


def main() -> int:
    """Return 0 if the table is right in the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-sync-poison-") as text:
        folder = Path(text)
        folder.chmod(0o755)  # under root, Postgres runs as another user
        postgres = PostgresServer(folder / "postgres", port=free_ports(1)[0])
        with running_kafka(folder / "kafka") as kafka:
            postgres.start()
            try:
                found = _run(folder, kafka.bootstrap_servers, postgres.dsn, given.events, given.share)
            finally:
                postgres.stop()
    show(found, as_json=given.json)
    return 0 if found["equal"] and not found["dead letters left"] else 1


def _run(folder: Path, servers: str, dsn: str, events: int, share: float) -> dict[str, float | bool]:
    shares = {"clean": 0.0, "poisoned": share}
    tables = {name: _table(name) for name in shares}
    for name, table in tables.items():
        _produce(servers, table.topic, _events(table, events, shares[name]))
        _fill(dsn, name, events, shares[name])
    config = _config(folder, servers, dsn, "quarantine")
    mended = _config(folder, servers, dsn, "clamp")
    spark, client = build_session(config), KafkaClient(config.kafka)
    meter, job = Meter(spark), SyncJob(open_context(config, spark, client))
    seconds: dict[str, list[float]] = {name: [] for name in tables}
    for end in range(_BATCH, events + 1, _BATCH):
        for name, table in sorted(tables.items(), reverse=bool(end // _BATCH % 2)):
            cost = meter.measure(_BATCH, lambda topic=table.topic, end=end: job.process({(topic, 0): end}))  # type: ignore[misc]
            seconds[name].append(cost.wall)
    letters = sum(count.records for count in cdc_sync.list_dead_letters(config, limit=0).counts)

    cdc_sync.redrive_dead_letters(mended)
    again = SyncJob(open_context(mended, spark, client))
    again.tables.restore()
    began = time.monotonic()
    again.catch_up()
    redriven = time.monotonic() - began
    left = sum(count.records for count in cdc_sync.list_dead_letters(config, limit=0).counts)

    spark.stop()
    client.close()
    verified = cdc_sync.verify(mended)
    for told in verified.tables:
        print(told, file=sys.stderr)
    rates = {name: _BATCH / median(found[_WARM:]) for name, found in seconds.items()}
    return {
        "events of each topic": events,
        "dead letters": letters,
        "clean, events/s": round(rates["clean"]),
        "poisoned, events/s": round(rates["poisoned"]),
        "poisoned, of clean": round(rates["poisoned"] / rates["clean"], 3),
        "redriven in, s": round(redriven, 1),
        "dead letters left": left,
        "equal": verified.exit_code == 0,
    }


if __name__ == "__main__":
    sys.exit(main())
