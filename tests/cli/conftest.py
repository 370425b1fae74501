from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import stamina
import structlog

from cdc_sync.cli.app import main
from tests.cli.runner import CommandLine, Ran


@pytest.fixture
def cdc_sync(capsys: pytest.CaptureFixture[str]) -> Iterator[CommandLine]:
    """Runs one command line in this process."""

    def run(*arguments: object) -> Ran:
        exit_code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(exit_code=exit_code, out=captured.out, err=captured.err)

    yield run
    structlog.reset_defaults()
    stamina.instrumentation.set_on_retry_hooks(None)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose brokers do not answer and whose password is hunter2."""
    (tmp_path / "password").write_text("hunter2\n")
    file = tmp_path / "conf.yaml"
    file.write_text(
        """
pipeline: {name: inventory, state: '${config_dir}/state'}
kafka:
  bootstrap_servers: 127.0.0.1:9
  topics: [shop.inv.orders, shop.inv.customers]
  request_timeout: 100ms
  attempts: 1
  properties: {sasl.password: '${file:${config_dir}/password}', security.protocol: PLAINTEXT}
tables:
  - pattern: 'shop\\.inv\\..*'
target: {catalog: {warehouse: '${config_dir}/warehouse'}}
"""
    )
    return file
