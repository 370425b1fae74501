"""Wall clock and processor time of a driver and its JVM."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one batch took: seconds by the clock, seconds of processor in JVM and Python driver together."""

    events: int
    wall: float
    cpu: float

    @property
    def throughput(self) -> float:
        """Events in a second."""
        return self.events / self.wall

    @property
    def cpu_per_100k(self) -> float:
        """Seconds of processor for 100,000 events."""
        return self.cpu / self.events * 100_000


class Meter:
    """Measures actions of one process and its JVM (local mode: executors are threads of that JVM)."""

    def __init__(self, spark: SparkSession) -> None:
        pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
        self._stat = Path(f"/proc/{pid}/stat")
        self._ticks = os.sysconf("SC_CLK_TCK")

    def measure(self, events: int, action: Callable[[], object]) -> Cost:
        cpu, wall = self._cpu(), time.monotonic()
        action()
        return Cost(events=events, wall=time.monotonic() - wall, cpu=self._cpu() - cpu)

    def _cpu(self) -> float:
        # Fields 14 and 15; the second field is a name in parentheses that may hold blanks.
        fields = self._stat.read_text().rpartition(")")[2].split()
        own = resource.getrusage(resource.RUSAGE_SELF)
        return (int(fields[11]) + int(fields[12])) / self._ticks + own.ru_utime + own.ru_stime


def typical(costs: list[Cost]) -> Cost:
    """Return the median of clock and processor time, each for itself."""
    return Cost(
        events=round(median(cost.events for cost in costs)),
        wall=median(cost.wall for cost in costs),
        cpu=median(cost.cpu for cost in costs),
    )
