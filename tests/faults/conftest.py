from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from cdc_sync.config import Config
from cdc_sync.local.kafka import KafkaServer

if TYPE_CHECKING:
    from cdc_sync.runtime.reports import RunReport
    from tests.faults.pipeline import Pipeline


class NewPipeline(Protocol):
    """Makes a pipeline for the topics of a prefix; each test has one that no other has, in any file."""

    def __call__(self, prefix: str, *, rules: str = ..., settings: str = "", format: str = ...) -> Pipeline: ...


@pytest.fixture
def pipeline(kafka: KafkaServer, tmp_path: Path, run_once: Callable[[Config], RunReport]) -> NewPipeline:
    from tests.faults.pipeline import Pipeline

    def make(prefix: str, *, rules: str = "[{pattern: '.*'}]", settings: str = "", format: str = "iceberg") -> Pipeline:
        return Pipeline(
            folder=tmp_path,
            servers=kafka.bootstrap_servers,
            prefix=prefix,
            run_once=run_once,
            rules=rules,
            settings=settings,
            format=format,
        )

    return make
