"""The MERGE statement of one batch; its clauses are disjoint, as Hudi needs and readers expect."""

from __future__ import annotations

from cdc_sync.quote import quoted
from cdc_sync.spark.columns import CREATED, DELETED, unchanged_column, value_column
from cdc_sync.spark.unchanged import FORGOTTEN
from cdc_sync.targets.base import MISSING_ROW, UNKNOWN_VALUE, Batch


def merge_statement(table: str, view: str, batch: Batch) -> str:
    """Return the statement; `table` and `view` are SQL already."""
    condition = " AND ".join(
        f"t.{quoted(column.name)} = s.{value_column(column.id)}" for column in batch.schema.key_columns
    )
    clauses = [*_when_matched(batch), *_when_not_matched(batch)]
    return f"MERGE INTO {table} t USING {view} s ON {condition} " + " ".join(clauses)


def _when_matched(batch: Batch) -> list[str]:
    # A retired column keeps what it has: the source says nothing about it any more.
    assignments = ", ".join(
        f"{quoted(column.name)} = {_new_value(column.id, quoted(column.name), batch)}" for column in batch.schema.live
    )
    clauses = [f"WHEN MATCHED AND s.{DELETED} THEN DELETE"]
    if not (batch.unchanged and batch.require_values):
        return [*clauses, f"WHEN MATCHED AND NOT s.{DELETED} THEN UPDATE SET {assignments}"]
    return [
        *clauses,
        f"WHEN MATCHED AND NOT s.{DELETED} AND NOT s.{FORGOTTEN} THEN UPDATE SET {assignments}",
        f"WHEN MATCHED AND NOT s.{DELETED} AND s.{FORGOTTEN} AND {_raises(UNKNOWN_VALUE)} THEN DELETE",
    ]


def _new_value(id_: int, name: str, batch: Batch) -> str:
    value = f"s.{value_column(id_)}"
    if id_ not in batch.unchanged:
        return value
    return f"CASE WHEN s.{unchanged_column(id_)} AND NOT s.{FORGOTTEN} THEN t.{name} ELSE {value} END"


def _when_not_matched(batch: Batch) -> list[str]:
    """Insert what may be inserted; the condition of the other clauses is false or fails the statement."""
    names = ", ".join(quoted(column.name) for column in batch.schema.columns)
    values = ", ".join(f"s.{value_column(column.id)}" for column in batch.schema.columns)
    insert = f"THEN INSERT ({names}) VALUES ({values})"
    created = f"NOT s.{DELETED} AND s.{CREATED}" if batch.require_rows else f"NOT s.{DELETED}"
    clauses = []
    if batch.unchanged and batch.require_values:
        left_out = "(" + " OR ".join(f"s.{unchanged_column(id_)}" for id_ in batch.unchanged) + ")"
        clauses.append(f"WHEN NOT MATCHED AND {created} AND NOT {left_out} {insert}")
        clauses.append(f"WHEN NOT MATCHED AND {created} AND {left_out} AND {_raises(UNKNOWN_VALUE)} {insert}")
    else:
        clauses.append(f"WHEN NOT MATCHED AND {created} {insert}")
    if batch.require_rows:
        clauses.append(f"WHEN NOT MATCHED AND NOT s.{CREATED} AND {_raises(MISSING_ROW)} {insert}")
    return clauses


def _raises(problem: str) -> str:
    return f"raise_error('{problem}') IS NULL"
