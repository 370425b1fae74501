"""What is written down of one table beside its history: read once, and written where it says something else."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from cdc_sync.core.lineage.coverage import Coverage
from cdc_sync.core.migration.altered import HeldColumns
from cdc_sync.core.model.doubts import Doubt
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.times import utc
from cdc_sync.core.planning.resync import Resync
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.core.table.state import Journal, TableState
from cdc_sync.core.table.status import status
from cdc_sync.errors import HistoryError
from cdc_sync.storage.state import StateStore


class TableFiles:
    """The files of one table. One thread at a time.

    Attributes:
        status: as it was written last, None if it never was.
        columns: those that the target had when it was left last.
    """

    def __init__(self, store: StateStore, table: TableId, guard: Callable[[], None] = lambda: None) -> None:
        """Begin with nothing read.

        Args:
            guard: called before anything is written; see `Context.guard`.
        """
        self._store = store
        self._guard = guard
        self._table = table
        self.status: TableStatus | None = None
        self.columns: HeldColumns | None = None
        self._doubts: tuple[Doubt, ...] = ()
        self._remembered: object = None

    def with_journal(self, state: TableState) -> TableState:
        """Return a table that is to be read again, with what is written down of it, which is no news.

        A status that cannot be read begins anew, for all but counts is kept elsewhere.

        Raises:
            HistoryError: if another file is damaged.
        """
        store, table = self._store, self._table
        try:
            self.status = store.load(table)
        except HistoryError as error:
            aside = store.set_status_aside(table)
            self.status = None
            state = state.warned(f"{error}; its counts begin anew, the file is kept as {aside}")
        before = self.status
        journal = Journal(
            warnings=state.journal.warnings,
            counts={} if before is None else before.counts,
            replaced_nulls={} if before is None else before.replaced_nulls,
            written_at=None if before is None else before.written_at,
            event_at=None if before is None else before.event_at,
            doubts=store.doubts(table),
        )
        for found in store.unconverted(table):
            journal = journal.with_unconverted(found)
        self._doubts = journal.doubts
        # Read once: what another job does to them later is what is looked for.
        self.columns = self.columns or store.held_columns(table)
        cursor = replace(state.cursor, known_before={} if before is None else before.offsets)
        return replace(state, is_read=False, journal=journal, cursor=cursor).with_resyncs(
            store.requests.all(Resync, table)
        )

    def keep(self, state: TableState) -> None:
        """Write down what must not be lost if the process ends here."""
        if state.journal.doubts != self._doubts:
            self._guard()
            self._doubts = state.journal.doubts
            self._store.save_doubts(self._table, self._doubts)
        columns = state.target.columns
        if columns is not None and columns != self.columns:
            self._guard()
            self.columns = columns
            self._store.save_held_columns(self._table, columns)

    def report(self, state: TableState, coverage: Coverage) -> None:
        """Write the status, if it says something else than the last one."""
        now = status(state, coverage).dated(self.status, utc(time.time()))
        if now != self.status:
            self._guard()
            self._store.save(now)
            self.status = now

    def shows(self, state: TableState, coverage: Coverage) -> bool:
        """Whether the status, as it was written last, says what the evidence covers."""
        shown = self.status
        said = None if shown is None else (shown.evidence, shown.evidence_gaps)
        return state.history is None or (coverage.since, coverage.all_gaps) == said

    def remember_passed(self, state: TableState) -> None:
        """Keep what the table has only passed, for a process that finds it gone from the topic."""
        progress = state.progress
        if progress is None:
            return
        places = state.passed_of_topics
        passed = {place: at for place, at in places.items() if at > (progress.next_offset(*place) or 0)}
        if passed and self._remembered != (progress, passed):
            self._guard()
            self._store.save_passed(self._table, progress.to_text(), passed)
            self._remembered = progress, passed
