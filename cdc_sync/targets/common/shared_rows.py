"""The statements that change the rows of one source table in a table that several share."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.migration.migration import Backfill
from cdc_sync.core.migration.namerules import NameRules
from cdc_sync.core.migration.names import held_schema
from cdc_sync.core.model.shared_schema import RowMoves
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.types import STRING
from cdc_sync.spark.types import literal_sql
from cdc_sync.targets.common.backfill import backfill_statement
from cdc_sync.targets.protocol import RowsOf


def change_rows_statement(table: str, rows: RowsOf, change: RowMoves | Backfill) -> str | None:
    """Return the UPDATE, None if no value changes; `table` is SQL already.

    All values are those from before the statement, so two columns can swap theirs; repeated, it would swap them back.
    """
    if isinstance(change, Backfill):
        held = (replace(rows.schema.column(item.id), initial=item.initial) for item in change.columns)
        return f"{backfill_statement(table, Backfill(columns=tuple(held)))} AND {_condition(rows)}"
    names = {column.id: quoted(column.name) for column in rows.schema.columns}
    assignments = [f"{names[to]} = {names[from_]}" for from_, to in change.moved]
    assignments += [f"{names[id_]} = NULL" for id_ in change.emptied]
    return f"UPDATE {table} SET {', '.join(assignments)} WHERE {_condition(rows)}" if assignments else None


def held_rows(rows: RowsOf, rules: NameRules) -> RowsOf:
    """Return the same rows in the target's names of columns."""
    return replace(rows, schema=held_schema(rows.schema, rules))


def remove_rows_statement(table: str, rows: RowsOf) -> str:
    """Return the DELETE; `table` is SQL already."""
    return f"DELETE FROM {table} WHERE {_condition(rows)}"


def _condition(rows: RowsOf) -> str:
    return f"{quoted(rows.schema.columns[0].name)} = {literal_sql(rows.label, STRING)}"
