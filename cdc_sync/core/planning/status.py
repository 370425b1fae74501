"""What `cdc-sync status` says of one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.times import seconds_of, utc
from cdc_sync.core.planning.resync import Mark

StateName: TypeAlias = Literal["running", "paused", "failing", "waiting", "gone"]

_LAST_MS = 253_402_300_800_000
"""The year 10,000, in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """What the job last said about one table.

    Attributes:
        target: the target's dotted name, for reading only.
        state: `paused` waits for a decision; `failing` is tried again on its own; `waiting` is before a change that
            the evidence does not tell of yet; `gone`: the source table was dropped.
        since: when it came into this state; this and other times in ISO 8601, None if not known.
        written_at: when something was written to the target last.
        event_at: when the source wrote the newest event that is in the target.
        version: the schema version of the target's columns, None before the first.
        code: the cause of its state, as `core.model.codes` has it; None if it runs, or was said by an earlier version.
        reason, remedy: why it does not run, and what would let it.
        offsets: topic -> partition -> the next offset to read.
        paused_at: the record it stands before, as topic[partition]@offset.
        counts: what was not applied, by kind, since the table's beginning.
        needs_resync: columns whose values in some rows no event tells.
        replaced_nulls: ids of columns in which a NULL arrived as the default, and until when; see `replaced_nulls`.
        evidence, evidence_gaps: since when what is configured tells of it, and what is missing; see `Coverage`.
    """

    table: TableId
    target: str
    state: StateName
    since: str | None = None
    written_at: str | None = None
    event_at: str | None = None
    version: int | None = None
    code: str | None = None
    reason: str | None = None
    remedy: str | None = None
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    paused_at: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    needs_resync: tuple[Mark, ...] = ()
    replaced_nulls: Mapping[int, int] = field(default_factory=dict)
    evidence: Mapping[str, str | None] = field(default_factory=dict)
    evidence_gaps: tuple[str, ...] = ()

    def dated(self, before: TableStatus | None, now: str) -> TableStatus:
        """Return the status with since when the table is in its state, as the last status tells, or else since now."""
        same = before is not None and before.state == self.state
        return replace(self, since=before.since if before is not None and same else now)

    def behind(self, lag: int | None, now: float) -> float | None:
        """Return how many seconds at most the target is behind its source, None if that is not known.

        Args:
            lag: in offsets, None if not known.
            now: in seconds since the epoch.
        """
        if lag == 0:
            return 0.0
        return None if lag is None or self.event_at is None else max(0.0, now - seconds_of(self.event_at))


def event_moment(at: int | None) -> str | None:
    """Return an event's time as text; None where it says none, or one that no calendar has."""
    return utc(at / 1000) if at is not None and 0 <= at < _LAST_MS else None
