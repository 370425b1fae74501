"""Everything that runs during the demo, and waiting for it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

from cdc_sync.config import Config, load_config
from cdc_sync.config.installed import folder
from cdc_sync.demo import lake as lake_
from cdc_sync.demo.compare import TableImage, column_differences, differences, same
from cdc_sync.demo.report import AlterTiming, TableComparison
from cdc_sync.demo.scenario import SCHEMA, Proof, Step
from cdc_sync.demo.show import Show
from cdc_sync.demo.source import Database
from cdc_sync.errors import CdcSyncError
from cdc_sync.local.process import ServerProcess
from cdc_sync.local.stack import LocalStack
from cdc_sync.storage.state import StateStore

PREFIX = "demo"
"""Names the connector and the first part of topics."""
_POLL = 0.02
_PATIENCE, _JOB_ENDS_WITHIN = 180.0, 60.0
"""Seconds."""


class JobProcess(ServerProcess):
    """`cdc-sync run` with a configuration, which ends with this program."""

    def __init__(self, config: Path, *, log: Path, environment: Mapping[str, str]) -> None:
        super().__init__(
            "the job",
            [sys.executable, "-m", "cdc_sync", "run", str(config)],
            log=log,
            # Where `-m` finds the package, whether or not it is installed.
            cwd=Path(__file__).parents[2],
            environment=environment,
        )

    def finish(self) -> int | None:
        """Ask it to end, as an orchestrator would, and return its exit code."""
        self.stop(timeout=_JOB_ENDS_WITHIN)
        return self._process.returncode


class Stage:
    """The database, Kafka, Connect, the job, and a client of either end.

    Args:
        folder: where everything lives.
        database: which one.
        show: what tells of the progress.
        stop: set it to have every wait end with KeyboardInterrupt.
    """

    def __init__(self, folder: Path, *, database: Database, show: Show, stop: threading.Event) -> None:
        self.database = database
        self._show = show
        self._stop = stop
        self._ends = ExitStack()
        self._stack = LocalStack(folder, databases=(database.name,))
        self.environment = variables(folder=folder, bootstrap_servers=self._stack.kafka.bootstrap_servers)
        self.config_file = configuration_file(database.config)
        self.config = configuration(self.config_file, self.environment)
        catalog = self.config.target.catalog
        self.lake = lake_.Lake(name=catalog.name, service=catalog.service or "")
        self._log = folder / "job.log"

    @property
    def client(self) -> str:
        """The command that gives people a prompt of the database."""
        return self.database.client(self._stack, PREFIX)

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._ends.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    def _start(self) -> None:
        """Start all at once: the job waits for Kafka and finds topics when they come."""
        self._ends.callback(self._stack.stop)
        self._ends.callback(self.lake.close)
        self._stack.kafka.start(wait=False)
        self.job = JobProcess(self.config_file, log=self._log, environment=self.environment)
        self._ends.callback(self.job.stop)
        for server in self._stack.databases:
            server.start()
        self.source = self._ends.enter_context(self.database.open(self._stack, PREFIX))
        self.source.execute(self.database.scenario.before)
        self._show.line(f"{self.database.title} runs, with the first tables")
        self.check()
        self._stack.kafka.wait_ready()
        self._show.line("Kafka runs")
        self.check()
        self._stack.connect.start()
        self.database.capture(self._stack, PREFIX)
        self._show.line("Kafka Connect runs, Debezium reads the first snapshot")

    def play(self, step: Step) -> AlterTiming | None:
        """Do what the step says and wait until the lake shows it."""
        self._show.line(f"{'ALTER: ' if step.is_alter else ''}{step.title}", style="bold" if step.is_alter else "")
        if step.ddl:
            for statement in step.ddl:
                self._show.detail(" ".join(statement.split()))
            self.source.execute(step.ddl)
        started = time.monotonic()
        for statement in step.rows:
            self.source.execute((statement,))
        if step.proof is None:
            return None
        seen = self.wait_visible(step.proof)
        seconds = seen - started
        self._show.line(f"in the lake {seconds:.2f} s after its first row", style="green")
        if not step.is_alter:
            return None
        return AlterTiming(title=step.title, table=step.proof.table, ddl=step.ddl, seconds=round(seconds, 2))

    def wait_visible(self, proof: Proof) -> float:
        """Wait until the lake's table has the source's columns and the row; return when it was seen."""
        source = self.source.image(proof.table)
        key = self.source.key(proof.table)
        wanted = _row(source, key, proof.key)
        if wanted is None:
            raise LookupError(
                f"the scenario waits for row {proof.key} of {proof.table}, which the source does not have"
            )
        looked_at: object = None
        missing = "the table is not there"

        def visible() -> str | None:
            nonlocal looked_at, missing
            # Looking must not cost the machine more than the job does: without a commit there is nothing new.
            if (stamp := self.lake.stamp()) == looked_at:
                return missing
            looked_at = stamp
            table = self.lake.table(proof.table)
            if table is None:
                return missing
            if different := column_differences(source, lake_.columns(table)):
                missing = different[0]
                return missing
            found = _row(lake_.image(table), key, proof.key)
            missing = f"row {proof.key} is not there" if found is None else f"row {proof.key} differs"
            return None if found is not None and _equal(wanted, found) else missing

        self.wait(visible, what=f"{proof.table} in the lake")
        return time.monotonic()

    def wait(self, lacks: Callable[[], str | None], *, what: str) -> None:
        """Wait until `lacks` has nothing to say.

        Raises:
            CdcSyncError: the job ended, or it takes too long; with what is lacking and what the job says.
            KeyboardInterrupt: stop was asked for.
        """
        deadline = time.monotonic() + _PATIENCE
        with self._show.busy(f"waiting for {what}"):
            while (lacking := lacks()) is not None:
                self.check()
                self._check_tables()
                if time.monotonic() > deadline:
                    raise CdcSyncError(f"Cannot see {what} after {_PATIENCE:.0f} s: {lacking}. {self._job_says()}")
                self._stop.wait(_POLL)

    def check(self) -> None:
        """Raise if stop was asked for, or the job has ended."""
        if self._stop.is_set():
            raise KeyboardInterrupt
        self.check_job()

    def check_job(self) -> None:
        """Raise if the job has ended."""
        if not self.job.running:
            raise CdcSyncError(f"Cannot go on: the job has ended. {self.job.log_tail()}")

    def compare(self) -> tuple[TableComparison, ...]:
        """Read all tables in both places."""
        return tuple(self._compare(name) for name in self.source.tables(SCHEMA))

    def _compare(self, name: str) -> TableComparison:
        source, key, table = self.source.image(name), self.source.key(name), self.lake.table(name)
        lake = None if table is None else lake_.image(table)
        return TableComparison(source=source, lake=lake, key=key, differences=differences(source, lake, key))

    def wait_equal(self) -> None:
        """Wait until nothing differs any more."""

        def different() -> str | None:
            found = [text for comparison in self.compare() for text in comparison.differences]
            return found[0] if found else None

        self.wait(different, what="the last rows in the lake")

    def _check_tables(self) -> None:
        for status in StateStore(self.config.pipeline.root).tables():
            if status.state == "paused":
                raise CdcSyncError(f"Cannot go on: {status.table} is paused: {status.reason}")

    def _job_says(self) -> str:
        statuses = StateStore(self.config.pipeline.root).tables()
        told = [f"{status.table} is {status.state}: {status.reason}" for status in statuses if status.reason]
        lines = self._log.read_text(errors="replace").splitlines() if self._log.is_file() else []
        return "; ".join([*told, f"the job's last word: {lines[-1] if lines else 'none'}"])


def _row(image: TableImage, key: tuple[str, ...], values: tuple[object, ...]) -> dict[str, object] | None:
    return next((record for record in image.records() if tuple(record.get(name) for name in key) == values), None)


def _equal(ours: dict[str, object], theirs: dict[str, object]) -> bool:
    return all(same(value, theirs[name]) for name, value in ours.items())


def variables(*, folder: Path, bootstrap_servers: str) -> dict[str, str]:
    """Return what the demo's configurations refer to."""
    return {"CDC_SYNC_DEMO_FOLDER": str(folder), "CDC_SYNC_DEMO_KAFKA": bootstrap_servers}


def configuration_file(name: str) -> Path:
    """Return where a file of the folder `conf` is."""
    return folder("conf") / name


def configuration(path: Path, environment: Mapping[str, str]) -> Config:
    """Load a configuration as the job will see it."""
    return load_config(path, environ={**os.environ, **environment})
