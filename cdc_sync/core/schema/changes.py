"""SchemaChange: each kind of change is one type; columns are addressed by id, never by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.types import DataType, Default


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """A new column; `after` is the id of its left neighbour, None for the first place."""

    column: Column
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """A column and its data go. `column` and `after` are as they were, so that the change can be inverted."""

    column: Column
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinColumn:
    """A column goes because it was another one all the time, which was kept as if the source had lost it.

    The values go into that one, whose id is `into`. `column`, `after` and `into_name` are as they were.
    """

    column: Column
    after: int | None
    into: int
    into_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """A column gets another name and keeps its id and data."""

    id: int
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateColumnType:
    """A column gets another type."""

    id: int
    old: DataType
    new: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateColumnNullability:
    """The source began or ceased to accept NULL."""

    id: int
    old: bool
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateColumnComment:
    """The column comment changed."""

    id: int
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateColumnDefault:
    """The column default for future rows changed; existing rows do not."""

    id: int
    old: Default
    new: Default


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveColumn:
    """A column moves behind another one; None is the first place."""

    id: int
    old_after: int | None
    new_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireColumn:
    """The source no longer has the column, the target keeps it: nothing proved a drop or a rename."""

    id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviveColumn:
    """A retired column is live again; the reverse of `RetireColumn`."""

    id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePrimaryKey:
    """The key is made of other columns, or of the same in another order."""

    old: tuple[int, ...]
    new: tuple[int, ...]


SchemaChange: TypeAlias = (
    AddColumn
    | DropColumn
    | JoinColumn
    | RenameColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnDefault
    | MoveColumn
    | RetireColumn
    | ReviveColumn
    | ChangePrimaryKey
)
