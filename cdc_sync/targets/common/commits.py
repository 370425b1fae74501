"""Which states of a table can be read again, from what its commits say, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.progress import Progress, parse_progress
from cdc_sync.errors import UnfitTarget
from cdc_sync.targets.protocol import Commit, same_offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One commit of a table.

    Attributes:
        reference: what the target calls it.
        marker: the text of the progress it carries, None if it has none.
    """

    reference: str
    marker: str | None


@dataclass(frozen=True, slots=True)
class Beginning:
    """There was nothing before: the commits that have been told are all there are."""


Lineage: TypeAlias = Iterator[Entry | Beginning]
"""The commits that led to a table's present state, newest first; `Beginning` ends it if nothing has been forgotten."""


def progress_of(name: TargetName, lineage: Lineage) -> Progress | None:
    """Return what a table of ours holds, None if nothing was written to it yet.

    Raises:
        UnfitTarget: if that cannot be known any more.
    """
    for item in lineage:
        if isinstance(item, Beginning):
            return None
        if item.marker is not None:
            return parse_progress(item.marker)
    raise UnfitTarget(
        Code.UNREADABLE,
        f"Cannot tell what {name} holds: the commits that say so have expired",
        "bring one of them back from a backup, or drop it to have it built anew, and `cdc-sync resume` the table",
    )


def states(lineage: Lineage, limit: int) -> tuple[Commit, ...]:
    """Return the newest commit for each set of offsets, newest first.

    Commits without a marker are other people's; they hold what the marker before them says.
    """
    found: list[Commit] = []
    newest: str | None = None
    for item in lineage:
        if len(found) == limit:
            break
        if isinstance(item, Beginning):
            if newest is None:
                found.append(Commit(progress=None, reference=""))
            break
        newest = newest or item.reference
        if item.marker is not None:
            progress = parse_progress(item.marker)
            if not found or not same_offsets(found[-1].progress, progress):
                found.append(Commit(progress=progress, reference=newest))
            newest = None
    return tuple(found)
