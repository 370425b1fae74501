"""Compares what batches cost in each format: one topic, read by a pipeline of its own for each. See README.md.

.venv/bin/python bench/formats.py [--only REGIME …] [--rows N] [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

import structlog
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from ingest import produce
from measure import Cost, Meter, typical
from orders import TOPIC, Orders
from pyspark.sql import functions as F

from bench.readers.regimes import REGIMES, Regime, regime
from cdc_sync.config import Config, parse_config
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.local.kafka import running_kafka
from cdc_sync.runtime.context import Context, open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.session import build_session
from tests.targets.hive import AS_ADVISED, start_metastore

_FILL, _WARM, _SMALL, _CHANGED, _RENAMED, _LARGE = "fill", "warm", "small", "changed", "renamed", "large"
_SMALL_SIZE, _LARGE_SIZE = 1_000, 50_000
_ROUNDS = 8
"""Small batches, and batches with a change, by turns."""
_NAMES = ("name_0", "name_1", "name_2", "name_3")
"""What one column is called, one after the other."""
_KINDS = tuple(kind for kind in REGIMES if not kind.rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """One batch: what it is for, and where it ends.

    Attributes:
        end: the offset of the topic's one partition.
        rows: how many the table has behind it.
    """

    kind: str
    end: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one format took.

    Attributes:
        costs: of each stretch, in their order.
        found: count and sum of the hashes of all rows at the end.
    """

    costs: tuple[Cost, ...]
    found: tuple[int, str]


def stretches(servers: str, rows: int) -> Iterator[Stretch]:
    """Fill the topic, and say what belongs together."""
    orders, end, names = Orders(), 0, list(_NAMES)
    orders.add_column(_NAMES[0])
    for kind, size in (
        (_FILL, rows),
        *[(_WARM, _SMALL_SIZE)] * 4,
        *[(_SMALL, _SMALL_SIZE), (_CHANGED, _SMALL_SIZE)] * _ROUNDS,
        *[(_SMALL, _SMALL_SIZE), (_RENAMED, _SMALL_SIZE)] * (len(_NAMES) - 1),
        (_WARM, _LARGE_SIZE),
        *[(_LARGE, _LARGE_SIZE)] * 3,
    ):
        if kind == _CHANGED:
            orders.add_column(f"added_{end}")
        if kind == _RENAMED:
            orders.rename_column(names.pop(0), names[0])
        produce(servers, orders.creates(size) if kind == _FILL else orders.changes(size))
        end += size
        yield Stretch(kind=kind, end=end, rows=orders.rows)


def _config(kind: Regime, folder: Path, servers: str, metastore: str) -> Config:
    renames = ", ".join(f"{old}: {new}" for old, new in pairwise(_NAMES))
    return parse_config(
        f"""
        pipeline: {{name: bench, state: {folder}/state}}
        kafka: {{bootstrap_servers: '{servers}', topics: ['{TOPIC}']}}
        tables: [{{pattern: '.*', renames: {{{renames}}}}}]
        limits: {{max_versions_per_hour: 1000}}
        target: {kind.target.format(warehouse=folder / "warehouse", metastore=metastore)}
        spark: {{master: 'local[2]', conf: {{spark.driver.memory: 4g}}}}
        """,
        path="bench",
    )


def play(kind: Regime, folder: Path, servers: str, metastore: str, batches: Sequence[Stretch]) -> Figures:
    """Apply every batch, by the job's own way, and read the table again."""
    config = _config(kind, folder, servers, metastore)
    spark = build_session(config)
    context = open_context(config, spark, KafkaClient(config.kafka))
    job, meter = SyncJob(context), Meter(spark)
    costs, start = [], 0
    for batch in batches:
        costs.append(meter.measure(batch.end - start, lambda end=batch.end: job.process({(TOPIC, 0): end})))  # type: ignore[misc]
        start = batch.end
    found = _rows(job, context)
    spark.stop()
    return Figures(costs=tuple(costs), found=found)


