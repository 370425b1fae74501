"""200 tables of which one fails, in five ways in turn: what that costs the others. See README.md.

Rounds in which all go well and rounds in which one does not, by turns; each gives every table as many new rows. How
long the others take is measured to the commit of the last of them, and compared with the rounds right before and behind
it, for rounds get faster as the JVM compiles what they run. All ways are gone through several times; the medians of
that count. Behind each way what is wrong is mended, the table is resumed, and in the end all must have each row once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

from confluent_kafka import Producer
from figures import show

import cdc_sync
from cdc_sync.config import Config, parse_config
from cdc_sync.demo.lake import Lake
from cdc_sync.local.kafka import running_kafka
from cdc_sync.runtime.context import open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.session import build_session
from cdc_sync.storage.state import StateStore
from cdc_sync.testing import DATE, INT64, TEXT, Record, SourceTable, column

_BAD = 99_999_999


@dataclass
class Shop:
    """All tables, what was written to them, and the table that fails: the first."""

    servers: str
    tables: list[SourceTable]
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    next_id: int = 0

    def __post_init__(self) -> None:
        self._producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 20})

    @property
    def failing(self) -> SourceTable:
        return self.tables[0]

    def send(self, table: SourceTable, records: list[Record]) -> None:
        for record in records:
            self._producer.produce(table.topic, key=record.key, value=record.value)
            self._producer.poll(0)
        place = (table.topic, 0)
        self.ends[place] = self.ends.get(place, 0) + len(records)

    def grow(self, rows: int) -> None:
        """Give each table new rows."""
        ids = range(self.next_id, self.next_id + rows)
        self.next_id += rows
        for table in self.tables:
            text = str(table.columns[-1].field)
            self.send(table, [record for id_ in ids for record in table.insert({"id": id_, text: f"row {id_}"})])
            table.records.clear()
        self._producer.flush()


def _bad_records(shop: Shop, config: Config) -> Iterator[None]:
    """A tenth of its records cannot be applied."""
    table = shop.failing
    bad: list[Record] = []
    for id_ in range(-20, 0):
        bad += table.insert(id=id_, day=_BAD)
    table.rows = [row for row in table.rows if int(str(row["id"])) >= 0]
    shop.send(table, bad)
    yield


def _metadata_gone(shop: Shop, config: Config) -> Iterator[None]:
    """The file that says what is in its target is not there."""
    found = _lake(config).table(f"public.{shop.failing.id.table}")
    assert found is not None
    path = Path(found.metadata_location.removeprefix("file:"))
    kept = path.rename(path.with_suffix(".kept"))
    yield
    kept.rename(path)


def _unproven(shop: Shop, config: Config) -> Iterator[None]:
    """It pauses before a change that may be a rename."""
    old = str(shop.failing.columns[-1].field)
    new = f"note{shop.next_id}"
    shop.failing.rename_column(old, new)
    shop.send(shop.failing, list(shop.failing.update({"id": 0}, **{new: "row 0"})))
    yield
    store = StateStore(config.pipeline.root)
    status = store.load(shop.failing.id)
    assert status is not None
    if status.state == "paused":
        cdc_sync.decide(config, shop.failing.id.table, cdc_sync.Words(renames={old: new}))


def _hot(shop: Shop, config: Config) -> Iterator[None]:
    """It does not fail: it has as many new rows as fifty others."""
    table = shop.failing
    first, text = 1_000_000_000 + 1_000 * shop.next_id, str(table.columns[-1].field)
    ids = range(first, first + 5_000)
    shop.send(table, [record for id_ in ids for record in table.insert({"id": id_, text: "hot"})])
    yield


def _held(shop: Shop, config: Config) -> Iterator[None]:
    """The operator paused it."""
    cdc_sync.pause(config, [shop.failing.id.table])
    yield


_WAYS: tuple[Callable[[Shop, Config], Iterator[None]], ...] = (_bad_records, _metadata_gone, _held, _hot, _unproven)


def main() -> int:
    """Return 0 if all tables are right in the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--rows", type=int, default=50, help="of each table and round")
    parser.add_argument("--times", type=int, default=3, help="that each way is gone")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-sync-many-") as text:
        folder = Path(text)
        with running_kafka(folder / "kafka") as kafka:
            found, well = _run(folder, kafka.bootstrap_servers, given.tables, given.rows, given.times)
    show(found, as_json=given.json)
    return 0 if well else 1


