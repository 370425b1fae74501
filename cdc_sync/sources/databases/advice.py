"""What is wrong with a Postgres source before a connector reads it, or beside one that does.

A table in a publication whose rows have no identity (no primary key, and REPLICA IDENTITY neither FULL nor an index)
refuses UPDATE and DELETE: the application's own statements fail from the moment on at which a publication holds it,
which with Debezium's `publication.autocreate.mode` is when the connector starts. Source: Postgres documentation,
"Logical Replication", "Publication".
"""

from __future__ import annotations

from typing import Any

from cdc_sync.config.models import Config
from cdc_sync.errors import SetupError
from cdc_sync.sources.databases.postgres import look_at, may_be_forged
from cdc_sync.sources.databases.session import postgres

_NAMED = 10
_WITHOUT_IDENTITY = """
SELECT n.nspname, c.relname, EXISTS (
    SELECT FROM pg_catalog.pg_publication_tables t JOIN pg_catalog.pg_publication p ON p.pubname = t.pubname
    WHERE t.schemaname = n.nspname AND t.tablename = c.relname AND (p.pubupdate OR p.pubdelete))
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.relpersistence = 'p'
  AND pg_catalog.left(n.nspname, 3) <> 'pg_' AND n.nspname <> 'information_schema'
  AND CASE c.relreplident WHEN 'f' THEN false WHEN 'n' THEN true ELSE NOT EXISTS (
      SELECT FROM pg_catalog.pg_index i
      WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END) END
ORDER BY n.nspname, c.relname
"""


def advice_on_source(config: Config) -> tuple[str, ...]:
    """Return warnings about the source database, if the configuration leads to one that is Postgres."""
    captured = bool(config.evidence.messages)
    if config.evidence.catalogue is not None:
        return advice_on(config.evidence.catalogue.dsn, captured=captured)
    if config.source is not None and not config.source.dsn.startswith(("mysql://", "mariadb://")):
        return advice_on(config.source.dsn, captured=captured, password=config.source.password)
    return ()


def advice_on(dsn: str, *, captured: bool, password: str | None = None) -> tuple[str, ...]:
    """Return warnings about a source database, each a sentence with a remedy.

    Args:
        dsn: how to connect.
        captured: whether the job reads what DDL capture writes there.
        password: in place of the one that the dsn may have.
    """
    try:
        with postgres(dsn, "look at the source", password=password) as connection:
            found = _identities(connection)
            if captured:
                installed = look_at(connection)
                about = (installed.problem, may_be_forged(installed.writers))
                found += [f"evidence.messages: {text}" for text in about if text is not None]
    except SetupError as error:
        return (str(error),)
    return tuple(found)


def _identities(connection: Any) -> list[str]:
    rows = connection.execute(_WITHOUT_IDENTITY).fetchall()
    published = [f"{schema}.{table}" for schema, table, is_published in rows if is_published]
    others = [f"{schema}.{table}" for schema, table, is_published in rows if not is_published]
    remedy = "ALTER TABLE … REPLICA IDENTITY FULL, or give it a primary key"
    found = []
    if published:
        found.append(
            f"{_named(published)}: in a publication without a primary key or replica identity, so the application's "
            f"UPDATE and DELETE fail on it; {remedy}"
        )
    if others:
        found.append(
            f"{_named(others)}: without a primary key or replica identity, so the application's UPDATE and DELETE fail "
            f"on it once a publication holds it, as the connector's own does; first {remedy}, or leave it out of both"
        )
    return found


def _named(tables: list[str]) -> str:
    more = f" and {len(tables) - _NAMED} more" if len(tables) > _NAMED else ""
    return ", ".join(tables[:_NAMED]) + more
