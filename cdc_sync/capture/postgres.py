"""The event triggers that make Postgres tell what happens to its tables' columns.

Each command on an ordinary or partitioned table, temporary ones apart, writes a transactional logical message with the
columns before and behind it, of the table itself and of all tables that inherit from it; a dropped table writes one
that says so. Each message tells enough by itself, so it does not matter when the connector's slot was made.
Debezium sends them on topic `<topic.prefix>.message`, in the order of the rows around them; `evidence.message_forms`
shows their form. What that needs and where it ends:

- Debezium with `plugin.name=pgoutput` and Postgres 14 or later: before 14 pgoutput has no `messages` option, the
  messages stay in the log, and only readings of the catalogue can prove a rename. `wal_level=logical`.
- Not `message.prefix.include.list` without `cdc_sync`, nor `message.prefix.exclude.list` with it, in the connector.
- A superuser installs it (Amazon RDS: a member of `rds_superuser`), in every database that is captured. Whoever changes
  tables needs no rights in its schema.
- Not seen: what is done while event triggers are switched off (single-user mode; `event_triggers = off` from Postgres
  17 on) and what a superuser does to the catalogue by hand.
- Everybody who may connect may call `pg_logical_emit_message` and so write a message that looks like ours; revoke
  EXECUTE on it where that matters, and grant it to those who change tables.
- The first 300 characters of the client's text go into the message; a password in them goes there too.

Source: Postgres documentation, "Event Triggers", "Event Trigger Functions", "Logical Decoding Message"; Debezium
documentation, Postgres connector, "Message events" and `message.prefix.*`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from cdc_sync.capture.session import postgres
from cdc_sync.errors import SetupError

SCHEMA = "cdc_sync"
MISSING_LIMIT = 10_000
"""Characters of a value that messages carry; every one of a table's goes with each of its changes."""

# Read by name, for Postgres 10 has no such column; the first element of an array of one.
_MISSING = "nullif((to_jsonb(a) -> 'attmissingval' -> 0)::text, 'null')"
_DEFAULT = """a.atthasdef OR a.attidentity <> '' OR EXISTS (
                        SELECT FROM pg_type t WHERE t.oid = a.atttypid AND t.typdefault IS NOT NULL)"""
_COLUMNS = """(
                SELECT coalesce(json_agg(json_build_object('attnum', a.attnum, 'name', a.attname, 'type',
                    format_type(a.atttypid, a.atttypmod), 'notnull', a.attnotnull,
                    'default', {default}{more}) ORDER BY a.attnum), '[]'::json)
                FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)"""
_STATE = """'schema', n.nspname, 'table', c.relname, 'relid', c.oid::bigint,
                'file', pg_relation_filenode(c.oid)::bigint, 'columns', """ + _COLUMNS.format(
    default=_DEFAULT,
    more=f", 'missing', CASE WHEN length({_MISSING}) > {MISSING_LIMIT} THEN 'a long value' ELSE {_MISSING} END",
)
_BEFORE = "'schema', n.nspname, 'table', c.relname, 'columns', " + _COLUMNS.format(default=_DEFAULT, more="")
"""Without what older rows read, which no command changes and which may be long."""

_NUMBER = "({row}.xmax::text::bigint - txid_current() % 4294967296 + 6442450944) % 4294967296 - 2147483648"
_CHANGED = f"{{row}}.xmax::text <> '0' AND txid_status(txid_current() + {_NUMBER}) = 'committed'"
_STALE = """({table} OR {schema} OR EXISTS (
                SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND {column}))""".format(
    table=_CHANGED.format(row="c"), schema=_CHANGED.format(row="n"), column=_CHANGED.format(row="a")
)
"""Whether another transaction changed the table behind the snapshot and before this command, which had to wait for it.

A row's xmax is then that transaction's; that of the command itself is still in progress. A transaction of REPEATABLE
READ has one snapshot from its beginning on.
"""

