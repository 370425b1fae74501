"""What the history warns of, and whether it still holds: not of what was joined, filled again or dropped since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.schema.alignment import IGNORED, KEPT, SIDE_COLUMN, UNPROVEN, Evidence
from cdc_sync.core.schema.internal import InternalSchema

WARNED = (UNPROVEN, SIDE_COLUMN, KEPT, IGNORED)
"""Kinds of evidence that somebody may have to do something about."""


def warning_of(item: Evidence) -> str:
    """Put such evidence as `status` does."""
    return f"{item.subject}: {item.text}"


def warnings_of(history: History) -> Mapping[str, bool]:
    """Return every warning that the versions gave, oldest first, and whether it still holds.

    One of a kept column holds while the column is kept. One of values that are left out holds while the source's column
    is. One of several columns, or of members inside of one, holds while one of them is there.
    """
    found: dict[str, bool] = {}
    shown = history.shown
    for before, version in zip((None, *shown.versions), shown.versions, strict=False):
        for item in version.evidence:
            if item.kind in WARNED:
                text = warning_of(item)
                found[text] = found.get(text, False) or _holds(item, before, shown.head.schema)
    return found


def _holds(item: Evidence, before: Version | None, head: InternalSchema) -> bool:
    if item.kind == IGNORED:
        return not any(column.name == item.subject for column in head.live)
    known = tuple(_columns(item, before))
    if not known:
        return True
    now = {column.id: column for column in head.columns}
    names_alone = len(known) == 1 and known[0][1] == item.subject
    return any(id_ in now and (now[id_].retired or not names_alone) for id_, _ in known)


def _columns(item: Evidence, before: Version | None) -> Iterator[tuple[int, str]]:
    """Yield id and name of what a warning is about: the column it names, or those that it names with others."""
    columns = () if before is None else before.schema.columns
    for column in columns:
        if column.name == item.subject:
            yield column.id, column.name
            return
    for column in columns:
        if item.subject.startswith(f"{column.name}.") or column.name in item.subject.split(", "):
            yield column.id, column.name
