"""Makes a Hudi table known to the metastore, by Hudi's own tool, as its users do: cdc_sync registers none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyspark

from bench.readers.reading import Played
from cdc_sync.errors import SetupError
from cdc_sync.local import jars
from cdc_sync.local.java import java_executable

_OPENED = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.net", "java.nio", "java.util")]


def sync(played: Played, folder: Path, metastore: str) -> None:
    """Run the tool; merge-on-read tables get two entries, with the suffixes `_ro` and `_rt`.

    Raises:
        SetupError: it failed.
    """
    name = played.regime.replace(" ", "_").replace("-", "_")
    (bundle,) = jars.install(jars.HUDI).glob("hudi-spark*.jar")
    conf = folder / "hive-conf"
    conf.mkdir(exist_ok=True)
    (conf / "hive-site.xml").write_text(
        "<configuration><property><name>hive.metastore.uris</name>"
        f"<value>{metastore}</value></property></configuration>"
    )
    command = [
        *(str(java_executable()), "-Xmx400m", "-XX:TieredStopAtLevel=1", *_OPENED),
        *("-cp", f"{conf}:{bundle}:{Path(pyspark.__file__).parent}/jars/*", "org.apache.hudi.hive.HiveSyncTool"),
        *("--sync-mode", "hms", "--metastore-uris", metastore, "--base-path", played.place),
        *("--database", "hudi", "--table", name, "--auto-create-database", "--support-timestamp"),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise SetupError(f"Cannot tell the metastore of {played.place}: {done.stderr.strip()[-1500:]}")
