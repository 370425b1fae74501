"""Values that no event tells: the column is marked, the connector is asked for the rows, and the mark goes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from cdc_sync.api import requests
from cdc_sync.config import Config, parse_config
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.demo.compare import differences
from cdc_sync.demo.lake import Lake, image
from cdc_sync.demo.mariadb import MariadbSource
from cdc_sync.demo.postgres import PostgresSource, create_database
from cdc_sync.demo.source import Source
from cdc_sync.errors import RefusedError
from cdc_sync.local.stack import LocalStack
from cdc_sync.storage.state import StateStore
from tests.live.run import run_job

pytestmark = [pytest.mark.kafka, pytest.mark.iceberg, pytest.mark.spark]

_PATIENCE = 300.0
_SIGNALS = "(id varchar(42) primary key, type varchar(32) not null, data varchar(2048))"
_CONFIG = """
pipeline: {{name: again, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: '(pg|ma)again\\..*\\.orders'}}
connector:
  signals: {signals}
  notifications: again-notifications
tables:
  - {{pattern: '(?P<where>.*)\\.orders', target: '{{database}}.orders'}}
target: {{catalog: {{warehouse: '{folder}/warehouse'}}}}
job: {{trigger_interval: 200ms}}
"""


@pytest.fixture
def stack() -> Iterator[LocalStack]:
    with LocalStack(databases=("postgres", "mariadb")) as started:
        yield started


def test_marked_columns_are_read_again_by_the_real_connectors(
    stack: LocalStack, tmp_path: Path, spark: Callable[[], None]
) -> None:
    told = {
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": "again-notifications",
        "signal.enabled.channels": "source,kafka",
        "signal.kafka.topic": "again-signals",
        "signal.kafka.bootstrap.servers": stack.kafka.bootstrap_servers,
    }
    dsn = create_database(stack.postgres.dsn, "pgagain")
    with PostgresSource(dsn) as postgres, MariadbSource(stack.mariadb.url) as mariadb:
        for source, create in ((postgres, "create schema shop"), (mariadb, "create database shop")):
            source.execute(
                [
                    create,
                    "create table shop.orders (id int primary key, note varchar(20))",
                    f"create table shop.signals {_SIGNALS}",
                    "insert into shop.orders values (1, 'first'), (2, 'second'), (3, 'third')",
                ]
            )
        named = {"signal.data.collection": "shop.signals"}
        tables = ["shop[.]orders"]
        stack.register_postgres_connector("pgagain", tables, extra={"database.dbname": "pgagain"} | told | named)
        stack.register_mariadb_connector(
            "maagain", tables, extra={"database.include.list": "shop"} | told | named | {"read.only": "false"}
        )
        config = _config(tmp_path, stack, "{topic: again-signals, prefix: pgagain}")
        with ThreadPoolExecutor(1) as pool:
            stop = Event()
            running = pool.submit(run_job, config, stop, spark)
            try:
                _both(config, lambda status: status.version == 1)
                for source in (postgres, mariadb):
                    added = (
                        "alter table shop.orders add column made timestamp(6) not null default now(6)"
                        if source is mariadb
                        else "alter table shop.orders add column made timestamp not null default clock_timestamp()"
                    )
                    # Sent in one transaction, the connector may read the catalogue just before others see the commit:
                    # the event has the column as optional and without a default, and nothing tells that it has one.
                    source.execute([added])
                    source.execute(["insert into shop.orders (id, note) values (4, 'fourth')"])
                _both(config, lambda status: [mark.column for mark in status.needs_resync] == ["made"])

                asked = requests.resync(config, "pgagain.shop.orders", columns=(), done=False)
                assert (asked.columns, asked.topic, asked.statement) == (("made",), "again-signals", None)
                with pytest.raises(RefusedError, match="'nothing' is none of its columns"):
                    requests.resync(config, "pgagain.shop.orders", columns=("nothing",), done=False)
                by_hand = requests.resync(
                    _config(tmp_path, stack, "null"), "shop.orders", columns=("made",), done=False
                )
                assert by_hand.statement is not None
                mariadb.execute([by_hand.statement.replace("<signal.data.collection>", "shop.signals")])

                _both(config, lambda status: not status.needs_resync)
            finally:
                stop.set()
            running.result()
        assert [status.needs_resync for status in StateStore(config.pipeline.root).tables()] == [(), ()]
        assert _equal(config, "pgagain.orders", postgres)
        assert _equal(config, "shop.orders", mariadb)


def _config(folder: Path, stack: LocalStack, signals: str) -> Config:
    return parse_config(_CONFIG.format(folder=folder, servers=stack.kafka.bootstrap_servers, signals=signals))


def _both(config: Config, holds: Callable[[TableStatus], bool]) -> None:
    """Wait until something holds of both tables."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        statuses = StateStore(config.pipeline.root, create=True).tables()
        if len(statuses) == 2 and all(map(holds, statuses)):
            return
        assert time.monotonic() < deadline, json.dumps([repr(status) for status in statuses], indent=2)
        time.sleep(0.3)


def _equal(config: Config, table: str, source: Source) -> bool:
    lake = Lake(name="lake", service=config.target.catalog.service or "")
    found, wanted = lake.table(table), source.image("shop.orders")
    assert found is not None
    assert len(wanted.rows) == 4
    problems = differences(wanted, image(found), source.key(wanted.name))
    lake.close()
    assert problems == ()
    return True
