"""Whether Spark writes code for a query and compiles it, or interprets its expressions.

A table that changes shape is a new query each time, and code for a new query takes longer to compile than a small batch
takes to be interpreted. Both ways give the same values.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Source: Spark's `SQLConf`; what the second one is set to holds for expressions that no stage takes in."""


class Codegen:
    """The session's choice, while pieces of work of known size go on in many threads.

    All threads share the session, and a query takes its settings when it begins. So what is small is compiled too
    beside what is large, but nothing large is interpreted.
    """

    def __init__(self, spark: SparkSession, compile_from: int) -> None:
        """Know the session.

        Args:
            spark: whose settings are changed; what they are now is what large work has.
            compile_from: work on so many rows is large.
        """
        self._spark = spark
        self._compile_from = compile_from
        self._compiled = {key: str(spark.conf.get(key)) for key in _INTERPRETED}
        self._lock = threading.Lock()
        self._small = self._large = 0

    @property
    def _interprets(self) -> bool:
        return self._small > 0 and self._large == 0

    @contextmanager
    def of_rows(self, rows: int | None) -> Iterator[None]:
        """Let queries suit the number of rows they look at; None is not known, and large."""
        small = rows is not None and rows < self._compile_from
        self._count(1, small=small)
        try:
            yield
        finally:
            self._count(-1, small=small)

    def _count(self, change: int, *, small: bool) -> None:
        with self._lock:
            before = self._interprets
            if small:
                self._small += change
            else:
                self._large += change
            if self._interprets != before:
                for key, value in (_INTERPRETED if self._interprets else self._compiled).items():
                    self._spark.conf.set(key, value)
