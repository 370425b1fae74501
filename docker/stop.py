"""Asks the job in this container to stop, and returns when its batch has ended and it has.

For Kubernetes to run before it sends SIGTERM (`preStop`), where spark-submit started the job: SIGTERM reaches the JVM
alone, which leaves at once and takes the batch with it. It must be the Python process that is asked.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path


def jobs(processes: Path) -> list[int]:
    """Return the ids of the jobs' Python processes. The JVM names the same file, but not as its first argument."""
    found = []
    for folder in processes.glob("[0-9]*"):
        with suppress(OSError):  # it has ended since
            words = (folder / "cmdline").read_text(errors="replace").split("\0")
            if words[2:3] == ["run"] and words[1].endswith(("/cdc-sync", "/cdc_sync/__main__.py")):
                found.append(int(folder.name))
    return found


def stop(processes: Path) -> None:
    """Ask every job to stop, and wait for them; Kubernetes knows how long that may take."""
    for job in jobs(processes):
        with suppress(ProcessLookupError):
            os.kill(job, signal.SIGTERM)
    while jobs(processes):
        time.sleep(0.2)


if __name__ == "__main__":
    stop(Path("/proc"))
