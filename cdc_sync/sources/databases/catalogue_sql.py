"""Reads a source's catalogue: the columns of tables as they are now, with the numbers that survive a rename.

No table is locked. The place in the log is asked for before and behind the reading, each by a statement of its own; and
a table whose columns somebody is changing just then is left out, because rows of that very transaction may be in the
log already: it holds ACCESS EXCLUSIVE until others see what it did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from cdc_sync.core.lineage.catalogue import WIDE_MARGIN, Attribute, CatalogueReading, Stamp
from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import SetupError

BEGIN_SQL = """
SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, current_database(),
       pg_walfile_name(pg_current_wal_insert_lsn())
"""
LOCKED_SQL = """
SELECT relation::bigint FROM pg_catalog.pg_locks
WHERE locktype = 'relation' AND mode = 'AccessExclusiveLock' AND granted
  AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
"""
_AT = "(extract(epoch FROM CASE WHEN clock.known THEN pg_xact_commit_timestamp({row}.xmin) END) * 1000000)::bigint"
_COMMAND = "CASE WHEN {row}.xmax::text = '0' THEN {row}.cmin::text::bigint END"
"""Deleting or changing a row of the catalogue writes over the number, even if that is rolled back."""
TABLES_SQL = f"""
WITH clock AS (
    SELECT current_setting('track_commit_timestamp') = 'on'
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_replication_origin) AS known
)
SELECT n.nspname, c.relname, c.oid::bigint, t.xmin::text::bigint, {_AT.format(row="t")}, {_COMMAND.format(row="t")},
       n.xmin::text::bigint, {_AT.format(row="n")}, a.attnum, a.attisdropped, a.attname,
       format_type(a.atttypid, a.atttypmod), a.xmin::text::bigint, {_AT.format(row="a")}, {_COMMAND.format(row="a")},
       {{generated}}
FROM clock, pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = c.reltype
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relkind IN ('r', 'p')
  AND (n.nspname, c.relname) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
ORDER BY n.nspname, c.relname, a.attnum
"""
"""Parameters: schemas and tables; to be formatted with what tells whether a column is generated.

The row type has the table's name and schema, and is written whenever one of them changes; the table's own row is
written for many other reasons. Times of commits that came by replication are of another server's clock, so they are not
asked for where there may be such.
"""
_GENERATED_SINCE = 120000
NAMES_SQL = """
SELECT current_database(), n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
  AND left(n.nspname, 3) <> 'pg_' AND n.nspname <> 'information_schema'
"""
SINCE_SQL = """
SELECT control.oldest, min((extract(epoch FROM pg_xact_commit_timestamp(number::text::xid)) * 1000000)::bigint)
FROM (SELECT oldest_commit_ts_xid::text::bigint AS oldest FROM pg_control_checkpoint()) AS control,
     generate_series(control.oldest, control.oldest + 99) AS number
WHERE control.oldest > 2 AND current_setting('track_commit_timestamp') = 'on'
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_replication_origin)
GROUP BY control.oldest
"""
"""The first transaction whose time is kept, and about when that was: what is older has no time, and was done before."""
COMMANDS_SQL = """
SELECT array_agg(c.relfrozenxid::text::bigint),
       max((extract(epoch FROM greatest(
           pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid),
           pg_stat_get_db_stat_reset_time(d.oid), pg_stat_get_bgwriter_stat_reset_time(),
           pg_postmaster_start_time(), pg_last_xact_replay_timestamp() + interval '10 minutes'
       )) * 1000000)::bigint),
       EXISTS (SELECT FROM pg_catalog.pg_locks
               WHERE locktype = 'relation' AND granted AND database = max(d.oid::bigint)::oid
                 AND relation IN ('pg_catalog.pg_attribute'::regclass, 'pg_catalog.pg_type'::regclass)
                 AND mode IN ('ShareUpdateExclusiveLock', 'AccessExclusiveLock'))
FROM pg_catalog.pg_class c, pg_catalog.pg_database d
WHERE c.oid IN ('pg_catalog.pg_attribute'::regclass, 'pg_catalog.pg_type'::regclass) AND d.datname = current_database()
"""
"""Since when the catalogue tells commands: transactions that may be frozen, a time, and whether it is cleaned up now.

The log does not hold the number of a command: rows of the catalogue that were replayed from it, after a crash or at a
standby that was promoted, tell 0. What VACUUM freezes may have had its number written over, with no trace left; when
that was last is forgotten when statistics are. So only what was committed later counts.
"""
END_SQL = """
SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What one look at the catalogue found.

    Attributes:
        database: where it was made.
        found: the tables that are there.
        locked: tables whose columns were being changed; worth asking again.
    """

    database: str
    found: Mapping[TableId, CatalogueReading]
    locked: frozenset[TableId]


def list_tables(connection: Any) -> list[TableId]:
    """Return all tables of the database that a connection is to, but the server's own and those that no log has."""
    rows = connection.execute(NAMES_SQL).fetchall()
    return [TableId(database=database, schema=schema, table=table) for database, schema, table in rows]


