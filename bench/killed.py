"""Kills the job with SIGKILL again and again while its source keeps changing; at the end source and lake must be equal.

    .venv/bin/python bench/killed.py [--kills 20] [--seed N]

Real Postgres, Debezium and Kafka on this machine. Each kill takes the driver's whole process group, Python and JVM, at
a random moment: during start-up, right after a log line of interest (a version was recorded, the target migrated, a
batch written), or any time later. The comparison reads Postgres and Iceberg without Spark. The seed decides what is
written and when it is killed; how far the job is by then depends on the machine. Exit code 0 only if all is equal.
"""

from __future__ import annotations

import argparse
import random
import re
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg
from changing_source import ChangingTable, Column

from cdc_sync.demo.compare import differences
from cdc_sync.demo.lake import Lake, image
from cdc_sync.demo.postgres import PostgresSource, create_database
from cdc_sync.local.stack import LocalStack
from cdc_sync.storage.state import StateStore
from tests.live.job import JobProcess

_ROOT = Path(__file__).parents[1]
_CONFIG = """\
pipeline: {{name: killed, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'src\\.app\\..*'}}
tables: [{{pattern: 'src\\.app\\..*'}}]
target: {{catalog: {{warehouse: '{folder}/warehouse'}}}}
job: {{trigger_interval: 200ms}}
spark:
  master: local[2]
  conf:
    spark.driver.memory: 1g
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""
_TABLES = {
    "app.orders": (1, ("integer", "text", "numeric(10,2)", "integer", "timestamptz", "varchar(20)", "boolean")),
    "app.lines": (2, ("integer", "text", "smallint", "real", "date", "bytea", "jsonb")),
    "app.things": (1, ("bigint", "uuid", "double precision", "timestamp", "integer[]", "varchar(20)", "text")),
}
_MOMENTS = ("schema version recorded", "target migrated", "batch written")
_PATIENCE = 90.0


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--kills", type=int, default=20)
    arguments.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    arguments.add_argument("--keep", metavar="FOLDER", type=Path, help="work there and leave everything")
    given = arguments.parse_args()
    print(f"seed {given.seed}, {given.kills} kills", flush=True)
    with LocalStack(given.keep) as stack:
        return _run(stack, kills=given.kills, chance=random.Random(given.seed))


def _run(stack: LocalStack, *, kills: int, chance: random.Random) -> int:
    folder, began = stack.folder, time.monotonic()
    (folder / "conf.yaml").write_text(_CONFIG.format(folder=folder, servers=stack.kafka.bootstrap_servers))
    dsn = create_database(stack.postgres.dsn, "src")
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("create schema app")
        admin.execute("create table public.pulse (id int primary key, beat bigint)")
        stop, connector = threading.Event(), Connector(dsn)
        tables = [
            ChangingTable(
                dsn,
                name,
                [Column("id" if not place else f"p{place}", type_, place >= key) for place, type_ in enumerate(types)],
                key=key,
                seed=chance.randrange(10**9),
                stop=stop,
                seen=connector.has_seen,
            )
            for name, (key, types) in _TABLES.items()
        ]
        admin.execute("alter table app.lines replica identity full")
        stack.register_postgres_connector("src", extra={"database.dbname": "src"})
        for table in tables:
            table.start()
        try:
            _kill_often(JobProcess(folder / "conf.yaml"), kills, chance)
        finally:
            stop.set()
            for table in tables:
                table.join()
        _wait_for_connector(admin, connector)
    counts = sum((table.counts for table in tables), Counter[str]())
    print("written: " + ", ".join(f"{count} x {kind}" for kind, count in sorted(counts.items())))
    failures = [f"writer of {table.name}: {table.failure}" for table in tables if table.failure is not None]
    failures += _last_run(folder) + _compare(folder, dsn)
    for failure in failures:
        print(f"  {failure}")
    print(f"{'DIFFERENT' if failures else 'EQUAL'} after {kills} kills, {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


class Connector:
    """How far Debezium is: everything before a confirmed place is in Kafka."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._lock = threading.Lock()

    def has_seen(self, lsn: int) -> bool:
        """Tell whether a place in the log is behind it."""
        with self._lock:
            row = self._connection.execute(
                "select confirmed_flush_lsn - '0/0'::pg_lsn from pg_replication_slots where slot_name = 'src'"
            ).fetchone()
        return row is not None and row[0] is not None and int(row[0]) >= lsn


def _wait_for_connector(admin: psycopg.Connection[tuple[object, ...]], connector: Connector) -> None:
    row = admin.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    end, deadline = int(str(row[0])), time.monotonic() + _PATIENCE
    while not connector.has_seen(end):
        # It confirms a place only when an event beyond it arrives.
        admin.execute("insert into pulse values (1, 1) on conflict (id) do update set beat = pulse.beat + 1")
        if time.monotonic() > deadline:
            raise SystemExit("FAILED: the connector does not get to the end of the log")
        time.sleep(0.2)


def _kill_often(job: JobProcess, kills: int, chance: random.Random) -> None:
    for number in range(1, kills + 1):
        moment = chance.choice(("", *_MOMENTS, *_MOMENTS))
        # The steps after such a line take less than a second each, so most kills come soon after it.
        delay = chance.uniform(0.5, 12) if not moment or chance.random() < 0.3 else chance.uniform(0, 1.5)
        started = time.monotonic()
        job.start()
        waited = bool(moment) and job.wait_for(moment)
        time.sleep(delay)
        job.kill()
        after = f"{delay:.2f} s after " + (f"{moment!r}" if waited else "its start")
        lines = job.lines()
        told = ", ".join(f"{sum(word in line for line in lines)} x {word}" for word in _MOMENTS)
        last = re.sub(r"^\S+ +\w+ +", "", lines[-1])[:60] if lines else "nothing logged"
        print(f"kill {number:2}  up {time.monotonic() - started:5.1f} s, {after}; {told}; last: {last}", flush=True)


def _last_run(folder: Path) -> list[str]:
    """Let it finish, and tell what it is not content with."""
    began = time.monotonic()
    command = [sys.executable, "-m", "cdc_sync", "run", str(folder / "conf.yaml"), "--once"]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    print(f"last run: exit code {ended.returncode}, {time.monotonic() - began:.0f} s")
    with (folder / "job.log").open("a") as log:
        log.write(ended.stderr)
    failures = [] if ended.returncode == 0 else [f"the last run failed: {ended.stderr[-2000:]}"]
    state = StateStore(f"{folder}/state/killed")
    failures += [f"{table.table} is {table.state}: {table.reason}" for table in state.tables() if table.reason]
    failures += [f"{item.records} records set aside: {item.reason}" for item in state.dead_letters.counts()]
    text = (folder / "job.log").read_text(errors="replace")
    for word in ("table failed", "stream failed"):
        found = [line for line in text.splitlines() if word in line]
        print(f"'{word}' was logged {len(found)} times" + (f", last: {found[-1][:300]}" if found else ""))
    return failures


def _compare(folder: Path, dsn: str) -> list[str]:
    failures = []
    lake = Lake(name="lake", service=f"jdbc:sqlite:{folder}/warehouse/catalog.db")
    with PostgresSource(dsn) as source:
        for name in source.tables("app"):
            wanted, table = source.image(name), lake.table(name)
            found = differences(wanted, None if table is None else image(table), source.key(name))
            print(f"{name}: {len(wanted.rows)} rows, {len(wanted.columns)} columns, {len(found)} differences")
            failures += [f"{name}: {text}" for text in found[:10]]
    lake.close()
    return failures


if __name__ == "__main__":
    sys.exit(main())
