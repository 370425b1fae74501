"""Installs sets of Java artefacts, pinned by the manifest, into a cache shared by all clones on this machine.

`python -m cdc_sync.local.jars kafka debezium-postgres spark` installs (nothing to do when present; no other set is
installed before somebody needs it), `python -m cdc_sync.local.jars --lock` writes the manifest anew.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cdc_sync.errors import CdcSyncError, SetupError
from cdc_sync.local import ivy
from cdc_sync.local.artefact import MANIFEST, Artefact, digest_of, parse_manifest, render_manifest, sha256_of

KAFKA = "kafka"
DEBEZIUM_POSTGRES = "debezium-postgres"
DEBEZIUM_MARIADB = "debezium-mariadb"
SPARK = "spark"
ICEBERG = "iceberg"
DELTA = "delta"
HUDI = "hudi"
S3 = "s3"
TRINO = "trino"
TRINO_SERVER = "trino-server"
PRESTO = "presto"
APICURIO = "apicurio"
ICEBERG_REST = "iceberg-rest"
AVRO_CONVERTER = "avro-converter"

# What the sets are resolved from; the closures are in the manifest.
_ROOTS = {
    KAFKA: (
        "org.apache.kafka:kafka_2.13:4.3.1",
        "org.apache.kafka:connect-runtime:4.3.1",
        "org.apache.kafka:connect-json:4.3.1",
        "org.apache.kafka:kafka-tools:4.3.1",
        "org.slf4j:slf4j-simple:1.7.36",  # the slf4j line Kafka 4.3.1 brings; without a binding it logs nothing
    ),
    DEBEZIUM_POSTGRES: ("io.debezium:debezium-connector-postgres:3.6.3.Final:plugin@tar.gz",),
    DEBEZIUM_MARIADB: ("io.debezium:debezium-connector-mariadb:3.5.0.Final:plugin@tar.gz",),
    SPARK: (
        "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7",
        "org.apache.spark:spark-avro_2.12:3.5.7",
        "org.apache.kafka:kafka-clients:3.9.2",  # Spark brings 3.4.1: CVE-2025-27817, CVE-2025-27818
    ),
    ICEBERG: (
        "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
        "org.xerial:sqlite-jdbc:3.54.1.0",
        "org.postgresql:postgresql:42.7.14",
    ),
    DELTA: ("io.delta:delta-spark_2.12:3.3.3",),
    HUDI: ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",),
    S3: ("org.apache.iceberg:iceberg-aws-bundle:1.12.0",),
    TRINO: (
        "io.trino:trino-server-core:476:@tar.gz",
        "io.trino:trino-iceberg:476:@zip",
        "io.trino:trino-cli:476:executable@jar",
    ),
    TRINO_SERVER: ("io.trino:trino-server:476:@tar.gz",),
    PRESTO: ("com.facebook.presto:presto-server:0.287:@tar.gz",),
    AVRO_CONVERTER: ("io.apicurio:apicurio-registry-utils-converter:2.6.13.Final",),
    APICURIO: ("io.apicurio:apicurio-registry-app:3.3.3:all@tar.gz",),
    # Iceberg's own REST catalog, which its tests and ours start.
    ICEBERG_REST: (
        "org.apache.iceberg:iceberg-core:1.11.0",
        "org.apache.iceberg:iceberg-core:1.11.0:tests@jar",
        "org.apache.iceberg:iceberg-open-api:1.11.0:test-fixtures@jar",
        "org.apache.hadoop:hadoop-client-api:3.4.1",
        "org.apache.hadoop:hadoop-client-runtime:3.4.1",
        "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.4",
        "org.eclipse.jetty.compression:jetty-compression-server:12.1.4",
        "org.eclipse.jetty.compression:jetty-compression-gzip:12.1.4",
        "org.xerial:sqlite-jdbc:3.54.1.0",
        "org.slf4j:slf4j-simple:2.0.17",
    ),
}
_FOR_SPARK = frozenset({ICEBERG, DELTA, HUDI, S3})
"""Sets of one table format or kind of store each, for Spark's class path beside the set `spark`."""
_ON_DEMAND = frozenset(
    {DEBEZIUM_MARIADB, APICURIO, ICEBERG_REST, DELTA, HUDI, S3, TRINO, TRINO_SERVER, PRESTO, AVRO_CONVERTER}
)
"""Needed by few: installed only when named or used."""
_DEFAULT = tuple(name for name in _ROOTS if name not in _ON_DEMAND)
_PROCESSES = 4
_ATTEMPTS = 3
_ABANDONED_AFTER = 24 * 3600.0


def cache_root() -> Path:
    """Where installed sets live: CDC_SYNC_CACHE, else the user's cache folder."""
    if configured := os.environ.get("CDC_SYNC_CACHE"):
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cdc_sync"


def install(set_name: str) -> Path:
    """Makes sure a set is installed and returns its folder; instant when it is.

    Safe to run several times at once and to interrupt: files are fetched and verified in a folder of this
    call's own, which is renamed into place whole.

    Raises:
        SetupError: the set is unknown, a file cannot be had, or its SHA-256 differs from the manifest.
    """
    artefacts = _manifest_set(set_name)
    home = cache_root() / "jars"
    target = home / f"{set_name}-{digest_of(artefacts)}"
    if target.is_dir():
        return target
    started = time.monotonic()
    home.mkdir(parents=True, exist_ok=True)
    _sweep(home)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=home) as scratch:
        files = Path(scratch) / "files"
        files.mkdir()
        _fetch(artefacts, Path(scratch), files)
        _unpack(files)
        files.chmod(0o755)
        try:
            files.rename(target)
        except OSError:
            if not target.is_dir():  # else another process was first, with the same verified files
                raise
    _say(f"jars {set_name}: {len(artefacts)} files in {time.monotonic() - started:.1f} s")
    return target


