"""Many conditions as one, and values chosen by them or by a record's partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from cdc_sync.core.model.positions import TableId
from cdc_sync.spark.columns import PARTITION


def any_of(conditions: Iterable[Column]) -> Column:
    """Return whether at least one condition holds; there must be one."""
    first, *others = conditions
    for other in others:
        first = first | other
    return first


def any_or_false(conditions: Iterable[Column]) -> Column:
    """Return whether any condition is known to hold; false if there is none."""
    return F.coalesce(any_of([F.lit(False), *conditions]), F.lit(False))


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


def names_table(names: Column, table: TableId) -> Column:
    """Return whether a struct of `db`, `schema` and `table` names a table."""
    wanted = (("db", table.database), ("schema", table.schema), ("table", table.table))
    return all_of(names.getField(name) == text for name, text in wanted)


def by_partition(numbers: Mapping[int, int]) -> Column:
    """Return the number of the record's partition, NULL where there is none.

    An array, because a number would stand in the generated code, which then had to be compiled anew for each batch.
    """
    listed = [numbers.get(partition) for partition in range(max(numbers, default=0) + 1)]
    return F.get(F.array(*(F.lit(number).cast("bigint") for number in listed)), F.col(PARTITION))
