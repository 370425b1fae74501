"""The source's catalogue as the job reads it: from its start on, now and then, and before it plans a new schema.

Every reading that shows something new is kept in the pipeline's files before anything is decided by it, so that a
replay decides the same without asking the database. A database that does not answer holds up nobody for longer than its
timeout: what comes then is decided without, and that is kept too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from structlog import get_logger

from cdc_sync.capture.catalogue_sql import list_tables, read_catalogue
from cdc_sync.capture.session import first_line, load_psycopg
from cdc_sync.config.sources import SourceCatalogue as Settings
from cdc_sync.errors import SetupError
from cdc_sync.events import SourcePosition, TableId
from cdc_sync.evidence.catalogue import CatalogueReading, Moment
from cdc_sync.evidence.kept import NOTHING_KEPT, Kept, Missed
from cdc_sync.state import StateStore

_ASK_AGAIN = 10.0
"""Seconds after a failure in which nobody is asked."""
_LOCKED_FOR = 2.0
_WAIT = 0.05


class SourceCatalogue:
    """The readings of all tables of a pipeline. Thread-safe."""

    def __init__(
        self, settings: Settings | None, state: StateStore, wanted: Callable[[TableId], bool] = lambda _: False
    ) -> None:
        """Prepare; nothing is asked before the first `prepare` or `refresh`.

        Args:
            settings: which database; None reads none, and what was kept before still counts.
            state: where readings are kept.
            wanted: whether events of a table may come, so that it is read from the start on.
        """
        self._wanted = wanted
        self._settings = settings
        self._state = state
        self._lock = threading.Lock()
        self._kept: dict[TableId, Kept] = {}
        self._written: dict[TableId, Kept] = {}
        self._early: dict[TableId, Kept] = {}
        """Of tables that nobody asked for yet; kept once their first event is planned."""
        self._connection: Any = None
        self._database: str | None = None
        self._failed: float | None = None
        self._refreshed = float("-inf")
        self.problem: str | None = None
        """Why the catalogue cannot be read; None if it can."""

    def kept_only(self) -> SourceCatalogue:
        """Return one that never asks the database, for a replay."""
        return SourceCatalogue(None, self._state)

    def kept(self, table: TableId) -> Kept:
        """Return what is kept of a table."""
        with self._lock:
            return self._of(table)

    def prepare(self, table: TableId, head: SourcePosition | None, moments: Sequence[Moment]) -> Kept:
        """Return what events of these moments are judged by; read and keep what is missing.

        Args:
            table: whose events they are.
            head: of the newest version; events up to there were decided by what was kept then.
            moments: of Postgres events.
        """
        with self._lock:
            kept = self._of(table)
            if self._settings is None or not moments or self._database not in (None, table.database):
                return kept
            if not self._written[table].entries and head is not None and head.kind == "postgresql":
                kept = Kept((Missed(lsn=head.parts[-1]), *kept.entries))
            if not all(map(kept.covers, moments)):
                reading = self._ask(lambda: [table], patient=True).get(table)
                if self._database not in (None, table.database):
                    return self._of(table)
                kept = self._added(kept, reading)
            open_ = [moment.lsn for moment in moments if not kept.covers(moment)]
            kept = kept.with_missed(max(open_)) if open_ else kept
            self._kept[table] = kept
            self._write(table)
            return kept

    def refresh(self) -> None:
        """Read all tables of which events came or may come, if the last time is long enough ago."""
        with self._lock:
            now = time.monotonic()
            if self._settings is None or now - self._refreshed < self._settings.every.total_seconds():
                return
            self._refreshed = now
            for table, reading in self._ask(self._all, patient=False).items():
                if table not in self._kept:
                    self._early[table] = self._added(self._early.get(table, NOTHING_KEPT), reading)
                    continue
                before = self._kept[table]
                self._kept[table] = self._added(before, reading)
                if self._written[table].entries and len(self._kept[table].entries) > len(before.entries):
                    self._write(table)

    def close(self) -> None:
        """Leave the database."""
        with self._lock:
            self._disconnect()

    def _all(self) -> list[TableId]:
        met = {table for table, kept in self._kept.items() if kept.entries}
        return [table for table in list_tables(self._connection) if table in met or self._wanted(table)]

    def _of(self, table: TableId) -> Kept:
        if table not in self._kept:
            self._written[table] = self._state.readings(table)
            self._kept[table] = self._written[table].followed_by(self._early.pop(table, NOTHING_KEPT))
        return self._kept[table]

    def _write(self, table: TableId) -> None:
        """Keep what is not kept yet; the newest entry may only have grown."""
        old, new = self._written[table].entries, self._kept[table].entries
        for number, entry in enumerate(new):
            if number >= len(old) or old[number] != entry:
                self._state.keep(table, number, entry)
        self._written[table] = self._kept[table]

    def _added(self, kept: Kept, reading: CatalogueReading | None) -> Kept:
        if reading is None:
            return kept
        if reading.begun < kept.newest_lsn:
            self._fails(
                f"Cannot use the catalogue: {reading.table} was read at a later place in the log before; "
                "is it another server, or an older state of it?"
            )
            return kept
        return kept.with_reading(reading)

    def _ask(self, tables: Callable[[], Collection[TableId]], *, patient: bool) -> dict[TableId, CatalogueReading]:
        if self._failed is not None and time.monotonic() - self._failed < _ASK_AGAIN:
            return {}
        deadline = time.monotonic() + _LOCKED_FOR
        try:
            found = self._look(tables)
            while patient and found.locked and time.monotonic() < deadline:
                time.sleep(_WAIT)
                found = self._look(tables)
        except SetupError as error:
            self._fails(str(error))
            return {}
        self._failed = None
        if self.problem is not None:
            get_logger().info("source catalogue answers again")
            self.problem = None
        return dict(found.found)

    def _look(self, tables: Callable[[], Collection[TableId]]) -> Any:
        psycopg = load_psycopg("read the catalogue")
        try:
            if self._connection is None:
                self._connection = self._connect(psycopg)
            found = read_catalogue(self._connection, tables())
        except psycopg.Error as error:
            raise SetupError(f"Cannot read the catalogue: {first_line(error)}") from None
        self._database = found.database
        return found

    def _connect(self, psycopg: Any) -> Any:
        assert self._settings is not None
        seconds = self._settings.timeout.total_seconds()
        return psycopg.connect(
            self._settings.dsn,
            autocommit=True,
            application_name="cdc_sync",
            connect_timeout=max(2, round(seconds)),
            options=f"-c statement_timeout={int(seconds * 1000)} -c default_transaction_read_only=on",
        )

    def _fails(self, problem: str) -> None:
        self._failed = time.monotonic()
        self._disconnect()
        if problem != self.problem:
            get_logger().warning("source catalogue cannot be read", why=problem)
        self.problem = problem

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
