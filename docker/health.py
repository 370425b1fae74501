"""Tells Docker whether the job in this container runs: `cdc-sync run` is there, and so is the JVM it started.

It looks at processes only, so it costs next to nothing and needs no Kafka. How tables stand is told by
`cdc-sync status`: a paused table waits for somebody to decide, and a restart would not help it.
"""

from __future__ import annotations

import sys
from pathlib import Path


def command_lines(processes: Path) -> list[list[str]]:
    """Return the command line of every process; zombies have none."""
    found = []
    for folder in processes.glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue  # it has ended since
        if words[0]:
            found.append(words)
    return found


def problem(running: list[list[str]]) -> str | None:
    """Return what is missing; None if the job runs."""
    if not any("run" in words and any(word.endswith("/cdc-sync") for word in words) for words in running):
        return "cdc-sync run is not there"
    if not any(words[0].endswith("java") for words in running):
        return "its JVM is not there"
    return None


if __name__ == "__main__":
    missing = problem(command_lines(Path("/proc")))
    if missing is not None:
        sys.exit(f"unhealthy: {missing}")
