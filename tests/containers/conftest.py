"""An engine for all tests here; a network, a source and a job for all that one worker runs."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from testcontainers.core.network import Network

from cdc_sync.demo.lake import Lake
from tests.containers import engine
from tests.containers.groups import InGroups
from tests.containers.job import Job
from tests.containers.shop import SMALL, Shop, configuration, lake_of


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> InGroups:
    """Have two workers share the tests, where pytest is asked for these alone."""
    return InGroups(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let no test here be skipped where all must run."""
    return engine.judged((yield), os.environ)


@pytest.fixture(scope="session")
def _engine() -> None:
    if (problem := engine.problem()) is not None:
        engine.give_up(problem, os.environ)
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":  # two at once would remove under each other's eyes
        engine.sweep()


@pytest.fixture(autouse=True)
def _with_engine(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("docker") is not None:
        request.getfixturevalue("_engine")


@pytest.fixture(scope="session")
def network(_engine: None) -> Iterator[Network]:
    """Where containers know each other by name."""
    with engine.network() as made:
        yield made


@pytest.fixture(scope="session")
def shop(network: Network) -> Iterator[Shop]:
    """A source that is captured."""
    made = Shop(network)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def _job(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    folder = tmp_path_factory.mktemp("job")
    made = Job(folder, shop.network, configuration(folder / "warehouse", more=SMALL))
    yield made
    made.remove()


@pytest.fixture
def job(_job: Job) -> Job:
    """A job in local mode over all tables of the shop, which runs; a test may end it."""
    if not _job.runs:
        _job.start()
    return _job


@pytest.fixture
def lake(job: Job) -> Lake:
    """What the job has written."""
    return lake_of(job.warehouse)
