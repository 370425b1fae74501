"""Runs two jobs on one pipeline under load, started together and then by turns: no row twice, none lost.

    .venv/bin/python bench/two_jobs.py [--only iceberg|delta|hudi|parquet …] [--seconds N] [--rolls N]

One local Kafka, four tables whose events are written while the jobs run: one that is only inserted into (`creates`),
one with updates and deletes (`keyed`), one without a key (`heap`), and a changelog (`log`). Both jobs have the same
configuration and begin at the same time. Then follow rolling restarts that overlap: another job starts, and two seconds
later the oldest one is told to stop. When everything is read, the jobs stop, and the tables are compared with their
source, row by row. Exit code 0 only if no row is there twice and none is missing.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.readers.regimes import REGIMES, Regime, regime
from cdc_sync.config import Config, load_config
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.local.kafka import running_kafka
from cdc_sync.storage.state import StateStore
from cdc_sync.testing import INT64, TEXT, SourceTable, Wal, column
from tests.live.job import JobProcess
from tests.targets.hive import AS_ADVISED, start_metastore

_FORMATS = ("iceberg", "delta", "hudi", "parquet")
_PATIENCE = 300.0
_OVERLAP = 2.0
_CONFIG = """\
pipeline: {{name: twice, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: '{prefix}\\.public\\..*'}}
tables:
  - {{pattern: '.*\\.log', mode: append}}
  - {{pattern: '.*'}}
target: {target}
job: {{trigger_interval: 500ms}}
spark:
  master: local[2]
  conf:
    spark.driver.memory: 1g
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""


class Load(threading.Thread):
    """Writes to four tables until it is told to stop."""

    def __init__(self, servers: str, prefix: str) -> None:
        super().__init__()
        wal = Wal()
        columns = (column("id", INT64), column("text", TEXT, optional=True))
        names = {"creates": ("id",), "keyed": ("id",), "heap": (), "log": ("id",)}
        self.tables = {
            name: SourceTable(name, columns, key=key, prefix=prefix, wal=wal, full_identity=not key)
            for name, key in names.items()
        }
        self.events: Counter[str] = Counter()
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "enable.idempotence": True})
        admin = AdminClient({"bootstrap.servers": servers})  # if nothing held it, it would end before it is done
        for outcome in admin.create_topics([NewTopic(table.topic, 1, 1) for table in self.tables.values()]).values():
            outcome.result()
        self._chance = random.Random(1)
        self._ids = 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.05):
            for name in self.tables:
                self._write(name)
        self._producer.flush()

    def _write(self, name: str) -> None:
        table, chance = self.tables[name], self._chance
        self._ids += 1
        there = table.rows[-50:] if name in ("keyed", "heap") else []
        action = chance.choice(("insert", "insert", "update", "delete")) if there else "insert"
        if action == "insert":
            written = table.insert(id=self._ids, text=f"text {self._ids}")
        else:
            where = {"id": chance.choice(there)["id"]}
            written = table.delete(where) if action == "delete" else table.update(where, text=f"later {self._ids}")
        for record in written:
            self._producer.produce(table.topic, key=record.key, value=record.value)
            self.events[name] += 1
        self._producer.poll(0)


