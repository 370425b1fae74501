"""Many conditions as one."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column


def any_of(conditions: Iterable[Column]) -> Column:
    """Return whether at least one condition holds; there must be one."""
    first, *others = conditions
    for other in others:
        first = first | other
    return first


def all_of(conditions: Iterable[Column]) -> Column:
    """Return whether every condition holds; there must be one."""
    first, *others = conditions
    for other in others:
        first = first & other
    return first
