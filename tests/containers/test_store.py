"""Tables in an S3 store, their catalog in Postgres: the job writes them, past an outage too, and Trino reads them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from sqlalchemy.exc import ProgrammingError
from testcontainers.core.container import DockerContainer

from tests.containers import engine
from tests.containers.job import Job
from tests.containers.shop import JAVA, PASSWORD, SMALL, Shop, configuration

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

_OUTAGE = 8.0
"""Seconds for which the job has something to write and nowhere to."""
_ACCESS, _SECRET = "reader-and-writer", "a-secret-of-a-test"
_CATALOG = "jdbc:postgresql://postgres:5432/lake"
_ENDPOINT = "http://store:9000"
_TARGET = f"""{{
  name: lake, uri: '{_CATALOG}', warehouse: 's3://lake/warehouse',
  properties: {{
    jdbc.user: postgres, jdbc.password: {PASSWORD}, s3.endpoint: '{_ENDPOINT}', s3.path-style-access: 'true',
    s3.access-key-id: {_ACCESS}, s3.secret-access-key: {_SECRET}, client.region: us-east-1,
    s3.chunked-encoding-enabled: 'false'}}}}"""
_ALTERS = [
    "alter table inv.tickets rename column note to remark",
    "alter table inv.tickets add column seats int[]",
    "alter table inv.tickets alter column qty type bigint",
    "alter table inv.tickets drop column price",
    "alter table inv.tickets add column price numeric(12,3)",
]


class StoredLake:
    """Reads the tables with neither Spark nor Trino."""

    def __init__(self, shop: Shop, store: DockerContainer) -> None:
        self._catalog = SqlCatalog(
            "lake",
            uri=f"postgresql+psycopg://postgres:{PASSWORD}@{shop.address(shop.postgres, 5432)}/lake",
            init_catalog_tables="false",
            schema_version="v1",
            **{
                "s3.endpoint": f"http://{shop.address(store, 9000)}",
                "s3.access-key-id": _ACCESS,
                "s3.secret-access-key": _SECRET,
                "s3.region": "us-east-1",
                "s3.force-virtual-addressing": "false",
            },
        )

    def stamp(self) -> int:
        """There is nothing that tells of a change more cheaply than a look at the table."""
        return time.monotonic_ns()

    def table(self, name: str) -> Table | None:
        """Load a table's newest metadata; None if there is no such table (yet)."""
        try:
            return self._catalog.load_table(name)
        except (NoSuchTableError, ProgrammingError):  # the latter before the job has made the catalog's own tables
            return None


@pytest.fixture(scope="module")
def store(shop: Shop) -> Iterator[DockerContainer]:
    """A bucket for the lake, and a database for its catalog."""
    made = engine.container(engine.STORE, shop.network, alias="store").with_exposed_ports(9000)
    made.with_envs(BUCKETS="lake", ACCESS_KEY=_ACCESS, SECRET_KEY=_SECRET)
    made.waiting_for(engine.Healthy())
    code, said = shop.postgres.exec(["createdb", "-h", "/tmp", "-U", "postgres", "lake"])
    assert code == 0, said
    with made:
        yield made


@pytest.fixture(scope="module")
def stored(shop: Shop, store: DockerContainer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """A job that writes there."""
    folder = tmp_path_factory.mktemp("stored")
    # This store keeps checksums of whole objects and gives them out with parts, which clients then refuse.
    spark = SMALL.replace(JAVA, f"{JAVA} -Daws.requestChecksumCalculation=when_required")
    text = configuration(Path("unused"), name="stored", catalog=_TARGET, more=spark)
    made = Job(folder, shop.network, text.replace("inv\\..*", "inv\\.tickets"))
    made.start()
    yield made
    made.remove()


def test_it_waits_for_a_store_that_is_cut_off_and_trino_reads_what_it_wrote(
    shop: Shop, store: DockerContainer, stored: Job
) -> None:
    lake: Any = StoredLake(shop, store)
    with shop.source() as source:
        source.execute(
            [
                "create table inv.tickets (id int primary key, note text, qty int, price numeric(9,2))",
                "insert into inv.tickets select n, 'ticket ' || n, n, n / 4.0 from generate_series(1, 50) n",
            ]
        )
        shop.wait_equal(lake, "inv.tickets", stored.log)

        cut_off = engine.client().networks.get(shop.network.id)
        identifier = store.get_container_id()
        cut_off.disconnect(identifier)
        for number, alter in enumerate(_ALTERS, start=1):
            source.execute(
                [
                    alter,
                    f"insert into inv.tickets (id, qty) values ({100 + number}, {number})",
                    f"update inv.tickets set qty = -1 where id = {number}",
                    f"delete from inv.tickets where id = {number + 20}",
                ]
            )
        assert engine.wait_for(lambda: "version=2" in stored.log()), stored.log()[-3000:]
        time.sleep(_OUTAGE)
        assert stored.log().count("batch written") == 1
        shop.network.connect(identifier, network_aliases=["store"])
        lake = StoredLake(shop, store)  # the host reaches it by another port now

        source.execute(["update inv.tickets set seats = '{7,null,9}' where id between 10 and 15"])
        shop.wait_equal(lake, "inv.tickets", stored.log)
        wanted = source.image("inv.tickets")
    assert stored.runs

    rows: list[list[Any]] = [[row[name] for name in ("id", "remark", "qty", "seats")] for row in wanted.records()]
    assert _by_trino(shop) == sorted(rows)


def _by_trino(shop: Shop) -> list[list[Any]]:
    """Return rows as Trino reads them."""
    trino = engine.container(engine.TRINO, shop.network, alias="trino")
    trino.with_envs(CATALOG_URL=_CATALOG, CATALOG_USER="postgres", CATALOG_PASSWORD=PASSWORD)
    trino.with_envs(WAREHOUSE="s3://lake/warehouse", S3_ENDPOINT=_ENDPOINT, ACCESS_KEY=_ACCESS, SECRET_KEY=_SECRET)
    trino.waiting_for(engine.Healthy())
    with ExitStack() as stack:
        stack.callback(trino.stop)
        trino.start()
        question = "select id, remark, qty, json_format(cast(seats as json)) seats from inv.tickets order by id"
        code, said = trino.exec(["trino", "--output-format", "JSON", "--execute", question])
        assert code == 0, said.decode()[-3000:]
    rows = [json.loads(line) for line in said.decode().splitlines() if line.startswith("{")]
    return [[row["id"], row["remark"], row["qty"], row["seats"] and tuple(json.loads(row["seats"]))] for row in rows]
