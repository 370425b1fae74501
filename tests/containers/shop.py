"""A source in containers, the tables in it, and what a reader that is not Spark finds of them in the lake."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from cdc_sync.demo.compare import TableImage, differences
from cdc_sync.demo.lake import Lake, image
from cdc_sync.demo.postgres import PostgresSource, install_ddl_capture
from cdc_sync.local.connectors import postgres_connector
from tests.containers import engine

PREFIX = "shop"
SCHEMA = "inv"
PASSWORD = "of-a-test"
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""For JVMs that live for a minute: they start sooner."""
SMALL = f"spark: {{master: 'local[2]', conf: {{spark.driver.memory: 1g, spark.driver.extraJavaOptions: '{JAVA}'}}}}"
_PATIENCE = 240.0


class Shop:
    """Postgres, Kafka and Kafka Connect with Debezium, each in a container; only names in the network are fixed."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.kafka = engine.container(engine.KAFKA, network, alias="kafka").with_env("ADVERTISED_HOST", "kafka")
        self.postgres = engine.container(engine.POSTGRES, network, alias="postgres").with_exposed_ports(5432)
        self.postgres.with_envs(POSTGRES_PASSWORD=PASSWORD, POSTGRES_DB=PREFIX)
        self.connect = engine.container(engine.CONNECT, network, alias="connect").with_exposed_ports(8083)
        self.connect.with_envs(BOOTSTRAP_SERVERS="kafka:9092", SOURCE_PASSWORD=PASSWORD)
        for service in self._services():
            service.waiting_for(engine.Healthy())

    def start(self) -> None:
        """Start all, and have Debezium capture the schema."""
        for service in self._services():
            service.start()
        with self.source() as source:
            source.execute([f"create schema {SCHEMA}"])
        self.capture(PREFIX, schema=SCHEMA)

    def stop(self) -> None:
        """Remove all."""
        for service in reversed(self._services()):
            service.stop()

    def source(self) -> PostgresSource:
        """Return a new connection to the database."""
        return PostgresSource(self._dsn())

    def wait_equal(self, lake: Lake, table: str, log: Callable[[], str], *, timeout: float = _PATIENCE) -> None:
        """Wait until the lake's table has the source's columns and rows."""
        deadline = time.monotonic() + timeout
        seen: object = object()
        different: tuple[str, ...] = ()
        with self.source() as source:
            wanted, key = source.image(table), source.key(table)
        while time.monotonic() < deadline:
            if (stamp := lake.stamp()) != seen:
                seen = stamp
                different = differences(wanted, lake_image(lake, table), key)
                if not different:
                    return
            time.sleep(0.25)
        listed = "\n".join(different[:10])
        raise AssertionError(f"{table} is not equal after {timeout:g} s:\n{listed}\nThe job said:\n{log()[-4000:]}")

    def capture(self, prefix: str, *, schema: str, converter: Mapping[str, str] = MappingProxyType({})) -> None:
        """Have Debezium capture a schema's tables and what tells of their changes.

        Args:
            prefix: of the topics, and the name of all it makes.
            schema: of the tables.
            converter: settings of another converter than that for JSON, by what stands behind `value.converter`.
        """
        settings = postgres_connector(prefix, port=5432) | {
            "database.hostname": "postgres",
            "database.dbname": PREFIX,
            "database.password": "${env:SOURCE_PASSWORD}",
            "schema.include.list": schema,
        }
        if converter:
            settings = {name: value for name, value in settings.items() if ".converter" not in name}
            settings["schema.name.adjustment.mode"] = "avro"
            settings |= {
                f"{part}.converter{name}": value for part in ("key", "value") for name, value in converter.items()
            }
        body = json.dumps({"name": prefix, "config": settings}).encode()
        url = f"http://{self.address(self.connect, 8083)}/connectors"
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        try:
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=90).close()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"Connect says {error.code}: {error.read().decode()[:2000]}") from error
        install_ddl_capture(self._dsn(), slot=prefix)

    @staticmethod
    def address(container: DockerContainer, port: int) -> str:
        """Return where the host reaches a port of a container."""
        return f"{container.get_container_host_ip()}:{container.get_exposed_port(port)}"

    def _services(self) -> tuple[DockerContainer, ...]:
        return (self.postgres, self.kafka, self.connect)

    def _dsn(self) -> str:
        host, port = self.address(self.postgres, 5432).split(":")
        return f"host={host} port={port} user=postgres password={PASSWORD} dbname={PREFIX}"


def configuration(
    warehouse: Path, *, name: str = "containers", prefix: str = PREFIX, catalog: str | None = None, more: str = ""
) -> str:
    """Return the configuration of a job over the tables under a prefix; a catalog's text stands for an embedded one."""
    topics = rf"{prefix}\.{SCHEMA}\..*" if prefix == PREFIX else rf"{prefix}\.[^.]*\..*"
    return f"""
pipeline: {{name: {name}, state: /var/lib/cdc_sync}}
kafka: {{bootstrap_servers: 'kafka:9092', topic_pattern: '{topics}'}}
evidence: {{messages: [{prefix}.message]}}
tables: [{{pattern: '.*'}}]
target: {{catalog: {catalog or f"{{warehouse: '{warehouse}'}}"}}}
{more}
"""


def lake_of(warehouse: Path) -> Lake:
    """Return the reader of a job's embedded catalog."""
    from cdc_sync.config import parse_config

    catalog = parse_config(configuration(warehouse)).target.catalog
    return Lake(name=catalog.name, service=catalog.service or "")


def lake_image(lake: Lake, table: str) -> TableImage | None:
    """Read a table as the lake has it now."""
    found: Any = lake.table(table)
    return image(found) if found is not None else None
