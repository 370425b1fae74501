"""Fills the rows of a table unit by unit, beside any number of other processes that do the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from structlog import get_logger

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.lease import End
from cdc_sync.core.revisions.fills import Fill, FillPlan, Unit, units
from cdc_sync.errors import LeaseHeld, TargetMoved
from cdc_sync.runtime.lease import JobLease, since_boot, this_process
from cdc_sync.storage.fill_plans import FillPlans, Rates

if TYPE_CHECKING:
    from cdc_sync.targets.protocol import Filling, Revisable

_ATTEMPTS = 10
"""Commits in a row that others come before until a fill is given up."""
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How rows are filled.

    Attributes:
        unit_size: bytes of files that are written anew in one commit, about.
        rate: bytes of files a second that one process reads at most, None for no limit.
        seconds: after which no further unit is begun, None for never.
    """

    unit_size: int
    rate: int | None = None
    seconds: float | None = None


class Filler:
    """Fills rows for one process. One thread at a time."""

    def __init__(
        self,
        target: Revisable,
        plans: Callable[[TargetName, int], FillPlans],
        rates: Rates,
        pace: Pace,
        stop: threading.Event,
    ) -> None:
        """Begin.

        Args:
            plans: opens those of an entry of a table's log.
            rates: what is measured, and was.
            stop: set by whoever wants it to end behind the unit that it is at.
        """
        self._target = target
        self._plans = plans
        self._rates = rates
        self._pace = pace
        self._stop = stop
        self._began = time.monotonic()
        self._read = 0
        self._worked = 0.0
        self._watched: dict[tuple[TargetName, int, int], JobLease] = {}

    def fill(self, table: TargetName, fill: Fill) -> bool:
        """Fill all rows that are left, and wait for what other processes are at; return false if told to stop before.

        Raises:
            TargetMoved: if another revision was applied meanwhile, or others change the files all the time.
            TargetError: if a value cannot be computed.
        """
        plans = self._plans(table, fill.number)
        moved = 0
        while True:
            filling = self._target.filling(table, fill)
            if not filling.files:
                break
            plan = plans.newest()
            if plan is None or not plan.left(filling.files):
                plans.make(plan.number + 1 if plan else 1, units(filling.files.values(), self._pace.unit_size))
                continue
            try:
                progress = self._work(table, fill, plans, plan, filling)
            except TargetMoved:
                moved += 1
                if moved == _ATTEMPTS:
                    raise
                continue
            moved = 0
            if self.is_over:
                return False
            if not progress:
                self._stop.wait(_LOOK_SECONDS)
        plans.clear()
        return True

    def units(self, table: TargetName, fill: Fill) -> tuple[int, int]:
        """Return how many units a table's rows were divided into, and how many of those are left; 0 if not yet."""
        plan = self._plans(table, fill.number).newest()
        if plan is None:
            return 0, 0
        return len(plan.units), len(plan.left(self._target.filling(table, fill).files))

    def seconds(self, size: int) -> float | None:
        """Return how long one process takes for so many bytes at the rate that was measured last, None without one."""
        rate = self._rates.bytes_per_second()
        return None if rate is None else size / max(rate, 1)

    @property
    def is_over(self) -> bool:
        """Whether no further unit is to be begun."""
        late = self._pace.seconds is not None and time.monotonic() - self._began > self._pace.seconds
        return self._stop.is_set() or late

    def _work(self, table: TargetName, fill: Fill, plans: FillPlans, plan: FillPlan, filling: Filling) -> bool:
        """Do the units that nobody else is at; return whether there was one."""
        done = False
        for unit in plan.left(filling.files):
            if self.is_over:
                break
            if not any(path in filling.files for path in unit.files):
                continue
            with self._claimed(table, plans, plan, unit) as claim:
                if claim is None:
                    continue
                if claim.number > 1:  # whoever had it before may have done it since the files were listed
                    filling = self._target.filling(table, fill)
                files = [path for path in unit.files if path in filling.files]
                if files:
                    self._run(table, plan, unit, filling, files)
                    done = True
        return done

    def _run(self, table: TargetName, plan: FillPlan, unit: Unit, filling: Filling, files: list[str]) -> None:
        began = time.monotonic()
        filling.run(files)
        seconds = time.monotonic() - began
        self._worked += seconds
        log = get_logger().bind(table=str(table), unit=unit.number, of=len(plan.units))
        log.info("rows of a unit filled", bytes=unit.size, seconds=round(seconds, 1))
        self._read += unit.size
        self._rates.measured(self._read / max(self._worked, 0.001))
        if self._pace.rate is not None:
            self._stop.wait(max(0.0, self._read / self._pace.rate - (time.monotonic() - self._began)))

    @contextmanager
    def _claimed(self, table: TargetName, plans: FillPlans, plan: FillPlan, unit: Unit) -> Iterator[JobLease | None]:
        """Have a unit to oneself; yield None if another process is at it, or may be."""
        place = (table, plan.number, unit.number)
        claim = self._watched.get(place)
        if claim is None:
            leases = plans.leases(plan, unit)
            claim = JobLease(leases, threading.Event(), process=this_process(), clock=since_boot)
        try:
            taken = claim.look()
        except LeaseHeld:
            taken = False
        if not taken:
            self._watched[place] = claim  # whether it still lives is seen only by looking again
            yield None
            return
        self._watched.pop(place, None)
        end: End = "failed"
        try:
            yield claim
            end = "stopped"
        finally:
            claim.give_back(end)
