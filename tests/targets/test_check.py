"""`check_target` finds a format that does not keep what every target promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.targets.protocol import Batch
from cdc_sync.testing.targets import check_target
from tests.targets.conftest import fresh_name

pytestmark = pytest.mark.spark


class Forgetful(MemoryTarget):
    def mark(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        pass


class Careless(MemoryTarget):
    """It writes on whatever state there is."""

    def write(self, name: TargetName, batch: Batch) -> None:
        state = self.state(name)
        super().write(name, replace(batch, behind=None if state is None else state.progress))


class Unmoved(MemoryTarget):
    def migrate(self, name: TargetName, migration: Any, progress: Progress, said: Any = None) -> None:
        if migration.version == 1:
            super().migrate(name, migration, progress, said)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (Forgetful, "progress alone changes nothing else: progress"),
        (Careless, "a write that was begun on an older state is refused"),
        (Unmoved, "columns are added, renamed and dropped, rows keep what they hold: rows"),
    ],
)
def test_a_promise_that_is_broken_is_named(broken: type[MemoryTarget], said: str, session: SparkSession) -> None:
    target, name = broken(), fresh_name()
    with pytest.raises(AssertionError, match=said):
        check_target(target, session, name, lambda: target.rows(name))
