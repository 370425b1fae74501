"""Processor time of Spark's tasks alone: steadier than a JVM's, which compiles and collects garbage beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from measure import Cost, Meter
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCost:
    """What one action took; `tasks` is seconds of processor in the threads of its tasks."""

    cost: Cost
    tasks: float

    @property
    def tasks_per_100k(self) -> float:
        """Seconds of the tasks' processor time for 100,000 events."""
        return self.tasks / self.cost.events * 100_000


class TaskMeter:
    """Measures actions, one at a time."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._scala: Any = spark.sparkContext._jsc.sc()
        self._meter = Meter(spark)
        self._actions = 0

    def measure(self, events: int, action: Callable[[], object]) -> TaskCost:
        self._actions += 1
        group = f"action {self._actions}"
        self._context.setJobGroup(group, group)
        cost = self._meter.measure(events, action)
        self._scala.listenerBus().waitUntilEmpty()
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [stage for job in jobs if job is not None for stage in job.stageIds]
        nanos = sum(self._scala.statusStore().lastStageAttempt(stage).executorCpuTime() for stage in stages)
        return TaskCost(cost=cost, tasks=nanos / 1e9)
