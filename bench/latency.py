"""From a commit in Postgres to the row in the lake, end to end: the first row after an ALTER TABLE, and any other.

    .venv/bin/python bench/latency.py [--rounds 50] [--trigger 1s] [--json]

A real Postgres, real Debezium, Kafka, the job as `cdc-sync run` in a process of its own, Iceberg in an embedded
catalog, all on this machine. A round is one row as it is, then one statement that adds, widens, renames or drops a
column, by turns, and a row behind it. The clock begins when the commit returns; it stops when pyiceberg, which asks
twenty times a second, reads the row with every column as the source has it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from statistics import median

import psycopg
from figures import percentile_99, show

from cdc_sync.config import parse_config
from cdc_sync.demo.lake import Lake
from cdc_sync.demo.postgres import create_database, install_ddl_capture
from cdc_sync.demo.stage import JobProcess
from cdc_sync.local.stack import LocalStack

_WARM = 8
"""Rounds that do not count: code is compiled in them."""
_PATIENCE = 120.0
_TABLE = "shop.orders"
_CONFIG = """
pipeline: {{name: latency, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'latency\\.shop\\..*'}}
evidence: {{messages: [latency.message]}}
tables: [{{pattern: '.*'}}]
target: {{catalog: {{warehouse: '{folder}/warehouse'}}}}
job: {{trigger_interval: {trigger}}}
limits: {{max_versions_per_hour: 100000}}
spark: {{master: 'local[2]', conf: {{spark.driver.memory: 2g}}}}
"""


def _statements() -> Iterator[str]:
    """Yield one ALTER after another, for as long as is asked."""
    for number in count():
        yield f"alter table {_TABLE} add column n{number} int"
        yield f"alter table {_TABLE} alter column n{number} type bigint"
        yield f"alter table {_TABLE} rename column n{number} to m{number}"
        yield f"alter table {_TABLE} drop column m{number}"


class _Clock:
    """Times rows on their way."""

    def __init__(self, source: psycopg.Connection[tuple[object, ...]], lake: Lake, job: JobProcess) -> None:
        self._source, self._lake, self._job = source, lake, job
        self._last = 0
        self._stamp: int | None = None

    def row(self) -> float:
        """Insert a row; return the seconds until the lake has it."""
        self._last += 1
        self._source.execute(f"insert into {_TABLE} (id, c1) values ({self._last}, 'text {self._last}')")
        began = time.monotonic()
        names = self._names()
        self._job.wait_until(lambda: self._has(names), timeout=_PATIENCE)
        return time.monotonic() - began

    def _names(self) -> list[str]:
        found = self._source.execute(
            "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped "
            "order by attnum",
            [_TABLE],
        )
        return [str(name) for (name,) in found]

    def _has(self, names: Sequence[str]) -> bool:
        before, self._stamp = self._stamp, self._lake.stamp()
        table = self._lake.table(_TABLE) if self._stamp != before else None
        if table is None or [field.name for field in table.schema().fields] != names:
            return False
        return len(table.scan(row_filter=f"id == {self._last}", selected_fields=("id", "c1")).to_arrow()) == 1


def measure(rounds: int, trigger: str) -> Mapping[str, float]:
    """Play the rounds; seconds."""
    plain, altered = [], []
    with LocalStack() as stack:
        dsn = create_database(stack.postgres.dsn, "shop")
        with psycopg.connect(dsn, autocommit=True) as source:
            source.execute("create schema shop")
            columns = ", ".join(f"c{number} text" for number in range(1, 11))
            source.execute(f"create table {_TABLE} (id int primary key, {columns})")
            stack.register_postgres_connector("latency", ["shop.orders"], extra={"database.dbname": "shop"})
            install_ddl_capture(dsn, slot="latency")
            file = stack.folder / "latency.yaml"
            file.write_text(_CONFIG.format(folder=stack.folder, servers=stack.kafka.bootstrap_servers, trigger=trigger))
            lake = Lake(name="lake", service=parse_config(file.read_text()).target.catalog.service or "")
            job = JobProcess(file, log=stack.folder / "job.log", environment={})
            try:
                clock, statements = _Clock(source, lake, job), _statements()
                for number in range(rounds + _WARM):
                    without = clock.row()
                    source.execute(next(statements))
                    behind = clock.row()
                    if number >= _WARM:
                        plain.append(without)
                        altered.append(behind)
            finally:
                job.finish()
                lake.close()
    return {"rounds": rounds, **_of("a row", plain), **_of("the first row after an ALTER", altered)}


def _of(name: str, seconds: Sequence[float]) -> Mapping[str, float]:
    return {f"{name}, median s": median(seconds), f"{name}, 99th percentile s": percentile_99(seconds)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--trigger", default="1s", help="job.trigger_interval")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    show(measure(given.rounds, given.trigger), as_json=given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
