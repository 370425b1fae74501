"""What docker/README.md has people try: `docker compose up`, an ALTER, and the table in the lake follows."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.containers import engine

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

_FILE = engine.ROOT / "docker" / "compose.yaml"
_PIPELINE = "/etc/cdc_sync/pipeline.yaml"
_ALTER = "alter table inv.orders rename customer to buyer; insert into inv.orders (buyer) values ('Barbara')"

_PROFILES = ("--profile", "registry", "--profile", "trino")
Compose = Callable[..., str]


@pytest.fixture(scope="module")
def compose(_engine: None) -> Iterator[Compose]:
    """Runs a command of Docker Compose in a project of this run's own; what it started is removed."""
    program = _program()

    def run(*arguments: str, check: bool = True) -> str:
        command = [*program, "-p", engine.PROJECT, "-f", str(_FILE), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
        assert done.returncode == 0 or not check, f"{' '.join(arguments)}:\n{done.stdout}{done.stderr}"
        return done.stdout

    yield run
    run(*_PROFILES, "down", "-v")


def test_a_table_follows_an_alter_within_a_minute(compose: Compose) -> None:
    compose("up", "-d")
    assert engine.wait_for(partial(_has_written, "job"), patience=240), _log("job")

    compose("exec", "-T", "postgres", "psql", "-q", "-U", "postgres", "shop", "-c", _ALTER)

    assert engine.wait_for(partial(_has_written, "job", 2), patience=60), _log("job")
    history = compose("exec", "-T", "job", "cdc-sync", "history", _PIPELINE)
    assert "customer" in history
    assert "buyer" in history
    compose("exec", "-T", "job", "python3", "-I", "-S", "/opt/cdc_sync/health.py")


def test_profiles_add_avro_an_s3_store_and_an_engine_that_reads_it(compose: Compose) -> None:
    compose(*_PROFILES, "up", "-d")

    for job in ("job-avro", "job-s3"):
        assert engine.wait_for(partial(_has_written, job), patience=240), _log(job)
    # The test before may have renamed the column.
    question = "select * from inv.orders where id = 1"
    assert compose(*_PROFILES, "exec", "-T", "trino", "trino", "--execute", question) == '"1","Ada","12.50"\n'


def _has_written(job: str, batches: int = 1) -> bool:
    return _log(job).count("batch written") >= batches


def _log(service: str) -> str:
    labels = [f"com.docker.compose.project={engine.PROJECT}", f"com.docker.compose.service={service}"]
    (container,) = engine.client().containers.list(filters={"label": labels})
    return str(container.logs().decode())


def _program() -> list[str]:
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return ["docker", "compose"]
    if (alone := shutil.which("docker-compose")) is not None:
        return [alone]
    pytest.fail("Docker Compose is not installed")
