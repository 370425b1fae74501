"""Stopping politely: the first SIGTERM or SIGINT asks, a second one, or too long a wait, leaves at once."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from structlog import get_logger

T = TypeVar("T")

_SAME_SECONDS = 1.0
"""What comes so soon behind the first signal is the same: GNU `timeout`, for one, sends it to process and group."""


def exit_code(number: int) -> int:
    """Return the exit code of a process that a signal ended, as shells count."""
    return 128 + number


INTERRUPTED = exit_code(signal.SIGINT)


def interruptible(
    work: Callable[[threading.Event], T], *, hangup: threading.Event | None = None, within: float = math.inf
) -> T:
    """Run `work` in a thread of its own and set its event on SIGTERM or SIGINT, and where its terminal is closed.

    A second signal ends the process at once, and so does work that goes on for longer than `within` seconds behind the
    first: with the exit code of the signal.

    PySpark takes SIGINT over when a session starts in the main thread; from another thread it leaves signals alone.
    Without a terminal SIGHUP sets `hangup`, if it is given. Must be called in the main thread; the former handlers are
    back when it returns.

    Raises:
        Exception: whatever `work` raised.
    """
    stop = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []
    asked: list[tuple[int, float]] = []  # the first signal, and when it came

    def body() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:
            errors.append(error)

    def handler(number: int, _: FrameType | None) -> None:
        if asked:
            if time.monotonic() - asked[0][1] > _SAME_SECONDS:
                os._exit(exit_code(number))
            return
        asked.append((number, time.monotonic()))
        stop.set()
        limit = {} if within == math.inf else {"within_s": within}
        get_logger().info("stopping", signal=signal.Signals(number).name, hint="once more leaves at once", **limit)

    def hung_up(number: int, frame: FrameType | None) -> None:
        if hangup is None or in_terminal:
            handler(number, frame)
        else:
            hangup.set()

    in_terminal = sys.stdin is not None and sys.stdin.isatty()
    handlers = {signal.SIGTERM: handler, signal.SIGINT: handler, signal.SIGHUP: hung_up}
    former = {number: signal.signal(number, each) for number, each in handlers.items()}
    try:
        thread = threading.Thread(target=body, name="cdc-sync", daemon=True)
        thread.start()
        while thread.is_alive():
            # A join without a limit would keep signals from being handled on some platforms.
            thread.join(0.5)
            if asked and time.monotonic() - asked[0][1] > within and thread.is_alive():
                get_logger().error("left in the midst of a batch, which the next start repeats", after_s=within)
                os._exit(exit_code(asked[0][0]))
    finally:
        for number, old in former.items():
            signal.signal(number, old)
    if errors:
        raise errors[0]
    return results[0]
