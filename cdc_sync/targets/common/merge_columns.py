"""The statements that bring the values of a renamed column together; each may be repeated and changes nothing then."""

from __future__ import annotations

from cdc_sync.core.migration.capabilities import can_compare
from cdc_sync.core.migration.migration import JoinValues
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.spark.columns import value_column
from cdc_sync.targets.common.partition_values import UNDIVIDED, Division, assignments


def join_said_statement(table: str, view: str, step: JoinValues, division: Division = UNDIVIDED) -> str:
    """Return the MERGE for rows that are found by a key; `table` and `view` are SQL already.

    Keys whose row is gone are left out, and so are rows that have the value already.
    """
    condition = " AND ".join(
        f"t.{quoted(column.name)} = s.{value_column(column.id)}" for column in step.schema.key_columns
    )
    name, value = step.schema.column(step.into).name, f"s.{value_column(step.into)}"
    changed = f" AND NOT (t.{quoted(name)} <=> {value})" if can_compare(step.type) else ""
    values = {name: value}
    update = f"UPDATE SET {assignments(values | division.also(values))}"
    return f"MERGE INTO {table} t USING {view} s ON {condition} WHEN MATCHED{changed} THEN {update}"


def join_columns_statement(table: str, step: JoinValues, division: Division = UNDIVIDED) -> str:
    """Return the UPDATE for rows that never change once they are written: one column at most has a value."""
    names = [quoted(step.schema.column(id_).name) for id_ in (step.into, *step.joined)]
    missing = " OR ".join(f"{name} IS NOT NULL" for name in names[1:])
    values = {step.schema.column(step.into).name: f"COALESCE({', '.join(names)})"}
    update = assignments(values | division.also(values))
    return f"UPDATE {table} SET {update} WHERE {names[0]} IS NULL AND ({missing})"
