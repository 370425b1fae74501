"""How a row of one version becomes a row of the head, as data; `spark.compile` turns it into expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from cdc_sync.core.schema.casts import casts_values, needs_cast
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import DataType, Default


@dataclass(frozen=True, slots=True, kw_only=True)
class FromColumn:
    """The value comes from the event's column `name` and is converted from `source` to `target`.

    Attributes:
        casts: the types it goes through on the way, by checked casts as existing rows did, both ends included; empty
            where `source` just widens to `target`.
    """

    name: str
    id: int
    source: DataType
    target: DataType
    casts: tuple[DataType, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """The version has no such column: the value is `value` in canonical form, None for NULL."""

    id: int
    value: Default
    target: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """The version's events do not show the column, and the table had it already: it is back in the head.

    An update leaves its value as it is. Any other event has none: NULL.
    """

    id: int
    target: DataType


Entry: TypeAlias = FromColumn | Constant | Untold


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """One entry for each head column, exactly once, in head order."""

    columns: tuple[Entry, ...]


def project(version: InternalSchema, head: InternalSchema, between: Sequence[InternalSchema] = ()) -> Projection:
    """Map the columns of `version` to those of `head` by id; columns the head has dropped are left out.

    A column that is retired in the head but live in the version is read: a late event still has its value.

    Args:
        between: the versions that lead from one to the other, which tell the types a column had on the way.
    """
    live = {column.id: column for column in version.live}
    hidden = {column.id for column in version.columns if column.retired} - live.keys()
    types: dict[int, list[DataType]] = {}
    for schema in (version, *between, head):
        for column in schema.columns:
            types.setdefault(column.id, []).append(column.type)
    return Projection(
        columns=tuple(
            Untold(id=column.id, target=column.type)
            if column.id in hidden and not column.retired
            else _entry(live.get(column.id), column, types[column.id])
            for column in head.columns
        )
    )


def _entry(old: Column | None, column: Column, types: Sequence[DataType]) -> Entry:
    if old is not None:
        return FromColumn(name=old.name, id=column.id, source=old.type, target=column.type, casts=_casts(types))
    return Constant(id=column.id, value=None if column.retired else column.initial, target=column.type)


def _casts(types: Sequence[DataType]) -> tuple[DataType, ...]:
    """Return the types that values go through; none if they just widen from the first to the last.

    What only widens, or gets other members, takes one step from its beginning to its end: ids tell the same of both.
    """
    steps: list[DataType] = []
    for type_ in types:
        if len(steps) > 1 and not casts_values(steps[-2], steps[-1]) and not casts_values(steps[-1], type_):
            steps.pop()
        if not steps or type_ != steps[-1]:
            steps.append(type_)
    return tuple(steps) if any(needs_cast(before, after) for before, after in pairwise(steps)) else ()


def without_initials(projection: Projection) -> Projection:
    """Return the projection of a changelog: an event says nothing about columns that came after it."""
    columns = (replace(entry, value=None) if isinstance(entry, Constant) else entry for entry in projection.columns)
    return Projection(columns=tuple(columns))
