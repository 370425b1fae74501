"""Kills the job, and stops and freezes what it reads from, while its source keeps changing; in the end all is equal.

    .venv/bin/python bench/chaos.py [--minutes 60] [--only kills] [--seed N]

Real Postgres, Debezium and Kafka on this machine. Each kill takes the driver's whole process group, Python and JVM, at
a random moment: during start-up, right after a log line of interest (a version was recorded, the target migrated, a
batch written), or any time later. Meanwhile, one after the other: the broker is stopped, or frozen as if the network
to it were cut; Kafka Connect is stopped; the database is; the way to the schema registry is cut, and that to the store,
which speaks S3, of the pipeline's state. Where Java 21 is missing there is no registry, and events are JSON. The
comparison reads Postgres and Iceberg without Spark, and
a second pipeline reads the topics from their beginning into a history that has to be the same. The seed decides what is
written and what happens when; how far the job is by then depends on the machine. Exit code 0 only if all is equal.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg
from changing_source import ChangingTable, Column
from gate import Gate

from cdc_sync.config import load_config
from cdc_sync.demo.compare import differences
from cdc_sync.demo.lake import Lake, image
from cdc_sync.demo.postgres import PostgresSource, create_database
from cdc_sync.errors import SetupError
from cdc_sync.local import jars
from cdc_sync.local.ports import LOOPBACK, accepts_connections, free_ports
from cdc_sync.local.process import ServerProcess
from cdc_sync.local.stack import LocalStack
from cdc_sync.storage.documents import Documents
from cdc_sync.storage.state import StateStore
from tests.live.job import JobProcess
from tests.registry.server import RegistryServer

_ROOT = Path(__file__).parents[1]
_CONFIG = """\
pipeline: {{name: {name}, state: '{state}'}}
{registry}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'src\\.app\\..*'}}
tables: [{{pattern: 'src\\.app\\..*'}}]
target: {{catalog: {{warehouse: '{folder}/{name}'}}}}
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
_NAME, _AGAIN = "chaos", "again"
_MOMENTS = ("schema version recorded", "target migrated", "batch written")
_PATIENCE = 90.0
_BUCKET = "chaos"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", type=float, default=60.0)
    arguments.add_argument("--only", choices=["kills"], help="nothing is stopped but the job")
    arguments.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    arguments.add_argument("--keep", metavar="FOLDER", type=Path, help="work there and leave everything")
    given = arguments.parse_args()
    print(f"seed {given.seed}, {given.minutes:g} minutes", flush=True)
    stack = LocalStack(given.keep)
    with ExitStack() as running:
        registry = _registry(stack, running)
        running.enter_context(stack)
        around = Around(stack, registry, running.enter_context(s3_store(stack.folder)))
        return _run(around, given.minutes * 60, random.Random(given.seed), outages=given.only is None)


@dataclass(frozen=True)
class Around:
    """What the job depends on, and the ways to it."""

    stack: LocalStack
    registry: Gate | None
    store: Gate

    def configuration(self, name: str) -> str:
        registry = f"registry: {{url: '{_at(self.registry)}', type: apicurio, ids: global, headers: true}}"
        return _CONFIG.format(
            name=name,
            state=f"s3://{_BUCKET}/state",
            registry="" if self.registry is None else registry,
            folder=self.stack.folder,
            servers=self.stack.kafka.bootstrap_servers,
        )

    def register(self) -> None:
        """Have the connector run."""
        # It goes on by itself where the database or the broker was away; if it gave up, `Outages` has it begin again.
        extra = {"database.dbname": "src", "errors.max.retries": "-1", "retriable.restart.connector.wait.ms": "1000"}
        if self.registry is not None:
            for part in ("key", "value"):
                extra[f"{part}.converter"] = "io.apicurio.registry.utils.converter.AvroConverter"
                extra[f"{part}.converter.apicurio.registry.url"] = f"{_at(self.registry)}/apis/registry/v2"
                extra[f"{part}.converter.apicurio.registry.auto-register"] = "true"
        self.stack.register_postgres_connector("src", extra=extra)

    def wait_for_the_connector(self) -> None:
        """Return when it runs; a worker that was started anew knows none, and it may have given up."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            with suppress(SetupError, LookupError):
                if self.stack.connect.status("src").is_running:
                    return
                with suppress(LookupError):
                    self.stack.connect.delete("src")
                self.register()
                return
            if time.monotonic() > deadline:
                raise SetupError("the connector does not come back")
            time.sleep(1)


def _at(gate: Gate | None) -> str:
    return "" if gate is None else f"http://{LOOPBACK}:{gate.port}"


def _registry(stack: LocalStack, running: ExitStack) -> Gate | None:
    """Start a schema registry, which keeps its schemas in memory, so that only the way to it can be cut."""
    port, management_port = free_ports(2)
    server = RegistryServer(stack.folder / "registry", port=port, management_port=management_port)
    try:
        server.start()
    except SetupError as error:
        print(f"no registry: {error}")
        return None
    running.callback(server.stop)
    stack.connect.plugins = (*stack.connect.plugins, jars.AVRO_CONVERTER)
    return Gate(port)


@contextmanager
def s3_store(folder: Path) -> Iterator[Gate]:
    """Start a store that speaks S3, and have this process and those it starts find it by the environment."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "uv", "tool", "run", "--from", "moto[server]==5.2.5", "moto_server"]
    server = ServerProcess("S3", [*command, "-H", LOOPBACK, "-p", str(port)], log=folder / "store.log", cwd=folder)
    try:
        server.wait_until(lambda: accepts_connections(port), timeout=300)
        gate = Gate(port)
        os.environ |= {
            "AWS_ACCESS_KEY_ID": "chaos",
            "AWS_SECRET_ACCESS_KEY": "chaos",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": _at(gate),
            "AWS_ALLOW_HTTP": "true",
        }
        request = urllib.request.Request(f"{_at(gate)}/{_BUCKET}", method="PUT")
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30).close()
        yield gate
    finally:
        server.stop()


