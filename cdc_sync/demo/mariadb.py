"""The demo's MariaDB: makes the database, writes to it, reads it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from types import TracebackType
from urllib.parse import urlsplit

import pymysql
from typing_extensions import Self

from cdc_sync.demo.compare import ColumnImage, TableImage, plain
from cdc_sync.demo.mariadb_scenario import MARIADB_SCENARIO
from cdc_sync.demo.scenario import SCHEMA
from cdc_sync.demo.source import Database, Source
from cdc_sync.local.stack import LocalStack

_COLUMNS = """
    select column_name, column_type from information_schema.columns
    where table_schema = %s and table_name = %s order by ordinal_position
"""
_KEY = """
    select column_name from information_schema.key_column_usage
    where table_schema = %s and table_name = %s and constraint_name = 'PRIMARY' order by ordinal_position
"""
_TABLES = """
    select concat(table_schema, '.', table_name) from information_schema.tables
    where table_schema = %s order by table_name
"""


class MariadbSource:
    """One connection to a MariaDB server; every call is a transaction of its own.

    Args:
        url: as `mysql://user@host:port/`.
    """

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._connection = pymysql.connect(
            host=place.hostname, port=place.port or 0, user=place.username, charset="utf8mb4", autocommit=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def execute(self, statements: Sequence[str]) -> None:
        """Run statements in one transaction, unless they are DDL, of which each commits what was before it."""
        self._connection.begin()
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        self._connection.commit()

    def tables(self, schema: str) -> tuple[str, ...]:
        """Return the tables of a database as `database.table`."""
        return tuple(str(name) for (name,) in self._query(_TABLES, schema))

    def key(self, table: str) -> tuple[str, ...]:
        """Return the names of the primary key's columns in key order."""
        return tuple(str(name) for (name,) in self._query(_KEY, *table.split(".")))

    def image(self, table: str) -> TableImage:
        """Read a whole table, rows in the order of its key."""
        columns = tuple(
            ColumnImage(name=str(name), type=str(type_)) for name, type_ in self._query(_COLUMNS, *table.split("."))
        )
        names = ", ".join(map(_read, columns))
        rows = self._query(f"select {names} from {_quoted(*table.split('.'))} order by {_list(self.key(table))}")
        return TableImage(
            name=table,
            columns=columns,
            rows=tuple(tuple(_plain(value, c.type) for value, c in zip(row, columns, strict=True)) for row in rows),
        )

    def is_replicated(self) -> bool:
        """Tell whether a connector reads the binary log now."""
        return bool(self._query("select 1 from information_schema.processlist where command like 'Binlog Dump%'"))

    def _query(self, statement: str, *values: object) -> tuple[tuple[object, ...], ...]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return tuple(cursor.fetchall())


def _quoted(*parts: str) -> str:
    return ".".join("`{}`".format(part.replace("`", "``")) for part in parts)


def _list(names: Sequence[str]) -> str:
    return ", ".join(_quoted(name) for name in names)


def _read(column: ColumnImage) -> str:
    # The text of a float has fewer digits than its value.
    return f"cast({_quoted(column.name)} as double)" if column.type == "float" else _quoted(column.name)


def _plain(value: object, type_: str) -> object:
    match value:
        case timedelta():
            return _time(value)
        case datetime() if type_.startswith("timestamp"):
            return value.replace(tzinfo=timezone.utc)  # the server's zone, which the connection inherits
        case _:
            return plain(value)


def _time(value: timedelta) -> str:
    """Write a TIME as the lake does: `[-]HH:MM:SS[.f]`, more than a day too."""
    micros = value // timedelta(microseconds=1)
    seconds, fraction = divmod(abs(micros), 1_000_000)
    text = f"{'-' if micros < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def _open(stack: LocalStack, name: str) -> Source:
    return MariadbSource(stack.mariadb.url)


def _capture(stack: LocalStack, name: str) -> None:
    stack.register_mariadb_connector(name, extra={"database.include.list": SCHEMA})


def _client(stack: LocalStack, name: str) -> str:
    place = urlsplit(stack.mariadb.url)
    return f"mariadb --host {place.hostname} --port {place.port} --user {place.username} {SCHEMA}"


MARIADB = Database(
    name="mariadb",
    title="MariaDB",
    config="demo-mariadb.yaml",
    scenario=MARIADB_SCENARIO,
    open=_open,
    capture=_capture,
    client=_client,
)
"""The demo with MariaDB."""
