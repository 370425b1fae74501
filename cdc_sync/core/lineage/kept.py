"""The readings of one table that were kept: which of them an event is judged by, now and in every replay.

Readings are in no topic, so each that differs from the one before is kept, with how far it was seen again. An event is
judged by the first reading that reaches its place in the log and the last one before it, never by a later one; where
there was none to be had, that is kept too. So the same kept readings give the same decisions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from cdc_sync.core.lineage.catalogue import CatalogueReading, Moment
from cdc_sync.core.model.positions import SourcePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Readings one after the other that show the same: the first of them, and when the last was made."""

    first: CatalogueReading
    begun: int
    ended: int
    taken: int

    @staticmethod
    def of(reading: CatalogueReading) -> Span:
        """Begin with one reading."""
        return Span(first=reading, begun=reading.begun, ended=reading.ended, taken=reading.taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """There was no reading to be had for events up to this place in the log that no reading before reaches."""

    lsn: int


Entry: TypeAlias = Span | Missed


@dataclass(frozen=True, slots=True)
class Kept:
    """All that was kept of one table, in the order in which it was."""

    entries: tuple[Entry, ...] = ()

    @property
    def reach(self) -> int:
        """The place in the log up to which every event was, or would be, decided by what is kept."""
        return max((entry.lsn if isinstance(entry, Missed) else entry.begun for entry in self.entries), default=0)

    @property
    def newest_lsn(self) -> int:
        """The place in the log at which the last reading was made; 0 if there is none."""
        return max((entry.ended for entry in self.entries if isinstance(entry, Span)), default=0)

    def with_reading(self, reading: CatalogueReading) -> Kept:
        """Add a reading that is later than all others."""
        last = self.entries[-1] if self.entries else None
        if isinstance(last, Span) and last.first.shows_as(reading):
            same = replace(last, begun=reading.begun, ended=reading.ended, taken=reading.taken)
            return Kept((*self.entries[:-1], same))
        return Kept((*self.entries, Span.of(reading)))

    def followed_by(self, later: Kept) -> Kept:
        """Add readings that were made later; those of an older state of the log are left out."""
        kept = self
        for entry in later.entries:
            if isinstance(entry, Span) and entry.first.begun >= kept.newest_lsn:
                last = replace(entry.first, begun=entry.begun, ended=entry.ended, taken=entry.taken)
                kept = kept.with_reading(entry.first).with_reading(last)
        return kept

    def with_missed(self, lsn: int) -> Kept:
        """Say that events up to there are decided without another reading."""
        return Kept((*self.entries, Missed(lsn=lsn)))

    def covers(self, moment: Moment) -> bool:
        """Whether it is settled by which readings an event is judged."""
        return self._reaching(moment) is not None

    def around(self, moment: Moment) -> tuple[CatalogueReading | None, CatalogueReading] | None:
        """Return the readings around an event: the last one before, if there is any, and the first one behind."""
        place = self._reaching(moment)
        if place is None:
            return None
        after = self.entries[place]
        if isinstance(after, Missed):
            return None
        spans = [entry.first for entry in self.entries[: place + 1] if isinstance(entry, Span)]
        # What a snapshot read is not of the moment that its LSN names, but of a later one.
        before = [] if moment.snapshot else [first for first in spans if first.ended <= moment.lsn]
        return (before[-1] if before else None), after.first

    @property
    def cuts(self) -> tuple[SourcePosition, ...]:
        """The places behind which readings tell something else than before: the first event there is looked at."""
        return tuple(_cut(entry) for entry in self.entries if isinstance(entry, Span))

    def is_told_from(self, head: SourcePosition, event: SourcePosition, moment: Moment) -> bool:
        """Whether an event lies amid readings that show the same, and the first of them behind the newest version.

        Nothing changed between them, so everything is certain; and the first event behind a cut is always looked at,
        so that it does not depend on how events are split into batches where this begins.
        """
        return not moment.snapshot and any(
            head < _cut(entry) < event and entry.first.ended <= moment.lsn <= entry.begun
            for entry in self.entries
            if isinstance(entry, Span)
        )

    def _reaching(self, moment: Moment) -> int | None:
        return next((place for place, entry in enumerate(self.entries) if _reaches(entry, moment)), None)


NOTHING_KEPT = Kept()


def _cut(span: Span) -> SourcePosition:
    return SourcePosition(kind="postgresql", parts=(span.first.ended, span.first.ended))


def _reaches(entry: Entry, moment: Moment) -> bool:
    if isinstance(entry, Missed):
        return entry.lsn >= moment.lsn
    if moment.snapshot and moment.commit is not None and entry.taken < moment.commit.at:
        return False
    return entry.begun >= moment.lsn
