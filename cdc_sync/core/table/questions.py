"""Facts that a decision may need and that are dear to find out: each is asked only once a decision depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.migration import Migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.offsets import Ends, OffsetRange
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.planning.observation import Stretch, TablePlan
from cdc_sync.core.planning.stops import Pause, Refused
from cdc_sync.core.planning.truncation import Reach, Truncate

A = TypeVar("A")


class Question(Generic[A]):
    """Something to find out; `A` is the type of the answer. Equal questions have one answer within a run."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PlanOf(Question[TablePlan]):
    """Which versions the events lead to, by all evidence there is."""

    to_the_end: bool = False
    patient: bool = True


@dataclass(frozen=True, slots=True)
class RoomFor(Question[tuple[int, Refused | None]]):
    """For how many of so many new versions there is room within the hour, which they take, and why not for all."""

    versions: int


@dataclass(frozen=True, slots=True)
class TargetNow(Question[TargetState | None]):
    """What the target says of itself."""


@dataclass(frozen=True, slots=True)
class Exists(Question[bool]):
    """Whether there is a table of a name in the target."""

    name: TargetName


@dataclass(frozen=True, slots=True)
class HasAllEvents(Question[bool]):
    """Whether nothing is gone from the beginnings of the topics that the target was filled from."""


@dataclass(frozen=True, slots=True)
class Cuts(Question[Ends]):
    """Where the first event at or behind a position is, in each partition of the ranges that has one."""

    position: SourcePosition


@dataclass(frozen=True, slots=True)
class KeyClash(Question[str | None]):
    """Why the target's rows cannot be told apart by columns, None if they can.

    Attributes:
        before: the version that the rows are of.
        held: ids of the columns; none asks for any row at all, which has no value of a new one.
    """

    before: int
    held: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RefusedJoin(Question[Refused | None]):
    """Why the values of columns that are to be joined cannot be found out, None if they can."""

    version: int
    steps: Migration = field(compare=False)
    history: History = field(compare=False)


@dataclass(frozen=True, slots=True)
class IsSameTopic(Question[bool]):
    """Whether the topics are those whose offsets the target knows."""


@dataclass(frozen=True, slots=True)
class Reaches(Question[Mapping[tuple[str, int], Reach]]):
    """Where a TRUNCATE lies in all partitions but its own."""

    truncate: Truncate


@dataclass(frozen=True, slots=True)
class Fingerprints(Question[Mapping[str, str]]):
    """The fingerprint of each schema that is known, by digest."""

    digests: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What is left to be read, or why some of it cannot be."""

    ranges: tuple[OffsetRange, ...] = ()
    stretches: tuple[Stretch, ...] = ()
    stop: Pause | None = None


@dataclass(frozen=True, slots=True)
class RestBefore(Question[Rest]):
    """What of before an end is in the topics and not written yet, a batch of it at most."""

    number: int
    end: Version = field(compare=False)


@dataclass(frozen=True, slots=True)
class Destination(Question[tuple[TargetName, bool] | None]):
    """What a table of a name is called in the target, and whether others share it; None if no rule matches."""

    table: TableId


@dataclass(frozen=True, slots=True)
class HistoryOf(Question[History | None]):
    """The recorded versions of another table."""

    table: TableId


@dataclass(frozen=True, slots=True)
class CanReadFrom(Question[bool]):
    """Whether the table's events come in one partition, and those from a place on are there."""

    at: KafkaPosition


@dataclass(frozen=True, slots=True)
class IsWhole(Question[bool]):
    """Whether a snapshot that began at a position has its end within a range."""

    position: SourcePosition
    within: OffsetRange
