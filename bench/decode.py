"""Measures decoding: reading alone, by hand with a static schema, ours with 1, 3 and 10 live schemas. See README.md."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from decode_figures import Figure, Results, as_json, as_text, figure_of, line_of
from evolving import VERSIONS, Events, Generation
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from steady import steady
from tasks import TaskCost, TaskMeter
from ways import Decode, Format, ours, static

from cdc_sync.cli.log import configure
from cdc_sync.config import Config, parse_config
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.local.kafka import running_kafka
from cdc_sync.spark.columns import PROBLEM
from cdc_sync.spark.session import build_session
from cdc_sync.spark.source import read_ranges
from cdc_sync.testing import Record

FORMATS: tuple[Format, ...] = ("json", "avro")
WIDTHS = (12, 100)
EVENTS: dict[tuple[Format, int], int] = {
    ("json", 12): 200_000,
    ("json", 100): 25_000,
    ("avro", 12): 200_000,
    ("avro", 100): 100_000,
}
"""Events of a topic by format and width: a batch of the default size, or half a gigabyte of one that is wide."""
LIVE = (1, 3, 10)
PARTS = ("decoding", "tables")
PARTITIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured; `warm` rounds come first and do not count."""

    scale: float
    warm: int
    rounds: int
    tables: int
    batches: int


FULL = Effort(scale=1.0, warm=8, rounds=7, tables=100, batches=5)
QUICK = Effort(scale=0.2, warm=8, rounds=3, tables=20, batches=3)


