"""The five modes on one script of changes, through the real job: what becomes of a table, step by step.

`golden/modes.txt` is what they print; CDC_SYNC_WRITE_GOLDEN=1 writes it anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc_sync.config import Config, parse_config
from cdc_sync.errors import ConfigError
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.spark.session import build_session
from cdc_sync.storage.state import StateStore
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.testing import INT32, INT64, TEXT, SourceTable, Wal, column
from tests.conftest import Produce
from tests.corpus.runs import ends_of, memory_job, session_of_its_own
from tests.faults.told import ToldTable

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
GOLDEN = Path(__file__).parent / "golden" / "modes.txt"
MODES = ("evolve", "try_evolve", "lenient", "exception", "ignore")
MERGED_MODES = MODES


def _added(table: ToldTable) -> None:
    table.add_column(column("n", INT32))
    table.insert(id=2, z="z2", a="a2", n=2)


def _renamed_and_retyped(table: ToldTable) -> None:
    table.rename_and_retype("n", column("m", INT64), "bigint")
    table.insert(id=3, z="z3", a="a3", m=2**40)


def _renamed(table: ToldTable) -> None:
    table.rename_column("z", "y")
    table.insert(id=4, y="y4", a="a4", m=4)


def _column_dropped(table: ToldTable) -> None:
    table.drop_column("a")
    table.insert(id=5, y="y5", m=5)


def _truncated(table: ToldTable) -> None:
    table.truncate()
    table.insert(id=6, y="y6", m=6)


def _dropped(table: ToldTable) -> None:
    table.drop()


def _created_again(table: ToldTable) -> None:
    table.recreate(column("id", INT32, optional=False), column("w", TEXT))
    table.insert(id=7, w="w7")


SCRIPT: dict[str, Callable[[ToldTable], None]] = {
    "insert one row": lambda table: (table.insert(id=1, z="z1", a="a1"), None)[1],
    "add column n": _added,
    "rename column n to m, type bigint": _renamed_and_retyped,
    "rename column z to y": _renamed,
    "drop column a": _column_dropped,
    "truncate": _truncated,
    "drop table": _dropped,
    "create table again": _created_again,
}


@pytest.fixture
def sessions(_spark: SparkSession) -> Iterator[None]:
    with session_of_its_own(_spark):
        yield


def _config(kafka: KafkaServer, folder: Path, prefix: str, mode: str, rule: str = "{pattern: '.*'}") -> Config:
    return parse_config(f"""
pipeline: {{name: modes, state: '{folder}'}}
kafka: {{bootstrap_servers: '{kafka.bootstrap_servers}', topic_pattern: '{prefix}\\.public\\..*'}}
evidence: {{messages: [{prefix}.message], wait: 0s}}
tables: [{rule}]
policy: {{mode: {mode}}}
target: {{format: memory}}
""")


def _told(config: Config, target: MemoryTarget) -> Iterator[str]:
    (name,) = target._tables
    rows = sorted(target.rows(name), key=lambda row: (row.get("_source_table", ""), int(row["id"])))
    statuses = StateStore(config.pipeline.root).tables()
    for status in statuses:
        which = f"{status.table.table}: " if len(statuses) > 1 else ""
        yield f"    {which}{status.state}, version {status.version}" + (f": {status.reason}" if status.reason else "")
    for row in rows:
        yield "    " + ", ".join(f"{name}={value}" for name, value in row.items())


def played(config: Config, table: ToldTable, produce: Produce, *others: ToldTable) -> Iterator[str]:
    """Play the script on a table; others stay as they were made, and get a row before and one behind it."""
    sent = dict.fromkeys((table, *others), (0, 0))
    with memory_job(config, build_session(config)) as (job, context):
        assert isinstance(context.target, MemoryTarget)
        for number, (name, step) in enumerate(SCRIPT.items(), 1):
            step(table)
            for other in others if number in (1, len(SCRIPT)) else ():
                other.insert(id=number, z=f"z{number}", a=f"a{number}")
            for item, (told, written) in sent.items():
                produce(f"{item._prefix}.message", item.messages[told:])
                produce(item.topic, item.records[written:])
                sent[item] = len(item.messages), len(item.records)
            job.process(ends_of(context))
            job.catch_up()
            job.finish()
            yield f"  {name}"
            yield from _told(config, context.target)


@pytest.mark.usefixtures("sessions")
def test_one_script_in_each_mode(kafka: KafkaServer, produce: Produce, tmp_path: Path) -> None:
    lines: list[str] = []
    for mode in MODES:
        prefix = f"five-modes-{mode.replace('_', '-')}"
        lines.append(f"{mode}")
        config = _config(kafka, tmp_path / mode, prefix, mode)
        lines += [_without_places(line) for line in played(config, ToldTable(prefix), produce)]
    for mode in MERGED_MODES:
        prefix, wal = f"five-modes-shared-{mode.replace('_', '-')}", Wal()
        lines.append(f"{mode}, with another table in the same target")
        config = _config(kafka, tmp_path / "shared" / mode, prefix, mode, "{pattern: '.*', target: all.t, merge: {}}")
        tables = ToldTable(prefix, wal=wal), ToldTable(prefix, "other", wal=wal, relid=20000)
        lines += [_without_places(line) for line in played(config, tables[0], produce, tables[1])]
    lines += ["several source tables into one target", *_merged(kafka, produce, tmp_path)]
    text = "\n".join(lines) + "\n"
    if os.environ.get("CDC_SYNC_WRITE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def _without_places(line: str) -> str:
    return re.sub(r"postgresql:[\d/]+", "postgresql:…", line)


def _merged(kafka: KafkaServer, produce: Produce, folder: Path) -> Iterator[str]:
    """Two tables on one target: refused where the configuration shows it, else where the second one turns up."""
    config = _config(kafka, folder / "merged", "five-modes-merged", "evolve")
    head = "pipeline: {name: p}\nkafka: {bootstrap_servers: 'k:1', topics: [t]}\n"
    with pytest.raises(ConfigError) as refused:
        parse_config(
            f"{head}tables: [{{table: d.s.a, target: all.t}}, {{table: d.s.b, target: all.t}}]", path="conf.yaml"
        )
    yield f"  by their names: {refused.value}"
    rule = config.tables[0].model_copy(update={"target": "all.t"})
    config = config.model_copy(update={"tables": (rule,)})
    for name in ("a", "b"):
        table = SourceTable(name, [column("id", INT32, optional=False)], prefix="five-modes-merged")
        table.insert(id=1)
        produce(table.topic, table.records)
    with memory_job(config, build_session(config)) as (job, context):
        for topic in ("a", "b"):
            found = {place: end for place, end in ends_of(context).items() if place[0].endswith(f".{topic}")}
            job.process(found)
    for status in StateStore(config.pipeline.root).tables():
        yield f"  by a pattern: {status.table}: {status.state}" + (f": {status.reason}" if status.reason else "")
