"""The streaming job as a child process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from cdc_sync.config import Config, load_config
from cdc_sync.config.installed import folder
from cdc_sync.local.process import ServerProcess

_PATIENCE = 60.0


def variables(*, folder: Path, bootstrap_servers: str) -> dict[str, str]:
    """Return what the demo's configurations refer to."""
    return {"CDC_SYNC_DEMO_FOLDER": str(folder), "CDC_SYNC_DEMO_KAFKA": bootstrap_servers}


def configuration_file(name: str) -> Path:
    """Return where a file of the folder `conf` is."""
    return folder("conf") / name


def configuration(path: Path, environment: Mapping[str, str]) -> Config:
    """Load a configuration as the job will see it."""
    return load_config(path, environ={**os.environ, **environment})


class JobProcess(ServerProcess):
    """`cdc-sync run` with a configuration, which ends with this program."""

    def __init__(self, config: Path, *, log: Path, environment: Mapping[str, str]) -> None:
        super().__init__(
            "the job",
            [sys.executable, "-m", "cdc_sync", "run", str(config)],
            log=log,
            # Where `-m` finds the package, whether or not it is installed.
            cwd=Path(__file__).parents[2],
            environment=environment,
        )

    def finish(self) -> int | None:
        """Ask it to end, as an orchestrator would, and return its exit code."""
        self.stop(timeout=_PATIENCE)
        return self._process.returncode
