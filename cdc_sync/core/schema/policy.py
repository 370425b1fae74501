"""What the operator wants where nothing is proven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

IncompatibleTypes: TypeAlias = Literal["rewrite", "side_column", "pause"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The answers for one table.

    Attributes:
        add_column: the source has a new column. `apply` adds it; `ignore` leaves its values out; `pause` stops the
            table.
        drop_column: a column is gone. `apply` drops it and its data; `keep` leaves it, with NULL in new rows; `pause`
            stops the table.
        rename_column, change_type, change_key: of these, `apply` follows the source, and `pause` stops the table.
        unproven_rename: columns vanished and others appeared, and nothing proves whether they are the same. `add`
            keeps the old columns with their data and adds the new ones, which splits the history but loses nothing;
            `pause` stops the table until it is declared.
        ambiguous_null: the converter sends a column's default where the source has NULL, and nothing tells the two
            apart. `warn` writes what arrives; `pause` stops the table.
        missing_rows: an update arrives for a row that the target does not hold. `pause` stops the table; `insert`
            writes the row as the event shows it.
        unsent_values: an update shows NULL where the connector has no placeholder for an unchanged value that is stored
            out of line (arrays of Postgres). `keep` keeps the row's value and says that the column needs a resync,
            `null` takes it for NULL, `pause` stops the table.
        out_of_range: a date or timestamp lies outside the years 1 to 9999, which no reader of every format can show;
            Postgres' infinities do. `quarantine` sets the record aside, `null` writes NULL, `clamp` writes the nearest
            date that can be shown.
        truncate: the source table was emptied. `apply` empties the target, which keeps its history; `ignore` keeps
            the rows, which then are no longer those of the source; `pause` stops the table.
        recreate: the source table was dropped, and another one was created under its name. `apply` empties the target,
            which keeps its history, and gives it the new one's columns; `pause` stops the table.
        drop_table: the source table was dropped. `keep` leaves the target with its rows; `drop` drops it, `archive`
            gives it another name, both after all rows from before are written; `pause` stops the table.
        rename_table: the source table got another name. `stay` leaves the target under the name it has, and the route
            of the new name says where rows go from then on; `follow` renames the target to what that route says, after
            all rows from before are written; `pause` stops the table.
        incompatible_types: a column's type changed to one that the target cannot change to in place. `rewrite`
            converts the rows by checked casts, in one commit; `side_column` keeps the old column, with its data, and
            adds a new one; `pause` stops the table.
        unknown_values: what existing rows hold in a column is not in the events, such as a default that is a function.
            `mark` says that the column needs a resync, and gives them NULL, or the constant default of the first
            event where nothing tells whether the column was added with it; `trust` takes that default, or NULL where
            there is none, for what they hold, and marks the rest; `pause` stops the table.
        second_snapshot: a snapshot read the whole table again, and rows that were deleted meanwhile show in no event.
            `mark` writes its rows and says that others may be gone at the source; `apply` also empties the target once
            the snapshot is whole, and reads on from its first row; `pause` stops the table.
        rewrite_limit: the largest target, in bytes of its data files, that is rewritten without asking.
    """

    add_column: Literal["apply", "ignore", "pause"] = "apply"
    drop_column: Literal["apply", "keep", "pause"] = "apply"
    rename_column: Literal["apply", "pause"] = "apply"
    change_type: Literal["apply", "pause"] = "apply"
    change_key: Literal["apply", "pause"] = "apply"
    unproven_rename: Literal["add", "pause"] = "add"
    ambiguous_null: Literal["warn", "pause"] = "warn"
    missing_rows: Literal["pause", "insert"] = "pause"
    unsent_values: Literal["keep", "null", "pause"] = "keep"
    out_of_range: Literal["quarantine", "null", "clamp"] = "quarantine"
    truncate: Literal["apply", "ignore", "pause"] = "apply"
    recreate: Literal["apply", "pause"] = "apply"
    drop_table: Literal["keep", "drop", "archive", "pause"] = "keep"
    rename_table: Literal["stay", "follow", "pause"] = "stay"
    incompatible_types: IncompatibleTypes = "rewrite"
    unknown_values: Literal["mark", "trust", "pause"] = "mark"
    second_snapshot: Literal["mark", "apply", "pause"] = "mark"
    rewrite_limit: int = 10 * 1024**3


Mode: TypeAlias = Literal["evolve", "try_evolve", "lenient", "exception", "ignore"]

_LENIENT = {"drop_column": "keep", "incompatible_types": "side_column", "truncate": "ignore", "recreate": "pause"}
_FROZEN = {"rename_column": "pause", "change_type": "pause", "change_key": "pause", "incompatible_types": "pause"}

MODES: Mapping[Mode, Mapping[str, str]] = MappingProxyType(
    {
        "evolve": {},
        "try_evolve": {"incompatible_types": "side_column"},
        "lenient": _LENIENT,
        "exception": {
            **_FROZEN,
            "add_column": "pause",
            "drop_column": "pause",
            "truncate": "pause",
            "recreate": "pause",
            "drop_table": "pause",
            "rename_table": "pause",
        },
        "ignore": {**_FROZEN, "add_column": "ignore", "drop_column": "keep", "truncate": "ignore", "recreate": "pause"},
    }
)
"""What each mode answers otherwise than `Policy` does of itself."""


def answers(mode: Mode) -> dict[str, str]:
    """Return what a mode answers to everything that modes are about, where the operator says nothing more."""
    plain = Policy()
    asked = sorted({name for found in MODES.values() for name in found})
    return {name: MODES[mode].get(name, getattr(plain, name)) for name in asked}
