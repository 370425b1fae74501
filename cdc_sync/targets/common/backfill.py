"""The statement that gives rows the initial values of new columns; it may be repeated and changes nothing then."""

from __future__ import annotations

from cdc_sync.core.migration.migration import Backfill
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.spark.types import literal_sql
from cdc_sync.targets.common.partition_values import UNDIVIDED, Division, assignments


def backfill_statement(table: str, step: Backfill, division: Division = UNDIVIDED) -> str:
    """Return the UPDATE; `table` is SQL already."""
    values = {column.name: literal_sql(column.initial, column.type) for column in step.columns}
    # All columns of one step are new, so they are NULL in exactly the rows that are not filled yet.
    unfilled = " AND ".join(f"{quoted(column.name)} IS NULL" for column in step.columns)
    return f"UPDATE {table} SET {assignments(values | division.also(values))} WHERE {unfilled}"
