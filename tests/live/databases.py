"""The two databases as the histories use them: sessions, places in the log, what the catalogue says of columns."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

import psycopg
import pymysql

from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.demo.mariadb import MariadbSource
from cdc_sync.demo.postgres import PostgresSource, create_database, install_ddl_capture
from cdc_sync.demo.source import Source
from cdc_sync.local.stack import LocalStack
from tests.live.dialects import Dialect, Mariadb, Postgres

SCHEMA = "live"
NOTIFICATIONS = "live-notifications"
"""The topic in which the connectors tell how reading a table again went."""
_SIGNALS = "(id varchar(42) primary key, type varchar(32) not null, data varchar(2048))"
_PATIENCE = 180.0

Place: TypeAlias = tuple[int, ...]
"""Where in the source's log something happened; comparable inside one source."""


class Session(Protocol):
    """One connection, in one transaction at a time."""

    def execute(self, statement: str) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def place(self) -> Place:
        """Return where the log ends now; what comes later stands there or behind."""
        ...

    def columns(self, table: str) -> tuple[tuple[str, int | None], ...]:
        """Return names, and the number by which the catalogue knows each column, if it does."""
        ...

    def close(self) -> None: ...


class Database(Protocol):
    """One of the two, with its connector.

    Attributes:
        name: also the connector's, and the first part of topics.
        survives: the connector goes on after it was killed. MariaDB's may not: it reads a rename again that its history
            of the tables already has, and fails.
        late_defaults: the connector asks for defaults and the key when it reads an event, not as of the event.
        evidence: the topic that tells of DDL, as the configuration names it.
    """

    name: str
    survives: bool
    late_defaults: bool
    evidence: tuple[str, str]

    def dialect(self, chance: random.Random) -> Dialect: ...

    def session(self) -> Session: ...

    def source(self) -> Source: ...

    def table_id(self, table: str) -> TableId: ...

    def place_of(self, position: SourcePosition) -> Place:
        """Return the place of an event."""
        ...

    def connect(self) -> None:
        """Register the connector, the first time or again."""
        ...

    def wait_seen(self, place: Place) -> None:
        """Return once the connector has sent what stands before a place."""
        ...

    def signal(self, statement: str) -> None:
        """Run a statement for the signalling table, as `cdc-sync resync` prints it."""
        ...


class _PostgresSession:
    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn)

    def execute(self, statement: str) -> None:
        self._connection.execute(statement.encode())

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def place(self) -> Place:
        row = self._connection.execute("select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint").fetchone()
        assert row is not None
        return (int(row[0]),)

    def columns(self, table: str) -> tuple[tuple[str, int | None], ...]:
        return tuple(
            self._connection.execute(
                "select attname, attnum from pg_attribute where attrelid = %s::regclass and attnum > 0"
                " and not attisdropped order by attnum",
                (table,),
            ).fetchall()
        )

    def close(self) -> None:
        self._connection.close()


class PostgresDatabase:
    """Postgres with the event triggers that tell of DDL."""

    name = "pglive"
    survives = True
    late_defaults = True
    evidence = ("messages", "pglive.message")

    def __init__(self, stack: LocalStack) -> None:
        self._stack = stack
        self._dsn = create_database(stack.postgres.dsn, self.name)
        self._known = False
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(f"create schema {SCHEMA}")
            connection.execute("create table public.pulse (id int primary key, beat bigint)")
            connection.execute(f"create table public.signals {_SIGNALS}")

    def dialect(self, chance: random.Random) -> Dialect:
        return Postgres(chance=chance)

    def session(self) -> Session:
        return _PostgresSession(self._dsn)

    def source(self) -> Source:
        return PostgresSource(self._dsn)

    def table_id(self, table: str) -> TableId:
        return TableId(database=self.name, schema=SCHEMA, table=table)

    def place_of(self, position: SourcePosition) -> Place:
        return position.parts[1:]

    def connect(self) -> None:
        self._stack.register_postgres_connector(
            self.name, extra={"database.dbname": self.name} | _told("public.signals")
        )
        if not self._known:
            install_ddl_capture(self._dsn, slot=self.name)
            self._known = True

    def wait_seen(self, place: Place) -> None:
        deadline = time.monotonic() + _PATIENCE
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while True:
                row = connection.execute(
                    "select (confirmed_flush_lsn - '0/0'::pg_lsn)::bigint from pg_replication_slots"
                ).fetchone()
                if row is not None and int(row[0]) > place[0]:
                    return
                assert time.monotonic() < deadline, "the connector does not move on"
                # It confirms a place only when an event beyond it arrives.
                connection.execute(
                    "insert into public.pulse values (1, 1) on conflict (id) do update set beat = pulse.beat + 1"
                )
                time.sleep(0.2)

    def signal(self, statement: str) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(statement.replace("<signal.data.collection>", "public.signals").encode())


