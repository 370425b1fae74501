"""Trino and Presto on this machine: one process each, which reads through one Hive metastore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.readers.sql import Answer, QueryError, query
from cdc_sync.local.ports import LOOPBACK, free_ports
from cdc_sync.local.process import ServerProcess

_SERVER = """\
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://{host}:{port}
catalog.config-dir={folder}/catalog
plugin.dir={folder}/plugin
{more}"""
_NODE = ("-Dnode.environment=readers", "-Dnode.id=readers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One of the two engines.

    Attributes:
        home: the folder of its distribution, which holds `lib` and `plugin`.
        plugins: what is loaded of it.
        catalogs: name -> properties; `{metastore}` stands for the metastore's address.
    """

    name: str
    home: Path
    java: Path
    main_class: str
    options: tuple[str, ...]
    settings: str
    plugins: tuple[str, ...]
    catalogs: Mapping[str, str]


_TRINO_COMMON = "hive.metastore.uri={metastore}\nfs.hadoop.enabled=true\n"


def trino(home: Path, java: Path) -> Product:
    """Return Trino; from 24 on its Java has to be told what it may do."""
    return Product(
        name="Trino",
        home=home,
        java=java,
        main_class="io.trino.server.TrinoServer",
        options=(
            *("-Xmx1g", "-XX:+UseG1GC", "-Djdk.attach.allowAttachSelf=true", "-XX:TieredStopAtLevel=1"),
            *("--add-modules=jdk.incubator.vector", "--sun-misc-unsafe-memory-access=allow"),
            "--enable-native-access=ALL-UNNAMED",
        ),
        settings="query.max-memory-per-node=300MB\n",
        plugins=("iceberg", "delta-lake", "hudi", "hive"),
        catalogs={
            "iceberg": "connector.name=iceberg\niceberg.register-table-procedure.enabled=true\n" + _TRINO_COMMON,
            "delta": "connector.name=delta_lake\ndelta.register-table-procedure.enabled=true\n" + _TRINO_COMMON,
            "hudi": "connector.name=hudi\n" + _TRINO_COMMON,
            "hive": "connector.name=hive\n" + _TRINO_COMMON,
        },
    )


def presto(home: Path, java: Path) -> Product:
    """Return Presto, which runs on Java 8 to 11."""
    metastore = "hive.metastore.uri={metastore}\n"
    return Product(
        name="Presto",
        home=home,
        java=java,
        main_class="com.facebook.presto.server.PrestoServer",
        options=("-Xmx1g", "-XX:+UseG1GC", "-Djdk.attach.allowAttachSelf=true", "-XX:TieredStopAtLevel=1"),
        settings="discovery-server.enabled=true\nquery.max-memory-per-node=300MB\nquery.max-memory=300MB\n",
        plugins=("iceberg", "delta", "hudi", "hive-hadoop2"),
        catalogs={
            "iceberg": "connector.name=iceberg\niceberg.catalog.type=HIVE\n" + metastore,
            "delta": "connector.name=delta\n" + metastore,
            "hudi": "connector.name=hudi\n" + metastore,
            "hive": "connector.name=hive-hadoop2\nhive.parquet.use-column-names=true\n" + metastore,
        },
    )


class SqlServer:
    """A running engine; `stop` ends it.

    Raises:
        SetupError: it did not come up.
    """

    def __init__(self, product: Product, folder: Path, metastore: str) -> None:
        self.product = product
        (port,) = free_ports(1)
        self._url = f"http://{LOOPBACK}:{port}"
        (folder / "plugin").mkdir(parents=True)
        for plugin in product.plugins:
            (folder / "plugin" / plugin).symlink_to(product.home / "plugin" / plugin)
        (folder / "catalog").mkdir()
        for name, properties in product.catalogs.items():
            (folder / "catalog" / f"{name}.properties").write_text(properties.format(metastore=metastore))
        (folder / "config.properties").write_text(
            _SERVER.format(port=port, host=LOOPBACK, folder=folder, more=product.settings)
        )
        command = [
            *(str(product.java), *product.options, *_NODE, f"-Dnode.data-dir={folder}/data"),
            *(f"-Dconfig={folder}/config.properties", "-cp", f"{product.home}/lib/*", product.main_class),
        ]
        self._process = ServerProcess(product.name, command, log=folder / "log", cwd=folder)
        try:
            self._process.wait_until(self._ready, timeout=300)
        except BaseException:
            self.stop()
            raise

    def query(self, statement: str) -> Answer:
        """Run one statement.

        Raises:
            QueryError: it failed.
        """
        return query(self._url, self.product.name, statement)

    def version(self) -> str:
        """Return the engine's version as it says it."""
        return str(self.query("SELECT node_version FROM system.runtime.nodes").rows[0][0])

    def stop(self) -> None:
        """End the process."""
        self._process.stop()

    def _ready(self) -> bool:
        try:
            self.query("SELECT count(*) FROM system.runtime.nodes")
        except QueryError:
            return False
        return True
