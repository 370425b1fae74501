"""The whole way on one machine: a database, Debezium, Kafka, the job, Iceberg; while tables are altered."""

from __future__ import annotations

import shutil
import tempfile
import threading
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_sync.demo.report import DemoReport, VersionLine, parts
from cdc_sync.errors import CdcSyncError, SetupError

if TYPE_CHECKING:
    from cdc_sync.demo.show import Show
    from cdc_sync.demo.stage import Stage

__all__ = ["DemoReport", "DemoSource", "run"]


class DemoSource(Enum):
    """The databases that the demo can be played with."""

    POSTGRES = "postgres"
    MARIADB = "mariadb"

    @property
    def title(self) -> str:
        """What people call it."""
        return {"postgres": "Postgres", "mariadb": "MariaDB"}[self.value]


def run(*, source: DemoSource, folder: str | None, keep: bool, stop: threading.Event) -> DemoReport:
    """Play the scenario and compare source and lake at the end.

    Args:
        source: the database to play with.
        folder: a folder to work in, new or empty, which stays; a temporary one if None.
        keep: leave everything running until `stop` is set, and the files in place after that.
        stop: set it to end early, or to end what was kept running.

    Raises:
        SetupError: if something the demo needs is not installed.
        CdcSyncError: if source and lake differ, or the job failed; the files stay then.
        KeyboardInterrupt: if `stop` was set before the comparison.
    """
    for module in ("psycopg", "pymysql", "pyiceberg", "sqlalchemy", "pyarrow"):
        if find_spec(module) is None:
            raise SetupError(
                f"Cannot run the demo: {module} is not installed; install it with pip install 'cdc-sync[demo]'"
            )
    from cdc_sync.demo.show import Show

    show = Show()
    place = _folder(folder)
    temporary = folder is None and not keep
    try:
        report = _play(place, source=source, show=show, keep=keep, stop=stop, kept=None if temporary else str(place))
    except CdcSyncError as error:
        raise type(error)(f"{error} Files are in {place}") from error
    except BaseException:
        if temporary:
            shutil.rmtree(place, ignore_errors=True)
        raise
    if temporary:
        shutil.rmtree(place, ignore_errors=True)
    return report


def _folder(folder: str | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="cdc-sync-demo-"))
    place = Path(folder).absolute()
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise SetupError(f"Cannot use {place}: it is not an empty folder; name a new one")
    place.mkdir(parents=True, exist_ok=True)
    return place


def _play(
    place: Path, *, source: DemoSource, show: Show, keep: bool, stop: threading.Event, kept: str | None
) -> DemoReport:
    show.line(f"Starting {source.title}, Kafka, Debezium and the job in {place}")
    # Only now: importing the readers takes longer than anything before it.
    from cdc_sync.demo.databases import DATABASES
    from cdc_sync.demo.stage import Stage

    database = DATABASES[source.value]

    with Stage(place, database=database, show=show, stop=stop) as stage:
        for proof in database.scenario.snapshot:
            stage.wait_visible(proof)
            show.line(f"{proof.table} is in the lake", style="green")
        alters = tuple(timing for step in database.scenario.steps if (timing := stage.play(step)) is not None)
        stage.wait_equal()
        show.line("all rows are in the lake", style="green")
        seconds = show.seconds
        # What somebody plays with while it is kept running is not compared.
        tables = stage.compare() if keep else ()
        if keep:
            _hold(stage, show, stop)
        job_exit_code = stage.job.finish()
        tables = tables or stage.compare()
        history = _history(stage)
    differences = [f"{table.source.name}: {text}" for table in tables for text in table.differences]
    report = DemoReport(
        equal=not differences,
        tables=tables,
        alters=alters,
        history=history,
        seconds=round(seconds, 1),
        job_exit_code=job_exit_code,
        folder=kept,
    )
    if job_exit_code != 0:
        differences.append(f"the job ended with exit code {job_exit_code}")
    if differences:
        show.parts(parts(report))
        raise CdcSyncError(f"Cannot call source and lake equal: {'; '.join(differences)}.")
    return report


def _hold(stage: Stage, show: Show, stop: threading.Event) -> None:
    catalog = stage.config.target.catalog
    exports = " ".join(f"{name}={value}" for name, value in stage.environment.items())
    show.line("Everything keeps running until Ctrl-C. To play with it:", style="bold")
    show.detail(stage.client)
    show.detail(f"export {exports}")
    show.detail(f"cdc-sync status {stage.config_file}; cdc-sync history {stage.config_file}")
    show.detail("python")
    show.detail("  >>> from pyiceberg.catalog.sql import SqlCatalog")
    show.detail(f"  >>> lake = SqlCatalog({catalog.name!r}, uri={stage.lake.uri!r}, init_catalog_tables='false')")
    show.detail("  >>> print(lake.load_table('inv.orders').scan().to_arrow().to_pylist())")
    while not stop.wait(0.5):
        stage.check_job()


def _history(stage: Stage) -> tuple[VersionLine, ...]:
    from cdc_sync.core.migration.wording import phrases
    from cdc_sync.storage.history import HistoryStore

    store = HistoryStore(f"{stage.config.pipeline.root}/history")
    lines = []
    for table in sorted(store.tables()):
        before = None
        for version in store.load(table).versions:
            lines.append(
                VersionLine(
                    table=str(table),
                    number=version.number,
                    changes=tuple(phrase.text for phrase in phrases(version.changes, before, version.schema)),
                    evidence=tuple(f"{item.subject}: {item.text} ({item.kind})" for item in version.evidence),
                )
            )
            before = version.schema
    return tuple(lines)
