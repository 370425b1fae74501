"""Measures what a change of a table costs: the batch that carries it, and the rewrite of a type. See README.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median

import structlog
from confluent_kafka import Producer
from figures import percentile_99, show
from pyspark.sql import functions as F

from cdc_sync.config import Config, parse_config
from cdc_sync.core.migration.migration import migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import FLOAT64 as DOUBLE
from cdc_sync.core.schema.types import INT64 as LONG
from cdc_sync.core.schema.types import STRING, DataType
from cdc_sync.local.kafka import running_kafka
from cdc_sync.runtime.context import Context, open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.columns import CREATED, DELETED, value_column
from cdc_sync.spark.session import build_session
from cdc_sync.targets.protocol import Batch
from cdc_sync.testing import FLOAT64, INT32, INT64, TEXT, SourceTable, column
from cdc_sync.testing.targets import version

_WARM = 5
"""Rounds that do not count: code is compiled in them."""
_COPY = "lake.bench.copy"
_LARGE = TargetName(namespace="bench", name="large")


class Source:
    """A table whose every batch is a few inserts, before which a column may change.

    Args:
        narrow: leave out the change that may be a rename: the lake keeps its old column, and its table grows wider.
    """

    def __init__(self, rows: int, *, narrow: bool = False) -> None:
        columns = [column("id", INT64, optional=False), *(column(f"c{number}", TEXT) for number in range(10))]
        self.table = SourceTable("orders", [*columns, column("w0", INT32)], null_is_default=False)
        self._rows, self._next, self._sent, self._changes = rows, 0, 0, 0
        kinds = (self._add, self._widen, self._drop)
        self._kinds = cycle(kinds if narrow else (*kinds, self._move_in))

    def insert(self) -> None:
        for _ in range(self._rows):
            self._next += 1
            self.table.insert(id=self._next, c1=f"text {self._next}")

    def change(self) -> None:
        """Alter the table: by turns a column is added, widened, dropped, and one is dropped and another added."""
        self._changes += 1
        next(self._kinds)()

    def send(self, producer: Producer) -> None:
        for record in self.table.records[self._sent :]:
            producer.produce(self.table.topic, key=record.key, value=record.value)
        producer.flush()
        self._sent = len(self.table.records)

    def forget(self) -> None:
        """Keep neither what was sent nor what the table holds; a long run would fill the memory with them."""
        self.table.records.clear()
        self.table.rows.clear()
        self._sent = 0

    def _add(self) -> None:
        self.table.add_column(column(f"n{self._changes}", INT32))

    def _widen(self) -> None:
        name = self._last()
        self.table.alter_column(name, lambda _: column(name, INT64))

    def _drop(self) -> None:
        self.table.drop_column(self._last())

    def _move_in(self) -> None:
        self.table.drop_column("w0" if self._changes == 4 else self._last())
        self.table.add_column(column(f"w{self._changes}", FLOAT64))

    def _last(self) -> str:
        return str(self.table.columns[-1].field)


def batches(context: Context, servers: str, changes: int, rows: int) -> Mapping[str, float]:
    """Time batches with and without a change of the table, by turns."""
    job, source, producer = SyncJob(context), Source(rows), Producer({"bootstrap.servers": servers})
    plain, changed = [], []
    for number in range(changes + _WARM + 1):
        source.insert()
        source.send(producer)
        without = _timed(lambda: _process(job, context, source))
        if number:
            source.change()
        source.insert()
        source.send(producer)
        took = _timed(lambda: _process(job, context, source))
        (table,) = job.tables.all()
        assert table.state.stop is None, table.state.stop
        assert table.state.history is not None
        assert table.state.history.head.number == number + 1
        if number > _WARM:
            plain.append(without)
            changed.append(took)
    extra = sorted(with_ - without for with_, without in zip(changed, plain, strict=True))
    return {
        "changes": changes,
        "plain batch, median s": median(plain),
        "plain batch, 99th percentile s": percentile_99(plain),
        "extra, median s": median(extra),
        "extra, 99th percentile s": percentile_99(extra),
        "extra, largest s": extra[-1],
    }


def _process(job: SyncJob, context: Context, source: Source) -> None:
    job.process({(source.table.topic, 0): context.kafka.ends([source.table.topic])[source.table.topic][0]})


def _timed(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def rewriting(context: Context, rows: int, rounds: int) -> Mapping[str, float]:
    """Time rewriting a column's type there and back against copying the same table by INSERT … SELECT."""
    spark, target = context.spark, context.target
    schemas = [_schema(LONG), _schema(STRING)]
    target.migrate(_LARGE, migration(None, None, version(1, schemas[0])), Progress(version=1))
    ids = spark.range(rows).withColumnRenamed("id", "n")
    values = [
        F.col("n")
        if item.type == LONG
        else F.rand(item.id)
        if item.type == DOUBLE
        else F.sha1(F.col("n").cast("string"))
        for item in schemas[0].columns
    ]
    labels = [value_column(item.id) for item in schemas[0].columns]
    filled = ids.select(
        F.lit(False).alias(DELETED),
        F.lit(True).alias(CREATED),
        *(value.alias(label) for value, label in zip(values, labels, strict=True)),
    )
    known = Progress(version=1)
    target.write(_LARGE, Batch(rows=filled, schema=schemas[0], progress=known, behind=known, append=True))
    spark.sql(f"CREATE TABLE {_COPY} USING iceberg AS SELECT * FROM lake.bench.large WHERE false")
    rates: dict[str, list[float]] = {"to text": [], "to numbers": []}
    ratios: dict[str, list[float]] = {way: [] for way in rates}
    for number in range(1, rounds + 1):
        before, after = schemas[(number - 1) % 2], schemas[number % 2]
        steps = migration(version(number, before), version(number, before), version(number + 1, after))
        rewritten = _timed(partial(target.migrate, _LARGE, steps, Progress(version=number + 1)))
        spark.sql(f"DROP TABLE {_COPY}")
        spark.sql(f"CREATE TABLE {_COPY} USING iceberg AS SELECT * FROM lake.bench.large WHERE false")
        copied = _timed(lambda: spark.sql(f"INSERT INTO {_COPY} SELECT * FROM lake.bench.large"))
        way = "to text" if number % 2 else "to numbers"
        rates[way].append(rows / rewritten)
        ratios[way].append(copied / rewritten)
    found: dict[str, float] = {"rows": rows}
    for way, of in ratios.items():
        found[f"rewritten {way}, rows/s, median"] = median(rates[way])
        found[f"rewritten {way}, of INSERT … SELECT, median"] = median(of)
    return found


