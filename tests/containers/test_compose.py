"""What docker/README.md has people try: `docker compose up`, an ALTER, and the table in the lake follows."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.containers import engine

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

_FILE = engine.ROOT / "docker" / "compose.yaml"
_PIPELINE = "/etc/cdc_sync/pipeline.yaml"
_ALTER = "alter table inv.orders rename customer to buyer; insert into inv.orders (buyer) values ('Barbara')"

_JOB = [f"com.docker.compose.project={engine.PROJECT}", "com.docker.compose.service=job"]

Compose = Callable[..., str]


@pytest.fixture
def compose(tmp_path: Path) -> Iterator[Compose]:
    """Runs a command of Docker Compose in a project of this run's own; what it started is removed."""
    program = _program()

    def run(*arguments: str, check: bool = True) -> str:
        command = [*program, "-p", engine.PROJECT, "-f", str(_FILE), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0 or not check, f"{' '.join(arguments)}:\n{done.stdout}{done.stderr}"
        return done.stdout

    yield run
    run("down", "-v")


def test_a_table_follows_an_alter_within_a_minute(compose: Compose) -> None:
    compose("up", "-d")
    assert engine.wait_for(lambda: "batch written" in _log(), patience=180), _log()

    compose("exec", "-T", "postgres", "psql", "-q", "-U", "postgres", "shop", "-c", _ALTER)

    assert engine.wait_for(lambda: _log().count("batch written") == 2, patience=60), _log()
    history = compose("exec", "-T", "job", "cdc-sync", "history", _PIPELINE)
    assert "customer" in history
    assert "buyer" in history
    compose("exec", "-T", "job", "python3", "-I", "-S", "/opt/cdc_sync/health.py")


def _log() -> str:
    (job,) = engine.client().containers.list(filters={"label": _JOB})
    return str(job.logs().decode())


def _program() -> list[str]:
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return ["docker", "compose"]
    if (alone := shutil.which("docker-compose")) is not None:
        return [alone]
    pytest.fail("Docker Compose is not installed")
