"""How a row of one version becomes a row of the head, as data; `spark.compile` turns it into expressions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from cdc_sync.schema.internal import Column, Default, InternalSchema
from cdc_sync.schema.types import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class FromColumn:
    """The value comes from the event's column `name` and is converted from `source` to `target`."""

    name: str
    id: int
    source: DataType
    target: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """The version has no such column: the value is `value` in canonical form, None for NULL."""

    id: int
    value: Default
    target: DataType


Entry: TypeAlias = FromColumn | Constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """One entry for each head column, exactly once, in head order."""

    columns: tuple[Entry, ...]


def project(version: InternalSchema, head: InternalSchema) -> Projection:
    """Map the columns of `version` to those of `head` by id; columns the head has dropped are left out.

    A column that is retired in the head but live in the version is read: a late event still has its value.
    """
    live = {column.id: column for column in version.live}
    return Projection(columns=tuple(_entry(live.get(column.id), column) for column in head.columns))


def _entry(old: Column | None, column: Column) -> Entry:
    if old is not None:
        return FromColumn(name=old.name, id=column.id, source=old.type, target=column.type)
    return Constant(id=column.id, value=None if column.retired else column.initial, target=column.type)


def without_initials(projection: Projection) -> Projection:
    """Return the projection of a changelog: an event says nothing about columns that came after it."""
    columns = (replace(entry, value=None) if isinstance(entry, Constant) else entry for entry in projection.columns)
    return Projection(columns=tuple(columns))