def main() -> int:
    """Run all formats that are asked for, and compare."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", nargs="+", default=_FORMATS, choices=[kind.name for kind in REGIMES])
    arguments.add_argument("--seconds", type=float, default=60.0, help="of load on two jobs")
    arguments.add_argument("--rolls", type=int, default=3, help="restarts that overlap")
    arguments.add_argument("--keep", metavar="FOLDER", type=Path, help="work there and leave everything")
    arguments.add_argument("--read", metavar="CONFIG", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.read is not None:
        print(json.dumps(_rows(load_config(given.read))))
        return 0
    with ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(exist_ok=True)
        kafka = stack.enter_context(running_kafka(folder / "kafka"))
        metastore = ""
        if any(name.startswith("parquet") for name in given.only):
            (folder / "metastore").mkdir()
            server, metastore = start_metastore(folder / "metastore", AS_ADVISED)
            stack.callback(server.stop)
        wrong = [
            name
            for name in given.only
            if not _play(regime(name), folder / name.replace(" ", "-"), kafka.bootstrap_servers, metastore, given)
        ]
    print("DIFFERENT: " + ", ".join(wrong) if wrong else "EQUAL")
    return 1 if wrong else 0


def _play(kind: Regime, folder: Path, servers: str, metastore: str, given: argparse.Namespace) -> bool:
    folder.mkdir()
    prefix = kind.name.replace(" ", "_")
    target = kind.target.format(warehouse=folder / "warehouse", metastore=metastore)
    text = _CONFIG.format(folder=folder, servers=servers, prefix=prefix, target=target)
    began, jobs = time.monotonic(), 0

    def start() -> JobProcess:
        nonlocal jobs
        jobs += 1
        (folder / f"job-{jobs}").mkdir()
        conf = folder / f"job-{jobs}" / "conf.yaml"
        conf.write_text(text)
        job = JobProcess(conf)
        job.start()
        return job

    load = Load(servers, prefix)
    running = [start(), start()]
    load.start()
    try:
        for job in running:
            job.wait_for("batch written")
        time.sleep(given.seconds)
        running.pop().stop()
        for _ in range(given.rolls):
            running.append(start())
            running[-1].wait_for("batch written")
            time.sleep(_OVERLAP)
            running.pop(0).stop()
    finally:
        load.ended.set()
        load.join()
    caught_up = _wait(load, folder / "state" / "twice")
    for job in running:
        job.stop()
    moved = sum(log.read_text().count("table moved") for log in folder.glob("job-*/job.log"))
    print(f"{kind.name}: {jobs} jobs, {moved} commits refused, {time.monotonic() - began:.0f} s", flush=True)
    found = json.loads(
        subprocess.run(
            [sys.executable, __file__, "--read", str(folder / "job-1" / "conf.yaml")],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.splitlines()[-1]
    )
    unequal = [name for name in load.tables if not _is_equal(name, load, found[name])]
    return caught_up and not unequal


def _wait(load: Load, state: Path) -> bool:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        read = {status.table.table: status for status in StateStore(str(state)).tables()}
        if all(
            name in read and read[name].offsets.get(table.topic) == {0: load.events[name]}
            for name, table in load.tables.items()
        ):
            return True
        time.sleep(1)
    for name, status in read.items():
        print(f"  {name}: {status.state}, read to {dict(status.offsets)} of {load.events[name]}: {status.reason}")
    return False


def _rows(config: Config) -> dict[str, list[list[Any]]]:
    """Return all rows of the tables, read by the target itself."""
    from cdc_sync.runtime.context import open_context
    from cdc_sync.runtime.job import SyncJob
    from cdc_sync.sources.kafka import KafkaClient
    from cdc_sync.spark.session import build_session

    spark = build_session(config)
    context = open_context(config, spark, KafkaClient(config.kafka))
    SyncJob(context)
    found = {}
    for table in context.history.tables():
        schema = context.history.load(table).head.schema
        name = TargetName(namespace=table.schema, name=table.table)
        rows = context.target.read(name, schema, [item.id for item in schema.columns])
        found[table.table] = [list(row) for row in rows.collect()]
    spark.stop()
    return found


def _is_equal(name: str, load: Load, rows: Sequence[Sequence[Any]]) -> bool:
    table = load.tables[name]
    wanted = Counter((row["id"], row["text"]) for row in table.rows)
    found = Counter((row[0], row[1]) for row in rows)
    twice = sum(count - 1 for count in Counter(row[0] for row in rows).values() if count > 1)
    lost, other = (wanted - found).total(), (found - wanted).total()
    print(
        f"  {name}: {load.events[name]} events, {len(rows)} rows, {twice} twice, {lost} lost, {other} that are not the "
        "source's",
        flush=True,
    )
    return not (twice or lost or other)


if __name__ == "__main__":
    sys.exit(main())
