"""A pipeline whose Kafka, Spark and target are made up: what the job does between two batches, without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from cdc_sync.config import parse_config
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.runtime.context import Context, open_context
from cdc_sync.storage.state import StateStore
from cdc_sync.targets.memory.target import MemoryTarget


class Kafka:
    """A broker whose topics have one partition that begins at 0."""

    def fetch_ahead(self, places: object) -> None:
        pass

    def beginnings(self, topics: Iterable[str]) -> Mapping[str, Mapping[int, int]]:
        return {topic: {0: 0} for topic in topics}

    def topic_ids(self, topics: Iterable[str]) -> Mapping[str, str]:
        return {}


class Session:
    """A Spark session that has settings and nothing else."""

    conf = SimpleNamespace(get=lambda *_: None, set=lambda *_: None)


class Breakable(MemoryTarget):
    """A target of which some tables cannot be read for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: dict[str, Exception] = {}
        self.states: dict[str, TargetState] = {}
        self.asked: Callable[[], object] = lambda: None

    def state(self, name: TargetName) -> TargetState | None:
        self.asked()
        if name.name in self.broken:
            raise self.broken[name.name]
        return self.states.get(name.name)


@dataclass
class Pipeline:
    """The edges of a pipeline in a folder, Kafka and the target made up."""

    folder: Path
    target: Breakable = field(default_factory=Breakable)
    tables: str = "[{pattern: '.*'}]"

    @property
    def context(self) -> Context:
        config = parse_config(
            f"pipeline: {{name: p, state: '{self.folder}'}}\n"
            "kafka: {bootstrap_servers: 'none:9', topics: [t, u]}\n"
            f"tables: {self.tables}\n"
            "target: {format: memory}\n"
        )
        return open_context(config, cast(Any, Session()), cast(Any, Kafka()), target=self.target)

    def status(self, table: TableId) -> TableStatus:
        found = StateStore(f"{self.folder}/p").load(table)
        assert found is not None
        return found
