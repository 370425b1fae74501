"""Stopping politely: the first SIGTERM or SIGINT asks, a second SIGINT leaves at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from structlog import get_logger

T = TypeVar("T")

INTERRUPTED = 130
"""Exit code of a process that SIGINT ended, as shells count."""


def interruptible(work: Callable[[threading.Event], T], *, hangup: threading.Event | None = None) -> T:
    """Run `work` in a thread of its own and set its event on SIGTERM or SIGINT, and where its terminal is closed.

    PySpark takes SIGINT over when a session starts in the main thread; from another thread it leaves signals alone.
    Without a terminal SIGHUP sets `hangup`, if it is given. Must be called in the main thread; the former handlers are
    back when it returns.

    Raises:
        Exception: whatever `work` raised.
    """
    stop = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:
            errors.append(error)

    def handler(number: int, _: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            os._exit(INTERRUPTED)
        stop.set()
        get_logger().info("stopping", signal=signal.Signals(number).name, hint="SIGINT again leaves at once")

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
    finally:
        for number, old in former.items():
            signal.signal(number, old)
    if errors:
        raise errors[0]
    return results[0]
