"""What the driver spends on schemas when many tables have a few new events each and nothing about them changes."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from evolving import Events
from pyspark.sql import SparkSession

from cdc_sync.config import Config
from cdc_sync.runtime import range_schemas, write
from cdc_sync.runtime import topic as topicsync
from cdc_sync.runtime.context import open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark import compile as compiling
from cdc_sync.testing import Record

WIDTH = 12
EVENTS = 20
"""Of each table in each batch."""
_PARTS: tuple[tuple[str, bool, Any, str], ...] = (
    ("last records fetched", True, KafkaClient, "fetch_ahead"),
    ("are last records familiar", True, topicsync.TopicSync, "_familiar"),
    ("converters", True, range_schemas, "converters_for"),
    ("expressions", True, compiling, "_compiled"),
    ("positions of last records", False, write, "last_sources"),
    ("are first records creates", False, write, "only_creates"),
    ("plan of the decoding", False, write, "convert"),
)
"""Name, whether it counts as time spent on schemas, and the function; peeks inside one are shown beside it."""
_PEEK = "peek"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """Milliseconds by the clock for each table, medians of the batches; tables take turns, one at a time.

    Attributes:
        schemas: by part of the work, what counts as time spent on schemas.
        others: what was measured beside it.
        batch: everything, Spark jobs and commits included.
    """

    tables: int
    schemas: dict[str, float]
    others: dict[str, float]
    batch: float


class Stopwatch:
    """Adds up the time spent in functions, each without the time of measured functions that it calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._open: list[list[Any]] = []

    @contextmanager
    def watching(self, parts: Sequence[tuple[str, Any, str]]) -> Iterator[None]:
        """Replace functions, given by name of the part, owner and name, by measured ones for a while."""
        originals = [(owner, name, getattr(owner, name)) for _, owner, name in parts]
        for (part, _, _), (owner, name, original) in zip(parts, originals, strict=True):
            setattr(owner, name, self._measured(part, original))
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def _measured(self, part: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            outer = self._open[-1] if self._open else None
            path = f"{outer[0]}, {part}" if outer and part == _PEEK else part
            frame: list[Any] = [path, 0.0]
            self._open.append(frame)
            began = time.perf_counter()
            try:
                return original(*args, **options)
            finally:
                took = time.perf_counter() - began
                self._open.pop()
                self.seconds[path] += took - frame[1]
                if outer is not None:
                    outer[1] += took

        return call


def steady(config: Config, spark: SparkSession, servers: str, *, tables: int, batches: int) -> Steady:
    """Run batches in which every table has new events of a known schema, through the job.

    Two batches come before those that are measured: the one that finds the tables, and the first steady one.
    """
    sources = [
        Events(WIDTH, table=f"t{number}", only_inserts=True, size=EVENTS * (batches + 2)) for number in range(tables)
    ]
    pools = {_topic(events): list(events.json(events.generations[-1:])) for events in sources}
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in pools]).values():
        made.result()
    kafka = KafkaClient(config.kafka)
    job = SyncJob(open_context(config, spark, kafka))
    watches = []
    took = []
    try:
        for number in range(batches + 2):
            for topic, pool in pools.items():
                _send(servers, topic, pool[number * EVENTS : (number + 1) * EVENTS])
            watch = Stopwatch()
            parts = [(part, owner, name) for part, _, owner, name in _PARTS]
            with watch.watching([*parts, (_PEEK, KafkaClient, "peek")]):
                began = time.perf_counter()
                job.process({(topic, 0): (number + 1) * EVENTS for topic in pools})
                took.append(time.perf_counter() - began)
            watches.append(watch)
            print(f"{tables} tables: batch {number}, {took[-1]:.1f} s", file=sys.stderr)
    finally:
        kafka.close()
    return _medians(job, watches[2:], took[2:], tables)


def _medians(job: SyncJob, watches: Sequence[Stopwatch], took: Sequence[float], tables: int) -> Steady:
    written = job.tables.of(f"{_PREFIX}t0")
    assert [table.state.stop for table in written] == [None]
    names = sorted({name for watch in watches for name in watch.seconds})
    found = {name: 1000 * median(watch.seconds[name] for watch in watches) / tables for name in names}
    counted = tuple(part for part, counts, _, _ in _PARTS if counts)
    return Steady(
        tables=tables,
        schemas={name: ms for name, ms in found.items() if name.startswith(counted)},
        others={name: ms for name, ms in found.items() if not name.startswith(counted)},
        batch=1000 * median(took) / tables,
    )


_PREFIX = "steady.inv."


def _topic(events: Events) -> str:
    return f"{_PREFIX}{events.table.table}"


def _send(servers: str, topic: str, records: Sequence[Record]) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for record in records:
        producer.produce(topic, key=record.key, value=record.value)
    producer.flush()
