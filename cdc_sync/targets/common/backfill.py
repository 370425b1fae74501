"""The statement that gives rows the initial values of new columns; it may be repeated and changes nothing then."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_sync.core.migration.migration import Backfill, Compute
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.spark.types import literal_sql, to_spark
from cdc_sync.targets.common.partition_values import UNDIVIDED, Division, assignments


def backfill_statement(table: str, step: Backfill, division: Division = UNDIVIDED) -> str:
    """Return the UPDATE; `table` is SQL already."""
    return _fill(table, {column.name: literal_sql(column.initial, column.type) for column in step.columns}, division)


def compute_statement(table: str, step: Compute, schema: InternalSchema) -> str:
    """Return the UPDATE; `table` is SQL already. To be run with `strict_casts`."""
    found = ((schema.column(id_), expression.sql(schema)) for id_, expression in step.values)
    values = {column.name: f"CAST({sql} AS {to_spark(column.type).simpleString()})" for column, sql in found}
    return _fill(table, values, UNDIVIDED)


def _fill(table: str, values: Mapping[str, str], division: Division) -> str:
    # All columns of one step are new, so they are NULL in exactly the rows that are not filled yet.
    unfilled = " AND ".join(f"{quoted(name)} IS NULL" for name in values)
    return f"UPDATE {table} SET {assignments({**values, **division.also(values)})} WHERE {unfilled}"
