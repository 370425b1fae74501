"""Many conditions as one, and values chosen by them."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F


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


def first_of(branches: Iterable[tuple[Column, Column]]) -> Column:
    """Return the value behind the first condition that holds, NULL if none does; there must be one.

    `otherwise` may follow, as after `F.when`.
    """
    (condition, value), *others = branches
    chosen = F.when(condition, value)
    for condition, value in others:
        chosen = chosen.when(condition, value)
    return chosen
