"""What went wrong in the JVM, in one line."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError


def first_line(error: Exception) -> str:
    """Return what the innermost cause says."""
    if not isinstance(error, Py4JJavaError):
        return str(error).split("\n", 1)[0]
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).split("\n", 1)[0]
