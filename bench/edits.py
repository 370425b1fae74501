"""A configuration that is edited again and again while its job is under load. See README.md.

Eight tables are written to all the time. First nobody touches the file, then it is edited every few seconds; every
third edit is a mistake. What is measured is what an edit costs the tables that it is not about: the seconds of their
batches, and the time from one of their commits to the next. In the end each table must have each row once.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).parents[1]))

from confluent_kafka import Producer
from figures import show

import cdc_sync
from cdc_sync.config import load_config
from cdc_sync.demo.lake import Lake
from cdc_sync.local.kafka import running_kafka
from cdc_sync.testing import INT64, TEXT, SourceTable, column
from tests.live.job import JobProcess

_TABLES = 8
_A_SECOND = 20
"""Rows of each table."""
_SAID = """\
pipeline: {{name: edits, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'edits\\..*'}}
tables: [{{pattern: 'shop\\.public\\.t[{tables}]'}}]
policy: {{out_of_range: {out_of_range}, missing_rows: {missing_rows}}}
limits: {{max_columns: {max_columns}}}
target: {{catalog: {{warehouse: '{folder}/{warehouse}'}}}}
job: {{trigger_interval: 200ms}}
spark: {{master: 'local[2]', conf: {{spark.driver.memory: 1g}}}}
{more}
"""
_USUAL = {
    "tables": f"0-{_TABLES - 1}",
    "out_of_range": "quarantine",
    "missing_rows": "insert",
    "max_columns": "1000",
    "warehouse": "lake",
    "more": "",
}
_GOOD: tuple[dict[str, str], ...] = (
    {"tables": f"0-{_TABLES - 2}"},
    {"tables": f"0-{_TABLES - 1}"},
    {"out_of_range": "clamp"},
    {"missing_rows": "pause"},
    {"max_columns": "500"},
    {"more": "dead_letters: {payload: masked}"},
)
_BAD: tuple[dict[str, str], ...] = (
    {"tables": "9-0"},
    {"out_of_range": "whatever"},
    {"warehouse": "elsewhere"},
    {"more": "limts: {}"},
    {"more": "dead_letters: {payload"},
)


@dataclass
class Load:
    """Writes rows to all tables, as many a second, until it is told to stop."""

    servers: str
    written: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        columns = [column("id", INT64, optional=False), column("note", TEXT)]
        self.tables = [SourceTable(f"t{n}", columns, prefix="edits", null_is_default=False) for n in range(_TABLES)]
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self.stop.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 20})
        began = time.monotonic()
        while not self.stop.is_set():
            while self.written < (time.monotonic() - began) * _A_SECOND:
                for table in self.tables:
                    (record,) = table.insert(id=self.written, note=f"row {self.written}")
                    table.records.clear()
                    table.rows.clear()
                    producer.produce(table.topic, key=record.key, value=record.value)
                self.written += 1
            producer.poll(0.02)
        producer.flush()


@dataclass(frozen=True)
class Figures:
    """Of the tables that no edit is about, in seconds: a batch, and from a commit to the next."""

    batches: list[float]
    gaps: list[float]

    def lines(self, name: str) -> Iterator[tuple[str, object]]:
        for what, found in (("batch", self.batches), ("commit to commit", self.gaps)):
            yield f"{name}: {what}, s", f"{median(found):.2f}, of 20 one {quantiles(found, n=20)[-1]:.2f}"


def main() -> int:
    """Return 0 if every edit was taken or refused as it should be, and every row is there once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=30)
    parser.add_argument("--every", type=float, default=5.0, help="seconds")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-sync-edits-") as text:
        folder = Path(text)
        with running_kafka(folder / "kafka") as kafka:
            found, well = _run(folder, kafka.bootstrap_servers, given.edits, given.every)
    show(found, as_json=given.json)
    return 0 if well else 1


def _run(folder: Path, servers: str, edits: int, every: float) -> tuple[dict[str, object], bool]:
    path = folder / "conf.yaml"

    def edit(**said: str) -> None:
        path.write_text(_SAID.format(folder=folder, servers=servers, **{**_USUAL, **said}))

    edit()
    job = JobProcess(path, "--json")
    with Load(servers) as load:
        time.sleep(1)
        job.start()
        try:
            _until(lambda: len(_commits(job)) == _TABLES)
            time.sleep(20)  # until it is warm
            calm = _since(job, edits * every, lambda: time.sleep(edits * every))
            wrong: list[str] = []
            busy = _since(job, edits * every, lambda: wrong.extend(_edit(job, edit, edits, every)))
            edit()
            load.end()
            _until(lambda: all(line.lag == 0 for line in cdc_sync.status(load_config(path)).tables))
        finally:
            job.stop()
    rows = {table.id.table: _ids(path, table) for table in load.tables}
    expected = list(range(load.written))
    lost = [name for name, ids in rows.items() if ids != expected]
    found: dict[str, object] = {
        "rows of each table": load.written,
        "edits, of which mistakes": f"{edits}, {sum(1 for number in range(edits) if number % 3 == 2)}",
        "edits that were not taken as they should be": wrong or 0,
        **dict(calm.lines("untouched")),
        **dict(busy.lines("edited")),
        "a batch, edited to untouched": f"{median(busy.batches) / median(calm.batches):.2f}",
        "tables with rows missing or twice": lost or 0,
    }
    return found, not wrong and not lost


def _edit(job: JobProcess, edit: Callable[..., None], edits: int, every: float) -> Iterator[str]:
    """Edit again and again; yield what was not taken up, or refused, as it should be."""
    good = bad = 0
    for number in range(edits):
        began = time.monotonic()
        is_bad = number % 3 == 2
        words = "configuration refused" if is_bad else "configuration taken up"
        before = _count(job, words)
        if is_bad:
            said, bad = _BAD[bad % len(_BAD)], bad + 1
        else:
            said, good = _GOOD[good % len(_GOOD)], good + 1
        edit(**said)
        if not _until(lambda words=words, before=before: _count(job, words) > before, patience=30):  # type: ignore[misc]
            yield f"{said}: not {words}"
        time.sleep(max(0.0, began + every - time.monotonic()))


def _count(job: JobProcess, words: str) -> int:
    return sum(words in line for line in job.lines())


def _commits(job: JobProcess) -> dict[str, list[tuple[float, float]]]:
    """By table, when each batch was written and how many seconds it took."""
    found: dict[str, list[tuple[float, float]]] = {}
    for line in job.lines():
        if '"batch written"' in line:
            said = json.loads(line)
            at = datetime.fromisoformat(said["time"]).timestamp()
            found.setdefault(said["table"], []).append((at, float(said["seconds"])))
    return found


def _since(job: JobProcess, seconds: float, act: Callable[[], object]) -> Figures:
    began = time.time()
    act()
    time.sleep(max(0.0, began + seconds - time.time()))
    mine = [
        [item for item in found if began <= item[0]]
        for table, found in _commits(job).items()
        if not table.endswith(f".t{_TABLES - 1}")
    ]
    return Figures(
        batches=[taken for found in mine for _, taken in found],
        gaps=[after - before for found in mine for (before, _), (after, _) in pairwise(found)],
    )


def _ids(path: Path, table: SourceTable) -> list[int]:
    catalog = load_config(path).target.catalog
    found = Lake(name=catalog.name, service=catalog.service or "").table(f"{table.id.schema}.{table.id.table}")
    assert found is not None
    return sorted(found.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


def _until(found: Callable[[], bool], patience: float = 180) -> bool:
    deadline = time.monotonic() + patience
    while not found():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


if __name__ == "__main__":
    sys.exit(main())
