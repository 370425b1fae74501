"""Runs over whole captures: dear, so each is made once, when a test first asks for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest

from cdc_sync.local.kafka import KafkaServer
from tests.conftest import Produce
from tests.corpus.reader import CAPTURES
from tests.registry.servers import confluent_registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cdc_sync.config import Config
    from tests.corpus.runs import Runs

SMALL_BATCH = int(os.environ.get("CDC_SYNC_CORPUS_BATCH", "100"))
"""Records of a partition in one batch of the runs into memory; the acceptance run takes 1."""
IN_MEMORY = CAPTURES if os.environ.get("CDC_SYNC_CORPUS") == "all" else ("postgres-json", "mariadb-avro")
"""Captures that are run into memory too; CDC_SYNC_CORPUS=all asks for every one."""
COMPILED = IN_MEMORY if os.environ.get("CDC_SYNC_CORPUS") == "all" else ("mariadb-avro",)
"""Captures whose way into the lake Spark compiles; interpreting takes half as long, for the tables are small."""
STEP_BY_STEP = "CDC_SYNC_CORPUS_STEPS" in os.environ
"""Whether they are run step by step of the script, and looked at after each: minutes for each capture."""
FORMAT = os.environ.get("CDC_SYNC_CORPUS_FORMAT", "iceberg")
"""The format of the lake."""


@pytest.fixture(scope="session")
def registry_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real registry where one can run, with the captured schemas under the ids that the records carry."""
    with confluent_registry(tmp_path_factory.mktemp("registry")) as url:
        yield url


@pytest.fixture(scope="session")
def runs_of(
    request: pytest.FixtureRequest,
    kafka: KafkaServer,
    produce: Produce,
    _spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], Runs]:
    """Run a capture, into a lake in one batch and into memory in many small ones or step by step of the script.

    For memory Spark interprets: where it compiles for the lake, the two also show that those ways agree.
    """
    from cdc_sync import job
    from cdc_sync.spark.session import build_session
    from tests.corpus.runs import (
        Runs,
        corpus_config,
        produce_capture,
        run_into_lake,
        run_into_memory,
        session_of_its_own,
    )
    from tests.corpus.steps import steps

    @cache
    def run(capture: str) -> Runs:
        produce_capture(produce, capture)
        registry: str | None = request.getfixturevalue("registry_url") if capture.endswith("avro") else None

        def config(target: str, size: int, *, compiled: bool) -> Config:
            folder = tmp_path_factory.mktemp(f"{capture}-{target}")
            return corpus_config(
                capture,
                folder=folder,
                servers=kafka.bootstrap_servers,
                target=target,
                size=size,
                registry=registry,
                compiled=compiled,
            )

        with session_of_its_own(_spark):
            in_lake = run_into_lake(
                config(FORMAT, 200_000, compiled=capture in COMPILED),
                lambda found: job.run(found, once=True, stop=threading.Event()),
            )
        if capture not in IN_MEMORY:
            return Runs(lake=in_lake, memory=None)
        with session_of_its_own(_spark):
            small = config("memory", SMALL_BATCH, compiled=False)
            in_memory, seen = run_into_memory(small, build_session(small), steps(capture) if STEP_BY_STEP else ())
        return Runs(lake=in_lake, memory=in_memory, seen=seen)

    return run
