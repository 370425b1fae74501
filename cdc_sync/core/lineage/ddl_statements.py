"""What a DDL statement does to tables and to their columns, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from cdc_sync.core.lineage.stated import Stated
from cdc_sync.core.model.positions import TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """A column that was not there before; with `if_not_exists`, nothing if one of that name is.

    Attributes:
        stated: what rows that are there get.
    """

    name: str
    if_not_exists: bool = False
    stated: Stated | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A column that is gone; with `if_exists`, nothing if there is none of that name."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A column under another name: RENAME COLUMN; CHANGE may give it another type and place (`moved`) too."""

    old: str
    new: str
    if_exists: bool = False
    moved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Modify:
    """A column with another type, or at another place (`moved`)."""

    name: str
    if_exists: bool = False
    moved: bool = False


Clause: TypeAlias = Add | Drop | Rename | Modify


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """Clauses on one table; those that are certainly not about columns are left out.

    Attributes:
        clauses: in the statement's order; names in them are those from before the statement where the grammar says so.
        rename_to: the table's new name, if it got one.
        moves_rows: tables whose rows it takes away, or brings, without an event for each: partitions that are dropped,
            emptied, exchanged or imported.
    """

    table: TableId
    clauses: tuple[Clause, ...]
    rename_to: TableId | None = None
    moves_rows: tuple[TableId, ...] = field(default=(), compare=False)
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTables:
    """Pairs of old and new name, done from left to right."""

    pairs: tuple[tuple[TableId, TableId], ...]
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """A new table.

    Attributes:
        columns: their names in order; None if the statement does not say them all (`like`, `as_select`).
        like: the table whose columns were copied.
        as_select: a query says the columns, or more of them.
    """

    table: TableId
    columns: tuple[str, ...] | None
    like: TableId | None = None
    if_not_exists: bool = False
    or_replace: bool = False
    as_select: bool = False
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTables:
    """Tables that are gone."""

    tables: tuple[TableId, ...]
    if_exists: bool = False
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase:
    """All tables of a database are gone."""

    database: str
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """A statement that cannot change which column is which.

    Attributes:
        is_program: a routine, trigger or event; all text behind its first word is taken for its body.
    """

    is_program: bool = False
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotParsed:
    """A statement that was not understood, or not in every detail."""

    text: str
    reason: str


Statement: TypeAlias = AlterTable | RenameTables | CreateTable | DropTables | DropDatabase | Noise | NotParsed
