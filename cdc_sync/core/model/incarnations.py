"""Where a source's log began anew under one table: a failover, a restored or upgraded server, the same topic.

Its positions are then those of another log, so they order nothing against those of before. Debezium also goes back in
position after its own restart, to events that it sends again. The two are told apart by the source's clock: what is
sent again was in its partition before, with the time it had then; a new log goes on with later times. So an event
proves a new incarnation if its position lies before one that its partition has shown of the table, and its time behind
all of theirs.

An incarnation begins at a time, not at an offset: then every partition and every record that tells its time knows which
one it is of, and one begun without need leaves the order of events as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cdc_sync.core.model.positions import SourcePosition

Began: TypeAlias = tuple[int, ...]
"""When each incarnation after the first began, in milliseconds since the epoch by the source's clock, ascending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is looked at of one event.

    Attributes:
        position: as its source block has it, of the first incarnation.
        at: milliseconds since the epoch, None if the event does not say.
        incremental: an incremental snapshot read the row, while the log went on.
    """

    position: SourcePosition
    at: int | None
    incremental: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What events of one table have come to in one partition: the highest position, the latest time, the last time."""

    position: SourcePosition
    latest: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """The times around the first event of a new incarnation.

    Attributes:
        last: of the event before it in its partition.
        latest: the latest one before it in its partition.
        at: its own.
    """

    last: int
    latest: int
    at: int

    @property
    def began(self) -> int:
        """When the incarnation began: halfway, for clocks of two servers differ, as do those of partitions."""
        return max((self.last + self.at + 1) // 2, self.latest + 1)


def incarnation_at(began: Began, at: int | None) -> int:
    """Return which incarnation a time is of; the newest one for an event that does not say its time."""
    return len(began) if at is None else sum(at >= begin for begin in began)


def placed(position: SourcePosition, at: int | None, began: Began) -> SourcePosition:
    """Return the position that an event has in the order of all incarnations."""
    return replace(position, incarnation=incarnation_at(began, at)) if began else position


def reach(moments: Iterable[Moment], began: Began, before: Reached | None = None) -> Reached | None:
    """Return what a partition's events have come to, None if none of them tells position and time."""
    for moment in moments:
        if moment.at is None or not moment.position.parts:
            continue
        position = placed(moment.position, moment.at, began)
        before = Reached(
            position=position if before is None else max(position, before.position),
            latest=moment.at if before is None else max(moment.at, before.latest),
            last=moment.at,
        )
    return before


def fall(before: Reached | None, moment: Moment, began: Began) -> Fall | None:
    """Return the fall that an event proves behind those before it in its partition, None if it proves none."""
    if before is None or moment.at is None or moment.incremental or not moment.position.parts:
        return None
    position = placed(moment.position, moment.at, began)
    newest = position.incarnation == len(began)
    if not newest or not is_surely_before(position, before.position) or moment.at <= before.latest:
        return None
    return Fall(last=before.last, latest=before.latest, at=moment.at)


def is_surely_before(position: SourcePosition, other: SourcePosition) -> bool:
    """Whether no part of an event's position reaches another one's.

    Of Postgres: its row and the last commit before lie behind the other's last commit. What a snapshot read tells no
    commit but its own place, so that the next event from the log may stand before it as a whole, and does not in its
    own place.
    """
    same = (position.incarnation, position.kind) == (other.incarnation, other.kind)
    if same and position.kind == "postgresql":
        return max(position.parts) < other.parts[0]
    return position < other


def extended(began: Began, falls: Iterable[Fall]) -> Began:
    """Return the beginnings with that of the earliest fall."""
    first = min(falls, key=lambda found: (found.at, found.began), default=None)
    return began if first is None else (*began, first.began)


def begin(partitions: Mapping[int, Sequence[Moment]], began: Began = ()) -> Began:
    """Return all beginnings that the events of a table prove, partition by partition in the order of offsets."""
    while True:
        found = extended(began, _first_falls(partitions.values(), began))
        if found == began:
            return began
        began = found


def _first_falls(partitions: Iterable[Sequence[Moment]], began: Began) -> Iterable[Fall]:
    for moments in partitions:
        before: Reached | None = None
        for moment in moments:
            found = fall(before, moment, began)
            if found is not None:
                yield found
            before = reach((moment,), began, before)