def _schema(changing: DataType) -> InternalSchema:
    kinds = [LONG, changing, *[STRING] * 6, *[DOUBLE] * 4]
    columns = tuple(Column(id=place, name=f"c{place}", type=kind) for place, kind in enumerate(kinds, 1))
    return InternalSchema(columns=columns, primary_key=(1,), last_column_id=len(columns))


def _config(folder: Path, servers: str) -> Config:
    text = f"""
        pipeline: {{name: bench, state: {folder}/state}}
        kafka: {{bootstrap_servers: '{servers}', topic_pattern: '.*orders'}}
        tables: [{{pattern: '.*'}}]
        limits: {{max_versions_per_hour: 100000}}
        target: {{catalog: {{warehouse: {folder}/lake}}}}
        spark: {{master: 'local[2]', conf: {{spark.driver.memory: 6g}}}}
    """
    return parse_config(text, path="bench")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--batch-rows", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=10, help="half of them to text, half back to numbers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with (
        tempfile.TemporaryDirectory(prefix="cdc-sync-bench-") as name,
        running_kafka(Path(name) / "kafka") as kafka,
    ):
        config = _config(Path(name), kafka.bootstrap_servers)
        client = KafkaClient(config.kafka)
        spark = build_session(config)
        context = open_context(config, spark, client)
        found: dict[str, float] = {}
        if options.changes:
            found |= batches(context, kafka.bootstrap_servers, options.changes, options.batch_rows)
        if options.rounds:
            found |= rewriting(context, options.rows, options.rounds)
        spark.stop()
    show(found, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
