"""Catalogs of Iceberg tables as servers of their own, each with a reader that is not Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable, Table

from cdc_sync.core.model.positions import TableId
from cdc_sync.local import jars
from cdc_sync.local.java import java_executable
from cdc_sync.local.ports import LOOPBACK, accepts_connections, free_ports
from cdc_sync.local.postgres import DATABASE, USER
from cdc_sync.local.process import ServerProcess
from tests.faults.pipeline import Pipeline
from tests.postgres import postgres_server
from tests.targets.hive import start_metastore


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """A catalog that runs.

    Attributes:
        settings: what `target.catalog` says of it, beside the warehouse.
        load: loads a table of a warehouse.
    """

    settings: str
    load: Callable[[Path, str, str], Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class InCatalog(Pipeline):
    """A pipeline whose tables are named by a catalog other than the embedded one."""

    catalog: Catalog

    @property
    def place(self) -> str:
        """What the configuration says of the catalog."""
        return f"{self.catalog.settings}, warehouse: '{self.folder}/warehouse'"

    def table(self, table: TableId) -> Table:
        """Load a table by the catalog itself."""
        return self.catalog.load(self.folder / "warehouse", table.schema, table.table)


@contextmanager
def hadoop(folder: Path) -> Iterator[Catalog]:
    """Folders alone: a file beside the table's metadata says which one counts."""

    def load(warehouse: Path, namespace: str, name: str) -> Table:
        metadata = warehouse / namespace / name / "metadata"
        number = (metadata / "version-hint.text").read_text()
        return StaticTable.from_metadata(str(metadata / f"v{number}.metadata.json"))

    yield Catalog(settings="type: hadoop", load=load)


@contextmanager
def jdbc(folder: Path) -> Iterator[Catalog]:
    """A Postgres that several engines share."""
    with postgres_server() as server:
        place = f"{LOOPBACK}:{server.port}/{DATABASE}"
        settings = f"uri: 'jdbc:postgresql://{place}', properties: {{jdbc.user: {USER}}}"

        def load(warehouse: Path, namespace: str, name: str) -> Table:
            uri = f"postgresql+psycopg://{USER}@{place}"
            catalog = SqlCatalog("lake", uri=uri, init_catalog_tables="false", schema_version="v1")
            return catalog.load_table((namespace, name))

        yield Catalog(settings=settings, load=load)


@contextmanager
def hive(folder: Path) -> Iterator[Catalog]:
    """A Hive metastore, asked over thrift."""
    server, uri = start_metastore(folder, {"hive.metastore.disallow.incompatible.col.type.changes": "false"})
    # A metastore that was not set up by Hive's own tool has no tables for the locks that Iceberg takes otherwise.
    unlocked = "hadoop.iceberg.engine.hive.lock-enabled: 'false'"
    try:

        def load(warehouse: Path, namespace: str, name: str) -> Table:
            files = (warehouse / f"{namespace}.db" / name / "metadata").glob("*.metadata.json")
            newest = max(files, key=lambda path: int(re.match(r"\d+", path.name)[0]))  # type: ignore[index]
            return StaticTable.from_metadata(str(newest))

        yield Catalog(settings=f"type: hive, uri: '{uri}', properties: {{{unlocked}}}", load=load)
    finally:
        server.kill()


@contextmanager
def rest(folder: Path) -> Iterator[Catalog]:
    """Iceberg's own REST catalog, over an SQLite file."""
    (port,) = free_ports(1)
    settings = {
        "CATALOG_WAREHOUSE": f"file://{folder}",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_JDBC_SCHEMA__VERSION": "V1",
        "CATALOG_REST_PORT": str(port),
    }
    command = [
        *(str(java_executable()), "-Xmx300m", "-XX:TieredStopAtLevel=1", f"-Drest.port={port}"),
        *("-cp", f"{jars.install(jars.ICEBERG_REST)}/*", "org.apache.iceberg.rest.RESTCatalogServer"),
    ]
    server = ServerProcess("rest catalog", command, log=folder / "log", cwd=folder, environment=settings)
    uri = f"http://{LOOPBACK}:{port}"
    try:
        server.wait_until(lambda: accepts_connections(port), timeout=60)

        def load(warehouse: Path, namespace: str, name: str) -> Table:
            table: Table = RestCatalog("lake", uri=uri).load_table((namespace, name))
            return table

        yield Catalog(settings=f"type: rest, uri: '{uri}'", load=load)
    finally:
        server.kill()


CATALOGS = {"hadoop": hadoop, "jdbc": jdbc, "hive": hive, "rest": rest}
