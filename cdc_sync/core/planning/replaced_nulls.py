"""Columns in which a NULL arrived as the column's default, which nothing tells from a value, and until when it did.

While it does, a resync would read the same default again: `status` warns. Once the default is dropped, or the converter
is set right, the rows of before are as they were, and a resync fixes them: the column is marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.core.schema.projection import FromColumn, Projection

ONGOING: Final = 0
"""In place of a version: it still does."""

PERHAPS: Final = -1
"""In place of a version: rows with a default were read, and no event has told yet whether NULL is replaced."""


class _Reads(Protocol):
    @property
    def schema(self) -> EventSchema: ...

    @property
    def projection(self) -> Projection: ...


def shown_defaults(converters: Iterable[_Reads]) -> dict[int, bool]:
    """Return for each column that events show, by id, whether it accepts NULL and has a default in any of them."""
    found: dict[int, bool] = {}
    for converter in converters:
        wires = {column.name: column for column in converter.schema.columns}
        for entry in converter.projection.columns:
            if isinstance(entry, FromColumn):
                wire = wires[entry.name]
                has = wire.optional and (wire.default is not None or wire.suspect_default)
                found[entry.id] = has or found.get(entry.id, False)
    return found


def noted(
    before: Mapping[int, int], shown: Mapping[int, bool], *, replaces: bool | None, version: int
) -> dict[int, int]:
    """Return the columns concerned behind a write, by id, each with the version at which it ended, or how it stands.

    Args:
        before: the same before the write.
        shown: what `shown_defaults` says of the events.
        replaces: whether the events show that the converter replaces NULL; None if they do not tell, as snapshots.
        version: the newest one.
    """
    after = dict(before)
    if replaces is None:
        after |= {id_: PERHAPS for id_, has in shown.items() if has and id_ not in before}
        return after
    for id_, at in before.items():
        if at == PERHAPS and not replaces:
            del after[id_]
        elif at in (ONGOING, PERHAPS):
            after[id_] = ONGOING if replaces and shown.get(id_, True) else version
    if replaces:
        after |= dict.fromkeys((id_ for id_, has in shown.items() if has), ONGOING)
    return after
