"""One job per pipeline: numbered leases, of which the newest is in force.

A lease is a file that is made under the next number, if nobody has made it, and that only its maker writes again. So a
store need not be able to replace a file only where nobody else has. Its number is the fencing token: who meets a higher
one has lost.

No two clocks are compared. Who looks on measures by its own how long a lease was not renewed, the holder by its own how
long it could not renew it. The holder stops first: `FENCE` and one commit are shorter than `TERM`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

BEAT = 5.0
"""Seconds from one renewal to the next."""
FENCE = 20.0
"""Seconds without a renewal after which the holder begins no further change."""
TERM = 30.0
"""Seconds without a renewal after which another job may take its place."""

End: TypeAlias = Literal["stopped", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Which process a job is, so that another one on the same machine knows whether it is still there.

    Attributes:
        pid: as `space` numbers processes.
        space: the machine since its last start, and which of its ways to number processes; None where nobody knows.
        began: in ticks since the machine's start, for numbers are given again.
    """

    host: str
    pid: int
    space: str | None = None
    began: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """What is done of a table, in words, and since when, in seconds since the epoch."""

    what: str
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What a job does; times in seconds since the epoch.

    Attributes:
        batches: how many it has processed.
        batch_began: the one that runs; None between two.
        batch_ended: the last one.
        refused: why the last edit of the configuration was not taken up, None if it was.
        doing: of tables that something is done of just now.
        unread: topics that cannot be read and of which no table is known that could say so; why not.
    """

    batches: int = 0
    batch_began: float | None = None
    batch_ended: float | None = None
    refused: str | None = None
    doing: Mapping[str, Doing] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """That a job is the one that writes a pipeline's tables.

    Attributes:
        number: counts the jobs of the pipeline.
        job: a name that no other job has.
        version: of the program.
        started: when it took the lease, in seconds since the epoch.
        beats: how often it was renewed.
        ended: how it was given back; None while it is held, and where the holder was killed.
    """

    number: int
    job: str
    process: Process
    version: str
    started: float
    beats: int = 0
    pulse: Pulse = Pulse()
    ended: End | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What somebody who would like the lease has seen of the one in force.

    Attributes:
        number, beats: of the lease, when it was looked at last.
        since: when it was seen so first, by the clock of who looks on.
        lives: it was renewed in the meantime.
    """

    number: int
    beats: int
    since: float
    lives: bool = False


JobState: TypeAlias = Literal["running", "stopped", "failed", "dead"]


def state_of(seen: Lease, age: float, *, gone: bool) -> JobState:
    """Return how a job is, for who looks at its lease once.

    Args:
        seen: the job's lease.
        age: for how many seconds it was not renewed, by the store's clock.
        gone: its process is known to have ended.
    """
    if seen.ended is not None:
        return seen.ended
    return "dead" if gone or age > TERM else "running"


def watched(before: Watch | None, seen: Lease, now: float) -> Watch:
    """Return what is known of a lease now that it was looked at again."""
    if before is None or before.number != seen.number:
        return Watch(number=seen.number, beats=seen.beats, since=now)
    if before.beats != seen.beats:
        return Watch(number=seen.number, beats=seen.beats, since=now, lives=True)
    return before


def is_free(seen: Lease, watch: Watch, now: float, *, gone: bool) -> bool:
    """Whether the next number may be taken.

    Args:
        seen: the lease in force.
        watch: with this look.
        gone: its holder's process is known to have ended.
    """
    return seen.ended is not None or gone or now - watch.since > TERM