def spark_jars(*sets: str) -> tuple[Path, ...]:
    """The jars Spark needs besides its own, for `spark.jars`: Kafka source, Avro, and those of formats and stores."""
    if not any(ivy.pyspark_jars().glob("spark-core_2.12-3.5.*.jar")):
        raise SetupError("Cannot use the pinned Spark jars: they are for PySpark 3.5, another version is installed")
    wanted = (SPARK, *(name for name in sets if name in _FOR_SPARK))
    return tuple(sorted(path for name in wanted for path in install(name).glob("*.jar")))


def lock() -> str:
    """Resolves every set from its roots and returns the text of a new manifest."""
    return render_manifest({name: _resolve(name) for name in _ROOTS})


def _manifest_set(set_name: str) -> tuple[Artefact, ...]:
    sets = parse_manifest(MANIFEST.read_text(encoding="utf-8"))
    if set_name not in sets:
        raise SetupError(f"Cannot install {set_name!r}: the sets are {', '.join(sets)}")
    return sets[set_name]


def _fetch(artefacts: Sequence[Artefact], scratch: Path, files: Path) -> None:
    """Fetches with several Ivy processes side by side; what a round leaves out is asked for again."""
    pending = tuple(artefacts)
    logs = ""
    for attempt in range(_ATTEMPTS):
        folders = [scratch / f"{attempt}-{index}" for index in range(min(_PROCESSES, len(pending)))]
        shares = [pending[index :: len(folders)] for index in range(len(folders))]
        _run_all([ivy.start(share, folder) for share, folder in zip(shares, folders, strict=True)])
        for share, folder in zip(shares, folders, strict=True):
            for artefact in share:
                if (path := ivy.retrieved(artefact, folder)).is_file():
                    _accept(artefact, path, files)
        pending = tuple(artefact for artefact in pending if not (files / artefact.file_name).is_file())
        if not pending:
            return
        logs = "\n".join((folder / "ivy.log").read_text(errors="replace")[-600:] for folder in folders)
    raise SetupError(
        f"Cannot fetch {', '.join(map(str, pending))}: no Maven repository reached or file not there. "
        f"Check the network, or set {ivy.MIRROR_VARIABLE} to the root URL of a mirror. Ivy said:\n{logs}"
    )


def _accept(artefact: Artefact, path: Path, files: Path) -> None:
    if (actual := sha256_of(path)) != artefact.sha256:
        raise SetupError(f"Cannot use {artefact}: its SHA-256 is {actual}, the manifest says {artefact.sha256}")
    path.rename(files / artefact.file_name)


def _unpack(files: Path) -> None:
    """Replaces archives by what they hold: a Connect plugin is a folder of jars, as is one of Trino."""
    for archive in files.glob("*.tar.gz"):
        with tarfile.open(archive) as tar:
            # The bytes are pinned; the filter (absent from early 3.10 releases) only silences later Pythons.
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            tar.extractall(files)
        archive.unlink()
    for archive in files.glob("*.zip"):
        # Not shutil.unpack_archive, which leaves out names with two dots in a row, as Trino has.
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(files)
        archive.unlink()


def _resolve(set_name: str) -> tuple[Artefact, ...]:
    roots = tuple(Artefact.parse(root) for root in _ROOTS[set_name])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # An archive is a bundle that holds its dependencies; Hudi's jar does too, but for one that Spark has.
        is_bundle = set_name == HUDI or any(root.extension != "jar" for root in roots)
        _run_all([ivy.start(roots, folder, transitive=not is_bundle)])
        found = ivy.all_retrieved(folder)
        if missing := {(r.group, r.name) for r in roots} - {(f.group, f.name) for f in found}:
            log = (folder / "ivy.log").read_text(errors="replace")[-2000:]
            raise SetupError(f"Cannot resolve {sorted(missing)}. Ivy said:\n{log}")
        for_spark = set_name == SPARK or set_name in _FOR_SPARK
        # By name: of two versions of one library Spark would take its own all the same.
        shipped = {re.sub(r"-\d.*", "", path.stem) for path in ivy.pyspark_jars().glob("*.jar")} if for_spark else set()
        return tuple(
            replace(artefact, sha256=sha256_of(ivy.retrieved(artefact, folder)))
            for artefact in found
            if artefact.name not in shipped
        )


def _run_all(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    try:
        for process in processes:
            process.wait()
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def _sweep(home: Path) -> None:
    """Removes what killed installs left behind, once nobody can still be writing there."""
    for folder in home.glob(".partial-*"):
        if time.time() - folder.stat().st_mtime > _ABANDONED_AFTER:
            shutil.rmtree(folder, ignore_errors=True)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m cdc_sync.local.jars", description="Install pinned Java artefacts.")
    parser.add_argument(
        "sets", nargs="*", metavar="set", help=f"what to install: {', '.join(_ROOTS)} (default: {', '.join(_DEFAULT)})"
    )
    parser.add_argument("--lock", action="store_true", help="resolve all sets and write the manifest anew")
    options = parser.parse_args(arguments)
    try:
        if options.lock:
            MANIFEST.write_text(lock(), encoding="utf-8")
        for name in options.sets or (() if options.lock else _DEFAULT):
            install(name)
    except CdcSyncError as error:
        _say(f"error: {error}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
