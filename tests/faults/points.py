"""Every place at which something outside the job changes, by name; a test can end the job there, or lose the answer.

The places are the edges themselves, so that none is forgotten when the way of a batch changes: each file of the state,
each change of a target, and in it each commit of Iceberg's, and each question to Kafka. What a run passed is known
behind it, and so how many cases there are.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args

import obstore
import pytest

from cdc_sync.errors import KafkaUnavailable, TargetError
from cdc_sync.sources.brokers import Brokers
from cdc_sync.targets.iceberg.change import Change

How = Literal["killed before", "killed behind", "refused", "reply lost"]
HOW: tuple[How, ...] = get_args(How)

T = TypeVar("T")

ASKS = "ask Kafka"
"""The place where nothing changes."""
_CHANGES = ("migrate", "roll_back", "write", "truncate", "mark", "drop", "archive", "remove_rows", "change_rows")
_LEASES = "lease/"
"""The lease is the process's, which lives on here: what is killed is only the job in it."""


class Killed(BaseException):
    """The process ended here; nothing catches it."""


class Points:
    """Counts what is passed, and at one place of one thing has it go wrong."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self._at: int | None = None
        self._how: How = "refused"
        self._dead = False
        self._lock = threading.Lock()

    def arm(self, at: int | None = None, how: How = "refused") -> None:
        """Begin to count; what is passed as number `at` goes wrong."""
        self.passed, self._at, self._how, self._dead = [], at, how, False

    def disarm(self) -> None:
        """Have everything go well from here on, in a new process if the one before was killed."""
        self._at, self._dead = None, False

    def __call__(self, name: str, do: Callable[[], T], error: Callable[[str], Exception]) -> T:
        """Pass a place: do what is done there, or part of it."""
        with self._lock:
            if self._dead:
                raise Killed(name)
            goes_wrong = len(self.passed) == self._at
            self.passed.append(name)
            self._dead = goes_wrong and self._how == "killed before"
        if goes_wrong and self._how == "refused":
            raise error(f"Cannot {name}: planted")
        if self._dead:
            raise Killed(name)
        done = do()
        if goes_wrong:
            self._dead = self._how == "killed behind"
            raise Killed(name) if self._dead else error(f"Cannot {name}: its reply was planted to be lost")
        return done


def set_points(patch: pytest.MonkeyPatch, points: Points, target: type[Any]) -> None:
    """Have a job pass the points of the state, of Kafka, and of a format's targets."""

    def of_files(verb: str) -> None:
        original = getattr(obstore, verb)

        def passed(store: Any, path: str, *more: Any, **named: Any) -> Any:
            def do() -> Any:
                return original(store, path, *more, **named)

            return do() if path.startswith(_LEASES) else points(f"{verb} {_kind(path)}", do, OSError)

        patch.setattr(obstore, verb, passed)

    def of_class(owner: type[Any], verb: str, name: str, error: Callable[[str], Exception]) -> None:
        original = getattr(owner, verb)

        def passed(self: Any, *given: Any, **named: Any) -> Any:
            return points(name, lambda: original(self, *given, **named), error)

        patch.setattr(owner, verb, passed)

    for verb in ("put", "copy", "delete"):
        of_files(verb)
    for verb in (it for it in _CHANGES if hasattr(target, it)):
        of_class(target, verb, f"{verb} target", TargetError)
    of_class(Change, "commit", "commit to Iceberg", TargetError)
    of_class(Brokers, "asked", ASKS, lambda text: KafkaUnavailable(text))


def _kind(path: str) -> str:
    """Return what kind of file a path is: its folder, without what differs from run to run."""
    folder, _, rest = path.partition("/")
    name = rest.rpartition("/")[2]
    return folder if re.search(r"\d|%|^$", name) else f"{folder}/{name}"
