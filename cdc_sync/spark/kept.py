"""Expressions that are made once: each part of one is a call to the JVM, and another when Python is done with it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame

_MOST = 50_000
"""Expressions: of a wide table one takes some 4 KB of the JVM's memory."""

_Made = TypeVar("_Made")


class Kept:
    """What was made, up to so many expressions; those longest unused are forgotten. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._found: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, key: Hashable, make: Callable[[], _Made], weigh: Callable[[_Made], int] = lambda _: 1) -> _Made:
        """Return what `make` returned for the key before, or make it.

        Args:
            key: all that the expressions follow from, and a word for what they are.
            weigh: how many they are.
        """
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                found: _Made = self._found[key][0]
                return found
        made = make()
        size = weigh(made)
        with self._lock:
            self._held += size - self._found.get(key, (None, 0))[1]
            self._found[key] = made, size
            while self._held > self._most and len(self._found) > 1:
                self._held -= self._found.popitem(last=False)[1][1]
        return made


kept = Kept(_MOST)


class Projection:
    """Columns to select from many data frames, handed to the JVM once."""

    def __init__(self, columns: Sequence[Column | str]) -> None:
        self._columns = columns
        self.size = len(columns)
        self._handed: Any = None

    def of(self, frame: DataFrame) -> DataFrame:
        """Return what `DataFrame.select` does."""
        if self._handed is None:
            self._handed = frame._jcols(*self._columns)
        return type(frame)(frame._jdf.select(self._handed), frame.sparkSession)
