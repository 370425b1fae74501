"""Where a source says that a table got another name, as far as its rows are certain to have gone with it.

Postgres tells a table by its number, so a name change is certain whatever has the name before or afterwards. A
schema-change topic tells of names only, and tools exchange a table for a copy of it by renaming both: a table that is
exchanged goes on under its name, as `ddl_catalogue` says of its columns, and did not get another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from cdc_sync.core.lineage.column_log import ColumnLog, NameChange, SourceKind, Structure
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldRename:
    """A table that got another name, as one log tells it.

    Attributes:
        kind: the log's.
        old, new: the table goes on as `new`, and no event behind the position is of the same table as `old`.
        position, kafka, statement: as of the `NameChange`.
        settled: nothing that the log may still tell makes it an exchange of a table for its copy.
    """

    kind: SourceKind
    old: TableId
    new: TableId
    position: SourcePosition
    kafka: KafkaPosition
    statement: str
    settled: bool


def renames(logs: Iterable[ColumnLog]) -> Iterator[ToldRename]:
    """Yield every name change that a table's rows are certain to have gone with, log by log, oldest first."""
    for log in logs:
        for change in log.name_changes:
            if log.kind == "message":
                yield _told(log, change, settled=True)
                continue
            follower = _follower(log, change)
            if follower != "another" and _is_free(log, change):
                yield _told(log, change, settled=follower is not None)


def _told(log: ColumnLog, change: NameChange, *, settled: bool) -> ToldRename:
    return ToldRename(
        kind=log.kind,
        old=change.old,
        new=change.new,
        position=change.position,
        kafka=change.kafka,
        statement=change.statement,
        settled=settled,
    )


def _follower(log: ColumnLog, change: NameChange) -> Literal["created", "itself", "another"] | None:
    """Return what has the old name next; None if nothing has."""
    taken = next((item for item in log.of(change.old) if item.position >= change.position and item.columns), None)
    if taken is None:
        return None
    if taken.created:
        return "created"
    back = next((item for item in log.name_changes if (item.new, item.position) == (change.old, taken.position)), None)
    return "itself" if back is not None and _leads_to(log, change, back) else "another"


def _is_free(log: ColumnLog, change: NameChange) -> bool:
    """Whether no other table ever had the new name before: else the table may be a copy of that one."""
    had = any(item.columns and item.position < change.position for item in log.of(change.new))
    left = [item for item in log.name_changes if item.old == change.new and item.position < change.position]
    return not had or (bool(left) and _leads_to(log, left[-1], change))


def _leads_to(log: ColumnLog, first: NameChange, last: NameChange) -> bool:
    """Whether one name change and a later one are of the same table, which was there all the time in between."""
    while True:
        came = [item for item in log.name_changes if item.new == last.old and item.position < last.position]
        if not came:
            return False
        if any(not item.columns for item in _strictly_between(log, last.old, came[-1].position, last.position)):
            return False
        if came[-1] == first:
            return True
        last = came[-1]


def _strictly_between(
    log: ColumnLog, table: TableId, after: SourcePosition, before: SourcePosition
) -> Iterator[Structure]:
    return (item for item in log.between(table, after, before) if item.position < before)
