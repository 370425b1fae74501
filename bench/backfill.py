"""Revisions on a large table: columns first, rows later, killed and beside a writer. See README.md.

An Iceberg table by day, that others made and write, gets a column computed from two others. Measured are the columns
(one small commit, however many rows there are), the rows against `INSERT … SELECT` of the same table in the same JVM,
then the rows once more by processes of their own: two together, two of which one is killed again and again, and one
with a writer of 1,000 rows a second and a reader beside it. In the end every row is right, no file filled twice.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from figures import percentile_99, show
from pyarrow import compute
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from cdc_sync.config.migrations import load_migrator, load_revisions
from cdc_sync.operations.migrate.filler import Filler, Pace
from cdc_sync.operations.migrate.migrator import Migrator
from cdc_sync.spark.session import build_session
from cdc_sync.storage.fill_plans import FillPlans, Rates
from cdc_sync.storage.revision_logs import RevisionLogs
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.protocol import Revisable

_SETTINGS = """\
name: bench
state: '{folder}/state'
target: {{catalog: {{warehouse: '{folder}/lake'}}}}
backfill: {{unit_bytes: {unit}}}
spark: {{master: 'local[2]', conf: {{spark.driver.memory: 4g}}}}
"""
_FIRST = "actions: [{adopt: {}}]"
_NEXT = (
    "actions: [{add_column: {name: total, type: 'decimal(18, 2)', fill: {sql: 'cast(qty * price as decimal(18, 2))'}}}]"
)
_FIRST_DAY, _DAYS = date(2024, 1, 1), 30
_COLUMNS = """
id, date_add(date'2024-01-01', cast(id % 30 as int)) AS day, cast(id % 97 as int) AS qty,
cast(id % 1000 / 7 as decimal(10, 2)) AS price, concat('article ', id % 5000) AS article, id * 31 AS a, id % 13 AS b,
cast(id % 10000 as double) / 3 AS c, sha1(cast(id as string)) AS note, id % 2 = 0 AS flag,
timestamp_seconds(1704067200 + id % 100000) AS at, cast(id % 60 as string) AS minute
"""


def main() -> int:
    """Return 0 if every row is right and no unit was committed twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--kill-every", type=float, default=20.0, help="seconds")
    parser.add_argument("--unit-bytes", type=int, default=64 << 20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: dict[str, object] = {"rows": given.rows}
    with tempfile.TemporaryDirectory(prefix="cdc-sync-backfill-") as text:
        here = Path(text)
        well = _in_one_jvm(here, given.rows, given.unit_bytes, found)
        well = _by_processes(here, given.rows, given.kill_every, found) and well
    show(found, as_json=given.json)
    return 0 if well else 1


def _files(here: Path, table: str, *, unit: int) -> Path:
    """Return the migrations of a table, in a state of its own."""
    folder = here / table
    for release, text in (("v1", _FIRST), ("v2", _NEXT)):
        (folder / release / f"db.{table}").mkdir(parents=True)
        (folder / release / f"db.{table}" / "1.yaml").write_text(text)
    settings = _SETTINGS.format(folder=here, unit=unit).replace("name: bench", f"name: {table}")
    (folder / "migrator.yaml").write_text(settings)
    return folder


def _make(spark: SparkSession, table: str, rows: int) -> None:
    spark.sql(
        f"CREATE TABLE lake.db.{table} USING iceberg PARTITIONED BY (day) AS SELECT {_COLUMNS} FROM range({rows})"
    )


def _in_one_jvm(here: Path, rows: int, unit: int, found: dict[str, object]) -> bool:
    """Measure columns and rows of one process, without its start."""
    names = ("small", "large", "alone", "together", "killed", "beside")
    folders = {name: _files(here, name, unit=unit) for name in names}
    config = load_migrator(folders["large"])
    spark = build_session(config)
    target = open_target(config.target, spark)
    assert isinstance(target, Revisable)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    _make(spark, "small", 50_000)
    for name in names[1:]:
        _make(spark, name, rows)

    def migrator(name: str) -> Migrator:
        root = load_migrator(folders[name]).root
        filler = Filler(target, partial(FillPlans, root), Rates(root), Pace(unit_size=unit), threading.Event())
        return Migrator(name, load_revisions(folders[name]), target, RevisionLogs(root, create=True), filler)

    for name in names:
        began = time.monotonic()
        migrator(name).up(fill=False)
        if name in ("small", "large"):
            found[f"columns of the {name} table, s"] = time.monotonic() - began
    size = spark.sql("SELECT sum(file_size_in_bytes) FROM lake.db.large.files").head()
    found["MB of files"] = round(size[0] / 1e6) if size else 0
    migrator("small").backfill()
    began = time.monotonic()
    migrator("large").backfill()
    filled = time.monotonic() - began
    spark.sql("CREATE TABLE lake.db.copy USING iceberg PARTITIONED BY (day) AS SELECT * FROM lake.db.large WHERE false")
    began = time.monotonic()
    spark.sql("INSERT INTO lake.db.copy SELECT * FROM lake.db.large")
    copied = time.monotonic() - began
    found["rows filled, s"] = filled
    found["INSERT … SELECT, s"] = copied
    found["filled, of the rate of INSERT … SELECT"] = copied / filled
    spark.stop()
    return _filled_rows(here, "large") == rows


def _by_processes(here: Path, rows: int, kill_every: float, found: dict[str, object]) -> bool:
    alone = _timed(here, "alone", 1)
    together = _timed(here, "together", 2)
    found["a process alone, with its start, s"] = alone
    found["two together, of that"] = together / alone
    killed, kills = _killed(here, "killed", kill_every)
    found[f"one of two killed every {kill_every:.0f} s, kills"] = kills
    found["killed, of two together"] = killed / together
    beside = _Beside(here, "beside", rows // _DAYS)
    taken = _timed(here, "beside", 1)
    beside.stop()
    found["with a writer and a reader, of alone"] = taken / alone
    found |= beside.figures()
    names = ("alone", "together", "killed", "beside")
    wrong = [name for name in names if _filled_rows(here, name) != rows or _filled_twice(here, name)]
    found["tables that are wrong in the end"] = wrong or 0
    return not wrong and not beside.failed and not beside.wrong


def _worker(here: Path, name: str) -> subprocess.Popen[bytes]:
    log = (here / f"{name}.log").open("ab")
    command = [sys.executable, "-m", "cdc_sync", "migrate", "backfill", str(here / name)]
    return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def _timed(here: Path, name: str, processes: int) -> float:
    began = time.monotonic()
    workers = [_worker(here, name) for _ in range(processes)]
    codes = [worker.wait() for worker in workers]
    assert codes == [0] * processes, (here / f"{name}.log").read_text()[-3000:]
    return time.monotonic() - began


def _killed(here: Path, name: str, every: float) -> tuple[float, int]:
    """Return how long it takes two processes, of which one is killed every so often, and how often that was."""
    began, kills = time.monotonic(), 0
    workers = [_worker(here, name) for _ in range(2)]
    while True:
        deadline = time.monotonic() + every
        while time.monotonic() < deadline and any(worker.poll() is None for worker in workers):
            time.sleep(0.2)
        if 0 in (worker.poll() for worker in workers):
            break
        place = random.randrange(2)
        os.killpg(workers[place].pid, signal.SIGKILL)
        workers[place].wait()
        kills += 1
        workers[place] = _worker(here, name)
    taken = time.monotonic() - began
    for worker in workers:
        worker.wait()
    return taken, kills


def _table(here: Path, name: str) -> Table:
    return SqlCatalog("lake", uri=f"sqlite:///{here}/lake/catalog.db").load_table(f"db.{name}")


def _totals(table: Table, day: date) -> pa.Table:
    """Return what the rows of a day that were there at first have; read without Spark."""
    rows = table.scan(f"day = '{day.isoformat()}' AND id >= 0")
    return rows.select("qty", "price", "total").to_arrow()


def _right(rows: pa.Table) -> int:
    """Return how many rows have what they are to have."""
    product = compute.multiply(rows["qty"].cast(pa.decimal128(10, 0)), rows["price"]).cast(rows["total"].type)
    return int(compute.sum(compute.equal(product, rows["total"])).as_py() or 0)


def _filled_rows(here: Path, name: str) -> int:
    table = _table(here, name)
    return sum(_right(_totals(table, _FIRST_DAY + timedelta(days=day))) for day in range(_DAYS))


def _filled_twice(here: Path, name: str) -> bool:
    """Whether a commit took away a file that another one had filled: then more were taken than there were."""
    table = _table(here, name)
    taken = was_there = 0
    for snapshot in table.snapshots():
        summary: Any = snapshot.summary or {}
        if summary.get("cdc_sync.filled-for") is not None:
            taken += int(summary["deleted-data-files"] or 0)
        elif not taken and snapshot.parent_snapshot_id is None:
            was_there = int(summary["total-data-files"] or 0)
    return taken != was_there


class _Beside:
    """Who writes 1,000 new rows a second to the newest day, and who reads the rows of a day again and again.

    Attributes:
        failed: writes that did not come through within Iceberg's own number of attempts.
        wrong: reads that found other than all rows of before, each with its value or with none.
    """

    def __init__(self, here: Path, name: str, rows_of_a_day: int) -> None:
        self._here, self._name, self._rows = here, name, rows_of_a_day
        self._over = threading.Event()
        self.failed = self.wrong = 0
        self._reads = self._again = 0
        self._seconds: list[float] = []
        self._alone = [self._append() for _ in range(20)]
        self._threads = [threading.Thread(target=self._write), threading.Thread(target=self._read)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def figures(self) -> dict[str, object]:
        return {
            "writes of 1,000 rows": len(self._seconds),
            "writes, again because another commit came first": self._again,
            "writes that failed": self.failed,
            "a write, p99 s": percentile_99(self._seconds),
            "a write, p99 of that alone": percentile_99(self._seconds) / percentile_99(self._alone),
            "reads of a day": self._reads,
            "reads that were wrong": self.wrong,
        }

    def _append(self) -> float:
        began = time.monotonic()
        table = _table(self._here, self._name)
        schema = table.schema().as_arrow()
        day = _FIRST_DAY + timedelta(days=_DAYS - 1)
        rows = [{**dict.fromkeys(schema.names), "id": -1, "day": day, "qty": 1}] * 1_000
        new = pa.Table.from_pylist(rows, schema=schema)
        for _ in range(5):
            try:
                table.append(new)
            except CommitFailedException:
                self._again += 1
                table.refresh()
            else:
                return time.monotonic() - began
        self.failed += 1
        return time.monotonic() - began

    def _write(self) -> None:
        while not self._over.is_set():
            taken = self._append()
            self._seconds.append(taken)
            self._over.wait(1 - taken)

    def _read(self) -> None:
        while not self._over.is_set():
            day = _FIRST_DAY + timedelta(days=random.randrange(_DAYS))
            rows = _totals(_table(self._here, self._name), day)
            self._reads += 1
            nulls = rows["total"].null_count
            self.wrong += rows.num_rows != self._rows or nulls + _right(rows) != self._rows


if __name__ == "__main__":
    sys.exit(main())
