"""`cdc-sync verify` over a large table: what it finds of twenty planted differences, in what time and memory."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc_sync.spark.columns import CREATED, DELETED

sys.path.insert(0, str(Path(__file__).parents[1]))

from cdc_sync.config import Config, parse_config
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.local.ports import free_ports
from cdc_sync.local.postgres import PostgresServer
from cdc_sync.runtime import service
from cdc_sync.spark.columns import value_column
from cdc_sync.spark.session import build_session
from cdc_sync.spark.types import to_spark
from cdc_sync.storage.history import HistoryStore
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.protocol import Batch
from tests.verify.twin import NAMES, create, events, fixed_rows, planted

TABLE = "large"
_BY_EVENTS = 1000
"""Rows that come through Kafka and the job, so that history and table are its own; the others are appended."""

# Every value another way round of the row's number, every seventh NULL.
_ROWS = """
INSERT INTO {table}
SELECT n, CASE WHEN n % 7 <> 1 THEN repeat(md5(n::text), 1 + n % 3) END, CASE WHEN n % 7 <> 2 THEN 'c' || n % 9973 END,
       CASE WHEN n % 7 <> 3 THEN ((n * 7919::bigint) % 100000000000) / 100.0 - 500 END,
       CASE WHEN n % 7 <> 4 THEN n * 9223372036::bigint - 4611686018427387904 END,
       CASE WHEN n % 7 <> 5 THEN sqrt(n::float8) * 1e-3 END, CASE WHEN n % 7 <> 6 THEN n % 3 = 0 END,
       date '1970-01-01' + n % 20000, timestamp '2001-02-03 04:05:06' + n * interval '997.000001 seconds',
       timestamptz '1999-12-31 23:59:59Z' + n * interval '13.000007 seconds', decode(md5((-n)::text), 'hex'),
       md5(n::text)::uuid, json_build_object('n', n), ARRAY['t', NULL, n::text]
FROM generate_series({first}, {last}) AS n
"""
_OUT = """
COPY (SELECT id, note, code, amount, big, ratio, flag, day, at, seen AT TIME ZONE 'UTC', encode(data, 'hex'), ref, doc,
             array_to_json(tags)
      FROM {table} WHERE id > {by_events}) TO STDOUT WITH (FORMAT csv, NULL '~')
"""


@dataclass
class Peaks:
    """The most memory that a process and its children ever had, in MB, by the program's name."""

    process: subprocess.Popen[str]

    def __post_init__(self) -> None:
        self.found: dict[str, float] = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while self.process.poll() is None:
            for pid in _tree(self.process.pid):
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                except OSError:
                    continue
                lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
                if "VmHWM" in lines:
                    name = lines["Name"].strip()
                    self.found[name] = max(self.found.get(name, 0.0), int(lines["VmHWM"].split()[0]) / 1024)
            time.sleep(0.1)


def _tree(pid: int) -> list[int]:
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [pid, *(inner for child in children.stdout.split() for inner in _tree(int(child)))]


def _config(folder: Path, servers: str, dsn: str, memory: int, format_: str) -> str:
    return f"""
pipeline: {{name: bench, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topics: [bench.public.{TABLE}]}}
source: {{dsn: '{dsn}'}}
tables: [{{pattern: '.*'}}]
target: {{format: {format_}, catalog: {{warehouse: '{folder}/warehouse'}}}}
verify: {{settle: 0s, rows_in_memory: {memory}}}
spark: {{master: 'local[2]', conf: {{spark.driver.memory: 1g}}}}
"""


def _fill(config: Config, connection: psycopg.Connection[Any], folder: Path, rows: int, servers: str) -> None:
    data = fixed_rows(_BY_EVENTS)
    create(connection, TABLE, data)
    table = events(TABLE, data, prefix="bench")
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(table.topic, 1, 1)])[table.topic].result()
    producer = Producer({"bootstrap.servers": servers})
    for record in table.records:
        producer.produce(table.topic, key=record.key, value=record.value)
    producer.flush(60)
    service.run(config, once=True, stop=threading.Event())
    connection.execute(_ROWS.format(table=TABLE, first=_BY_EVENTS + 1, last=rows).encode())
    path = folder / "rows.csv"
    query = _OUT.format(table=TABLE, by_events=_BY_EVENTS).encode()
    with connection.cursor() as cursor, path.open("wb") as file, cursor.copy(query) as copy:
        for block in copy:
            file.write(block)
    spark = build_session(config)
    try:
        _append(config, spark, path)
    finally:
        spark.stop()
    connection.execute(f"VACUUM ANALYZE {TABLE}".encode())


