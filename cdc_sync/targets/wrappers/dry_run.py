"""A target that keeps what would be done to another one, and does nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.maintenance import Chores, Holdings, Maintained, Upkeep
from cdc_sync.core.migration.migration import ChangeRegime, CreateTable, Migration, Repartition
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.explain import ArchiveTable, DraftedStep, DropTable, EmptyTable, RollBack
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.targets.protocol import Batch, Commit, Target


class DraftTarget:
    """Answers as the real target would after the steps it was given; rows are not written to it. Thread-safe."""

    def __init__(self, target: Target, capabilities: Capabilities) -> None:
        self._target = target
        self._capabilities = capabilities
        self._states: dict[TargetName, TargetState | None] = {}
        self._steps: dict[TargetName, list[DraftedStep]] = {}
        self._lock = threading.Lock()

    @property
    def capabilities(self) -> Capabilities:
        """Those of the target it stands for."""
        return self._capabilities

    def of(self, part: Callable[[Target], Target]) -> DraftTarget:
        """Return a draft of a part of the same target, which has steps of its own."""
        return DraftTarget(part(self._target), self._capabilities)

    def steps(self, name: TargetName) -> tuple[DraftedStep, ...]:
        """Return what would be done, in order."""
        return tuple(self._steps.get(name, ()))

    def read_so_far(self, name: TargetName, topics: Iterable[str]) -> dict[str, Mapping[int, int]]:
        """Return what the real target contains of each topic: by partition, the next offset."""
        state = self._target.state(name)
        offsets = state.progress.offsets if state is not None and state.progress is not None else {}
        return {topic: offsets.get(topic, {}) for topic in topics}

    def state(self, name: TargetName) -> TargetState | None:
        """Return the drafted state, else the real one."""
        return self._states[name] if name in self._states else self._target.state(name)

    def migrate(
        self, name: TargetName, migration: Migration, progress: Progress, said: Mapping[int, DataFrame] | None = None
    ) -> None:
        """Keep the steps."""
        state = self.state(name) or TargetState(version=None, progress=None)
        for step in migration.steps:
            match step:
                case CreateTable(mode=mode, partitioning=partitioning, evolution=evolution):
                    state = _divided(replace(state, mode=mode, evolution=evolution), partitioning)
                case Repartition(after=after):
                    state = _divided(state, after)
                case ChangeRegime(after=evolution):
                    state = replace(state, evolution=evolution)
                case _:
                    pass
        kept = None if state.progress is None else progress
        self._keep(name, migration.steps, replace(state, version=migration.version, progress=kept))

    def roll_back(self, name: TargetName) -> bool:
        """Keep that it would be done; the table is paused then, so nobody asks what it would hold."""
        state = self.state(name) or TargetState(version=None, progress=None)
        self._keep(name, (RollBack(),), state)
        return True

    def write(self, name: TargetName, batch: Batch) -> None:
        """Keep the progress; nobody looks at the rows."""
        state = self.state(name) or TargetState(version=batch.progress.version, progress=None)
        self._keep(name, (), replace(state, progress=batch.progress))

    def truncate(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Keep that the rows would go."""
        state = self.state(name) or TargetState(version=progress.version, progress=None)
        self._keep(name, (EmptyTable(),), replace(state, progress=progress))

    def mark(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Keep that the marker would be another one, which no step shows."""
        state = self.state(name) or TargetState(version=progress.version, progress=None)
        self._keep(name, (), replace(state, progress=progress))

    def drop(self, name: TargetName) -> None:
        """Keep that the table would go."""
        if self.state(name) is not None:
            self._keep(name, (DropTable(),), None)

    def archive(self, name: TargetName, into: TargetName) -> None:
        """Keep that the table would have another name."""
        state = self.state(name)
        if state is not None:
            self._keep(name, (ArchiveTable(into=into),), None)
            self._keep(into, (), state)

    def read(
        self, name: TargetName, schema: InternalSchema, ids: Sequence[int], commit: Commit | None = None
    ) -> DataFrame:
        """Read the real rows."""
        return self._target.read(name, schema, ids, commit)

    def commits(self, name: TargetName, limit: int) -> tuple[Commit, ...]:
        """Return the real commits."""
        return self._target.commits(name, limit)

    def holdings(self, name: TargetName, upkeep: Upkeep) -> Holdings:
        """Return the real figures."""
        return self._target.holdings(name, upkeep)

    def maintain(self, name: TargetName, chores: Chores) -> Maintained:
        """Leave the table as it is: its upkeep changes nothing that a plan tells of."""
        return Maintained()

    def _keep(self, name: TargetName, steps: Sequence[DraftedStep], state: TargetState | None) -> None:
        with self._lock:
            self._steps.setdefault(name, []).extend(steps)
            self._states[name] = state


def _divided(state: TargetState, partitioning: Partitioning | None) -> TargetState:
    return state if partitioning is None else replace(state, partitioning=partitioning, partition_by=str(partitioning))
