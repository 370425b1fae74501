"""How long something is waited for."""

from __future__ import annotations

import time
from collections.abc import Hashable


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
