"""Where a source says that it dropped a table, and what came under the table's name afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cdc_sync.core.lineage.column_log import ColumnLog, SourceKind
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId

Follower: TypeAlias = Literal["created", "renamed"]
"""What has the name of a dropped table: one that a CREATE TABLE made, or one that had another name before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldDrop:
    """A DROP TABLE, as one log tells it.

    Attributes:
        kind: the log's.
        position: behind which no event is of the table that was dropped.
        kafka: the record that tells of it.
        statement: in the source's words.
        follower: what the log tells of the name since; None if nothing.
    """

    kind: SourceKind
    position: SourcePosition
    kafka: KafkaPosition
    statement: str
    follower: Follower | None


def first_drop(
    logs: Iterable[ColumnLog], table: TableId, after: SourcePosition, upto: SourcePosition | None = None
) -> ToldDrop | None:
    """Return the first time that any log says the table was dropped, behind a position; None if none does.

    A name that went away in any other manner (a rename, a gap in the log) is not told of here.

    Args:
        logs: all that there are of the source.
        table: which.
        after: positions of other kinds cannot be compared with it, and are passed over.
        upto: the last position that is looked at; None looks at all.
    """
    found: list[ToldDrop] = []
    for log in logs:
        for structure in log.of(table):
            at = structure.position
            if not structure.dropped or structure.kafka is None or at.kind != after.kind or at <= after:
                continue
            if upto is None or at <= upto:
                follower = _follower(log, table, at)
                found.append(
                    ToldDrop(
                        kind=log.kind,
                        position=at,
                        kafka=structure.kafka,
                        statement=structure.statement,
                        follower=follower,
                    )
                )
    return min(found, key=lambda drop: drop.position, default=None)


def _follower(log: ColumnLog, table: TableId, dropped: SourcePosition) -> Follower | None:
    later = (item for item in log.of(table) if item.position > dropped and item.columns)
    first = next(later, None)
    if first is None:
        return None
    return "created" if first.created else "renamed"
