"""The job as a process of its own, which is not asked before it ends."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from cdc_sync.local.process import ServerProcess

_ROOT = Path(__file__).parents[2]
_PATIENCE = 90.0


class JobProcess:
    """`cdc-sync run` of a configuration.

    Args:
        config: the file; the log lies beside it.
        options: further ones of the command.
    """

    def __init__(self, config: Path, *options: str) -> None:
        self._config = config
        self._options = options
        self._log = config.with_name("job.log")
        self._process: ServerProcess | None = None
        self._begins = 0

    def start(self) -> None:
        """Start it in a process group of its own."""
        self._begins = self._log.stat().st_size if self._log.exists() else 0
        command = [sys.executable, "-m", "cdc_sync", "run", str(self._config), *self._options]
        self._process = ServerProcess("the job", command, log=self._log, cwd=_ROOT)

    def lines(self) -> list[str]:
        """Return what it logged since it was started last."""
        return self._log.read_text(errors="replace")[self._begins :].splitlines() if self._log.exists() else []

    def wait_for(self, moment: str) -> bool:
        """Wait until it logs something; False if it took too long."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            if any(moment in line for line in self.lines()):
                return True
            self.check()
            time.sleep(0.02)
        return False

    def check(self) -> None:
        """Make sure that it runs."""
        assert self._process is not None
        if not self._process.running:
            raise SystemExit(f"FAILED: the job ended by itself.\n{self._process.log_tail()}")

    def kill(self) -> None:
        """SIGKILL to Python and JVM alike."""
        assert self._process is not None
        self._process.kill()

    def stop(self) -> None:
        """Let the current batch finish."""
        assert self._process is not None
        self._process.stop(timeout=_PATIENCE)
