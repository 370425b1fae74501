"""The only place where a name from outside becomes part of a Spark SQL text."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name as a Spark SQL identifier; whatever it holds, it stays one identifier."""
    return "`" + name.replace("`", "``") + "`"
