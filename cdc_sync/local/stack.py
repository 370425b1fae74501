"""Postgres, Kafka and Kafka Connect with Debezium, started together in one temporary folder.

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
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from cdc_sync.local.connect import ConnectServer
from cdc_sync.local.kafka import DEFAULT_MAX_MESSAGE_BYTES, KafkaServer
from cdc_sync.local.ports import LOOPBACK, free_ports
from cdc_sync.local.postgres import DATABASE, USER, PostgresServer


class LocalStack:
    """All servers the demo and the end-to-end tests need, as a context manager.

    Args:
        folder: where everything lives; by default a new temporary folder, removed at the end.
        keep: leave the folder in place at the end. A folder that was given always stays.
        partitions: of topics that Debezium or a client makes.
        max_message_bytes: the largest message Kafka takes.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        keep: bool = False,
        partitions: int = 1,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
    ) -> None:
        self._temporary = folder is None and not keep
        self.folder = (folder or Path(tempfile.mkdtemp(prefix="cdc-sync-"))).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711)  # under root, Postgres runs as another user, who must get through
        atexit.register(self.stop)  # also without a with statement no folder stays behind
        self.partitions = partitions
        postgres_port, kafka_port, controller_port, connect_port = free_ports(4)
        self.postgres = PostgresServer(self.folder / "postgres", port=postgres_port)
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
            self.postgres.start(wait=False)
            self.kafka.wait_ready()
            self.connect.start(wait=False)
            self.postgres.wait_ready()
            self.connect.wait_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stops everything and removes the folder unless it is to be kept."""
        atexit.unregister(self.stop)
        self.connect.stop()  # first, while Kafka still takes its last messages
        self.kafka.stop()
        self.postgres.stop()
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


def postgres_connector(
    prefix: str,
    *,
    port: int,
    tables: Sequence[str] | None = None,
    partitions: int = 1,
    replace_null_with_default: bool = False,
) -> dict[str, str]:
    """The Debezium settings of a connector to a Postgres on this machine (see `register_postgres_connector`)."""
    identifier = re.sub(r"[^a-z0-9_]", "_", prefix.lower())
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "database.hostname": LOOPBACK,
        "database.port": str(port),
        "database.user": USER,
        "database.password": "none",  # required by the connector, not asked for by the server
        "database.dbname": DATABASE,
        "topic.prefix": prefix,
        "plugin.name": "pgoutput",
        "slot.name": identifier,
        # One publication per connector: two connectors that make the same one at once fail.
        "publication.name": f"{identifier}_publication",
        "skipped.operations": "none",
        "poll.interval.ms": "50",
        "topic.creation.default.partitions": str(partitions),
        "topic.creation.default.replication.factor": "1",
    }
    for side in ("key", "value"):
        converter = f"{side}.converter"
        config[converter] = "org.apache.kafka.connect.json.JsonConverter"
        config[f"{converter}.schemas.enable"] = "true"
        config[f"{converter}.replace.null.with.default"] = str(replace_null_with_default).lower()
    if tables is not None:
        config["table.include.list"] = ",".join(tables)
    return config
