"""Histories on real databases through real Debezium, with the job running throughout."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cdc_sync.config import Config, parse_config
from cdc_sync.demo.compare import differences
from cdc_sync.demo.lake import Lake, image
from cdc_sync.demo.source import Source
from cdc_sync.errors import HistoryError
from cdc_sync.history.store import HistoryStore
from cdc_sync.local.stack import LocalStack
from cdc_sync.state import StateStore
from tests.live.databases import SCHEMA, Database
from tests.live.history import History
from tests.live.verdict import Recorded, Verdict, judge

_START = 300.0
"""Seconds that everything may take to start."""
_CONFIG = """
pipeline: {{name: live, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: '(pglive|malive)\\.live\\..*'}}
evidence: {{{evidence}}}
tables:
  - {{pattern: 'pglive\\.live\\..*', target: 'pglive.{{table}}'}}
  - {{pattern: 'live\\..*', target: 'malive.{{table}}'}}
target: {{catalog: {{warehouse: '{folder}/warehouse'}}}}
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
        rows: how the target's columns and rows differ from the source's.
        paused: why the table stands still, None if it does not.
    """

    name: str
    verdict: Verdict | None
    rows: tuple[str, ...]
    paused: str | None
    statements: tuple[str, ...]
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def problems(self) -> tuple[str, ...]:
        """Return everything that is not as it should be."""
        told = self.verdict.problems if self.verdict is not None else ("no version of it was recorded",)
        paused = (f"paused: {self.paused}",) if self.paused else ()
        return (*told, *paused, *(f"rows: {text}" for text in self.rows))


class Live:
    """A running job and two running databases.

    Args:
        stack: started, with the databases.
        databases: whose tables are altered.
        folder: of the job's state and tables.
    """

    def __init__(self, stack: LocalStack, databases: Sequence[Database], folder: Path) -> None:
        self._stack = stack
        self._databases = databases
        evidence = ", ".join(f"{name}: [{topic}]" for name, topic in (database.evidence for database in databases))
        self.config = parse_config(
            _CONFIG.format(folder=folder, servers=stack.kafka.bootstrap_servers, evidence=evidence)
        )
        self._lake = Lake(name="lake", service=self.config.target.catalog.service or "")
        self._connected = False
        self._tables = 0

    @contextmanager
    def running(self, prepare: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Run the job meanwhile; `prepare` is called before it starts a session."""
        stop = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run_job, self.config, stop, prepare)
            try:
                yield
            finally:
                stop.set()
                self._lake.close()
            running.result()

    def wave(self, count: int, *, seed: int, groups: int = 3, patience: float = 60) -> tuple[Outcome, ...]:
        """Play some histories of each database at once; the connectors are stopped for a third of each.

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
        self._play(histories, groups, connected=True)
        self._disconnect(kill=chance.random() < 0.5)
        self._play(histories, groups, connected=False)
        self._connect()
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
            while self._lake.table(f"{history.database.name}.{history.name}") is None:
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

    def _outcomes(self, histories: Sequence[History], patience: float) -> tuple[Outcome, ...]:
        """Wait until every table is equal or paused, or nothing happens any more."""
        waiting = {history.name: history for history in histories}
        rows: dict[str, tuple[str, ...]] = {}
        stamp: object = None
        changed = time.monotonic()
        with _sources(self._databases) as sources:
            while waiting and time.monotonic() < changed + patience:
                paused = self._paused()
                if self._lake.stamp() != stamp or waiting.keys() & paused.keys():
                    stamp, changed = self._lake.stamp(), time.monotonic()
                    for name, history in list(waiting.items()):
                        rows[name] = self._differences(history, sources[history.database.name])
                        if not rows[name] or name in paused:
                            del waiting[name]
                time.sleep(0.3)
        paused = self._paused()
        return tuple(self._outcome(history, rows.get(history.name, ()), paused) for history in histories)

    def _differences(self, history: History, source: Source) -> tuple[str, ...]:
        wanted = source.image(f"{SCHEMA}.{history.name}")
        table = self._lake.table(f"{history.database.name}.{history.name}")
        return differences(wanted, None if table is None else image(table), source.key(wanted.name))[:5]

    def _paused(self) -> dict[str, str]:
        states = StateStore(self.config.pipeline.root)
        return {status.table.table: str(status.reason) for status in states.tables() if status.state == "paused"}

    def _outcome(self, history: History, rows: tuple[str, ...], paused: dict[str, str]) -> Outcome:
        store = HistoryStore(f"{self.config.pipeline.root}/history")
        try:
            found = store.load(history.database.table_id(history.name)).versions
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
            rows=rows,
            paused=paused.get(history.name),
            statements=tuple(history.statements),
            counts=history.counts,
        )


def run_job(config: Config, stop: threading.Event, prepare: Callable[[], None]) -> None:
    """Run the job until `stop` is set; `prepare` is called before it starts a session."""
    from cdc_sync import job

    prepare()
    job.run(config, once=False, stop=stop)


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
