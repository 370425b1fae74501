"""The source database: one consistent snapshot at a time, read only, no locks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from cdc_sync.config.models import Config
from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import ConfigError, SetupError
from cdc_sync.operations.verify import mysql_sql, postgres_sql
from cdc_sync.operations.verify.columns import SourceColumn, SourceTypes
from cdc_sync.sources.databases import session

_VERB = "verify"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A table as the source has it now; `sql` names it."""

    sql: str
    columns: tuple[SourceColumn, ...]


class Source(Protocol):
    """A session with a source database."""

    types: SourceTypes

    def table(self, table: TableId) -> SourceTable | str:
        """Return a table, or why it cannot be read."""
        ...

    def ask(self, query: str) -> Sequence[Sequence[Any]]:
        """Run a query on the snapshot."""
        ...

    def renew(self) -> None:
        """Take a new snapshot."""
        ...


@contextmanager
def open_source(config: Config) -> Iterator[Source]:
    """Open the source that the configuration names.

    Raises:
        ConfigError: it names none.
        SetupError: the driver is missing, the server cannot be reached, or it refuses.
    """
    catalogue = config.evidence.catalogue
    if config.source is None and catalogue is None:
        raise ConfigError(
            "Cannot verify: the configuration names no source database; add source: {dsn: ...}, see `cdc-sync docs "
            "reference`"
        )
    dsn = config.source.dsn if config.source is not None else catalogue.dsn  # type: ignore[union-attr]
    password = config.source.password if config.source is not None else None
    if dsn.startswith(("mysql://", "mariadb://")):
        with session.mysql(dsn, _VERB, password=password) as connection:
            yield MysqlSource(connection)
    else:
        with session.postgres(dsn, _VERB, password=password) as connection:
            yield PostgresSource(connection)


_TYPES_SQL = """
SELECT oid::bigint, typname, typtype::text, typbasetype::bigint, typelem::bigint, typcategory::text
FROM pg_catalog.pg_type
"""
_COLUMNS_SQL = """
SELECT c.relkind::text, a.attname, a.atttypid::bigint, a.attgenerated <> ''
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') AND n.nspname = %s AND c.relname = %s
ORDER BY a.attnum
"""
_FIRST_OWN_OID = 16384
"""Types with lower numbers are Postgres' own (its `FirstNormalObjectId`)."""
_EXTENSIONS = frozenset({"citext", "ltree", "hstore"})


class PostgresSource:
    """A Postgres database, in one REPEATABLE READ transaction at a time."""

    types = SourceTypes(dialect=postgres_sql.POSTGRES, templates=postgres_sql.TYPES, reasons=postgres_sql.REASONS)

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        for statement in postgres_sql.SETTINGS:
            connection.execute(statement)
        (self._database,) = connection.execute("SELECT current_database()").fetchone()
        self._types = {row[0]: row for row in connection.execute(_TYPES_SQL).fetchall()}
        self._begin()

    def table(self, table: TableId) -> SourceTable | str:
        """Look a table's columns up."""
        if table.database != self._database:
            return f"it is of database {table.database!r}, and source.dsn leads to {self._database!r}"
        found = self._connection.execute(_COLUMNS_SQL, (table.schema, table.table)).fetchall()
        if not found:
            return "the source has no such table now"
        quoted = postgres_sql.POSTGRES.quoted
        # A table that others inherit from has their rows too, which are not its own; a partitioned one has no others.
        only = "ONLY " if found[0][0] == "r" else ""
        return SourceTable(
            sql=f"{only}{quoted(table.schema)}.{quoted(table.table)}",
            columns=tuple(_postgres_column(self._types, *row[1:]) for row in found),
        )

    def ask(self, query: str) -> Sequence[Sequence[Any]]:
        """Run a query on the snapshot.

        Raises:
            SetupError: the server refuses; the next table may still be asked.
        """
        psycopg = session.load_psycopg(_VERB)
        try:
            return list(self._connection.execute(query.encode()).fetchall())
        except psycopg.Error as error:
            self._connection.execute("ROLLBACK")
            raise SetupError(f"Cannot {_VERB}: {session.first_line(error)}") from None

    def renew(self) -> None:
        """Take a new snapshot."""
        self._connection.execute("COMMIT")
        self._begin()

    def _begin(self) -> None:
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


def _postgres_column(types: Mapping[int, Sequence[Any]], name: str, type_: int, generated: bool) -> SourceColumn:
    oid, typname, kind, base, element, category = types[type_]
    while kind == "d":
        oid, typname, kind, base, element, category = types[base]
    if category == "A" and element:
        inner = _postgres_column(types, name, element, generated)
        return SourceColumn(name=name, type=inner.type, is_list=True, reason=inner.reason)
    known = oid < _FIRST_OWN_OID or typname in _EXTENSIONS
    word = "enum" if kind == "e" else str(typname) if known else f"{typname} of its own"
    reason = "it is generated, and the source does not send it" if generated else None
    return SourceColumn(name=name, type=word, reason=reason)


_MYSQL_COLUMNS_SQL = """
SELECT column_name, data_type FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""


class MysqlSource:
    """A MariaDB or MySQL server, in one REPEATABLE READ transaction at a time."""

    types = SourceTypes(dialect=mysql_sql.MYSQL, templates=mysql_sql.TYPES, reasons=mysql_sql.REASONS)

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        for statement in mysql_sql.SETTINGS:
            self._execute(statement)
        self._begin()

    def table(self, table: TableId) -> SourceTable | str:
        """Look a table's columns up."""
        found = self._execute(_MYSQL_COLUMNS_SQL, table.database, table.table)
        if not found:
            return "the source has no such table now"
        quoted = mysql_sql.MYSQL.quoted
        return SourceTable(
            sql=f"{quoted(table.database)}.{quoted(table.table)}",
            columns=tuple(SourceColumn(name=str(name), type=str(type_).lower()) for name, type_ in found),
        )

    def ask(self, query: str) -> Sequence[Sequence[Any]]:
        """Run a query on the snapshot.

        Raises:
            SetupError: the server refuses; the next table may still be asked.
        """
        import pymysql

        try:
            return self._execute(query)
        except pymysql.MySQLError as error:
            raise SetupError(f"Cannot {_VERB}: {session.first_line(error)}") from None

    def renew(self) -> None:
        """Take a new snapshot."""
        self._execute("COMMIT")
        self._begin()

    def _begin(self) -> None:
        self._execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")

    def _execute(self, statement: str, *values: object) -> Sequence[Sequence[Any]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())
