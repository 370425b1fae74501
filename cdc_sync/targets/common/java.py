"""Collections of the JVM, made of Python's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


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