def _rows(job: SyncJob, context: Context) -> tuple[int, str]:
    (table,) = job.tables.all()
    assert table.state.stop is None, table.state.stop
    assert table.state.history is not None
    schema = table.state.history.head.schema
    assert len(schema.columns) == 12 + 1 + _ROUNDS, "a change did not reach the table"
    frame = context.target.read(
        TargetName(namespace="inv", name="orders"), schema, [item.id for item in schema.columns]
    )
    found = frame.agg(F.count("*"), F.sum(F.xxhash64(*frame.columns).cast("decimal(38)"))).first()
    assert found is not None
    return int(found[0]), str(found[1])


def _make_topic(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})  # if nothing held it, it would end before it is done
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result()


def compare(kinds: Sequence[Regime], folder: Path, rows: int) -> dict[str, dict[str, float]]:
    """Play the same topic into each kind of table, one after the other, each in a process of its own."""
    with ExitStack() as stack:
        kafka = stack.enter_context(running_kafka(folder / "kafka"))
        _make_topic(kafka.bootstrap_servers)
        (folder / "metastore").mkdir()
        server, metastore = start_metastore(folder / "metastore", AS_ADVISED)
        stack.callback(server.stop)
        _say("producing")
        batches = list(stretches(kafka.bootstrap_servers, rows))
        (folder / "batches.json").write_text(json.dumps([asdict(batch) for batch in batches]))
        found = {}
        for kind in kinds:
            _say(kind.name)
            own = folder / kind.name.replace(" ", "-")
            own.mkdir()
            where = ["--folder", str(own), "--servers", kafka.bootstrap_servers, "--metastore", metastore]
            subprocess.run([sys.executable, __file__, "--play", kind.name, *where], check=True)
            told = json.loads((own / "figures.json").read_text())
            found[kind.name] = Figures(costs=tuple(Cost(**cost) for cost in told["costs"]), found=tuple(told["found"]))
            assert found[kind.name].found[0] == batches[-1].rows, f"{kind.name}: {found[kind.name].found[0]} rows"
    assert len({figures.found for figures in found.values()}) == 1, "the tables differ"
    return {name: _by_kind(figures, batches) for name, figures in found.items()}


def _by_kind(figures: Figures, batches: Sequence[Stretch]) -> dict[str, float]:
    together = sorted(zip(batches, figures.costs, strict=True), key=lambda pair: pair[0].kind)
    costs = {kind: [cost for _, cost in pairs] for kind, pairs in groupby(together, key=lambda pair: pair[0].kind)}
    small, large = typical(costs[_SMALL]), typical(costs[_LARGE])

    def more(wanted: str) -> float:
        """Return what a change adds to the batch right before it."""
        pairs = pairwise(zip(batches, figures.costs, strict=True))
        return median(cost.wall - before.wall for (_, before), (batch, cost) in pairs if batch.kind == wanted)

    return {
        "first fill, s": costs[_FILL][0].wall,
        "1,000 events, s": small.wall,
        "CPU-s": small.cpu,
        "50,000 events, s": large.wall,
        "CPU-s of it": large.cpu,
        "a column, s more": more(_CHANGED),
        "a rename, s more": more(_RENAMED),
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="REGIME", choices=[kind.name for kind in _KINDS])
    parser.add_argument("--rows", type=int, default=300_000, help="how many the table begins with")
    parser.add_argument("--json", action="store_true")
    for hidden in ("--play", "--folder", "--servers", "--metastore"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.play:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
        folder = Path(given.folder)
        batches = [Stretch(**item) for item in json.loads((folder.parent / "batches.json").read_text())]
        figures = play(regime(given.play), folder, given.servers, given.metastore, batches)
        (folder / "figures.json").write_text(json.dumps(asdict(figures)))
        return 0
    kinds = [kind for kind in _KINDS if not given.only or kind.name in given.only]
    with tempfile.TemporaryDirectory(prefix="cdc-sync-formats-") as name:
        found = compare(kinds, Path(name), given.rows)
    if given.json:
        print(json.dumps(found, indent=2))
        return 0
    heads = list(next(iter(found.values())))
    print(f"{'':22}" + "".join(f"{head:>18}" for head in heads))
    for name, costs in found.items():
        print(f"{name:22}" + "".join(f"{costs[head]:18.2f}" for head in heads))
    return 0


if __name__ == "__main__":
    sys.exit(main())