def read_catalogue(connection: Any, tables: Collection[TableId]) -> Readings:
    """Read tables of the database that a connection (psycopg, autocommit) is to; other databases' are not asked for.

    Raises:
        SetupError: the server is a standby.
        psycopg.Error: it does not answer, or refuses.
    """
    if connection.execute("SELECT pg_is_in_recovery()").fetchone()[0]:
        raise SetupError("Cannot read the catalogue: the server is a standby. Use the primary")
    begun, database, walfile = connection.execute(BEGIN_SQL).fetchone()
    locked = {relid for (relid,) in connection.execute(LOCKED_SQL).fetchall()}
    asked = sorted(table for table in tables if table.database == database)
    names = [table.schema for table in asked], [table.table for table in asked]
    told = connection.info.server_version >= _GENERATED_SINCE
    sql = TABLES_SQL.format(generated="a.attgenerated <> ''" if told else "false")
    rows = connection.execute(sql, names).fetchall()
    since = connection.execute(SINCE_SQL).fetchone()
    since_when = connection.execute(COMMANDS_SQL).fetchone()  # behind the rows, so that nothing is missed between
    rows = [_commands(_times(row, since), *since_when) for row in rows]
    ended, taken = connection.execute(END_SQL).fetchone()
    frame = {"begun": int(begun), "ended": int(ended), "taken": int(taken), "server": _server(connection, walfile)}
    found = {reading.table: reading for reading in _readings(database, rows, frame)}
    busy = frozenset(table for table, reading in found.items() if reading.relid in locked)
    rest = {table: reading for table, reading in found.items() if table not in busy}
    return Readings(database=database, found=rest, locked=busy)


def _server(connection: Any, walfile: str) -> str:
    """Return which server and timeline this is: a file of the log is named after its timeline first."""
    (system,) = connection.execute("SELECT system_identifier FROM pg_control_system()").fetchone()
    return f"{system}/{walfile[:8]}"


_STAMPS = ((3, 4), (6, 7), (12, 13))
"""Where a transaction's number and its time stand in a row of `TABLES_SQL`."""


def _times(row: Sequence[Any], since: tuple[int, int | None] | None) -> list[Any]:
    """Return a row in which transactions from before times were kept have the first time, generously."""
    found = list(row)
    oldest, first = since or (0, None)
    if first is None:
        return found
    for xid, at in _STAMPS:
        if found[xid] is not None and found[at] is None and (found[xid] < 3 or _is_before(found[xid], oldest)):
            found[at] = first + WIDE_MARGIN
    return found


_COMMANDS = ((3, 4, 5), (12, 13, 14))
"""Where a transaction's number, its time and the command's number stand in a row of `TABLES_SQL`."""


def _commands(row: Sequence[Any], frozen: Sequence[int], since: int, is_cleaned: bool) -> list[Any]:
    """Return a row without the numbers of commands that may not be what they were."""
    found = list(row)
    for xid, at, command in _COMMANDS:
        is_told = not is_cleaned and found[at] is not None and found[at] > since
        if not is_told or any(_is_before(found[xid], oldest) for oldest in frozen):
            found[command] = None
    return found


def _is_before(xid: int, other: int) -> bool:
    return 0 < (other - xid) % 2**32 < 2**31


def _readings(database: str, rows: Sequence[Sequence[Any]], frame: Mapping[str, Any]) -> Iterator[CatalogueReading]:
    for (schema, table), own in groupby(rows, key=lambda row: (row[0], row[1])):
        attributes = list(own)
        relid, named, named_at, command, schema_named, schema_at = attributes[0][2:8]
        yield CatalogueReading(
            table=TableId(database=database, schema=schema, table=table),
            relid=int(relid),
            named=Stamp(xid=named, at=named_at, command=command),
            schema_named=Stamp(xid=schema_named, at=schema_at),
            attributes=tuple(_attribute(*row[8:]) for row in attributes if row[8] is not None),
            **frame,
        )


def _attribute(
    number: int,
    dropped: bool,
    name: str,
    type_: str,
    xid: int,
    at: int | None,
    command: int | None,
    generated: bool | None,
) -> Attribute:
    stamp = Stamp(xid=xid, at=at, command=command)
    if dropped:
        return Attribute(number=number, stamp=stamp)
    return Attribute(number=number, name=name, type=type_, stamp=stamp, generated=generated)
