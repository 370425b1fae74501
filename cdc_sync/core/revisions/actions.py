"""What a revision does, as its file says it: columns by name, types still without ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning
from cdc_sync.core.schema.types import DataType, Default


@dataclass(frozen=True, slots=True, kw_only=True)
class NewColumn:
    """A column that is to be there; ids of its type are 0."""

    name: str
    type: DataType
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a column goes: behind another one, first, or, with neither, behind all others."""

    after: str | None = None
    first: bool = False


LAST = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """Make the table; there is none of its name."""

    columns: tuple[NewColumn, ...]
    partitioning: Partitioning = UNPARTITIONED


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Take over a table that somebody else made, as it is.

    Attributes:
        columns: what it has to have, none if that does not matter.
    """

    columns: tuple[NewColumn, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """A new column.

    Attributes:
        fill: what the rows that are there read in it, in canonical form.
        fill_sql: an expression that says it, in place of `fill`.
    """

    column: NewColumn
    place: Place = LAST
    fill: Default = None
    fill_sql: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """A column goes, with its values."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """A column gets another name and keeps its values."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CastColumn:
    """A column gets another type; a value that has no place in it is refused, or becomes NULL.

    Attributes:
        way: `exchange`: in place where the format does that, else all rows are written anew in one commit. `expand`: a
            new column of the name, beside the old one, which rows are filled from unit by unit.
    """

    name: str
    type: DataType
    lost: Literal["refuse", "null"] = "refuse"
    way: Literal["exchange", "expand"] = "exchange"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveColumn:
    """A column moves among the others."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentColumn:
    """A column's comment is this from now on; None is none."""

    name: str
    comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FillColumn:
    """The rows that are there get in a column, where they read NULL, what an expression makes of them."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBy:
    """The table's files are divided by this from now on; alone in its revision."""

    partitioning: Partitioning


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProperties:
    """The table has these properties from now on; alone in its revision.

    Attributes:
        values: by name; None is one that the table has no longer.
    """

    values: tuple[tuple[str, str | None], ...]


ColumnAction: TypeAlias = AddColumn | DropColumn | RenameColumn | CastColumn | MoveColumn | CommentColumn
Action: TypeAlias = CreateTable | Adopt | PartitionBy | SetProperties | FillColumn | ColumnAction
