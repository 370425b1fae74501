"""Compares the job with a hand-written static-schema job, on one topic, in one run. See README.md.

Both apply the same 300,000 creates and then 200,000 updates and deletes, taking turns batch by batch in one JVM, each
to a table of its own; the tables must be equal at the end. Cold figures are first batches of JVMs of their own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from measure import Cost, Meter, typical
from orders import TOPIC, Orders
from pyspark.sql import SparkSession
from static_job import CATALOG, COLUMNS, TABLE, StaticJob

from cdc_sync.config import Config, parse_config
from cdc_sync.local.kafka import running_kafka
from cdc_sync.runtime.context import open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.formats import catalog_settings
from cdc_sync.spark.session import build_session
from cdc_sync.targets.common.properties import VERSION_PROPERTY
from cdc_sync.testing import Record

CREATES, CHANGES, BATCH, SMALL_BATCH, SMALL_BATCHES = 300_000, 200_000, 50_000, 2_000, 11
OURS, STATIC = "cdc_sync", "static"
PARTITIONS = 2
_OUR_TABLE = "lake.inv.orders"
_COLD_INSERTS, _COLD_UPDATES = 2, 1
"""How many batches of each kind still compile, and do not count as warm."""
Ends = Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Typical batches of both jobs."""

    ours: Cost
    static: Cost

    @property
    def faster(self) -> float:
        """How many times the events the job takes in the same time."""
        return self.ours.throughput / self.static.throughput

    @property
    def cheaper(self) -> float:
        """How many times the processor time the static job needs for the same events."""
        return self.static.cpu_per_100k / self.ours.cpu_per_100k


class Arena:
    """One JVM with both jobs in it, below one folder."""

    def __init__(self, folder: Path, servers: str) -> None:
        config = _config(folder, servers)
        self.kafka = KafkaClient(config.kafka)
        self.spark = build_session(config)
        self.meter = Meter(self.spark)
        self.ours = SyncJob(open_context(config, self.spark, self.kafka))
        self.static = StaticJob(self.spark, bootstrap_servers=servers, topic=TOPIC)
        self.static.create_table()

    def run_ours(self, starts: Ends, ends: Ends) -> Cost:
        wanted = {(TOPIC, partition): end for partition, end in ends.items()}
        return self.meter.measure(_size(starts, ends), lambda: self.ours.process(wanted))

    def run_static(self, starts: Ends, ends: Ends) -> Cost:
        return self.meter.measure(_size(starts, ends), lambda: self.static.process(starts, ends))

    def ends(self) -> Ends:
        return dict(self.kafka.ends([TOPIC])[TOPIC])

    def close(self) -> None:
        self.spark.stop()
        self.kafka.close()


def _config(folder: Path, servers: str) -> Config:
    text = f"""
        pipeline: {{name: bench, state: {folder}/state}}
        kafka: {{bootstrap_servers: '{servers}', topics: ['{TOPIC}']}}
        tables: [{{pattern: '.*'}}]
        target: {{catalog: {{warehouse: {folder}/lake}}}}
        spark: {{master: 'local[2]', conf: {{spark.driver.memory: 6g}}}}
    """
    config = parse_config(text, path="bench")
    plain = config.target.catalog.model_copy(update={"name": CATALOG, "warehouse": f"{folder}/plain"})
    (folder / "plain").mkdir(parents=True)
    settings = catalog_settings(plain) | {f"spark.sql.catalog.{CATALOG}.cache-enabled": "true"}
    spark = config.spark.model_copy(update={"conf": {**config.spark.conf, **settings}})
    return config.model_copy(update={"spark": spark})


def _size(starts: Ends, ends: Ends) -> int:
    return sum(end - starts.get(partition, 0) for partition, end in ends.items())