def _append(config: Config, spark: SparkSession, path: Path) -> None:
    """Append the rows of a CSV file to the table, by its target's own door."""
    store = HistoryStore(f"{config.pipeline.root}/history")
    (known,) = store.tables()
    schema = store.load(known).head.schema
    read = spark.read.csv(
        str(path), schema=", ".join(f"{name} string" for name in NAMES), nullValue="~", emptyValue="", escape='"'
    )
    special = {"data": lambda text: F.unhex(text), "tags": lambda text: F.from_json(text, "array<string>")}
    values = []
    for column in schema.columns:
        text = F.col(column.name)
        made = special[column.name](text) if column.name in special else text.cast(to_spark(column.type))
        values.append(made.alias(value_column(column.id)))
    rows = read.select(F.lit(False).alias(DELETED), F.lit(True).alias(CREATED), *values)
    target = open_target(config.target, spark)
    name = TargetName(namespace="public", name=TABLE)
    state = target.state(name)
    assert state is not None
    assert state.progress is not None
    target.write(name, Batch(rows=rows, schema=schema, progress=state.progress, behind=state.progress, append=True))


def _verify(path: Path) -> tuple[dict[str, Any], int, float, dict[str, float]]:
    began = time.monotonic()
    command = [sys.executable, "-m", "cdc_sync", "verify", str(path), "--json", "--limit", "1000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
    peaks = Peaks(process)
    out, _ = process.communicate()
    (table,) = json.loads(out)["tables"]
    return table, process.returncode, time.monotonic() - began, peaks.found


def _say(title: str, table: dict[str, Any], code: int, seconds: float, peaks: dict[str, float]) -> None:
    memory = ", ".join(f"{name} {megabytes:.0f} MB" for name, megabytes in sorted(peaks.items()))
    print(
        f"{title}: exit code {code}, {table['source_rows']} rows, {table['ranges']} ranges, "
        f"{table['ranges_differing']} differ, {table['counts']}; "
        f"{table['seconds']:.1f} s of {seconds:.1f} s; peak {memory}",
        flush=True,
    )


def main() -> int:
    """Return 0 if all planted differences and no others are found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--memory", type=int, default=20_000, help="verify.rows_in_memory")
    parser.add_argument("--format", default="iceberg", choices=["iceberg", "delta", "hudi"])
    arguments = parser.parse_args()
    ports = free_ports(3)
    with tempfile.TemporaryDirectory(prefix="cdc-sync-verify-") as text:
        folder = Path(text)
        folder.chmod(0o755)
        kafka = KafkaServer(folder / "kafka", port=ports[0], controller_port=ports[1])
        postgres = PostgresServer(folder / "postgres", port=ports[2])
        kafka.start()
        postgres.start()
        try:
            path = folder / "pipeline.yaml"
            path.write_text(_config(folder, kafka.bootstrap_servers, postgres.dsn, arguments.memory, arguments.format))
            with psycopg.connect(postgres.dsn, autocommit=True) as connection:
                began = time.monotonic()
                _fill(parse_config(path.read_text()), connection, folder, arguments.rows, kafka.bootstrap_servers)
                print(f"filled in {time.monotonic() - began:.0f} s", flush=True)
                equal = _verify(path)
                _say("equal", *equal)
                print(*equal[0]["differences"][:3], sep="\n", flush=True)
                for change in planted(arguments.rows):
                    connection.execute(change.on(TABLE).encode())
                found = _verify(path)
                _say("planted", *found)
        finally:
            postgres.stop()
            kafka.stop()
    wanted = sorted(place for change in planted(arguments.rows) for place in change.found)
    told = sorted(
        (int(row["key"]["id"]), column["column"] if column else None)
        for row in found[0]["differences"]
        for column in row["columns"] or [None]
    )
    print(f"{len(planted(arguments.rows))} planted, all found and no other: {told == wanted}")
    return 0 if equal[0]["outcome"] == "equal" and told == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
