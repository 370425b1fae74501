"""How statements and data frames give rows the values that a table is partitioned by (`migration.derived`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.migration.derived import Derived
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.spark.derived import derived_column, derived_sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """What the rows of a table are divided by; nothing where the format does that by itself, or nobody asked for it.

    Attributes:
        derived: columns that are computed from others.
        left: columns that nothing is computed for any more, and their types in SQL: new rows have NULL there.
    """

    derived: tuple[Derived, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)

    def also(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return what else changes, by name, where columns get new values; in SQL. It is worked out of those alone."""
        return {
            column.name: derived_sql(column, values[column.field.column])
            for column in self.derived
            if column.field.column in values
        }

    def of_new_row(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return what else a row has that is new; every column's value is given."""
        return self.also(values) | {name: f"CAST(NULL AS {type_})" for name, type_ in self.left.items()}

    def rows(self, rows: DataFrame) -> DataFrame:
        """Return rows of all other columns with these behind them, those of one partition in one task.

        Each task writes a file for every partition that it meets.
        """
        if not self.derived and not self.left:
            return rows
        derived = [derived_column(column, column.field.column) for column in self.derived]
        empty = [F.lit(None).cast(type_).alias(name) for name, type_ in self.left.items()]
        found = rows.select("*", *derived, *empty)
        return found.repartition(*(F.col(quoted(column.name)) for column in self.derived)) if derived else found


UNDIVIDED = Division()


def assignments(values: Mapping[str, str]) -> str:
    """Return values of columns as an UPDATE sets them."""
    return ", ".join(f"{quoted(name)} = {value}" for name, value in values.items())


def insertion(values: Mapping[str, str]) -> str:
    """Return values of columns as an INSERT of a MERGE gives them."""
    return f"({', '.join(map(quoted, values))}) VALUES ({', '.join(values.values())})"