def _run(around: Around, seconds: float, chance: random.Random, *, outages: bool) -> int:
    stack, folder, began = around.stack, around.stack.folder, time.monotonic()
    for name in (_NAME, _AGAIN):
        (folder / f"{name}.yaml").write_text(around.configuration(name))
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
            avro=around.registry is not None,
        )
        for name, (key, types) in _TABLES.items()
    ]
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("alter table app.lines replica identity full")
    around.register()
    for table in tables:
        table.start()
    ends = began + seconds
    disturbing = Outages(around, random.Random(chance.randrange(10**9)), ends) if outages else None
    try:
        if disturbing is not None:
            disturbing.start()
        kills = kill_often(JobProcess(folder / f"{_NAME}.yaml"), ends, chance, outages=outages)
        if disturbing is not None:
            disturbing.join()
    finally:
        stop.set()
        for table in tables:
            table.join()
    wait_for_connector(dsn, connector, around.wait_for_the_connector)
    counts = sum((table.counts for table in tables), Counter[str]())
    print("written: " + ", ".join(f"{count} x {kind}" for kind, count in sorted(counts.items())))
    if disturbing is not None:
        print("outages: " + ", ".join(f"{count} x {kind}" for kind, count in sorted(disturbing.counts.items())))
    failures = [f"writer of {table.name}: {table.failure!r}" for table in tables if table.failure is not None]
    if disturbing is not None and disturbing.failure is not None:
        failures.append(f"outages: {disturbing.failure!r}")
    failures += last_run(folder, _NAME) + compare(folder, _NAME, dsn) + _replayed(folder)
    for failure in failures:
        print(f"  {failure}")
    print(f"{'DIFFERENT' if failures else 'EQUAL'} after {kills} kills, {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


class Outages:
    """Stops, freezes and starts again what the job and its source depend on, one thing at a time, in a thread."""

    def __init__(self, around: Around, chance: random.Random, ends: float) -> None:
        """Have it go on until a moment of the monotonic clock."""
        self.counts: Counter[str] = Counter()
        self.failure: Exception | None = None
        self._around = around
        self._stack = around.stack
        self._chance = chance
        self._ends = ends
        self._thread = threading.Thread(target=self._run, name="outages")

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        ways: dict[str, Callable[[], None]] = {
            "broker stopped": self._broker_stopped,
            "broker frozen": self._broker_frozen,
            "Connect stopped": self._connect_stopped,
            "database stopped": self._database_stopped,
            "store cut": partial(self._cut, self._around.store),
        }
        if self._around.registry is not None:
            ways["registry cut"] = partial(self._cut, self._around.registry)
        try:
            while time.monotonic() + 30 < self._ends:
                time.sleep(self._chance.uniform(8, 25))
                name = self._chance.choice(list(ways))
                print(f"outage: {name}", flush=True)
                ways[name]()
                self._around.wait_for_the_connector()
                self.counts[name] += 1
        except Exception as error:
            print(f"outages end: {error!r}", flush=True)
            self.failure = error

    def _away(self) -> None:
        time.sleep(self._chance.uniform(1, 15))

    def _broker_stopped(self) -> None:
        self._stack.kafka.stop()
        self._away()
        self._stack.kafka.start()

    def _broker_frozen(self) -> None:
        process = self._stack.kafka.process
        assert process is not None
        os.killpg(process.pid, signal.SIGSTOP)
        self._away()
        os.killpg(process.pid, signal.SIGCONT)

    def _connect_stopped(self) -> None:
        self._stack.connect.stop()
        self._away()
        self._stack.connect.start()

    def _database_stopped(self) -> None:
        self._stack.postgres.stop()
        self._away()
        self._stack.postgres.start()

    def _cut(self, gate: Gate) -> None:
        gate.set(self._chance.choice(("refusing", "silent")))
        self._away()
        gate.set("open")


class Connector:
    """How far Debezium is: everything before a confirmed place is in Kafka."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._lock = threading.Lock()

    def has_seen(self, lsn: int) -> bool:
        """Tell whether a place in the log is behind it."""
        with self._lock, suppress(psycopg.OperationalError):
            if self._connection.closed:
                self._connection = psycopg.connect(self._dsn, autocommit=True)
            row = self._connection.execute(
                "select confirmed_flush_lsn - '0/0'::pg_lsn from pg_replication_slots where slot_name = 'src'"
            ).fetchone()
            return row is not None and row[0] is not None and int(row[0]) >= lsn
        return False


def wait_for_connector(dsn: str, connector: Connector, look: Callable[[], None] = lambda: None) -> None:
    """Return when everything that was committed is in Kafka.

    Args:
        look: called now and then, to have a connector run that gave up.
    """
    admin = psycopg.connect(dsn, autocommit=True)
    row = admin.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    end, deadline = int(str(row[0])), time.monotonic() + _PATIENCE
    while not connector.has_seen(end):
        # It confirms a place only when an event beyond it arrives.
        admin.execute("insert into pulse values (1, 1) on conflict (id) do update set beat = pulse.beat + 1")
        look()
        if time.monotonic() > deadline:
            raise SystemExit("FAILED: the connector does not get to the end of the log")
        time.sleep(0.2)


def kill_often(job: JobProcess, ends: float, chance: random.Random, *, outages: bool) -> int:
    """Start the job and kill it, until a moment of the monotonic clock; return how often."""
    number = 0
    while time.monotonic() < ends:
        number += 1
        moment = chance.choice(("", *_MOMENTS, *_MOMENTS))
        # The steps after such a line take less than a second each, so most kills come soon after it.
        delay = chance.uniform(0.5, 12) if not moment or chance.random() < 0.3 else chance.uniform(0, 1.5)
        started = time.monotonic()
        job.start()
        waited = False
        try:
            waited = bool(moment) and job.wait_for(moment)
        except SystemExit:
            if not outages:
                raise  # it may give up where the brokers are away at its start; nothing else ends it
        time.sleep(delay)
        job.kill()
        after = f"{delay:.2f} s after " + (f"{moment!r}" if waited else "its start")
        lines = job.lines()
        told = ", ".join(f"{sum(word in line for line in lines)} x {word}" for word in _MOMENTS)
        last = re.sub(r"^\S+ +\w+ +", "", lines[-1])[:60] if lines else "nothing logged"
        print(f"kill {number:2}  up {time.monotonic() - started:5.1f} s, {after}; {told}; last: {last}", flush=True)
    return number


def last_run(folder: Path, name: str) -> list[str]:
    """Let it finish, and tell what it is not content with."""
    began = time.monotonic()
    command = [sys.executable, "-m", "cdc_sync", "run", str(folder / f"{name}.yaml"), "--once"]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    print(f"last run of {name}: exit code {ended.returncode}, {time.monotonic() - began:.0f} s")
    with (folder / "job.log").open("a") as log:
        log.write(ended.stderr)
    failures = [] if ended.returncode == 0 else [f"the last run failed: {ended.stderr[-2000:]}"]
    state = StateStore(load_config(folder / f"{name}.yaml").pipeline.root)
    failures += [f"{table.table} is {table.state}: {table.reason}" for table in state.tables() if table.reason]
    failures += [f"{item.records} records set aside: {item.reason}" for item in state.dead_letters.counts()]
    text = (folder / "job.log").read_text(errors="replace")
    for word in ("table failed", "stream failed"):
        found = [line for line in text.splitlines() if word in line]
        print(f"'{word}' was logged {len(found)} times" + (f", last: {found[-1][:300]}" if found else ""))
    return failures


def compare(folder: Path, pipeline: str, dsn: str) -> list[str]:
    """Compare the source's tables with the lake's, row by row."""
    failures = []
    lake = Lake(name="lake", service=f"jdbc:sqlite:{folder}/{pipeline}/catalog.db")
    with PostgresSource(dsn) as source:
        for name in source.tables("app"):
            wanted, table = source.image(name), lake.table(name)
            found = differences(wanted, None if table is None else image(table), source.key(name))
            print(f"{name}: {len(wanted.rows)} rows, {len(wanted.columns)} columns, {len(found)} differences")
            failures += [f"{name}: {text}" for text in found[:10]]
    lake.close()
    return failures


def _replayed(folder: Path) -> list[str]:
    """Read the topics from their beginning with a pipeline of its own; its history has to be the same."""
    failures = last_run(folder, _AGAIN)
    first, second = (_history(load_config(folder / f"{name}.yaml").pipeline.root) for name in (_NAME, _AGAIN))
    print(f"history: {len(first)} versions, {len(second)} when the topics are read again")
    different = sorted(path for path in {*first, *second} if first.get(path) != second.get(path))
    return [*failures, *(f"history differs in {path}" for path in different[:10])]


def _history(root: str) -> dict[str, str | None]:
    files = Documents(root)
    return {path: files.text(path) for path in files.paths("history")}


if __name__ == "__main__":
    sys.exit(main())
