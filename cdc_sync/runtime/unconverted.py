"""What a rewrite has no place for, looked for before it is carried out: nothing becomes NULL without a word."""

from __future__ import annotations

from cdc_sync.core.migration.migration import Migration, RewriteTable
from cdc_sync.core.migration.operator_requests import Unconverted, UnconvertedValue
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.schema.casts import always_converts, needs_cast
from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.types import DataType
from cdc_sync.runtime.context import Context
from cdc_sync.spark.unconverted import count_lost, first_lost

_KEPT = 1_000
"""Values of each column that are kept with their keys; all of them are in the state before the rewrite."""


def find_unconverted(context: Context, target: TargetName, migration: Migration, step: RewriteTable) -> Unconverted:
    """Count the stored values that have no place in their column's new type, and take down the first of them.

    One pass over the columns concerned, and another for each that has such values; none if every value converts.
    """
    columns = _may_lose(step, migration)
    key = step.before.key_columns
    counts: dict[str, int] = {}
    values: list[UnconvertedValue] = []
    if columns:
        ids = dict.fromkeys([*(column.id for column in key), *(column.id for column, _ in columns)])
        rows = context.target.read(target, step.before, tuple(ids))
        counts = count_lost(rows, columns)
        for column, new in columns:
            if column.name in counts:
                values += first_lost(rows, column, new, key, limit=_KEPT)
    values.sort(key=lambda item: (item.column, sorted(item.key.items())))
    return Unconverted(version=migration.version, counts=counts, values=tuple(values))


def _may_lose(step: RewriteTable, migration: Migration) -> list[tuple[Column, DataType]]:
    after = {column.id: column.type for column in migration.schema.columns}
    found = ((column, after[column.id]) for column in step.before.columns if column.id in after)
    return [
        (column, new) for column, new in found if needs_cast(column.type, new) and not always_converts(column.type, new)
    ]
