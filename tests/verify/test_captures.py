"""Real Debezium captures of every type, against the databases that the captured statements make again."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pymysql
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from cdc_sync.api import commands
from cdc_sync.config import Config
from cdc_sync.config.models import Verify
from cdc_sync.config.sources import SourceDatabase
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.local.ports import free_ports
from cdc_sync.operations.verify.report import TableVerified
from cdc_sync.runtime import service
from tests.corpus.reader import topics
from tests.corpus.runs import corpus_config
from tests.postgres import postgres_server

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_CORPUS = Path(__file__).parents[1] / "corpus"


def statements(database: str) -> Iterator[str]:
    """Yield what made the captured tables, in order; one of Postgres' may hold several."""
    with tarfile.open(_CORPUS / f"{database}-sql.tar.xz") as archive:
        found = archive.extractfile(f"{database}-sql/script.jsonl")
        assert found is not None
        for line in io.TextIOWrapper(found, encoding="utf-8"):
            sql = json.loads(line)["sql"]
            yield from [sql] if isinstance(sql, str) else sql


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """One of its own: the captures' topics and offsets are those of other tests too."""
    ports = free_ports(2)
    server = KafkaServer(tmp_path / "kafka", port=ports[0], controller_port=ports[1])
    server.start()
    yield server.bootstrap_servers
    server.stop()


def send(servers: str, capture: str) -> None:
    admin, producer = AdminClient({"bootstrap.servers": servers}), Producer({"bootstrap.servers": servers})
    for topic, messages in topics(capture).items():
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
        for message in messages:
            producer.produce(topic, key=message.key, value=message.value, headers=list(message.headers))
    assert producer.flush(60) == 0


def verified(config: Config, spark: Callable[[], None], dsn: str) -> dict[str, TableVerified]:
    """Run the job and compare; tables by their last name."""
    spark()
    service.run(config, once=True, stop=threading.Event())
    settings = {"source": SourceDatabase(dsn=dsn), "verify": Verify(settle=timedelta(0))}
    spark()
    found = commands.verify(config.model_copy(update=settings), limit=50)
    return {table.table.table: table for table in found.tables}


def differing(table: TableVerified) -> set[tuple[str | None, str]]:
    """Return id of the row and column of each difference."""
    return {(row.key["id"], column.column) for row in table.differences for column in row.columns}


def test_postgres(tmp_path: Path, broker: str, spark: Callable[[], None]) -> None:
    send(broker, "postgres-json")
    pattern = r"pgj\.(message|inv\.(types_all|comp|nopk))"
    config = corpus_config("postgres-json", folder=tmp_path, servers=broker, target="iceberg", pattern=pattern)
    with postgres_server() as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            for statement in statements("postgres"):
                # Some are there to fail.
                with suppress(psycopg.Error):
                    connection.execute(statement.encode())
        found = verified(config, spark, server.dsn)
    assert {name: table.outcome.value for name, table in found.items()} == {
        "types_all": "different",
        "comp": "equal",
        "nopk": "equal",
    }
    assert [item.column for item in found["types_all"].not_compared] == ["c_tstzrange"]
    # What the target cannot hold, and a connector sends as NULL; see the golden report of the captures.
    assert differing(found["types_all"]) == {
        *(("5", name) for name in ("c_n", "c_date", "c_ts", "c_tstz")),
        *(("7", name) for name in ("c_date", "c_ts")),
        *(("8", name) for name in ("c_n", "c_ts", "c_tstz")),
    }


def test_mariadb(tmp_path: Path, broker: str, spark: Callable[[], None], mariadb_url: str) -> None:
    send(broker, "mariadb-json")
    pattern = r"maj|maj\.inv\.(types_all|comp|nopk)"
    config = corpus_config("mariadb-json", folder=tmp_path, servers=broker, target="iceberg", pattern=pattern)
    place = urlsplit(mariadb_url)
    with (
        pymysql.connect(
            host=place.hostname, port=place.port or 0, user=place.username, charset="utf8mb4", autocommit=True
        ) as connection,
        connection.cursor() as cursor,
    ):
        for statement in statements("mariadb"):
            with suppress(pymysql.MySQLError):
                cursor.execute(statement)
    found = verified(config, spark, mariadb_url)
    assert {name: table.outcome.value for name, table in found.items()} == {
        "types_all": "different",
        "comp": "equal",
        "nopk": "equal",
    }
    assert found["types_all"].not_compared == ()
    # Zero dates, and a year that the connector takes for one of two digits.
    assert differing(found["types_all"]) == {("5", "c_date"), ("5", "c_dt"), ("5", "c_ts"), ("6", "c_date")}
