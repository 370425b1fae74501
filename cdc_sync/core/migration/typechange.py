"""What becomes of a column whose type changed: changed in place, rewritten, kept beside a new one, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cdc_sync.core.migration.capabilities import Capabilities, can_change_in_place
from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.schema.alignment import Alignment, Unproven
from cdc_sync.core.schema.casts import Cast, always_converts, cast_between, converts, keeps_apart
from cdc_sync.core.schema.changes import AddColumn, SchemaChange, UpdateColumnType
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.members import changes_shape_only
from cdc_sync.core.schema.policy import IncompatibleTypes
from cdc_sync.core.schema.types import DataType


@dataclass(frozen=True, slots=True)
class InPlace:
    """The format changes the type without touching data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Existing rows are converted, by a cast; None if the type just widens, or changes inside, part by part."""

    cast: Cast | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SideColumn:
    """The old column is kept with its data, and a new one takes the type."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The table pauses before the change."""

    reason: str


TypeChange: TypeAlias = InPlace | Rewrite | SideColumn | Stop


def decide_type_change(
    capabilities: Capabilities, policy: IncompatibleTypes, old: DataType, new: DataType, *, identifies: bool = False
) -> TypeChange:
    """Decide what becomes of a column whose type changed at the source.

    Members of structs that come, go or move are no other type: as columns that do so, they are rewritten where the
    format cannot do it in place, whatever `policy` says of types.

    Args:
        identifies: rows are found by the column, so that no two of them may become one and no value may be missing.
    """
    stay_found = not identifies or keeps_apart(old, new)
    if can_change_in_place(capabilities, old, new) and stay_found:
        return InPlace()
    if changes_shape_only(old, new) and stay_found:
        return Rewrite(cast=None)
    cannot = f"which {capabilities.format} cannot do in place"
    if policy == "pause":
        return Stop(reason=cannot)
    convertible = converts(old, new)
    if identifies:
        if policy == "rewrite" and convertible and always_converts(old, new) and keeps_apart(old, new):
            return Rewrite(cast=cast_between(old, new))
        return Stop(reason=f"{cannot}, and rows are found by it")
    if policy == "side_column":
        return SideColumn(reason="policy.incompatible_types: side_column")
    if not convertible:
        return SideColumn(reason="no value of the old type is one of the new type")
    return Rewrite(cast=cast_between(old, new))


def beside(alignment: Alignment, sides: Mapping[int, str]) -> Alignment:
    """Return the alignment in which some columns are not the same any more although the source's are.

    Args:
        sides: by id, why the old column is kept and a new one added.
    """
    apart = tuple(
        Unproven(vanished=(id_,), appeared=(index,), explanations=(), reason=sides[id_])
        for id_, index in alignment.same
        if id_ in sides
    )
    same = tuple(pair for pair in alignment.same if pair[0] not in sides)
    return replace(alignment, same=same, unproven=(*alignment.unproven, *apart))


def rewrites(
    changes: Sequence[SchemaChange], capabilities: Capabilities, after: InternalSchema, mode: Mode = "upsert"
) -> bool:
    """Tell whether changes can only be carried out by rewriting the rows.

    Args:
        after: the schema they lead to.
        mode: what the target holds; behind the columns of a changelog are its own anyway.
    """
    added = [change.column.id for change in changes if isinstance(change, AddColumn)]
    last = [column.id for column in after.columns[len(after.columns) - len(added) :]]
    if capabilities.adds_last and mode == "upsert" and set(added) != set(last):
        return True
    return any(
        type(change) in capabilities.rewritten
        or (isinstance(change, UpdateColumnType) and not can_change_in_place(capabilities, change.old, change.new))
        for change in changes
    )
