"""Which tracked columns the names of an event schema stand for, at which source positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_sync.core.debezium.conversions import observed
from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.core.history.history import History
from cdc_sync.core.history.joined import as_joined
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.schema.projection import Constant, FromColumn, Projection, Untold, project
from cdc_sync.core.schema.types import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the rows of one event schema become rows of the head, for events in a half-open range of positions."""

    projection: Projection
    from_position: SourcePosition | None = None
    to_position: SourcePosition | None = None


def readings(history: History, schema: EventSchema, fingerprint: str, at: SourcePosition) -> tuple[Reading, ...]:
    """Work out which columns an event schema's names stand for.

    The same schema text can stand for different columns: after a column was dropped and another of its name added.
    Then there is one reading for each stretch of versions whose columns it shows; by their names and types, for a text
    may come back within a version that another text of the same columns began. Columns that were joined are one here.

    Args:
        at: position of an event with this schema, which tells the version in effect for a schema that no version has
            (an event older than the head, seen late).
    """
    seen = observed(schema)
    known = as_joined(history)
    versions = [version for version in known if version.fingerprint == fingerprint or seen.shows(version.schema)]
    if not versions:
        in_effect = known[(history.at(at) or history.versions[0]).number - 1]
        return (Reading(projection=_restricted(in_effect, schema, known)),)
    found: list[Reading] = []
    for version in versions:
        projection = _projected(version, known)
        if found and _columns_read(found[-1].projection) == _columns_read(projection):
            continue
        if found:
            found[-1] = replace(found[-1], to_position=version.position)
        found.append(Reading(projection=projection, from_position=version.position if found else None))
    return tuple(found)


def with_declared_key(schema: EventSchema, route: Route) -> EventSchema:
    """Return the schema with the key that the operator declared; a target that only grows needs none."""
    if route.append:
        return replace(schema, key=())
    return schema if route.key is None else replace(schema, key=route.key)


def _columns_read(projection: Projection) -> tuple[tuple[str, tuple[DataType, ...]] | bool, ...]:
    """Return what is read of each head column: a name and its casts, or whether the table had it all the same."""
    return tuple(
        (entry.name, entry.casts) if isinstance(entry, FromColumn) else isinstance(entry, Untold)
        for entry in projection.columns
    )


def _projected(version: Version, known: Sequence[Version]) -> Projection:
    """Project a version to the newest one, by way of all between."""
    return project(version.schema, known[-1].schema, [item.schema for item in known[version.number : -1]])


def _restricted(version: Version, schema: EventSchema, known: Sequence[Version]) -> Projection:
    """Project by name, leaving out columns that the late schema does not have."""
    names = {column.name for column in schema.columns}
    projected = _projected(version, known)
    columns = tuple(
        Constant(id=entry.id, value=None, target=entry.target)
        if isinstance(entry, FromColumn) and entry.name not in names
        else entry
        for entry in projected.columns
    )
    return Projection(columns=columns)
