"""Collections of the JVM, made of Python's, and what its errors mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError

from cdc_sync.errors import FilesGone, TargetError

_GONE = re.compile(
    r"FileNotFoundException|NoSuchFileException|FILE_NOT_EXIST|FILE_NOT_FOUND|NoSuchKey|File does not exist|"
    r"NotFoundException: (?:File|Failed to open)|Failed to open input stream for file"
)
"""How Hadoop, Java, Spark, Delta, S3 and Iceberg say that a file which is part of a table is not there."""


def java_map(jvm: Any, values: Mapping[str, str]) -> Any:
    """Return a map of the JVM."""
    found = jvm.java.util.HashMap()
    for key, value in values.items():
        found.put(key, value)
    return found


def java_list(jvm: Any, items: Iterable[Any]) -> Any:
    """Return a list of the JVM."""
    found = jvm.java.util.ArrayList()
    for item in items:
        found.add(item)
    return found


def first_line(error: Exception) -> str:
    """Return what the innermost cause says."""
    if not isinstance(error, Py4JJavaError):
        return str(error).split("\n", 1)[0]
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).split("\n", 1)[0]


def failure(what: str, error: Exception) -> TargetError:
    """Return the error of something that could not be done, as in "write lake.orders"."""
    said = first_line(error)
    text = f"Cannot {what}: {said}"
    return FilesGone(text) if _GONE.search(said) else TargetError(text)