def produce(servers: str, records: Iterable[Record]) -> int:
    """Send records and return their mean size in bytes."""
    # Keys go to the partitions that a Java producer, Kafka Connect's, would choose.
    settings = {"bootstrap.servers": servers, "partitioner": "murmur2_random", "linger.ms": 20, "batch.size": 1_000_000}
    producer = Producer(settings)
    count = size = 0
    for record in records:
        while True:
            with suppress(BufferError):
                producer.produce(TOPIC, key=record.key, value=record.value)
                break
            producer.poll(0.05)
        count += 1
        size += len(record.key or b"") + len(record.value or b"")
        producer.poll(0)
    producer.flush()
    return size // max(1, count)


def _between(starts: Ends, ends: Ends, batches: int) -> list[tuple[Ends, Ends]]:
    """Cut a stretch of the topic into batches as Structured Streaming does: the same share of every partition."""
    cuts = [
        {partition: start + (ends[partition] - start) * step // batches for partition, start in starts.items()}
        for step in range(batches + 1)
    ]
    return list(pairwise(cuts))


def take_turns(arena: Arena, starts: Ends, ends: Ends, batches: int) -> tuple[list[Cost], list[Cost]]:
    """Let both jobs apply a stretch, batch by batch; who goes first changes with every batch."""
    ours: list[Cost] = []
    static: list[Cost] = []
    for number, (start, end) in enumerate(_between(starts, ends, batches)):
        for mine in (number % 2 == 0, number % 2 != 0):
            (ours if mine else static).append(arena.run_ours(start, end) if mine else arena.run_static(start, end))
        print(f"  batch {number}: {OURS} {_short(ours[-1])}, {STATIC} {_short(static[-1])}", file=sys.stderr)
    return ours, static


def _short(cost: Cost) -> str:
    return f"{cost.wall:.2f} s, {cost.cpu:.2f} CPU-s"


def differences(spark: SparkSession) -> list[str]:
    """Return how the two tables differ: in count, or in the sum of the rows' hashes."""
    names = ", ".join(COLUMNS)
    query = f"select count(*) n, sum(cast(xxhash64({names}) as decimal(38))) h from {{}}"
    ours, static = (spark.sql(query.format(table)).first() for table in (_OUR_TABLE, TABLE))
    return [] if ours == static else [f"the tables differ: {ours} and {static}"]


def alter_cost(arena: Arena, orders: Orders, servers: str, size: int) -> dict[str, float]:
    """Apply small batches of which one, in its middle, begins to show a new column."""
    took = []
    for number in range(SMALL_BATCHES):
        start = arena.ends()
        produce(servers, orders.changes(size // 2))
        if number == SMALL_BATCHES // 2:
            orders.add_column("coupon")
        produce(servers, orders.changes(size - size // 2))
        took.append(arena.run_ours(start, arena.ends()).wall)
        print(f"  batch {number}: {took[-1]:.2f} s", file=sys.stderr)
    with_alter = took[SMALL_BATCHES // 2]
    others = took[: SMALL_BATCHES // 2] + took[SMALL_BATCHES // 2 + 1 :]
    stamp = arena.spark.sql(f"show tblproperties {_OUR_TABLE} ('{VERSION_PROPERTY}')").first()
    assert stamp is not None
    assert stamp["value"] == "2", "the ALTER did not reach the table"
    return {"median": median(others), "with_alter": with_alter, "extra": with_alter - median(others)}


def cold(folder: Path, servers: str, who: str, ends: Ends) -> Cost:
    """Measure the first batch of a fresh JVM in a child process."""
    result = folder.with_suffix(".json")
    command = [sys.executable, __file__, "--first-batch", who, "--folder", str(folder), "--servers", servers]
    subprocess.run([*command, "--ends", json.dumps(ends), "--result", str(result)], check=True)
    return Cost(**json.loads(result.read_text()))


def first_batch(options: argparse.Namespace) -> None:
    arena = Arena(Path(options.folder), options.servers)
    ends = {int(partition): end for partition, end in json.loads(options.ends).items()}
    starts = dict.fromkeys(ends, 0)
    run = arena.run_ours if options.first_batch == OURS else arena.run_static
    Path(options.result).write_text(json.dumps(asdict(run(starts, ends))))
    arena.close()


def compare(folder: Path, servers: str, scale: float) -> dict[str, object]:
    """Run everything and return the figures."""
    orders = Orders()
    batch = int(BATCH * scale)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    print("producing the first batch; first batches of fresh JVMs", file=sys.stderr)
    size = produce(servers, orders.creates(batch))
    kafka = KafkaClient(_config(folder / "unused", servers).kafka)
    ends = dict(kafka.ends([TOPIC])[TOPIC])
    kafka.close()
    colds = {who: cold(folder / who, servers, who, ends) for who in (OURS, STATIC)}
    print("producing", file=sys.stderr)
    produce(servers, orders.creates(int(CREATES * scale) - batch))
    arena = Arena(folder / "warm", servers)
    try:
        created = arena.ends()
        produce(servers, orders.changes(int(CHANGES * scale)))
        changed = arena.ends()
        print("inserts", file=sys.stderr)
        inserts = take_turns(arena, dict.fromkeys(created, 0), created, CREATES // BATCH)
        print("updates", file=sys.stderr)
        updates = take_turns(arena, created, changed, CHANGES // BATCH)
        found = differences(arena.spark)
        print("batches around an ALTER", file=sys.stderr)
        alter = alter_cost(arena, orders, servers, max(10, int(SMALL_BATCH * scale)))
    finally:
        arena.close()
    return {
        "bytes_per_event": size,
        "events": {"creates": int(CREATES * scale), "changes": int(CHANGES * scale), "batch": batch},
        "first batch, fresh JVM": Comparison(ours=colds[OURS], static=colds[STATIC]),
        "inserts, warm": _typical(inserts, slice(_COLD_INSERTS, None)),
        "updates, first batch": _typical(updates, slice(0, _COLD_UPDATES)),
        "updates, warm": _typical(updates, slice(_COLD_UPDATES, None)),
        "alter": alter,
        "differences": found,
    }


def _typical(costs: tuple[list[Cost], list[Cost]], part: slice) -> Comparison:
    ours, static = costs
    return Comparison(ours=typical(ours[part]), static=typical(static[part]))


def as_text(figures: Mapping[str, object]) -> str:
    """Return the figures as a table."""
    head = ("", "ev/s", "CPU-s/100k", "static ev/s", "CPU-s/100k", "faster", "cheaper")
    lines = [f"{head[0]:<24}" + "".join(f"{word:>12}" for word in head[1:])]
    for name, found in figures.items():
        if isinstance(found, Comparison):
            ours, static = found.ours, found.static
            numbers = (ours.throughput, ours.cpu_per_100k, static.throughput, static.cpu_per_100k)
            cells = [f"{number:.0f}" if number > 1000 else f"{number:.2f}" for number in numbers]
            cells += [f"{found.faster:.2f} x", f"{found.cheaper:.2f} x"]
            lines.append(f"{name:<24}" + "".join(f"{cell:>12}" for cell in cells))
        else:
            lines.append(f"{name}: {found}")
    return "\n".join(lines)


def as_json(figures: Mapping[str, object]) -> str:
    """Return the figures as one JSON object."""
    plain = {
        name: {**asdict(found), "faster": found.faster, "cheaper": found.cheaper}
        if isinstance(found, Comparison)
        else found
        for name, found in figures.items()
    }
    return json.dumps(plain, indent=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events-scale", type=float, default=1.0, help="0.1 for a tenth of the events: a quick look")
    parser.add_argument("--json", action="store_true", help="figures as JSON on stdout")
    for hidden in ("--first-batch", "--folder", "--servers", "--ends", "--result"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first_batch:
        first_batch(options)
        return
    with (
        tempfile.TemporaryDirectory(prefix="cdc-sync-bench-") as name,
        running_kafka(Path(name) / "kafka") as kafka,
    ):
        figures = compare(Path(name), kafka.bootstrap_servers, options.events_scale)
    print(as_json(figures) if options.json else as_text(figures))
    if figures["differences"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