def _run(folder: Path, servers: str, number: int, rows: int, times: int) -> tuple[dict[str, object], bool]:
    config = parse_config(
        f"""
        pipeline: {{name: many, state: {folder}/state}}
        kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'many\\..*'}}
        tables: [{{pattern: '.*'}}]
        target: {{catalog: {{warehouse: {folder}/lake}}}}
        limits: {{max_new_tables_per_hour: 100000}}
        spark: {{master: 'local[2]', conf: {{spark.driver.memory: 4g}}}}
        """,
        path="bench",
    )
    columns = [column("id", INT64, optional=False), column("day", DATE), column("note", TEXT)]
    tables = [SourceTable(f"t{n:03}", columns, prefix="many", null_is_default=False) for n in range(number)]
    shop = Shop(servers, tables)
    spark, client = build_session(config), KafkaClient(config.kafka)
    job = SyncJob(open_context(config, spark, client))
    figures: dict[str, list[float]] = {}
    calm: list[float] = []
    for _ in range(3):  # the first makes the tables, the next warms up
        shop.grow(rows)
        taken = _process(job, shop, config)
    calm.append(taken)
    for way in _WAYS * times:
        with _wrong(way, shop, config):
            shop.grow(rows)
            taken = _process(job, shop, config)
        cdc_sync.resume(config, [shop.failing.id.table])
        _until_all(job, shop, config)
        shop.grow(rows)
        calm.append(_process(job, shop, config))
        figures.setdefault(way.__name__.strip("_").replace("_", " "), []).append(taken / mean(calm[-2:]))
    wrong = [table.id.table for table in tables if _ids(config, table) != sorted(int(str(r["id"])) for r in table.rows)]
    spark.stop()
    client.close()
    usual = median(calm)
    found: dict[str, object] = {
        "tables, rows of each in a round": f"{number}, {rows}",
        "all go well, s": f"{usual:.1f} ({min(calm):.1f} to {max(calm):.1f})",
        **{
            f"{name}, of its neighbours": f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            for name, ratios in figures.items()
        },
        "tables that are not right in the end": wrong or 0,
    }
    return found, not wrong


@contextmanager
def _wrong(way: Callable[[Shop, Config], Iterator[None]], shop: Shop, config: Config) -> Iterator[None]:
    going = way(shop, config)
    next(going)
    yield
    next(going, None)


def _process(job: SyncJob, shop: Shop, config: Config) -> float:
    """Return how long it takes until every table but the one that may fail has all."""
    began = time.monotonic()
    job.process(shop.ends)
    taken = time.monotonic() - began
    late = [table for table in shop.tables[1:] if not _has_all(shop, config, table)]
    assert not late, f"{late[0].id} has not all that there is"
    return taken


def _until_all(job: SyncJob, shop: Shop, config: Config) -> None:
    deadline = time.monotonic() + 120
    while not _has_all(shop, config, shop.failing):
        assert time.monotonic() < deadline, StateStore(config.pipeline.root).load(shop.failing.id)
        job.catch_up()
        time.sleep(0.2)


def _has_all(shop: Shop, config: Config, table: SourceTable) -> bool:
    status = StateStore(config.pipeline.root).load(table.id)
    return status is not None and status.offsets.get(table.topic, {}).get(0) == shop.ends[table.topic, 0]


def _lake(config: Config) -> Lake:
    return Lake(name=config.target.catalog.name, service=config.target.catalog.service or "")


def _ids(config: Config, table: SourceTable) -> list[int]:
    found = _lake(config).table(f"public.{table.id.table}")
    assert found is not None
    return sorted(found.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


if __name__ == "__main__":
    sys.exit(main())
