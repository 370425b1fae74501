"""The demo's Postgres: makes the database, writes to it, reads it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

import psycopg
from psycopg import sql
from typing_extensions import Self

from cdc_sync.demo.compare import ColumnImage, TableImage, plain
from cdc_sync.demo.postgres_scenario import POSTGRES_SCENARIO
from cdc_sync.demo.source import Database, Source
from cdc_sync.errors import SetupError
from cdc_sync.local.stack import LocalStack
from cdc_sync.sources.databases import postgres as ddl_capture

# The lake keeps these as the text that Postgres itself writes.
_READ_AS_TEXT = ("uuid", "json", "jsonb", "time without time zone")

_COLUMNS = """
    select attname, format_type(atttypid, atttypmod) from pg_attribute
    where attrelid = %s::regclass and attnum > 0 and not attisdropped order by attnum
"""
_KEY = """
    select attname from pg_index, unnest(indkey) with ordinality as part (number, place), pg_attribute
    where indrelid = %s::regclass and indisprimary and attrelid = indrelid and attnum = number order by place
"""
_STREAMING = """
    select 1 from pg_replication_slots join pg_stat_replication on pid = active_pid
    where slot_name = %s and state in ('catchup', 'streaming')
"""
_PATIENCE = 60.0
_TABLES = """
    select nspname || '.' || relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = %s and relkind = 'r' order by pg_class.oid
"""


def create_database(server: str, name: str) -> str:
    """Create a database and return the dsn that leads to it.

    Args:
        server: a dsn that leads to any database of the server.
        name: a plain lower-case word.
    """
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    return psycopg.conninfo.make_conninfo(server, dbname=name)


class PostgresSource:
    """One connection to the source; every call is a transaction of its own."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def execute(self, statements: Sequence[str]) -> None:
        """Run statements in one transaction."""
        with self._connection.transaction():
            for statement in statements:
                self._connection.execute(statement.encode())

    def tables(self, schema: str) -> tuple[str, ...]:
        """Return the tables of a schema as `schema.table`, oldest first."""
        return tuple(name for (name,) in self._connection.execute(_TABLES, (schema,)))

    def key(self, table: str) -> tuple[str, ...]:
        """Return the names of the primary key's columns in key order."""
        return tuple(name for (name,) in self._connection.execute(_KEY, (table,)))

    def image(self, table: str) -> TableImage:
        """Read a whole table, rows in the order of its key."""
        with self._connection.transaction():
            columns = tuple(
                ColumnImage(name=name, type=type_) for name, type_ in self._connection.execute(_COLUMNS, (table,))
            )
            query = sql.SQL("select {} from {} order by {}").format(
                sql.SQL(", ").join(map(_read, columns)),
                sql.Identifier(*table.split(".")),
                sql.SQL(", ").join(map(sql.Identifier, self.key(table))),
            )
            # Binary, because the text of a real has fewer digits than its value.
            rows = self._connection.execute(query, binary=True).fetchall()
        return TableImage(name=table, columns=columns, rows=tuple(tuple(plain(value) for value in row) for row in rows))


def _read(column: ColumnImage) -> sql.Composable:
    cast = sql.SQL("::text" if column.type in _READ_AS_TEXT else "")
    return sql.Identifier(column.name) + cast


def _open(stack: LocalStack, name: str) -> Source:
    return PostgresSource(create_database(stack.postgres.dsn, name))


def _capture(stack: LocalStack, name: str) -> None:
    stack.register_postgres_connector(name, extra={"database.dbname": name})
    dsn = psycopg.conninfo.make_conninfo(stack.postgres.dsn, dbname=name)
    install_ddl_capture(dsn, slot=name)


def install_ddl_capture(dsn: str, *, slot: str) -> None:
    """Have the source tell of its DDL, once the connector listens: it skips what was said before its snapshot.

    Args:
        dsn: leads to the database.
        slot: the replication slot of a connector that was registered just now.
    """
    deadline = time.monotonic() + _PATIENCE
    with psycopg.connect(dsn, autocommit=True) as connection:
        while connection.execute(_STREAMING, (slot,)).fetchone() is None:
            if time.monotonic() > deadline:
                raise SetupError(f"Cannot see what the source tells: nobody reads the replication slot {slot}")
            time.sleep(0.05)
    ddl_capture.apply(dsn, ddl_capture.install_sql())


def _client(stack: LocalStack, name: str) -> str:
    return f'psql "{psycopg.conninfo.make_conninfo(stack.postgres.dsn, dbname=name)}"'


POSTGRES = Database(
    name="postgres",
    title="Postgres",
    config="demo.yaml",
    scenario=POSTGRES_SCENARIO,
    open=_open,
    capture=_capture,
    client=_client,
)
"""The demo with Postgres."""
