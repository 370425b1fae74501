"""The settings of Debezium connectors to databases on this machine."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

from cdc_sync.local import mariadb, postgres
from cdc_sync.local.ports import LOOPBACK


def postgres_connector(
    prefix: str,
    *,
    port: int,
    tables: Sequence[str] | None = None,
    partitions: int = 1,
    replace_null_with_default: bool = False,
) -> dict[str, str]:
    """Return the settings of a connector to Postgres.

    Args:
        prefix: first part of topic names; also names the replication slot and the publication.
        port: of the server.
        tables: what to capture as `schema.table`, by regular expression; all tables when None.
        partitions: of topics that the connector makes.
        replace_null_with_default: Connect's own default is True, which turns a NULL in a column with a default into
            that default.
    """
    identifier = re.sub(r"[^a-z0-9_]", "_", prefix.lower())
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": LOOPBACK,
        "database.port": str(port),
        "database.user": postgres.USER,
        "database.password": "none",  # required by the connector, not asked for by the server
        "database.dbname": postgres.DATABASE,
        "plugin.name": "pgoutput",
        "slot.name": identifier,
        # One publication per connector: two connectors that make the same one at once fail.
        "publication.name": f"{identifier}_publication",
    }
    return config | _common(prefix, tables, partitions, replace_null_with_default)


def mariadb_connector(
    prefix: str,
    *,
    port: int,
    bootstrap_servers: str,
    tables: Sequence[str] | None = None,
    partitions: int = 1,
    replace_null_with_default: bool = False,
) -> dict[str, str]:
    """Return the settings of a connector to MariaDB; DDL goes to the topic `prefix`.

    Args:
        prefix: first part of topic names.
        port: of the server.
        bootstrap_servers: the Kafka in which the connector keeps what it knows of the tables.
        tables: what to capture as `database.table`, by regular expression; all tables when None.
        partitions: of topics that the connector makes.
        replace_null_with_default: as for Postgres.
    """
    config = {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.hostname": LOOPBACK,
        "database.port": str(port),
        "database.user": mariadb.USER,
        "database.password": "",
        # The connector is a replica, whose number nobody else may have.
        "database.server.id": str(1_000_000 + zlib.crc32(prefix.encode()) % 1_000_000),
        "schema.history.internal.kafka.bootstrap.servers": bootstrap_servers,
        "schema.history.internal.kafka.topic": f"{prefix}-schema-history",
        "include.schema.changes": "true",
    }
    return config | _common(prefix, tables, partitions, replace_null_with_default)


def _common(
    prefix: str, tables: Sequence[str] | None, partitions: int, replace_null_with_default: bool
) -> dict[str, str]:
    config = {
        "tasks.max": "1",
        "topic.prefix": prefix,
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
