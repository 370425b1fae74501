"""Which stored values no event tells of, and when the source has sent them again.

A mark says that a column of rows that were there may hold something else at the source. It comes from the schema
history or from what a rewrite had no place for, so it is never lost, and goes when the rows were read again, when they
were all removed, or when the column is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from cdc_sync.core.history.history import History
from cdc_sync.core.migration.operator_requests import Unconverted
from cdc_sync.core.model.doubts import Doubt
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.alignment import NEEDS_RESYNC

ALL_ROWS = "*"
"""What stands for a column's name where a mark is about whole rows. Only the operator's word ends such a mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A column whose values in rows older than `version` have to be read again.

    Attributes:
        column: its name now; `ALL_ROWS` where any row may differ, be missing, or be gone at the source.
        id: of the column; 0 of all rows.
        version: the version whose change no event tells the values of.
    """

    column: str
    id: int
    version: int
    reason: str


def marked(mark: Mark) -> str:
    """Return what a mark is about, in words."""
    return "any row" if mark.id == 0 else f"column {mark.column!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resync:
    """The operator's word that a table's rows are read again, and how far that has come.

    Attributes:
        signal: the id under which the connector was asked; its notifications carry it.
        version: the newest version when it was asked; marks of later ones stay.
        columns: ids of the columns whose marks go with it.
        ends: topic -> partition -> the offset after the last row read; empty until the connector says it is done.
        failed: what the connector says went wrong, None if nothing did.
        collection: the table as the connector names it; empty where nothing was asked of it.
        since: topic -> partition -> the offset from which on notifications may be about this.
        asked: topic -> partition -> how far the table had been written when it was asked for; what is behind that may
            have been in doubt only later.
    """

    table: TableId
    signal: str
    version: int
    columns: tuple[int, ...]
    ends: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    failed: str | None = None
    collection: str = ""
    since: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    asked: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    def is_done(self, progress: Progress | None) -> bool:
        """Return whether everything that was read again is in the table."""
        return (
            bool(self.ends)
            and progress is not None
            and all(
                (progress.next_offset(topic, partition) or 0) >= end
                for topic, partitions in self.ends.items()
                for partition, end in partitions.items()
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncAsked:
    """A table whose rows are to be read again.

    Attributes:
        columns: those whose marks will go; empty if none has one.
        signal: the id under which the connector is asked.
        topic: where the signal was written; None if it is the reader's to write, then `statement` says how.
        statement: SQL for the source's signalling table.
        followed: the connector's notifications tell when it is done; else `--done` has to.
        done: this is the word that all rows have been read.
    """

    table: TableId
    columns: tuple[str, ...]
    signal: str
    topic: str | None
    statement: str | None
    followed: bool
    done: bool = False


_NONE: Mapping[int, int] = MappingProxyType({})


def marks(
    history: History,
    unconverted: Iterable[Unconverted],
    resyncs: Sequence[Resync],
    progress: Progress | None,
    replaced: Mapping[int, int] = _NONE,
    doubts: Iterable[Doubt] = (),
) -> tuple[Mark, ...]:
    """Return the marks of a table that stand, in the order of versions and columns.

    Args:
        history: the table's.
        unconverted: what rewrites had no place for.
        resyncs: what the operator asked for.
        progress: the target's.
        replaced: columns in which a NULL arrived as the default, see `replaced_nulls`.
        doubts: what events left in doubt.
    """
    head = history.head.schema
    live = {0: ALL_ROWS, **{column.id: column.name for column in head.live}}
    done = [item for item in resyncs if item.is_done(progress)]
    emptied = progress.truncated.position if progress is not None and progress.truncated is not None else None

    def is_read(version: int, id_: int) -> bool:
        return any(version <= item.version and id_ in item.columns for item in done)

    found = []
    for version, name, reason in sorted((*_of_history(history), *_of_rewrites(unconverted))):
        column = history.version(version).schema.find(name)
        id_ = 0 if name == ALL_ROWS else None if column is None else column.id
        if id_ is None or id_ not in live:
            continue
        if emptied is not None and emptied >= history.version(version).position:
            continue
        if is_read(version, id_):
            continue
        found.append(Mark(column=live[id_], id=id_, version=version, reason=reason))
    for id_, version in sorted(replaced.items()):
        if version > 0 and id_ in live and not is_read(version, id_):
            found.append(Mark(column=live[id_], id=id_, version=version, reason=_REPLACED))
    for doubt in doubts:
        is_over = any(doubt.id in item.columns and doubt.is_before(item.asked) for item in done)
        if doubt.id in live and not is_over:
            found.append(Mark(column=live[doubt.id], id=doubt.id, version=doubt.version, reason=doubt.reason))
    return tuple(sorted(found, key=lambda mark: mark.version))


_REPLACED = "a NULL in it arrived as its default until this version, and reads so"


def _of_history(history: History) -> Iterator[tuple[int, str, str]]:
    for version in history.versions:
        for item in version.evidence:
            if item.kind == NEEDS_RESYNC:
                yield version.number, item.subject, item.text


def _of_rewrites(unconverted: Iterable[Unconverted]) -> Iterator[tuple[int, str, str]]:
    for item in unconverted:
        for name, count in item.counts.items():
            reason = f"{count} value{'s' if count != 1 else ''} had no place in its new type and read NULL"
            yield item.version, name, reason
