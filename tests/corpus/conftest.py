"""Runs over whole captures: dear, so each is made once, when a test first asks for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import pytest

from cdc_sync.local.kafka import KafkaServer
from tests.conftest import Produce
from tests.corpus.reader import PREFIXES
from tests.registry.servers import confluent_registry
from tests.targets.hive import AS_ADVISED, start_metastore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cdc_sync.config import Config
    from tests.corpus.runs import Ended
    from tests.corpus.steps import Seen

SMALL_BATCH = int(os.environ.get("CDC_SYNC_CORPUS_BATCH", "100"))
"""Records of a partition in one batch of the runs into memory; the acceptance run takes 1."""
COMPILED = ("mariadb-avro",)
"""Captures whose way into the lake Spark compiles; interpreting takes half as long, for the tables are small."""
STEP_BY_STEP = "CDC_SYNC_CORPUS_STEPS" in os.environ
"""Whether they are run step by step of the script, and looked at after each: minutes for each capture."""
InLake: TypeAlias = "Callable[[str], Ended]"
InMemory: TypeAlias = "Callable[[str], tuple[Ended, tuple[Seen, ...]]]"
"""How a capture ended, and what was seen after each step, if that was asked for."""
IntoLake: TypeAlias = "Callable[[str, str, tuple[str, ...] | None], Ended]"
"""Capture, format, and the tables of the schema `inv` that alone are read; None is every table there is."""


@pytest.fixture(scope="session")
def registry_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real registry where one can run, with the captured schemas under the ids that the records carry."""
    with confluent_registry(tmp_path_factory.mktemp("registry")) as url:
        yield url


@pytest.fixture(scope="session")
def new_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Start Hive metastores, one for each run, for the captures have tables of the same names."""
    with ExitStack() as running:

        def start() -> str:
            server, uri = start_metastore(tmp_path_factory.mktemp("metastore"), AS_ADVISED)
            running.callback(server.stop)
            return uri

        yield start


@pytest.fixture(scope="session")
def config_of(
    request: pytest.FixtureRequest, kafka: KafkaServer, produce: Produce, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Config]:
    """Write a capture to Kafka, once, and configure a pipeline for it."""
    from tests.corpus.runs import corpus_config, produce_capture

    written = cache(lambda capture: produce_capture(produce, capture))

    def config(
        capture: str, target: str, size: int, *, compiled: bool, tables: tuple[str, ...] | None = None
    ) -> Config:
        written(capture)
        return corpus_config(
            capture,
            folder=tmp_path_factory.mktemp(f"{capture}-{target}"),
            servers=kafka.bootstrap_servers,
            target=target,
            size=size,
            registry=request.getfixturevalue("registry_url") if capture.endswith("avro") else None,
            metastore=request.getfixturevalue("new_metastore")() if target == "parquet" else None,
            pattern=None if tables is None else rf"{PREFIXES[capture]}\.inv\.({'|'.join(tables)})",
            compiled=compiled,
        )

    return config


@pytest.fixture(scope="session")
def into_lake(config_of: Callable[..., Config], _spark: SparkSession) -> IntoLake:
    """Run a capture into a lake of a format, in one batch."""
    from cdc_sync.runtime import service
    from tests.corpus.runs import run_into_lake, session_of_its_own

    @cache
    def run(capture: str, format_: str, tables: tuple[str, ...] | None) -> Ended:
        compiled = capture in COMPILED and format_ == "iceberg"
        with session_of_its_own(_spark):
            return run_into_lake(
                config_of(capture, format_, 200_000, compiled=compiled, tables=tables),
                lambda found: service.run(found, once=True, stop=threading.Event()),
            )

    return run


@pytest.fixture(scope="session")
def in_lake(into_lake: IntoLake) -> InLake:
    """Run a capture into a lake of Iceberg tables."""
    return lambda capture: into_lake(capture, "iceberg", None)


@pytest.fixture(scope="session")
def in_memory(config_of: Callable[..., Config], _spark: SparkSession) -> InMemory:
    """Run a capture into memory, in many small batches or step by step of the script.

    Spark interprets: where it compiles for the lake, the two also show that those ways agree.
    """
    from cdc_sync.spark.session import build_session
    from tests.corpus.runs import run_into_memory, session_of_its_own
    from tests.corpus.steps import steps

    @cache
    def run(capture: str) -> tuple[Ended, tuple[Seen, ...]]:
        with session_of_its_own(_spark):
            small = config_of(capture, "memory", SMALL_BATCH, compiled=False)
            return run_into_memory(small, build_session(small), steps(capture) if STEP_BY_STEP else ())

    return run
