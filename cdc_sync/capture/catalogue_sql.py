"""Reads a source's catalogue: the columns of tables as they are now, with the numbers that survive a rename."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cdc_sync.capture.session import postgres
from cdc_sync.errors import SetupError
from cdc_sync.events import SourcePosition, TableId
from cdc_sync.evidence.catalogue import CatalogueReading

POSTGRES_SQL = """
SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, c.oid::bigint, c.relnatts, a.attnum, a.attname,
       format_type(a.atttypid, a.atttypmod)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')
ORDER BY a.attnum
"""
"""One table's reading: parameters schema and table; rows of LSN, relid, highest number, number, name, type."""

SQLSERVER_SQL = """
SELECT t.object_id, t.max_column_id_used, c.column_id, c.name, TYPE_NAME(c.user_type_id)
FROM sys.tables t
JOIN sys.schemas s ON s.schema_id = t.schema_id
JOIN sys.columns c ON c.object_id = t.object_id
WHERE s.name = ? AND t.name = ?
ORDER BY c.column_id
"""
"""The same for SQL Server: rows of relid, highest number, number, name, type. Never run by us; see `sqlserver_reading`.

Source: Microsoft's documentation of `sys.tables` (`max_column_id_used`) and `sys.columns` (`column_id`).
"""


def read_catalogue(dsn: str, tables: Iterable[TableId]) -> tuple[CatalogueReading, ...]:
    """Read tables of one Postgres database; those that are not there, or are locked for 2 s, are left out.

    Each table is read under ACCESS SHARE, which waits for a change of its columns to be committed and keeps the next
    one away: the state is that of the LSN, exactly. The user needs SELECT on the table, as Debezium's has.

    Raises:
        SetupError: psycopg is missing, the server cannot be reached, is a standby or another database, or refuses.
    """
    readings = []
    with postgres(dsn, "read the catalogue") as connection:
        database, standby = connection.execute("SELECT current_database(), pg_is_in_recovery()").fetchone()
        if standby:
            raise SetupError("Cannot read the catalogue: the server is a standby. Use the primary")
        for table in tables:
            if table.database != database:
                raise SetupError(f"Cannot read the catalogue: {table} is not in database {database!r}")
            reading = _read(connection, table)
            if reading is not None:
                readings.append(reading)
    return tuple(readings)


def _read(connection: Any, table: TableId) -> CatalogueReading | None:
    from psycopg import errors, sql

    name = sql.Identifier(table.schema, table.table)
    try:
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '2s'")
            connection.execute(sql.SQL("LOCK TABLE ONLY {} IN ACCESS SHARE MODE").format(name))
            rows = connection.execute(POSTGRES_SQL, (table.schema, table.table)).fetchall()
    except (errors.UndefinedTable, errors.InvalidSchemaName, errors.WrongObjectType, errors.LockNotAvailable):
        return None
    return postgres_reading(table, rows)


def postgres_reading(table: TableId, rows: Sequence[Sequence[Any]]) -> CatalogueReading | None:
    """Make a reading of the rows of `POSTGRES_SQL`, None if there are none."""
    if not rows:
        return None
    lsn, relid, highest = (int(value) for value in rows[0][:3])
    return CatalogueReading(
        position=SourcePosition(kind="postgresql", parts=(lsn, lsn)),
        table=table,
        relid=relid,
        columns=tuple((int(number), str(name), str(type_)) for *_, number, name, type_ in rows if number is not None),
        highest=highest,
    )


def sqlserver_reading(
    table: TableId, position: SourcePosition, rows: Sequence[Sequence[Any]]
) -> CatalogueReading | None:
    """Make a reading of the rows of `SQLSERVER_SQL`, None if there are none; who ran it says at which position."""
    if not rows:
        return None
    return CatalogueReading(
        position=position,
        table=table,
        relid=int(rows[0][0]),
        columns=tuple((int(number), str(name), str(type_)) for *_, number, name, type_ in rows),
        highest=int(rows[0][1]),
    )