class Arena:
    """The topics, the session, and what reads the one in the other."""

    def __init__(self, folder: Path, servers: str, effort: Effort) -> None:
        self.config = _config(folder, servers)
        self.spark: SparkSession = build_session(self.config)
        self._servers = servers
        self._effort = effort
        self._meter = TaskMeter(self.spark)

    def figures(self, format_: Format, width: int) -> tuple[list[Figure], list[str]]:
        """Compare the ways for one format and width; also returns how their results differ."""
        events = Events(width)
        count = int(EVENTS[format_, width] * self._effort.scale)
        sizes: dict[int, int] = {}
        reads: dict[str, tuple[str, Decode]] = {}
        for live in LIVE:
            shown = events.generations[-live:]
            mixed, plain = self._produced(format_, events, shown, count, sizes)
            reads[f"static {live}"] = (plain, static(format_, shown[-1]))
            reads[f"ours {live}"] = (mixed, ours(format_, events, shown, self.config))
            reads[f"reading {live}"] = (mixed, _everything)
        found = self._differences(f"{format_}, {width} columns", reads, count)
        costs = self._take_turns(f"{format_}, {width} columns", reads, count)
        return [figure_of(format_, width, live, sizes[live], costs) for live in LIVE], found

    def close(self) -> None:
        self.spark.stop()

    def _produced(
        self, format_: Format, events: Events, shown: Sequence[Generation], count: int, sizes: dict[int, int]
    ) -> tuple[str, str]:
        """Fill the topic of these schemas, and for Avro one with the same rows in the last schema alone.

        `from_avro` needs the writer's schema, so a static job can read no other topic.
        """
        live = len(shown)
        mixed = f"{format_}-{len(shown[-1].columns)}-{live}"
        records = events.json(shown) if format_ == "json" else events.avro(shown)
        sizes[live] = produce(self._servers, mixed, records, count)
        if format_ == "json":
            return mixed, mixed
        produce(self._servers, f"{mixed}-plain", events.avro(shown[-1:], known=shown), count)
        return mixed, f"{mixed}-plain"

    def _read(self, topic: str, count: int) -> DataFrame:
        ranges = tuple(
            OffsetRange(topic=topic, partition=partition, start=0, end=count // PARTITIONS)
            for partition in range(PARTITIONS)
        )
        return read_ranges(self.spark, self.config.kafka, ranges, group="bench")

    def _compute(self, topic: str, decode: Decode, count: int) -> None:
        """Compute every column of every row: the sink takes all of them, so none is pruned."""
        decode(self._read(topic, count)).write.format("noop").mode("overwrite").save()

    def _take_turns(
        self, title: str, reads: Mapping[str, tuple[str, Decode]], count: int
    ) -> Mapping[str, Sequence[TaskCost]]:
        """Measure all ways round by round; who begins changes with every round."""
        costs: dict[str, list[TaskCost]] = {name: [] for name in reads}
        names = list(reads)
        for number in range(self._effort.warm + self._effort.rounds):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                cost = self._meter.measure(count, partial(self._compute, *reads[name], count))
                if number >= self._effort.warm:
                    costs[name].append(cost)
            print(f"{title}: round {number}", file=sys.stderr)
        return costs

    def _differences(self, title: str, reads: Mapping[str, tuple[str, Decode]], count: int) -> list[str]:
        """Compare what the ways return: all see the same rows, but static JSON knows a renamed column by one name."""
        seen: dict[str, object] = {}
        for name, (topic, decode) in reads.items():
            if name.startswith("ours") or (
                name.startswith("static") and (name.endswith(" 1") or topic.endswith("plain"))
            ):
                seen[name] = _summary(decode(self._read(topic, count)))
        pairs = [(f"static {live}", f"ours {live}") for live in LIVE if f"static {live}" in seen]
        return [f"{title}: {a} gives {seen[a]}, {b} {seen[b]}" for a, b in pairs if seen[a] != seen[b]] + [
            f"{title}: {name} finds problems: {problems}"
            for name, (topic, decode) in reads.items()
            if name.startswith("ours") and (problems := _problems(decode(self._read(topic, count))))
        ]


def _everything(records: DataFrame) -> DataFrame:
    return records.select("key", "value", "partition", "offset")


def _summary(frame: DataFrame) -> object:
    columns = [F.col(name) for name in frame.columns if name not in ("partition", "offset", PROBLEM)]
    hashes = F.sum(F.xxhash64(*columns).cast("decimal(38)"))
    return tuple(frame.agg(F.count("*"), hashes).first() or ())


def _problems(frame: DataFrame) -> list[str]:
    return [str(row[0]) for row in frame.where(F.col(PROBLEM).isNotNull()).select(PROBLEM).distinct().collect()]


def produce(servers: str, topic: str, records: Iterable[Record], count: int) -> int:
    """Fill a new topic with `count` records by repeating these; returns their mean size in bytes."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "batch.size": 1_000_000})
    pool = list(records)
    for number in range(count):
        record = pool[number % len(pool)]
        while True:
            with suppress(BufferError):
                # Every schema comes in every partition.
                partition = number // VERSIONS % PARTITIONS
                producer.produce(topic, key=record.key, value=record.value, partition=partition)
                break
            producer.poll(0.05)
        producer.poll(0)
    producer.flush()
    return sum(len(record.key or b"") + len(record.value or b"") for record in pool) // len(pool)


def _config(folder: Path, servers: str) -> Config:
    return parse_config(
        f"""
        pipeline: {{name: bench, state: {folder}/state}}
        kafka: {{bootstrap_servers: '{servers}', topic_pattern: '.*'}}
        tables: [{{pattern: '.*'}}]
        target: {{format: memory}}
        job: {{parallel_tables: 1}}
        spark: {{master: 'local[2]', conf: {{spark.driver.memory: 4g}}}}
        """,
        path="bench",
    )


def measure(folder: Path, servers: str, effort: Effort, wanted: argparse.Namespace) -> Results:
    """Run the parts that are wanted, all by default."""
    formats = wanted.format or FORMATS if "decoding" in wanted.part else ()
    arena = Arena(folder, servers, effort)
    figures: list[Figure] = []
    differences: list[str] = []
    try:
        for format_ in formats:
            for width in wanted.width or WIDTHS:
                some, found = arena.figures(format_, width)
                figures += some
                differences += found
                print("\n".join([*map(line_of, some), *found]), file=sys.stderr)
        driver = None
        if "tables" in wanted.part:
            driver = steady(arena.config, arena.spark, servers, tables=effort.tables, batches=effort.batches)
    finally:
        arena.close()
    return Results(figures=tuple(figures), steady=driver, differences=tuple(differences))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a fifth of the events and tables, fewer rounds")
    parser.add_argument("--json", action="store_true", help="figures as JSON on stdout")
    parser.add_argument("--format", choices=FORMATS, action="append", help="only this format")
    parser.add_argument("--width", choices=WIDTHS, type=int, action="append", help="only this many columns")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part")
    options = parser.parse_args()
    options.part = options.part or PARTS
    effort = QUICK if options.quick else FULL
    configure()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with (
        tempfile.TemporaryDirectory(prefix="cdc-sync-bench-") as name,
        running_kafka(Path(name) / "kafka") as kafka,
    ):
        servers = kafka.bootstrap_servers
        results = measure(Path(name), servers, effort, options)
    print(as_json(results) if options.json else as_text(results))
    if results.differences:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
