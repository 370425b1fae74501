"""Questions that are asked again, and how long nobody has answered."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import stamina
from structlog import get_logger

T = TypeVar("T")


def repeated(
    what: str, ask: Callable[[], T], *, on: Callable[[Exception], bool], attempts: int, timeout: float | None = None
) -> T:
    """Ask until an answer comes, an error is not worth asking again, or the attempts or the time are used up.

    Args:
        what: is asked, for the log.
        ask: raises if there is no answer.
        on: says whether an error is worth it.
        attempts: at most.
        timeout: in seconds, at most.
    """
    tries = stamina.retry_context(
        on=on, attempts=attempts, timeout=timeout, wait_initial=0.2, wait_max=5.0, wait_jitter=0.2
    )
    for attempt in tries.with_name(what, (), {}):
        with attempt:
            return ask()
    raise AssertionError("the retry loop returns or raises")


class Outage:
    """How long a service has not answered; all questions of one outage share its patience.

    Args:
        what: the service, as in "Kafka".
        timeout: in seconds, for how long questions are asked again.
        said: what the log says beside it.

    Attributes:
        since: when a question that had no answer was asked, if none had one since; by a clock that never goes back.
    """

    def __init__(self, what: str, timeout: float, **said: object) -> None:
        self.since: float | None = None
        self._what, self._timeout, self._said = what, timeout, said
        self._has_answered = False

    def patience_left(self) -> float:
        """Return for how many seconds a question may be asked again."""
        gone = 0.0 if self.since is None else time.monotonic() - self.since
        return max(self._timeout - gone, 0.001)

    def note_silence(self, asked: float, error: str) -> None:
        """Note that a question had no answer; the log says so once.

        Args:
            asked: when it was asked first.
            error: what was said instead.
        """
        if self.since is not None:
            return
        self.since = asked
        if self._has_answered:  # else it was never there, which is said by the error itself
            get_logger().warning(
                f"{self._what} does not answer", **self._said, error=error, waited_for_s=int(self._timeout)
            )

    def note_answer(self) -> None:
        """Note that there was one."""
        if self.since is not None and self._has_answered:
            get_logger().info(f"{self._what} answers again", after_s=round(time.monotonic() - self.since, 1))
        self.since, self._has_answered = None, True
