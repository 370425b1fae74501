"""A real Postgres for one module of tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from cdc_sync.local.ports import free_ports
from cdc_sync.local.postgres import PostgresServer


@contextmanager
def postgres_server(*statements: str) -> Iterator[PostgresServer]:
    """Start a server on a free port; if there are statements, run them and start it again, for settings to count."""
    (port,) = free_ports(1)
    # Not pytest's folder, which the user that Postgres runs as may not enter.
    with TemporaryDirectory(prefix="cdc-sync-postgres-") as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer(Path(folder) / "postgres", port=port)
        server.start()
        if statements:
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                for statement in statements:
                    connection.execute(statement)
            server.stop()
            server.start()
        yield server
        server.stop()
