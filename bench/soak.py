"""Many batches with a change of the table every so often: what must not grow with them. See README.md."""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import linear_regression, mean, median

from changes import Source
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from cdc_sync.config import parse_config
from cdc_sync.local.kafka import running_kafka
from cdc_sync.runtime.context import open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.session import build_session

_EACH = 100
"""Batches between two looks."""
_JUDGED = ("heap_mb", "threads", "open_files", "batch_s")
"""What must not grow. What Python holds does with the versions of the table, whose history it keeps."""
_MOST = 0.10
"""What may grow over the whole run, of its mean; of what a look alone strays by, nothing is said."""


@dataclass(frozen=True)
class Look:
    """What a process holds after a full collection, and how long its batches took since the last look."""

    heap_mb: float
    python_mb: float
    objects: int
    threads: int
    open_files: int
    batch_s: float


def main() -> int:
    """Return 0 if nothing grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=2_000)
    parser.add_argument("--change-every", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-sync-soak-") as text:
        folder = Path(text)
        with running_kafka(folder / "kafka") as kafka:
            looks = _run(folder, kafka.bootstrap_servers, given.batches, given.change_every)
    # In the first half code is compiled, and caches fill.
    settled = [asdict(look) for look in looks[len(looks) // 2 :]]
    grown = {name: _growth([look[name] for look in settled]) for name in settled[0]}
    if given.json:
        print(json.dumps({"looks": [asdict(look) for look in looks], "growth": grown}, indent=2))
    else:
        print(f"{'batches':>10}" + "".join(f"{name:>12}" for name in grown))
        for number, look in enumerate(looks, 1):
            print(f"{number * _EACH:>10}" + "".join(f"{value:>12.6g}" for value in asdict(look).values()))
        print(f"{'growth':>10}" + "".join(f"{share:>+12.1%}" for share in grown.values()))
    return 0 if all(grown[name] < _MOST for name in _JUDGED) else 1


def _growth(values: Sequence[float]) -> float:
    """Return what the line through the values grows by from its beginning to its end, of their mean."""
    slope = linear_regression(range(len(values)), values).slope
    return slope * (len(values) - 1) / mean(values)


def _run(folder: Path, servers: str, batches: int, change_every: int) -> list[Look]:
    config = parse_config(
        f"""
        pipeline: {{name: soak, state: {folder}/state}}
        kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'shop\\..*'}}
        tables: [{{pattern: '.*'}}]
        target: {{catalog: {{warehouse: {folder}/lake}}}}
        limits: {{max_versions_per_hour: 100000}}
        maintenance: {{every: 1m, keep_for: 1m, keep_at_least: 10}}
        spark: {{master: 'local[2]', conf: {{spark.driver.memory: 1g}}}}
        """,
        path="bench",
    )
    spark, client = build_session(config), KafkaClient(config.kafka)
    job, source = SyncJob(open_context(config, spark, client)), Source(200, narrow=True)
    producer = Producer({"bootstrap.servers": servers})
    looks: list[Look] = []
    took: list[float] = []
    for number in range(1, batches + 1):
        if number % change_every == 0:
            source.change()
        source.insert()
        source.send(producer)
        began = time.monotonic()
        job.process({(source.table.topic, 0): client.ends([source.table.topic])[source.table.topic][0]})
        took.append(time.monotonic() - began)
        job.catch_up()
        job.maintain()
        source.forget()
        if number % _EACH == 0:
            looks.append(_look(spark, took))
            print(looks[-1], file=sys.stderr, flush=True)
            took.clear()
    (table,) = job.tables.all()
    assert table.state.stop is None, table.state.stop
    spark.stop()
    client.close()
    return looks


def _look(spark: SparkSession, took: Sequence[float]) -> Look:
    gc.collect()
    jvm = spark._jvm
    assert jvm is not None
    jvm.System.gc()
    memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean().getThreadCount()
    pid = jvm.java.lang.ProcessHandle.current().pid()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return Look(
        heap_mb=memory / 1e6,
        python_mb=resident / 1e6,
        objects=len(gc.get_objects()),
        threads=int(threads) + len(os.listdir("/proc/self/task")),
        open_files=len(os.listdir(f"/proc/{pid}/fd")) + len(os.listdir("/proc/self/fd")),
        batch_s=median(took),
    )


if __name__ == "__main__":
    sys.exit(main())
