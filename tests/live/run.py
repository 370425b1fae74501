"""Histories on real databases through real Debezium, with a job that is killed in between."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from cdc_sync.api import requests
from cdc_sync.config import Config, parse_config
from cdc_sync.demo.compare import ColumnImage, TableImage, column_differences, differences, plain
from cdc_sync.demo.source import Source
from cdc_sync.errors import HistoryError
from cdc_sync.local.stack import LocalStack
from cdc_sync.storage.history import HistoryStore
from cdc_sync.storage.state import StateStore
from tests.lakes.opening import open_lake
from tests.lakes.table import Place, Table
from tests.live.databases import NOTIFICATIONS, SCHEMA, Database
from tests.live.history import History
from tests.live.job import JobProcess
from tests.live.verdict import Recorded, Verdict, judge

_START = 300.0
"""Seconds that everything may take to start."""
_CONFIG = """
pipeline: {{name: live, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: '(pglive|malive)\\.live\\.h[0-9]+'}}
connector: {{notifications: {notifications}}}
evidence: {{{evidence}}}
tables:
  - {{pattern: 'pglive\\.live\\..*', target: 'pglive.{{table}}'}}
  - {{pattern: 'live\\..*', target: 'malive.{{table}}'}}
target: {{format: {format}, catalog: {{{metastore}warehouse: '{folder}/warehouse'}}}}
job: {{trigger_interval: 200ms}}
spark:
  master: local[2]
  conf:
    spark.driver.memory: 1g
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one history ended.

    Attributes:
        name: database and seed, which make the same history again.
        marked: columns that need a resync, with why.
        rows: how the target's columns and rows differ from the source's, the values of those columns left out.
        left: how they differ when the connector has read the table again, and what is marked still.
        paused: why the table stands still, None if it does not.
    """

    name: str
    verdict: Verdict | None
    marked: Mapping[str, str]
    rows: tuple[str, ...]
    left: tuple[str, ...]
    paused: str | None
    statements: tuple[str, ...]
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def problems(self) -> tuple[str, ...]:
        """Return everything that is not as it should be."""
        told = self.verdict.problems if self.verdict is not None else ("no version of it was recorded",)
        paused = (f"paused: {self.paused}",) if self.paused else ()
        left = () if self.rows else (f"after a resync: {text}" for text in self.left)
        return (*told, *paused, *(f"rows: {text}" for text in self.rows), *left)


class Live:
    """A job and two running databases.

    Args:
        stack: started, with the databases.
        databases: whose tables are altered.
        folder: of the job's state and tables.
        format: of the tables.
        metastore: the address of one, which Parquet tables need.
    """

    def __init__(
        self,
        stack: LocalStack,
        databases: Sequence[Database],
        folder: Path,
        *,
        format: str = "iceberg",
        metastore: str | None = None,
    ) -> None:
        self._stack = stack
        self._databases = databases
        evidence = ", ".join(f"{name}: [{topic}]" for name, topic in (database.evidence for database in databases))
        text = _CONFIG.format(
            folder=folder,
            servers=stack.kafka.bootstrap_servers,
            evidence=evidence,
            notifications=NOTIFICATIONS,
            format=format,
            metastore=f"uri: '{metastore}', " if metastore else "",
        )
        file = folder / "live.yaml"
        file.write_text(text)
        self.config = parse_config(text)
        self._job = JobProcess(file)
        self._lake = open_lake(self.config.target)
        self._connected = False
        self._tables = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the job meanwhile."""
        self._job.start()
        try:
            yield
            self._job.check()
        finally:
            self._job.stop()
            self._lake.close()

    def wave(self, count: int, *, seed: int, groups: int = 3, patience: float = 60) -> tuple[Outcome, ...]:
        """Play some histories of each database at once; the connectors are stopped for a third of each.

        The job is killed in the first third and in the last.

        Args:
            count: how many of each.
            seed: everything follows from it, but the times.
            groups: how many times each table is altered in each of the three parts.
            patience: seconds without a commit to the lake after which nothing more is waited for.
        """
        chance = random.Random(seed)
        histories = [self._history(database, chance) for database in self._databases for _ in range(count)]
        if not self._connected:
            self._connect()
            self._wait_for(histories)
        with self._killed_once(chance):
            self._play(histories, groups, connected=True)
        self._disconnect(kill=chance.random() < 0.5)
        self._play(histories, groups, connected=False)
        self._connect()
        with self._killed_once(chance):
            self._play(histories, groups, connected=True)
        for history in histories:
            history.close()
        return self._outcomes(histories, patience)

    def _history(self, database: Database, chance: random.Random) -> History:
        self._tables += 1
        return History(database, self._tables, chance.randrange(10**9))

    def _wait_for(self, histories: Sequence[History]) -> None:
        """Wait until the job is at work: what comes then comes while it runs."""
        deadline = time.monotonic() + _START
        for history in histories:
            while self._lake.table(_place(history)) is None:
                assert time.monotonic() < deadline, "the job does not begin"
                time.sleep(0.2)

    def _play(self, histories: Sequence[History], groups: int, *, connected: bool) -> None:
        with ThreadPoolExecutor(len(histories)) as pool:
            for played in [pool.submit(history.play, groups, connected=connected) for history in histories]:
                played.result()

    def _connect(self) -> None:
        for database in self._databases:
            database.connect()
        self._connected = True

    def _disconnect(self, *, kill: bool) -> None:
        """Take the connectors away: in good order, or the whole worker at once, which repeats events later."""
        for database in self._databases:
            if not (kill and database.survives):
                self._stack.connect.delete(database.name)
        if kill and self._stack.connect.process is not None:
            self._stack.connect.process.kill()
            self._stack.connect.start()  # it does not know its connectors any more, only how far they were

    @contextmanager
    def _killed_once(self, chance: random.Random) -> Iterator[None]:
        """Kill the job at some moment meanwhile, and start it again."""

        def kill() -> None:
            self._job.kill()
            self._job.start()

        timer = threading.Timer(chance.uniform(0.5, 3), kill)
        timer.start()
        yield
        timer.join()

    def _outcomes(self, histories: Sequence[History], patience: float) -> tuple[Outcome, ...]:
        """Wait until every table is equal but for marked columns, and then have the marked ones read again."""
        with _sources(self._databases) as sources:
            rows = self._settle(histories, patience, lambda history: self._differences(history, sources, self._marks()))
            marks = self._marks()
            marked = [history for history in histories if history.name in marks and not rows[history.name]]
            for history in marked:
                asked = requests.resync(self.config, str(history.table_id), columns=(), done=False)
                assert asked.statement is not None
                history.database.signal(asked.statement)
            left = self._settle(marked, patience, lambda history: self._left(history, sources))
        paused = self._paused()
        return tuple(
            self._outcome(history, marks, rows[history.name], left.get(history.name, ()), paused)
            for history in histories
        )

    def _settle(
        self, histories: Sequence[History], patience: float, wrong: Callable[[History], tuple[str, ...]]
    ) -> dict[str, tuple[str, ...]]:
        """Wait until nothing is wrong with any table that is not paused, or nothing happens any more."""
        found: dict[str, tuple[str, ...]] = {}
        waiting, stamp, changed = list(histories), self._lake.stamp(), time.monotonic()
        while waiting and time.monotonic() < changed + patience:
            paused = self._paused()
            found |= {history.name: wrong(history) for history in waiting}
            waiting = [history for history in waiting if found[history.name] and history.name not in paused]
            if self._lake.stamp() != stamp:
                stamp, changed = self._lake.stamp(), time.monotonic()
            self._check_connectors()
            time.sleep(1)
        return found

    def _check_connectors(self) -> None:
        """Fail if one has, for what it does not send is missing everywhere."""
        for database in self._databases:
            status = self._stack.connect.status(database.name)
            assert not status.has_failed, f"the connector of {database.name} has failed: {status.trace}"

    def _left(self, history: History, sources: Mapping[str, Source]) -> tuple[str, ...]:
        marked = self._marks().get(history.name, {})
        still = tuple(f"column {column} is marked: {reason}" for column, reason in marked.items())
        return (*still, *self._differences(history, sources, {}))

    def _differences(
        self, history: History, sources: Mapping[str, Source], marks: Mapping[str, Mapping[str, str]]
    ) -> tuple[str, ...]:
        source, marked = sources[history.database.name], marks.get(history.name, {})
        wanted = source.image(f"{SCHEMA}.{history.name}")
        table = self._lake.table(_place(history))
        found = None if table is None else _image(wanted.name, table)
        key = source.key(wanted.name)
        if found is not None and not column_differences(wanted, found):
            wanted, found = _without(wanted, marked), _without(found, marked)
        return differences(wanted, found, key)[:5]

    def _marks(self) -> dict[str, dict[str, str]]:
        """Return the marked columns of each table, with why."""
        return {
            status.table.table: {mark.column: mark.reason for mark in status.needs_resync}
            for status in StateStore(self.config.pipeline.root).tables()
            if status.needs_resync
        }

    def _paused(self) -> dict[str, str]:
        states = StateStore(self.config.pipeline.root)
        return {status.table.table: str(status.reason) for status in states.tables() if status.state == "paused"}

    def _outcome(
        self,
        history: History,
        marks: Mapping[str, Mapping[str, str]],
        rows: tuple[str, ...],
        left: tuple[str, ...],
        paused: Mapping[str, str],
    ) -> Outcome:
        store = HistoryStore(f"{self.config.pipeline.root}/history")
        try:
            found = store.load(history.table_id).versions
        except HistoryError:
            found = ()
        versions = [
            Recorded(
                number=version.number,
                place=history.database.place_of(version.position),
                columns=tuple((column.name, column.id) for column in version.schema.live),
            )
            for version in found
        ]
        return Outcome(
            name=f"{history.database.name} seed {history.seed} ({history.name})",
            verdict=judge(history.states, versions) if versions else None,
            marked=marks.get(history.name, {}),
            rows=rows,
            left=left,
            paused=paused.get(history.name),
            statements=tuple(history.statements),
            counts=history.counts,
        )


def run_job(config: Config, stop: threading.Event, prepare: Callable[[], None]) -> None:
    """Run the job until `stop` is set; `prepare` is called before it starts a session."""
    from cdc_sync.runtime import service

    prepare()
    service.run(config, once=False, stop=stop)


@contextmanager
def _sources(databases: Sequence[Database]) -> Iterator[dict[str, Source]]:
    opened: dict[str, Source] = {}
    try:
        for database in databases:
            opened[database.name] = database.source().__enter__()
        yield opened
    finally:
        for source in opened.values():
            source.__exit__(None, None, None)


def _place(history: History) -> Place:
    return history.database.name, history.name


def _image(name: str, table: Table) -> TableImage:
    names = [column for column, _ in table.columns]
    return TableImage(
        name=name,
        columns=tuple(ColumnImage(name=column, type=type_) for column, type_ in table.columns),
        rows=tuple(tuple(plain(row[column]) for column in names) for row in table.rows),
    )


def _without(table: TableImage, columns: Collection[str]) -> TableImage:
    places = [place for place, column in enumerate(table.columns) if column.name not in columns]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in table.rows),
    )
