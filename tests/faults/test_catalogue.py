"""What a real Postgres' catalogue proves through the real job; the events are made here, at the server's own places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from cdc_sync.config import parse_config
from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.history.history import History
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.local.postgres import DATABASE, PostgresServer
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from cdc_sync.testing.postgres import Wal
from tests.conftest import Produce
from tests.faults.pipeline import files
from tests.postgres import postgres_server

if TYPE_CHECKING:
    from cdc_sync.runtime.context import Context
    from cdc_sync.runtime.job import SyncJob

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

_CONFIG = """
pipeline: {{name: p, state: '{folder}'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: '{prefix}\\..*'}}
evidence: {{catalogue: {{dsn: '{dsn}', every: 0s}}}}
tables: [{{pattern: '.*'}}]
target: {{format: memory}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server("alter system set track_commit_timestamp = on") as server:
        yield server


class ServerWal(Wal):
    """The log of a real server: places, times and transactions are its own."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._xid = 0
        super().__init__()

    def advance(self) -> int:
        asked = "select pg_logical_emit_message(false, 'x', 'x') - '0/0'::pg_lsn, txid_current() % (2^32)::bigint"
        lsn, self._xid = self.connection.execute(asked).fetchone()
        self.lsn = int(lsn)
        return self.lsn

    @property
    def now_us(self) -> int:
        asked = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint"
        return int(self.connection.execute(asked).fetchone()[0])

    @property
    def tx_id(self) -> int:
        return self._xid

    @tx_id.setter
    def tx_id(self, _: int) -> None:
        pass


class RealTable(SourceTable):
    """Columns `id`, `z`, `a`; what is done to them is done to a real table first."""

    def __init__(self, prefix: str, connection: Any) -> None:
        columns = [column("id", INT32, optional=False), column("z", TEXT), column("a", TEXT)]
        connection.execute("drop table if exists t; create table t (id int primary key, z text, a text)")
        wal = ServerWal(connection)
        super().__init__("t", columns, prefix=prefix, database=DATABASE, wal=wal, null_is_default=False)
        self.do = connection.execute

    def rename_column(self, old: str, new: str) -> None:
        self.do(f"alter table t rename {old} to {new}")
        super().rename_column(old, new)
        self._wait()

    def drop_column(self, name: str) -> None:
        self.do(f"alter table t drop column {name}")
        super().drop_column(name)
        self._wait()

    def add_column(self, added: ConnectSchema, *, initial: object = None) -> None:
        self.do(f"alter table t add column {added.field} text")
        super().add_column(added, initial=initial)
        self._wait()

    def _wait(self) -> None:
        self.do("select pg_sleep(0.005)")  # more than the margin


class Driven:
    def __init__(self, job: SyncJob, context: Context, table: RealTable, produce: Produce) -> None:
        self.job, self.context, self.table, self._produce = job, context, table, produce
        self._sent = 0

    def run(self) -> dict[str, int]:
        """Send what is new, process it, and return the ids of the columns there are."""
        self._produce(self.table.topic, self.table.records[self._sent :])
        self._sent = len(self.table.records)
        ends = self.context.kafka.ends([self.table.topic])
        self.job.process({(topic, part): end for topic, parts in ends.items() for part, end in parts.items()})
        return {column.name: column.id for column in self.history.head.schema.live}

    @property
    def history(self) -> History:
        found = self.context.history.find(self.table.id)
        assert found is not None
        return found

    @property
    def texts(self) -> list[str]:
        """What the catalogue said at the last version."""
        return [f"{item.subject} {item.text}" for item in self.history.head.evidence if item.kind == "catalogue"]


NewDriven = Callable[[str], Driven]


@pytest.fixture
def driven(
    kafka: KafkaServer, produce: Produce, spark: Callable[[], None], tmp_path: Path, server: PostgresServer
) -> Iterator[NewDriven]:
    from contextlib import ExitStack

    from cdc_sync.spark.session import build_session
    from tests.corpus.runs import memory_job

    with ExitStack() as stack:
        connection = stack.enter_context(psycopg.connect(server.dsn, autocommit=True))

        def make(prefix: str, dsn: str = server.dsn) -> Driven:
            prefix = f"read-{prefix}"
            config = parse_config(
                _CONFIG.format(folder=tmp_path / prefix, servers=kafka.bootstrap_servers, prefix=prefix, dsn=dsn)
            )
            spark()
            job, context = stack.enter_context(memory_job(config, build_session(config)))
            return Driven(job, context, RealTable(prefix, connection), produce)

        yield make


def test_renames_and_names_used_again_are_proven_and_a_replay_says_the_same(
    driven: NewDriven, tmp_path: Path, spark: Callable[[], None]
) -> None:
    from cdc_sync.operations.replay import replay

    it = driven("proven")
    it.table.insert(id=1, z="z", a="first")
    assert it.run() == {"id": 1, "z": 2, "a": 3}
    it.table.insert(id=2, z="z", a="second")
    it.table.insert(id=6, z="z", a="sixth")
    assert it.run() == {"id": 1, "z": 2, "a": 3}
    assert len(it.history.versions) == 2, "the schema is as old as the server, so only a second reading tells more"

    it.table.rename_column("a", "b")
    it.table.insert(id=3, z="z", b="third")
    it.table.rename_column("b", "c")  # the source is ahead
    assert it.run() == {"id": 1, "z": 2, "b": 3}
    relid = it.table.do("select 't'::regclass::oid").fetchone()[0]
    assert it.texts == [f"a renamed to 'b': read from the catalogue: attribute 3 of relation {relid}, before and after"]

    it.table.insert(id=4, z="z", c="fourth")
    it.table.drop_column("z")
    it.table.add_column(column("z", TEXT))
    it.table.insert(id=5, c="fifth", z="new")
    assert it.run() == {"id": 1, "c": 3, "z": 4}
    (sync,) = it.job.tables.all()
    target: Any = it.context.target
    rows = {row["id"]: (row["c"], row["z"]) for row in target.rows(sync.route.target)}
    assert [rows[number] for number in (1, 2, 3, 4, 6)] == [
        (text, None) for text in ("first", "second", "third", "fourth", "sixth")
    ]
    assert rows[5] == ("fifth", "new")
    assert it.texts == [
        f"z dropped: read from the catalogue: attribute 2 of relation {relid} was dropped",
        f"z added: read from the catalogue: attribute 4 of relation {relid}, which no known column is",
    ]

    kept = Path(it.context.config.pipeline.root) / "catalogue"
    before, written = files(kept), files(Path(it.context.config.pipeline.root) / "history")
    for size in (None, 1):
        spark()
        replay(it.context.config, into=str(tmp_path / f"again-{size}"), batch_size=size)
        assert files(tmp_path / f"again-{size}") == written
    assert files(kept) == before


def test_without_the_database_the_job_goes_on_and_status_says_so(driven: Any) -> None:
    it = driven("away", dsn="host=127.0.0.1 port=1")
    it.table.insert(id=1, z="z", a="first")
    it.run()
    it.table.rename_column("a", "b")
    it.table.insert(id=2, z="z", b="second")
    assert it.run() == {"id": 1, "z": 2, "b": 4}
    (status,) = it.context.state.tables()
    assert status.state == "running"
    assert any("without a reading of the source's catalogue: Cannot read" in text for text in status.warnings)
