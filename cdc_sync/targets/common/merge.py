"""The MERGE statement of one batch; its clauses are disjoint, as Hudi needs and readers expect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.spark.columns import CREATED, DELETED, unchanged_column, value_column
from cdc_sync.spark.unchanged import FORGOTTEN
from cdc_sync.targets.common.partition_values import UNDIVIDED, Division, assignments, insertion
from cdc_sync.targets.protocol import MISSING_ROW, UNKNOWN_VALUE, Batch


@contextmanager
def viewed(rows: DataFrame) -> Iterator[str]:
    """Have statements find rows as a view, whose name no other thread or table uses while the data frame lives."""
    view = f"cdc_sync_batch_{id(rows)}"
    rows.createOrReplaceTempView(view)
    try:
        yield view
    finally:
        rows.sparkSession.catalog.dropTempView(view)


def merge_statement(table: str, view: str, batch: Batch, division: Division = UNDIVIDED) -> str:
    """Return the statement; `table` and `view` are SQL already."""
    condition = " AND ".join(
        f"t.{quoted(column.name)} = s.{value_column(column.id)}" for column in batch.schema.key_columns
    )
    clauses = [*_when_matched(batch, division), *_when_not_matched(batch, division)]
    return f"MERGE INTO {table} t USING {view} s ON {condition} " + " ".join(clauses)


def _when_matched(batch: Batch, division: Division) -> list[str]:
    # A retired column keeps what it has: the source says nothing about it any more.
    values = {column.name: _new_value(column.id, quoted(column.name), batch) for column in batch.schema.live}
    # A value that stays gives the same partition again.
    update = f"UPDATE SET {assignments(values | division.also(values))}"
    clauses = [f"WHEN MATCHED AND s.{DELETED} THEN DELETE"]
    if not (batch.unchanged and batch.require_values):
        return [*clauses, f"WHEN MATCHED AND NOT s.{DELETED} THEN {update}"]
    first = batch.schema.live[0]
    failing = f"{quoted(first.name)} = {_raised(UNKNOWN_VALUE, first.id)}"
    return [
        *clauses,
        f"WHEN MATCHED AND NOT s.{DELETED} AND NOT s.{FORGOTTEN} THEN {update}",
        f"WHEN MATCHED AND NOT s.{DELETED} AND s.{FORGOTTEN} THEN UPDATE SET {failing}",
    ]


def _new_value(id_: int, name: str, batch: Batch) -> str:
    value = f"s.{value_column(id_)}"
    if id_ not in batch.unchanged:
        return value
    return f"CASE WHEN s.{unchanged_column(id_)} AND NOT s.{FORGOTTEN} THEN t.{name} ELSE {value} END"


def _when_not_matched(batch: Batch, division: Division) -> list[str]:
    """Insert what may be inserted; the other clauses fail the statement."""
    first = batch.schema.columns[0]
    values = {column.name: f"s.{value_column(column.id)}" for column in batch.schema.columns}
    values |= division.of_new_row(values)

    def insert(problem: str | None = None) -> str:
        given = values if problem is None else values | {first.name: _raised(problem, first.id)}
        return f"THEN INSERT {insertion(given)}"

    created = f"NOT s.{DELETED} AND s.{CREATED}" if batch.require_rows else f"NOT s.{DELETED}"
    clauses = []
    if batch.unchanged and batch.require_values:
        left_out = "(" + " OR ".join(f"s.{unchanged_column(id_)}" for id_ in batch.unchanged) + ")"
        clauses.append(f"WHEN NOT MATCHED AND {created} AND NOT {left_out} {insert()}")
        clauses.append(f"WHEN NOT MATCHED AND {created} AND {left_out} {insert(UNKNOWN_VALUE)}")
    else:
        clauses.append(f"WHEN NOT MATCHED AND {created} {insert()}")
    if batch.require_rows:
        clauses.append(f"WHEN NOT MATCHED AND NOT s.{CREATED} {insert(MISSING_ROW)}")
    return clauses


def _raised(problem: str, id_: int) -> str:
    """Return a value that fails the statement where it is to be written.

    In a condition it would not do: Delta works the conditions of all clauses out for every row, matched or not.
    """
    return f"CASE WHEN raise_error('{problem}') IS NULL THEN s.{value_column(id_)} END"