_CAPTURED = """c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
          AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureResult:
    """What `install_ddl_capture` did.

    Attributes:
        script: the SQL text.
        applied: it was run; else somebody has to run it, with `psql -f` for instance.
        warnings: what the server said while it ran, and what stands in the way of its use.
    """

    script: str
    applied: bool
    warnings: tuple[str, ...] = ()


def install_sql(schema: str = SCHEMA) -> str:
    """Return the script that installs the event triggers and writes a baseline; it may be run again at any time."""
    script = _template("ddl_capture.sql").replace("{state}", _STATE).replace("{captured}", _CAPTURED)
    script = script.replace("{before}", _BEFORE).replace("{stale}", _STALE)
    return script.replace("{schema}", _identifier(schema))


def uninstall_sql(schema: str = SCHEMA) -> str:
    """Return the script that removes what `install_sql` made; it may be run where there is nothing to remove."""
    return _template("ddl_capture_removal.sql").replace("{schema}", _identifier(schema))


def apply(dsn: str, sql: str) -> tuple[str, ...]:
    """Run one of these scripts and return the server's warnings.

    Raises:
        SetupError: psycopg is missing, the server cannot be reached, or the user has not the right.
    """
    warnings: list[str] = []

    def note(diagnostic: Any) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            warnings.append(str(diagnostic.message_primary))

    with postgres(dsn, "set up DDL capture") as connection:
        if connection.execute("SELECT pg_is_in_recovery()").fetchone()[0]:
            raise SetupError("Cannot set up DDL capture: the server is a standby. Use the primary")
        if not _may_install(connection):
            raise SetupError(
                "Cannot set up DDL capture: Postgres lets only superusers make event triggers (on Amazon RDS members "
                "of rds_superuser). Have one of them run what this command prints when no connection is given"
            )
        connection.add_notice_handler(note)
        connection.execute(sql)
        warnings.extend(_obstacles(connection))
    return tuple(warnings)


def install_ddl_capture(
    connector: str, *, dsn: str | None, uninstall: bool = False, schema: str = SCHEMA
) -> CaptureResult:
    """Install or remove DDL capture in a source database, or say how.

    Args:
        connector: Debezium's name of the source, such as `postgresql`.
        dsn: how to connect; None returns the script and does nothing.
        schema: where the function goes.

    Raises:
        SetupError: this source needs no such thing, or it cannot be installed.
    """
    if connector in ("mysql", "mariadb", "oracle"):
        raise SetupError(
            f"Cannot install DDL capture for {connector}: it needs none. Debezium sends this source's DDL on its "
            "schema-change topic, which is named as topic.prefix"
        )
    if connector not in ("postgresql", "postgres"):
        raise SetupError(f"Cannot install DDL capture for {connector!r}: there is one for postgresql only")
    script = uninstall_sql(schema) if uninstall else install_sql(schema)
    if dsn is None:
        return CaptureResult(script=script, applied=False)
    return CaptureResult(script=script, applied=True, warnings=apply(dsn, script))


def _may_install(connection: Any) -> bool:
    return bool(
        connection.execute(
            "SELECT r.rolsuper OR coalesce((SELECT pg_has_role(s.oid, 'MEMBER') FROM pg_roles s"
            " WHERE s.rolname = 'rds_superuser'), false) FROM pg_roles r WHERE r.rolname = current_user"
        ).fetchone()[0]
    )


def _obstacles(connection: Any) -> list[str]:
    version, level = connection.execute(
        "SELECT current_setting('server_version_num')::int, current_setting('wal_level')"
    ).fetchone()
    found = []
    if version < 140000:
        found.append("Postgres before 14 does not pass logical messages to Debezium: these will not arrive")
    if level != "logical":
        found.append(f"wal_level is {level!r}: Debezium needs 'logical'")
    return found


def _template(name: str) -> str:
    return files("cdc_sync.capture").joinpath(name).read_text(encoding="utf-8")


def _identifier(name: str) -> str:
    if not name or {"\0", "$"} & set(name) or len(name.encode()) > 63 or name.startswith("pg_"):
        raise SetupError(f"Cannot put DDL capture into schema {name!r}: this is no name for a schema")
    return '"' + name.replace('"', '""') + '"'
