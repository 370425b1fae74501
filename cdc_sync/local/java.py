"""Finds the Java runtime that Spark, Kafka and Debezium all run on, and a later one for what needs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from cdc_sync.errors import SetupError

REQUIRED_MAJOR = 17
"""Spark 3.5 does not support a later Java, Kafka 4 no earlier one."""

_INSTALLED = Path("/usr/lib/jvm")


@lru_cache(maxsize=1)
def java_home() -> Path:
    """The home folder of a Java 17 runtime: JAVA_HOME, else `java` on the PATH, else the usual folders.

    Raises:
        SetupError: there is no Java, or only other versions of it.
    """
    seen: dict[Path, int | None] = {}
    for home in _candidates():
        if home not in seen:
            seen[home] = major_version(home)
        if seen[home] == REQUIRED_MAJOR:
            return home
    found = ", ".join(f"{version} in {home}" for home, version in seen.items() if version)
    raise SetupError(
        f"Cannot find Java {REQUIRED_MAJOR}: {'found only Java ' + found if found else 'no Java on this machine'}. "
        f"Install a Java {REQUIRED_MAJOR} runtime and put it on the PATH or set JAVA_HOME."
    )


def java_executable() -> Path:
    """The `java` command of `java_home()`."""
    return java_home() / "bin" / "java"


@lru_cache(maxsize=4)
def java_executable_from(major: int) -> Path:
    """The `java` command of the earliest runtime on this machine that is `major` or later.

    Raises:
        SetupError: there is none.
    """
    homes = {home: major_version(home) or 0 for home in (*_candidates(), *sorted(_INSTALLED.glob("*")))}
    fitting = [home for home, version in homes.items() if version >= major]
    if not fitting:
        raise SetupError(f"Cannot find Java {major} or later: install such a runtime, or set JAVA_HOME to one")
    return min(fitting, key=lambda home: homes[home]) / "bin" / "java"


def major_version(home: Path) -> int | None:
    """The feature release of the Java in `home` (17 for 17.0.15), or None when there is none that runs.

    The `release` file is read first: it answers without starting a JVM.
    """
    executable = home / "bin" / "java"
    if not executable.is_file():
        return None
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    if "JAVA_VERSION=" not in text:
        try:
            answer = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        text = answer.stderr
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def _candidates() -> Iterator[Path]:
    if configured := os.environ.get("JAVA_HOME"):
        yield Path(configured)
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parent.parent
    yield from sorted(_INSTALLED.glob(f"*{REQUIRED_MAJOR}*"))
