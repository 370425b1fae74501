from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
import stamina
import structlog

from cdc_sync.cli.app import main
from cdc_sync.local.mariadb import MariadbServer
from cdc_sync.local.ports import free_ports
from tests.cli.conftest import cdc_sync, config
from tests.cli.runner import CommandLine, Ran
from tests.faults.conftest import pipeline
from tests.postgres import postgres_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["cdc_sync", "config", "pipeline"]


@pytest.fixture(scope="session")
def session(_spark: SparkSession) -> SparkSession:
    return _spark


@pytest.fixture(scope="package")
def postgres_dsn() -> Iterator[str]:
    with postgres_server() as server:
        yield server.dsn


@pytest.fixture(scope="package")
def mariadb_url() -> Iterator[str]:
    (port,) = free_ports(1)
    # Not pytest's folder, which the user that the server runs as may not enter.
    with TemporaryDirectory(prefix="cdc-sync-mariadb-") as folder:
        Path(folder).chmod(0o755)
        server = MariadbServer(Path(folder) / "mariadb", port=port)
        server.start()
        yield server.url
        server.stop()


@pytest.fixture
def verify(capsys: pytest.CaptureFixture[str], spark: Callable[[], None]) -> Iterator[CommandLine]:
    """Runs `cdc-sync verify` in this process, with the session that the tests share."""

    def run(*arguments: object) -> Ran:
        spark()
        capsys.readouterr()
        exit_code = main(["verify", *(str(argument) for argument in arguments)])
        captured = capsys.readouterr()
        return Ran(exit_code=exit_code, out=captured.out, err=captured.err)

    yield run
    structlog.reset_defaults()
    stamina.instrumentation.set_on_retry_hooks(None)
