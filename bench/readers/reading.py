"""One reading of one table by one engine, and what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.readers.comparison import Shown, differences
from bench.readers.regimes import TABLE, regime
from bench.readers.servers import SqlServer
from bench.readers.sql import QueryError
from cdc_sync.testing import SourceTable

_ROOT = Path(__file__).parents[2]
_SECONDS = 300.0


class CannotReadError(Exception):
    """The engine refused the table, or failed at it, loudly: in its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A regime's table at its end.

    Attributes:
        form: the table format.
        folder: of the pipeline.
        place: an Iceberg table's newest metadata file, the folder of any other, those of its partitions with commas.
    """

    regime: str
    form: str
    folder: Path
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one engine makes of one regime.

    Attributes:
        equal: every row and column as the source has it; None where the engine gave no rows at all.
        text: the first differences, or the engine's words.
    """

    engine: str
    version: str
    regime: str
    equal: bool | None
    text: str = ""


def judge(engine: str, played: Played, source: SourceTable, read: Callable[[], tuple[str, Shown]]) -> Finding:
    """Read a table and compare it with its source."""
    try:
        version, shown = read()
    except CannotReadError as error:
        return Finding(engine=engine, version="", regime=played.regime, equal=None, text=str(error))
    found = list(differences(source, shown))
    more = f" ({len(found)} differences)" if len(found) > 1 else ""
    return Finding(
        engine=engine,
        version=version,
        regime=played.regime,
        equal=not found,
        text=f"{found[0]}{more}" if found else "",
    )


def read_embedded(python: Path, engine: str, played: Played) -> tuple[str, Shown]:
    """Read with a Python package, in a process of its own.

    Raises:
        CannotReadError: it refused, failed or crashed.
    """
    return _ask([str(python), "-m", "bench.readers.embedded", engine, played.form, played.place])


def read_spark(played: Played, metastore: str) -> tuple[str, Shown]:
    """Read with a Spark that has not written the table.

    Raises:
        CannotReadError: it failed.
    """
    return _ask([sys.executable, "-m", "bench.readers.spark", played.regime, str(played.folder), metastore])


def _ask(command: list[str]) -> tuple[str, Shown]:
    try:
        done = subprocess.run(
            command,
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env={**os.environ, "TZ": "UTC"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotReadError(f"no answer in {_SECONDS:.0f} s") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise CannotReadError(said[-1])
    found = json.loads(done.stdout.splitlines()[-1])
    return found["version"], Shown(columns=tuple(found["columns"]), rows=tuple(found["rows"]))


def read_server(server: SqlServer, played: Played) -> tuple[str, Shown]:
    """Read by SQL, after the engine was told of the table where it has to be.

    Raises:
        CannotReadError: it refused or failed.
    """
    try:
        return server.version(), server.query(f"SELECT * FROM {_known_as(server, played)}").shown()
    except QueryError as error:
        raise CannotReadError(str(error)) from error


def _known_as(server: SqlServer, played: Played) -> str:
    """Return the name that the engine knows a table by."""
    name = played.regime.replace(" ", "_").replace("-", "_")
    schema = server.product.name.lower()
    match played.form:
        case "delta" if schema == "presto":
            return f'delta."$path$"."file://{played.place}"'
        case "iceberg" | "delta" as catalog:
            server.query(
                f"CREATE SCHEMA IF NOT EXISTS {catalog}.{schema} WITH (location = 'file://{played.folder}/none')"
            )
            with suppress(QueryError):  # known from an earlier run in the same folder, or not
                server.query(f"CALL {catalog}.system.unregister_table('{schema}', '{name}')")
            folder, _, file = played.place.rpartition("/metadata/")
            where = f"'{folder}', '{file}'" if catalog == "iceberg" else f"'file://{played.place}'"
            server.query(f"CALL {catalog}.system.register_table('{schema}', '{name}', {where})")
            return f"{catalog}.{schema}.{name}"
        case "hudi":
            # HiveSyncTool's names: the view with the logs merged in has a suffix where there are logs.
            return f"hudi.hudi.{name}{'_rt' if 'merge' in name else ''}"
    return f"hive.{regime(played.regime).namespace}.{TABLE}"
