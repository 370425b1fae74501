"""The source's catalogue as the job reads it: from its start on, now and then, and before it plans a new schema.

Every reading that shows something new is kept in the pipeline's files before anything is decided by it, so that a
replay decides the same without asking the database. A database that does not answer holds up nobody for longer than its
timeout: what comes then is decided without, and that is kept too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from structlog import get_logger

from cdc_sync.config.sources import SourceCatalogue as Settings
from cdc_sync.core.lineage.catalogue import CatalogueReading, Moment
from cdc_sync.core.lineage.kept import NOTHING_KEPT, Kept, Missed
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.errors import SetupError
from cdc_sync.sources.databases.catalogue_sql import Readings, list_tables, read_catalogue
from cdc_sync.sources.databases.postgres import look_at
from cdc_sync.sources.databases.session import first_line, load_psycopg
from cdc_sync.storage.state import StateStore

_ASK_AGAIN = 10.0
"""Seconds after a failure in which nobody is asked."""
_LOCKED_FOR = 2.0
_WAIT = 0.05
_AT_ONCE = 300
"""Tables that one question is about."""
_EARLY = 100
"""The most readings that are kept of a table before its first event; the oldest ones go, which leaves less certain."""
_LEFT_ALONE = 60.0
"""Seconds after a failure in which tables of which no event came are not read."""

T = TypeVar("T")


class SourceCatalogue:
    """The readings of all tables of a pipeline. Thread-safe."""

    def __init__(
        self,
        settings: Settings | None,
        state: StateStore,
        wanted: Callable[[TableId], bool] = lambda _: False,
        *,
        captured: bool = False,
    ) -> None:
        """Prepare; nothing is asked before the first `prepare` or `refresh`.

        Args:
            settings: which database; None reads none, and what was kept before still counts.
            state: where readings are kept.
            wanted: whether events of a table may come, so that it is read from the start on.
            captured: whether the job reads what DDL capture writes in this database, so that it is looked after.
        """
        self._wanted = wanted
        self._settings = settings
        self._state = state
        self._lock = threading.Lock()
        self._kept: dict[TableId, Kept] = {}
        self._written: dict[TableId, Kept] = {}
        self._early: dict[TableId, Kept] = {}
        """Of tables that nobody asked for yet; kept once their first event is planned."""
        self._routed: dict[TableId, bool] = {}
        self._unread: list[TableId] = []
        """Tables without events that have not had their turn."""
        self._left_alone_until = float("-inf")
        self._trouble: str | None = None
        self._connection: Any = None
        self._database: str | None = None
        self._failed: float | None = None
        self._refreshed = float("-inf")
        self.problem: str | None = None
        """Why the catalogue cannot be read; None if it can."""
        self._captured = captured
        self.untold: str | None = None
        """Why DDL capture does not tell of the commands of this database, as far as that is known; None if it does."""

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
                reading = self._ask([table], patient=True).get(table)
                if self._database not in (None, table.database):
                    return self._of(table)
                kept = self._added(kept, reading)
            open_ = [moment.lsn for moment in moments if not kept.covers(moment)]
            kept = kept.with_missed(max(open_)) if open_ else kept
            self._kept[table] = kept
            self._write(table)
            return kept

    def refresh(self) -> None:
        """Read all tables of which events came or may come, if the last time is long enough ago.

        Those of which events came are first. What goes wrong with the others is a warning, and holds up no question
        about these.
        """
        with self._lock:
            now = time.monotonic()
            if self._settings is None or now - self._refreshed < self._settings.every.total_seconds():
                return
            self._refreshed = now
            met = sorted(self._met())
        with self._lock:
            self._look_at_capture()
        for start in range(0, len(met), _AT_ONCE):
            with self._lock:
                for table, reading in self._ask(met[start : start + _AT_ONCE], patient=False).items():
                    self._take(table, reading)
        self._read_others(self._settings.timeout.total_seconds())

    def close(self) -> None:
        """Leave the database."""
        with self._lock:
            self._disconnect()

    def _look_at_capture(self) -> None:
        if not self._captured or self._is_resting():
            return
        try:
            found = self._asked(look_at)
        except SetupError:
            return  # whoever reads tables says so
        if found.problem is not None and found.problem != self.untold:
            get_logger().warning("commands of the source are not told", why=found.problem)
        self.untold = found.problem

    def _met(self) -> set[TableId]:
        return {table for table, kept in self._kept.items() if kept.entries}

    def _read_others(self, seconds: float) -> None:
        """Read tables of which no event came; those that have no turn within these seconds are the first next time."""
        ends = time.monotonic() + seconds
        try:
            with self._lock:
                if self._is_resting() or time.monotonic() < self._left_alone_until:
                    return
                self._unread = self._unread or self._not_met()
            while self._unread and time.monotonic() < ends:
                with self._lock:
                    part, self._unread = self._unread[:_AT_ONCE], self._unread[_AT_ONCE:]
                    for table, reading in self._look(part).found.items():
                        self._take(table, reading)
            self._trouble = None
        except SetupError as error:
            self._left_alone_until = time.monotonic() + _LEFT_ALONE
            with self._lock:
                self._disconnect()
            if str(error) != self._trouble:
                get_logger().warning("tables without events cannot be read in the source's catalogue", why=str(error))
            self._trouble = str(error)

    def _not_met(self) -> list[TableId]:
        """Return the tables there are, have a route and sent no event; forget what was read of those that went."""
        listed = self._asked(list_tables)
        known = self._routed
        self._routed = {table: known[table] if table in known else self._wanted(table) for table in listed}
        self._early = {table: kept for table, kept in self._early.items() if table in self._routed}
        met = self._met()
        return [table for table, is_routed in self._routed.items() if is_routed and table not in met]

    def _take(self, table: TableId, reading: CatalogueReading) -> None:
        if table not in self._kept:
            early = self._early.get(table, NOTHING_KEPT)
            known = early if reading.begun >= early.newest_lsn else NOTHING_KEPT  # of another server, or an older state
            self._early[table] = Kept(known.with_reading(reading).entries[-_EARLY:])
            return
        before = self._kept[table]
        self._kept[table] = self._added(before, reading)
        if self._written[table].entries and len(self._kept[table].entries) > len(before.entries):
            self._write(table)

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

    def _is_resting(self) -> bool:
        return self._failed is not None and time.monotonic() - self._failed < _ASK_AGAIN

    def _ask(self, tables: Collection[TableId], *, patient: bool) -> dict[TableId, CatalogueReading]:
        if self._is_resting():
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

    def _look(self, tables: Collection[TableId]) -> Readings:
        found = self._asked(lambda connection: read_catalogue(connection, tables))
        self._database = found.database
        return found

    def _asked(self, question: Callable[[Any], T]) -> T:
        psycopg = load_psycopg("read the catalogue")
        try:
            if self._connection is None:
                self._connection = self._connect(psycopg)
            return question(self._connection)
        except (psycopg.Error, UnicodeDecodeError) as error:  # names in a database without an encoding are any bytes
            raise SetupError(f"Cannot read the catalogue: {first_line(error)}") from None

    def _connect(self, psycopg: Any) -> Any:
        assert self._settings is not None
        seconds = self._settings.timeout.total_seconds()
        return psycopg.connect(
            self._settings.dsn,
            autocommit=True,
            application_name="cdc_sync",
            client_encoding="utf8",
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
