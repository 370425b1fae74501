"""A database, Kafka and Kafka Connect with Debezium, started together in one temporary folder.

Example::

    with LocalStack() as stack:
        with psycopg.connect(stack.postgres.dsn, autocommit=True) as source:
            source.execute("create table orders (id int primary key, note text)")
            stack.register_postgres_connector("shop", tables=["public.orders"])
            source.execute("insert into orders values (1, 'first')")
        ...  # the event is in the topic shop.public.orders of stack.kafka.bootstrap_servers
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeAlias

from cdc_sync.local import jars
from cdc_sync.local.connect import ConnectServer
from cdc_sync.local.connectors import mariadb_connector, postgres_connector
from cdc_sync.local.kafka import DEFAULT_MAX_MESSAGE_BYTES, KafkaServer
from cdc_sync.local.mariadb import MariadbServer
from cdc_sync.local.ports import free_ports
from cdc_sync.local.postgres import PostgresServer

Database: TypeAlias = Literal["postgres", "mariadb"]

_PLUGINS: Mapping[Database, str] = {"postgres": jars.DEBEZIUM_POSTGRES, "mariadb": jars.DEBEZIUM_MARIADB}


class LocalStack:
    """All servers the demo and the end-to-end tests need, as a context manager.

    Args:
        folder: where everything lives; by default a new temporary folder, removed at the end.
        keep: leave the folder in place at the end. A folder that was given always stays.
        databases: which of them to start.
        partitions: of topics that Debezium or a client makes.
        max_message_bytes: the largest message Kafka takes.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        keep: bool = False,
        databases: Sequence[Database] = ("postgres",),
        partitions: int = 1,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
    ) -> None:
        self._temporary = folder is None and not keep
        self.folder = (folder or Path(tempfile.mkdtemp(prefix="cdc-sync-"))).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711)  # under root, databases run as other users, who must get through
        atexit.register(self.stop)  # also without a with statement no folder stays behind
        self.partitions = partitions
        postgres_port, mariadb_port, kafka_port, controller_port, connect_port = free_ports(5)
        self.postgres = PostgresServer(self.folder / "postgres", port=postgres_port)
        self.mariadb = MariadbServer(self.folder / "mariadb", port=mariadb_port)
        servers: Mapping[Database, PostgresServer | MariadbServer]
        servers = {"postgres": self.postgres, "mariadb": self.mariadb}
        self.databases = tuple(servers[name] for name in databases)
        self.kafka = KafkaServer(
            self.folder / "kafka",
            port=kafka_port,
            controller_port=controller_port,
            partitions=partitions,
            max_message_bytes=max_message_bytes,
        )
        self.connect = ConnectServer(
            self.folder / "connect",
            port=connect_port,
            bootstrap_servers=self.kafka.bootstrap_servers,
            max_message_bytes=max_message_bytes,
            plugins=[_PLUGINS[name] for name in databases],
        )

    def __enter__(self) -> LocalStack:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts everything and returns once all of it is ready; what was started is stopped on failure."""
        try:
            self.kafka.start(wait=False)
            for database in self.databases:
                database.start(wait=False)
            self.kafka.wait_ready()
            self.connect.start(wait=False)
            for database in self.databases:
                database.wait_ready()
            self.connect.wait_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stops everything and removes the folder unless it is to be kept."""
        atexit.unregister(self.stop)
        self.connect.stop()  # first, while Kafka still takes its last messages
        self.kafka.stop()
        for database in self.databases:
            database.stop()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def register_postgres_connector(
        self,
        prefix: str,
        tables: Sequence[str] | None = None,
        *,
        replace_null_with_default: bool = False,
        extra: Mapping[str, str] | None = None,
    ) -> str:
        """Starts capturing tables into topics `<prefix>.<schema>.<table>`; returns the connector's name once it runs.

        Args:
            prefix: first part of topic names; also names the connector, its replication slot and publication.
            tables: what to capture as `schema.table`, by regular expression; all tables when None.
            replace_null_with_default: Connect's own default is True, which turns a NULL in a column with a
                default into that default.
            extra: further connector settings, which win over those made here.
        """
        config = postgres_connector(
            prefix,
            port=self.postgres.port,
            tables=tables,
            partitions=self.partitions,
            replace_null_with_default=replace_null_with_default,
        )
        self.connect.register(prefix, {**config, **(extra or {})})
        return prefix

    def register_mariadb_connector(
        self,
        prefix: str,
        tables: Sequence[str] | None = None,
        *,
        replace_null_with_default: bool = False,
        extra: Mapping[str, str] | None = None,
    ) -> str:
        """Starts capturing tables into topics `<prefix>.<database>.<table>`, and all DDL into the topic `<prefix>`.

        Args:
            prefix: first part of topic names; also names the connector.
            tables: what to capture as `database.table`, by regular expression; all tables when None.
            replace_null_with_default: as for Postgres.
            extra: further connector settings, which win over those made here.

        Returns:
            The connector's name, once it runs.
        """
        config = mariadb_connector(
            prefix,
            port=self.mariadb.port,
            bootstrap_servers=self.kafka.bootstrap_servers,
            tables=tables,
            partitions=self.partitions,
            replace_null_with_default=replace_null_with_default,
        )
        self.connect.register(prefix, {**config, **(extra or {})})
        return prefix
