"""The event triggers that make Postgres tell what happens to its tables' columns.

Each command on an ordinary or partitioned table, temporary ones apart, writes a transactional logical message with the
columns before and behind it, of the table itself and of all tables that inherit from it; a dropped table writes one
that says so. Each message tells enough by itself, so it does not matter when the connector's slot was made.
Debezium sends them on topic `<topic.prefix>.message`, in the order of the rows around them; `lineage.message_forms`
shows their form. What that needs and where it ends:

- Debezium with `plugin.name=pgoutput` and Postgres 14 or later: before 14 pgoutput has no `messages` option, the
  messages stay in the log, and only readings of the catalogue can prove a rename. `wal_level=logical`.
- Not `message.prefix.include.list` without `cdc_sync`, nor `message.prefix.exclude.list` with it, in the connector.
- A superuser installs it (Amazon RDS: a member of `rds_superuser`), in every database that is captured. The triggers
  run with his rights (SECURITY DEFINER), in a schema that must be his or a superuser's: whoever changes tables needs
  no rights there, and has none.
- Not seen: what is done while event triggers are switched off (single-user mode; `event_triggers = off` from Postgres
  17 on) and what a superuser does to the catalogue by hand.
- Everybody who may connect may call `pg_logical_emit_message`, as Postgres comes, and so write a message that looks
  like ours. `revoke_emit` takes that right from PUBLIC; who has it is told when the triggers are looked at (`look_at`).
- The first 300 characters of the client's text go into the message; a password in them goes there too.

Source: Postgres documentation, "Event Triggers", "Event Trigger Functions", "Logical Decoding Message"; Debezium
documentation, Postgres connector, "Message events" and `message.prefix.*`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from cdc_sync.errors import SetupError
from cdc_sync.sources.databases.session import postgres

SCHEMA = "cdc_sync"
MISSING_LIMIT = 10_000
"""Characters of a value that messages carry; every one of a table's goes with each of its changes."""

_MISSING = "{schema}.missing_value(a.attrelid, a.attnum)"
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

_EVENTS = ("cdc_sync_ddl_command_end", "cdc_sync_sql_drop")
_TRIGGERS = f"""
SELECT t.evtname, t.evtenabled::text, p.prosecdef
FROM pg_catalog.pg_event_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.evtfoid
WHERE t.evtname IN {_EVENTS}
"""
_WRITERS = """
SELECT DISTINCT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE r.rolname::text END
FROM pg_catalog.pg_proc p
CROSS JOIN pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) acl
LEFT JOIN pg_catalog.pg_roles r ON r.oid = acl.grantee
WHERE p.proname = 'pg_logical_emit_message' AND p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace
  AND (acl.grantee = 0 OR NOT r.rolsuper)
ORDER BY 1
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What a database has of DDL capture.

    Attributes:
        problem: why commands on its tables are not told, or not surely; None if they are.
        writers: roles that may write a logical message of their own, superusers apart: `PUBLIC`, or names.
    """

    problem: str | None
    writers: tuple[str, ...] = ()


def install_sql(schema: str = SCHEMA, *, revoke_emit: bool = False) -> str:
    """Return the script that installs the event triggers and writes a baseline; it may be run again at any time.

    Args:
        schema: where the functions go.
        revoke_emit: nobody but superusers and the triggers is to write logical messages.
    """
    script = _template("ddl_capture.sql").replace("{state}", _STATE).replace("{captured}", _CAPTURED)
    script = script.replace("{before}", _BEFORE).replace("{stale}", _STALE)
    script = script.replace("{schema}", _identifier(schema)).replace("{schema_text}", f"$name${schema}$name$")
    return script + _template("ddl_capture_only.sql") if revoke_emit else script


def uninstall_sql(schema: str = SCHEMA) -> str:
    """Return the script that removes what `install_sql` made; it may be run where there is nothing to remove."""
    return _template("ddl_capture_removal.sql").replace("{schema}", _identifier(schema))


def apply(dsn: str, sql: str, *, password: str | None = None) -> tuple[str, ...]:
    """Run one of these scripts and return the server's warnings.

    Args:
        dsn: how to connect.
        sql: of `install_sql` or `uninstall_sql`.
        password: in place of the one that the dsn may have.

    Raises:
        SetupError: psycopg is missing, the server cannot be reached, or the user has not the right.
    """
    warnings: list[str] = []

    def note(diagnostic: Any) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            warnings.append(str(diagnostic.message_primary))

    with postgres(dsn, "set up DDL capture", password=password) as connection:
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
        found = look_at(connection)
        forged = None if found.problem is not None else may_be_forged(found.writers)  # it was removed just now
        warnings.extend([forged] if forged is not None else [])
    return tuple(warnings)


def look_at(connection: Any) -> Installation:
    """Return what the database that a connection is to has of DDL capture; every role may ask.

    Raises:
        psycopg.Error: the server does not answer.
    """
    triggers = {name: (state, definer) for name, state, definer in connection.execute(_TRIGGERS).fetchall()}
    states = {state for state, _ in triggers.values()}
    problem = None
    if len(triggers) < len(_EVENTS):
        problem = "the database does not have the event triggers of `cdc-sync install-ddl-capture`, or lost one"
    elif "D" in states:
        problem = "the event triggers are disabled"
    elif not all(definer for _, definer in triggers.values()):
        problem = "the event triggers are of an earlier version, which runs with the rights of whoever changes a table"
    return Installation(problem=problem, writers=tuple(name for (name,) in connection.execute(_WRITERS).fetchall()))


def may_be_forged(writers: Sequence[str]) -> str | None:
    """Say that others may write messages that look like ours, None if nobody may."""
    if not writers:
        return None
    who = "every user of the database" if "PUBLIC" in writers else ", ".join(writers)
    return (
        f"{who} may call pg_logical_emit_message, and so tell of commands that nobody ran; `cdc-sync "
        "install-ddl-capture --revoke-emit` takes that right from PUBLIC"
    )


def install_ddl_capture(
    connector: str,
    *,
    dsn: str | None,
    uninstall: bool = False,
    schema: str = SCHEMA,
    revoke_emit: bool = False,
    password: str | None = None,
) -> CaptureResult:
    """Install or remove DDL capture in a source database, or say how.

    Args:
        connector: Debezium's name of the source, such as `postgresql`.
        dsn: how to connect; None returns the script and does nothing.
        uninstall: remove it.
        schema: where the function goes.
        revoke_emit: see `install_sql`.
        password: in place of the one that the dsn may have.

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
    script = uninstall_sql(schema) if uninstall else install_sql(schema, revoke_emit=revoke_emit)
    if dsn is None:
        return CaptureResult(script=script, applied=False)
    return CaptureResult(script=script, applied=True, warnings=apply(dsn, script, password=password))


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
    return files("cdc_sync.sources.databases").joinpath(name).read_text(encoding="utf-8")


def _identifier(name: str) -> str:
    if not name or {"\0", "$"} & set(name) or len(name.encode()) > 63 or name.startswith("pg_"):
        raise SetupError(f"Cannot put DDL capture into schema {name!r}: this is no name for a schema")
    return '"' + name.replace('"', '""') + '"'