def _told(signals: str) -> dict[str, str]:
    """Return a connector's settings for being asked by a table, and for telling how it went."""
    return {
        "signal.enabled.channels": "source",
        "signal.data.collection": signals,
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": NOTIFICATIONS,
    }


class _MariadbSession:
    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._connection = pymysql.connect(
            host=place.hostname, port=place.port or 0, user=place.username, charset="utf8mb4", database=SCHEMA
        )

    def execute(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def place(self) -> Place:
        file, position = self._query("show master status")[0][:2]
        return (int(str(file).rpartition(".")[2]), int(str(position)))

    def columns(self, table: str) -> tuple[tuple[str, int | None], ...]:
        found = self._query(
            "select column_name from information_schema.columns where concat(table_schema, '.', table_name) = %s"
            " order by ordinal_position",
            table,
        )
        return tuple((str(name), None) for (name,) in found)

    def close(self) -> None:
        self._connection.close()

    def _query(self, statement: str, *values: object) -> Sequence[tuple[object, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
            return tuple(cursor.fetchall())


class MariadbDatabase:
    """MariaDB, whose connector tells of DDL by itself."""

    name = "malive"
    survives = False
    late_defaults = False
    evidence = ("schema_changes", "malive")

    def __init__(self, stack: LocalStack) -> None:
        self._stack = stack
        with MariadbSource(stack.mariadb.url) as admin:
            admin.execute([f"create database {SCHEMA}", f"create table {SCHEMA}.signals {_SIGNALS}"])

    def dialect(self, chance: random.Random) -> Dialect:
        return Mariadb(chance=chance)

    def session(self) -> Session:
        return _MariadbSession(self._stack.mariadb.url)

    def source(self) -> Source:
        return MariadbSource(self._stack.mariadb.url)

    def table_id(self, table: str) -> TableId:
        return TableId(database=SCHEMA, schema="", table=table)

    def place_of(self, position: SourcePosition) -> Place:
        return position.parts[:2]

    def connect(self) -> None:
        # Shadow tables are not captured, their DDL is told all the same.
        extra = {"database.include.list": SCHEMA, "read.only": "false"} | _told(f"{SCHEMA}.signals")
        self._stack.register_mariadb_connector(self.name, [f"{SCHEMA}[.]h[0-9]+"], extra=extra)
        deadline = time.monotonic() + _PATIENCE
        with MariadbSource(self._stack.mariadb.url) as admin:
            # A table that is altered while the connector reads its first snapshot makes it fail.
            while not admin.is_replicated():
                assert time.monotonic() < deadline, "the connector does not begin to read the log"
                time.sleep(0.1)

    def wait_seen(self, place: Place) -> None:
        """Need not wait: the connector learns of DDL in the order of the log."""

    def signal(self, statement: str) -> None:
        with MariadbSource(self._stack.mariadb.url) as admin:
            admin.execute([statement.replace("<signal.data.collection>", f"{SCHEMA}.signals")])
