"""The statement that gives rows the initial values of new columns; it may be repeated and changes nothing then."""

from __future__ import annotations

from cdc_sync.core.migration.migration import Backfill, Compute
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.spark.types import literal_sql, to_spark
from cdc_sync.targets.common.partition_values import UNDIVIDED, Division, assignments


def backfill_statement(table: str, step: Backfill, division: Division = UNDIVIDED) -> str:
    """Return the UPDATE; `table` is SQL already."""
    values = {column.name: literal_sql(column.initial, column.type) for column in step.columns}
    # All columns of one step are new, so they are NULL in exactly the rows that are not filled yet.
    unfilled = " AND ".join(f"{quoted(column.name)} IS NULL" for column in step.columns)
    return f"UPDATE {table} SET {assignments(values | division.also(values))} WHERE {unfilled}"


def compute_statement(table: str, step: Compute, schema: InternalSchema) -> str:
    """Return the UPDATE; `table` is SQL already. To be run with `strict_casts`."""
    names = {id_: quoted(schema.column(id_).name) for id_, _ in step.values}
    values = (
        f"{names[id_]} = CAST({expression.sql(schema)} AS {to_spark(schema.column(id_).type).simpleString()})"
        for id_, expression in step.values
    )
    unfilled = " AND ".join(f"{name} IS NULL" for name in names.values())
    return f"UPDATE {table} SET {', '.join(values)} WHERE {unfilled}"
