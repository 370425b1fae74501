"""Columns that a history held as two until the operator said that they are one: every version as it reads since then.

Versions are never changed once they are recorded. So the version that joins two columns says it (`JoinColumn`), and
whoever asks which column an older event's names stand for looks at the older versions through that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.schema.changes import JoinColumn
from cdc_sync.core.schema.internal import InternalSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """One join: the column `id` went into the column `into` at a version."""

    version: int
    id: int
    into: int


def joined_columns(versions: Iterable[Version]) -> tuple[Joined, ...]:
    """Return every join among versions, oldest first."""
    return tuple(
        Joined(version=version.number, id=change.column.id, into=change.into)
        for version in versions
        for change in version.changes
        if isinstance(change, JoinColumn)
    )


def staying_id(id_: int, joined: Sequence[Joined]) -> int:
    """Return the id a column has after all joins, its own if it went into none."""
    for item in joined:
        id_ = item.into if item.id == id_ else id_
    return id_


def as_joined(history: History) -> tuple[Version, ...]:
    """Return the versions as if every rename that was declared later had been known in time.

    A column that was joined has the id it was joined into from its beginning, and the part that was kept beside it is
    gone. The changes and evidence of the versions stay what they are, so they do not lead from one to the next.
    """
    joined = joined_columns(history.versions)
    if not joined:
        return history.versions
    return tuple(replace(version, schema=_as_joined(version.schema, joined)) for version in history.versions)


def _as_joined(schema: InternalSchema, joined: Sequence[Joined]) -> InternalSchema:
    for item in joined:
        part = next((column for column in schema.columns if column.id == item.id), None)
        if part is None:
            continue
        kept = next((column for column in schema.columns if column.id == item.into), None)
        whole = replace(part, id=item.into, initial=part.initial if kept is None else kept.initial)
        columns = (whole if column.id == item.id else column for column in schema.columns if column.id != item.into)
        schema = replace(schema, columns=tuple(columns))
    return schema
