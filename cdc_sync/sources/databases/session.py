"""A session with the source database, for the few things that are asked of it directly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cdc_sync.errors import SetupError


@contextmanager
def postgres(dsn: str, verb: str, *, password: str | None = None) -> Iterator[Any]:
    """Open a psycopg connection in autocommit mode and translate what it raises.

    Args:
        dsn: what libpq connects with: a URL or `key=value` words. It is never shown in errors.
        verb: what is being done, for the message: "Cannot <verb>: …".
        password: in place of the one that the dsn may have.

    Raises:
        SetupError: psycopg is missing, the server cannot be reached, or it refuses.
    """
    psycopg = load_psycopg(verb)
    settings: dict[str, Any] = {} if password is None else {"password": str(password)}
    try:
        with psycopg.connect(dsn, autocommit=True, application_name="cdc_sync", **settings) as connection:
            yield connection
    except psycopg.errors.InsufficientPrivilege as error:
        raise SetupError(f"Cannot {verb}: the user may not ({first_line(error)})") from None
    except psycopg.Error as error:
        raise SetupError(f"Cannot {verb}: {first_line(error)}") from None


@contextmanager
def mysql(dsn: str, verb: str, *, password: str | None = None) -> Iterator[Any]:
    """Open a PyMySQL connection to MariaDB or MySQL in autocommit mode and translate what it raises.

    Args:
        dsn: `mysql://user@host:port/`; `mariadb://` is the same. It is never shown in errors.
        verb: what is being done, for the message: "Cannot <verb>: …".
        password: in place of the one that the dsn may have.

    Raises:
        SetupError: PyMySQL is missing, the server cannot be reached, or it refuses.
    """
    try:
        import pymysql
    except ImportError:
        raise SetupError(f"Cannot {verb}: PyMySQL is missing. Install it with pip install 'cdc-sync[mysql]'") from None
    place = urlsplit(dsn)
    options = {name: values[-1] for name, values in parse_qs(place.query).items()}
    if unknown := sorted(options.keys() - {"ssl_ca", "ssl_cert", "ssl_key"}):
        raise SetupError(
            f"Cannot {verb}: {unknown[0]!r} is no option of the source's dsn; ssl_ca, ssl_cert, ssl_key are"
        )
    try:
        with pymysql.connect(
            host=place.hostname or "localhost",
            port=place.port or 3306,
            user=unquote(place.username or ""),
            password=str(password) if password is not None else unquote(place.password or ""),
            charset="utf8mb4",
            autocommit=True,
            program_name="cdc_sync",
            ssl_ca=options.get("ssl_ca"),
            ssl_cert=options.get("ssl_cert"),
            ssl_key=options.get("ssl_key"),
        ) as connection:
            yield connection
    except pymysql.MySQLError as error:
        raise SetupError(f"Cannot {verb}: {first_line(error)}") from None


def load_psycopg(verb: str) -> Any:
    """Return the driver.

    Raises:
        SetupError: it is not installed.
    """
    try:
        import psycopg
    except ImportError:
        raise SetupError(
            f"Cannot {verb}: psycopg is missing. Install it with pip install 'cdc-sync[postgres]'"
        ) from None
    return psycopg


def first_line(error: Exception) -> str:
    """Return the first line of what the server or the driver says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
