"""How long something is waited for."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass, replace

_LONGEST_PAUSE = 5.0


class Patience:
    """Waits for one thing at a time, each for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._thing: Hashable = None
        self._since = 0.0

    def is_over(self, thing: Hashable) -> bool:
        """Whether this thing has been waited for long enough; the first question about it begins the wait."""
        if thing != self._thing:
            self._thing, self._since = thing, time.monotonic()
        return time.monotonic() - self._since >= self._seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Failures in a row: what is away is waited for by the clock, of anything else a few are enough.

    Attributes:
        attempts: so many in a row are one too many, but for those of something that is away.
        seconds: how long something may be away.
        count: how many there were.
        since: the time of the first one, by a clock that never goes back.
    """

    attempts: int
    seconds: float
    count: int = 0
    since: float = 0.0

    def with_another(self, now: float) -> Failures:
        """Count one more."""
        return replace(self, count=self.count + 1, since=self.since if self.count else now)

    def are_enough(self, now: float, *, is_away: bool) -> bool:
        """Whether to give up."""
        return now - self.since > self.seconds or (not is_away and self.count >= self.attempts)

    @property
    def pause(self) -> float:
        """How many seconds to wait before the next try."""
        return float(min(0.5 * 2 ** (self.count - 1), _LONGEST_PAUSE)) if self.count else 0.0
