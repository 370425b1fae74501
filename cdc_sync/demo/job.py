"""The streaming job as a child process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from cdc_sync.config import Config, load_config
from cdc_sync.errors import SetupError
from cdc_sync.local.process import ServerProcess

CONFIG = Path(__file__).parents[2] / "conf" / "demo.yaml"
_PATIENCE = 60.0


def variables(*, folder: Path, bootstrap_servers: str) -> dict[str, str]:
    """Return what conf/demo.yaml refers to."""
    return {"CDC_SYNC_DEMO_FOLDER": str(folder), "CDC_SYNC_DEMO_KAFKA": bootstrap_servers}


def configuration(environment: Mapping[str, str]) -> Config:
    """Load conf/demo.yaml as the job will see it.

    Raises:
        SetupError: if the package is installed without it.
    """
    if not CONFIG.is_file():
        raise SetupError(f"Cannot find {CONFIG}: the demo runs from a clone of the repository, see scripts/demo")
    return load_config(CONFIG, environ={**os.environ, **environment})


class JobProcess(ServerProcess):
    """`cdc-sync run conf/demo.yaml`, which ends with this program."""

    def __init__(self, *, log: Path, environment: Mapping[str, str]) -> None:
        super().__init__(
            "the job",
            [sys.executable, "-m", "cdc_sync", "run", str(CONFIG)],
            log=log,
            # Where `-m` finds the package, whether or not it is installed.
            cwd=CONFIG.parents[1],
            environment=environment,
        )

    def finish(self) -> int | None:
        """Ask it to end, as an orchestrator would, and return its exit code."""
        self.stop(timeout=_PATIENCE)
        return self._process.returncode
