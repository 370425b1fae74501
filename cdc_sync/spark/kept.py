"""Expressions that are made once: each part of one is a call to the JVM, and another when Python is done with it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame

_MOST = 20_000

_Made = TypeVar("_Made")
_kept: OrderedDict[Hashable, object] = OrderedDict()
_lock = threading.Lock()


def kept(key: Hashable, make: Callable[[], _Made]) -> _Made:
    """Return what `make` returned for the key before, or make it; of those longest unused some are forgotten.

    Args:
        key: all that the expression follows from, and a word for what it is.
    """
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]  # type: ignore[return-value]
    made = make()
    with _lock:
        _kept[key] = made
        if len(_kept) > _MOST:
            _kept.popitem(last=False)
    return made


class Projection:
    """Columns to select from many data frames, handed to the JVM once."""

    def __init__(self, columns: Sequence[Column | str]) -> None:
        self._columns = columns
        self._handed: Any = None

    def of(self, frame: DataFrame) -> DataFrame:
        """Return what `DataFrame.select` does."""
        if self._handed is None:
            self._handed = frame._jcols(*self._columns)
        return type(frame)(frame._jdf.select(self._handed), frame.sparkSession)
