"""Columns whose values cannot become the head's: of a late event, or of a schema that the plan refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from cdc_sync.core.debezium.conversions import logical_type
from cdc_sync.core.debezium.wire import WireColumn, WireUnsupported
from cdc_sync.core.schema.casts import always_converts, needs_cast
from cdc_sync.core.schema.projection import Constant, Entry, FromColumn, Projection
from cdc_sync.core.schema.promote import reads_as
from cdc_sync.core.schema.types import DataType, without_ids
from cdc_sync.spark.converter import Converter

Casts: TypeAlias = Mapping[FromColumn, tuple[tuple[int, Converter], ...]]
"""Checked casts that may find no place for a value, and the converters that need them, with their indexes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A converter that Spark can compile.

    Attributes:
        converter: reads only columns whose every value has a place in the head.
        lost: the first column that has none, whose records are a problem; None if all do.
    """

    converter: Converter
    lost: str | None = None


def fitted(converter: Converter) -> Fitted:
    """Take out the columns that no expression reads, or whose type is not one that the head's grew out of.

    A schema that no version has is read by the names of the version in effect (`column_mappings`), which says nothing
    of its types: a cast might not exist, fail the whole job, or change the value.
    """
    columns = {column.name: column for column in converter.schema.columns}
    entries = converter.projection.columns
    lost = [
        entry.name for entry in entries if isinstance(entry, FromColumn) and not _fits(columns.get(entry.name), entry)
    ]
    unread = [name for name, column in columns.items() if isinstance(column.wire, WireUnsupported)]
    gone = frozenset((*lost, *unread))
    if not gone:
        return Fitted(converter=converter)
    kept = tuple(column for column in converter.schema.columns if column.name not in gone)
    constants = (_without(entry, gone) for entry in entries)
    changed = replace(
        converter,
        schema=replace(converter.schema, columns=kept),
        projection=Projection(columns=tuple(constants)),
    )
    return Fitted(converter=changed, lost=lost[0] if lost else None)


def casts_of(converters: Sequence[Converter]) -> Casts:
    """Return the columns whose values may have no place in the head."""
    found: dict[FromColumn, list[tuple[int, Converter]]] = {}
    for index, converter in enumerate(converters):
        for entry in converter.projection.columns:
            if isinstance(entry, FromColumn) and any(map(_may_lose, pairwise(entry.casts))):
                found.setdefault(entry, []).append((index, converter))
    return {entry: tuple(items) for entry, items in found.items()}


def _may_lose(step: tuple[DataType, DataType]) -> bool:
    return needs_cast(*step) and not always_converts(*step)


def _fits(column: WireColumn | None, entry: FromColumn) -> bool:
    if column is None or isinstance(column.wire, WireUnsupported):
        return False
    shown, source, target = logical_type(column.wire), without_ids(entry.source), without_ids(entry.target)
    # What the versions lead to is the plan's to decide; a type of another origin must widen to the head's, by the way
    # that the column's own took.
    return shown == source or reads_as(shown, source if entry.casts else target)


def _without(entry: Entry, gone: frozenset[str]) -> Entry:
    if isinstance(entry, FromColumn) and entry.name in gone:
        return Constant(id=entry.id, value=None, target=entry.target)
    return entry
