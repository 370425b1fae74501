"""How rows are being filled: `fills/<namespace>.<table>/<entry>/`, where `plan-001.json` lists all units.

Beside each plan lie the leases of its units: who works on one takes it, so that no other process does the same work.
"""

from __future__ import annotations

from dataclasses import asdict

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions.fills import FillPlan, Unit
from cdc_sync.storage.documents import Documents, document
from cdc_sync.storage.leases import Leases
from cdc_sync.storage.object_store import name_of_parts

_RATE = "rate.json"
_REMEDY = "delete the file; the units are planned anew"


class Rates:
    """How fast rows were filled last, by whichever process: `rate.json`. Raises as `FillPlans`."""

    def __init__(self, root: str) -> None:
        """Open the file; nothing is made until something was measured."""
        self._root = root

    def measured(self, bytes_per_second: float) -> None:
        """Write down what was measured."""
        Documents(self._root, create=True).put(_RATE, {"bytes_per_second": round(bytes_per_second)})

    def bytes_per_second(self) -> float | None:
        """Return what was measured last, None if nothing was."""
        text = Documents(self._root).text(_RATE)
        return None if text is None else float(document(text, _RATE)["bytes_per_second"])


class FillPlans:
    """Plans of one entry of a table's log.

    Every method raises `TransientError` if the store does not answer, and `HistoryError` if a file is damaged.
    """

    def __init__(self, root: str, table: TargetName, number: int) -> None:
        """Open the files, which are made where there are none."""
        self._files = Documents(root, create=True)
        self._folder = f"fills/{name_of_parts(table.namespace, table.name)}/{number:06d}"

    def newest(self) -> FillPlan | None:
        """Return the plan that is worked by, None if there is none."""
        plans = [path for path in self._files.paths(self._folder) if "/plan-" in path]
        return None if not plans else self._files.get(plans[-1], FillPlan, _REMEDY)

    def make(self, number: int, units: tuple[Unit, ...]) -> None:
        """Write a plan down, unless another process was first."""
        plan = FillPlan(number=number, units=units)
        self._files.create(f"{self._folder}/plan-{number:03d}.json", asdict(plan))

    def leases(self, plan: FillPlan, unit: Unit) -> Leases:
        """Return the leases of a unit."""
        return Leases(f"{self._files.root}/{self._folder}/{plan.number:03d}/{unit.number:06d}", create=True)

    def clear(self) -> None:
        """Forget all: the rows are filled."""
        for path in self._files.paths(self._folder):
            self._files.delete(path)
