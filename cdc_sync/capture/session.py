"""A session with the source database, for the few things that are asked of it directly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cdc_sync.errors import SetupError


@contextmanager
def postgres(dsn: str, verb: str) -> Iterator[Any]:
    """Open a psycopg connection in autocommit mode and translate what it raises.

    Args:
        dsn: what libpq connects with: a URL or `key=value` words. It is never shown in errors.
        verb: what is being done, for the message: "Cannot <verb>: …".

    Raises:
        SetupError: psycopg is missing, the server cannot be reached, or it refuses.
    """
    psycopg = load_psycopg(verb)
    try:
        with psycopg.connect(dsn, autocommit=True, application_name="cdc_sync") as connection:
            yield connection
    except psycopg.errors.InsufficientPrivilege as error:
        raise SetupError(f"Cannot {verb}: the user may not ({first_line(error)})") from None
    except psycopg.Error as error:
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
