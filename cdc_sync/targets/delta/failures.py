"""What goes wrong with a Delta table, and what that means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.targets.common.java import failure, first_line
from cdc_sync.targets.protocol import moved

_CONFLICTS = "io.delta.exceptions."
"""The package of Delta's errors about commits that are in each other's way, and of no others."""


class NumberTaken(Exception):
    """Another commit of ours is behind the snapshot that a change was made for."""


@contextmanager
def telling(verb: str, name: TargetName) -> Iterator[None]:
    """Say which table something went wrong with, and that another commit came first where it did."""
    try:
        yield
    except NumberTaken as error:
        raise moved(name) from error
    except (Py4JJavaError, PySparkException) as error:
        said = first_line(error)
        if said.startswith(_CONFLICTS):
            raise moved(name) from error
        raise failure(f"{verb} {name}", error) from error
