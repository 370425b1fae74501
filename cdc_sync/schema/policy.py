"""What the operator wants where nothing is proven."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

IncompatibleTypes: TypeAlias = Literal["rewrite", "side_column", "pause"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The answers for one table.

    Attributes:
        unproven_rename: columns vanished and others appeared, and nothing proves whether they are the same. `add`
            keeps the old columns with their data and adds the new ones, which splits the history but loses nothing;
            `pause` stops the table until it is declared.
        ambiguous_null: the converter sends a column's default where the source has NULL, and nothing tells the two
            apart. `warn` writes what arrives; `pause` stops the table.
        missing_rows: an update arrives for a row that the target does not hold. `pause` stops the table; `insert`
            writes the row as the event shows it.
        out_of_range: a date or timestamp lies outside the years 1 to 9999, which no reader of every format can show;
            Postgres' infinities do. `quarantine` sets the record aside, `null` writes NULL, `clamp` writes the nearest
            date that can be shown.
        truncate: the source table was emptied. `apply` empties the target, which keeps its history; `ignore` keeps
            the rows, which then are no longer those of the source; `pause` stops the table.
        recreate: the source table was dropped, and another one was created under its name. `apply` empties the target,
            which keeps its history, and gives it the new one's columns; `pause` stops the table.
        incompatible_types: a column's type changed to one that the target cannot change to in place. `rewrite`
            converts the rows by checked casts, in one commit; `side_column` keeps the old column, with its data, and
            adds a new one; `pause` stops the table.
        unknown_values: what existing rows hold in a column is not in the events, such as a default that is a function.
            `mark` gives them NULL and says that the column needs a resync; `pause` stops the table.
        rewrite_limit: the largest target, in bytes of its data files, that is rewritten without asking.
    """

    unproven_rename: Literal["add", "pause"] = "add"
    ambiguous_null: Literal["warn", "pause"] = "warn"
    missing_rows: Literal["pause", "insert"] = "pause"
    out_of_range: Literal["quarantine", "null", "clamp"] = "quarantine"
    truncate: Literal["apply", "ignore", "pause"] = "apply"
    recreate: Literal["apply", "pause"] = "apply"
    incompatible_types: IncompatibleTypes = "rewrite"
    unknown_values: Literal["mark", "pause"] = "mark"
    rewrite_limit: int = 10 * 1024**3
