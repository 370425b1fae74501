"""What `status` says of one table: whether it goes on, why not, and what was counted and warned of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from structlog import get_logger

from cdc_sync.core.history.history import History
from cdc_sync.core.history.revision import Version
from cdc_sync.core.history.warned import warnings_of
from cdc_sync.core.lineage.column_log import Unlogged
from cdc_sync.core.lineage.coverage import Coverage
from cdc_sync.core.migration.operator_requests import Unconverted
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.migration.wording import dropped_text
from cdc_sync.core.model.doubts import Doubt, doubts_with
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.replaced_nulls import ONGOING
from cdc_sync.core.planning.resync import Mark, Resync, marks
from cdc_sync.core.planning.status import StateName, TableStatus
from cdc_sync.core.planning.stops import Pause, files_gone
from cdc_sync.errors import CannotPass, CdcSyncError, FilesGone, HistoryError, TargetMoved
from cdc_sync.storage.state import StateStore

_REPLACED_NULL = " arrives as the column's default"


class TableStanding:
    """How a table stands, kept in its status file. One thread at a time.

    Attributes:
        pause: why the table does not go on, None if it does.
        failing: how the last attempt failed, None if it went well.
        waiting: which evidence it stands before a change without, None if it does not.
        waits_for: the table that it waits for instead, None if it does not.
        history, progress: what is known of its schema and its rows.
    """

    def __init__(self, state: StateStore, route: Route) -> None:
        self._state = state
        self.route = route
        self.pause: Pause | None = None
        self.failing: str | None = None
        self.waiting: str | None = None
        self.waits_for: TableId | None = None
        self.history: History | None = None
        self.progress: Progress | None = None
        self._unread: dict[str, dict[int, int]] = {}
        # What the status file says of a table that could not be read yet.
        self._told_before: Mapping[str, Mapping[int, int]] = {}
        self._counts: dict[str, int] = {}
        self._warnings: tuple[str, ...] = ()
        self._unconverted: dict[int, Unconverted] = {}
        self._resyncs: tuple[Resync, ...] = ()
        self._shown_marks: tuple[Mark, ...] = ()
        self._replaced_nulls: Mapping[int, int] = {}
        self._doubts: tuple[Doubt, ...] = ()
        self._files_gone = False
        self._shown_coverage = Coverage()

    @property
    def table(self) -> TableId:
        """The source table."""
        return self.route.table

    @property
    def warnings(self) -> tuple[str, ...]:
        """What `status` says beside the state: what happened since the start, and what the history still warns of."""
        told = {} if self.history is None else warnings_of(self.history)
        since = (text for text in self._warnings if told.get(text, True))
        return tuple(dict.fromkeys((*since, *(text for text, holds in told.items() if holds))))

    def refuse(self, pause: Pause) -> None:
        """Let the table wait for a decision."""
        if self.pause is None:
            get_logger().warning(
                "table paused", table=str(self.table), reason=pause.reason, remedy=pause.remedy, at=pause.at
            )
        self.pause = pause
        self.save_status()

    def fail(self, error: Exception) -> None:
        """Note that an attempt failed; the next batch tries again from what the target says.

        What does not pass by trying again pauses the table.
        """
        if isinstance(error, CannotPass):
            self.refuse(Pause(reason=error.reason, remedy=error.remedy))
            return
        is_ours = isinstance(error, CdcSyncError)
        said = str(error) if is_ours else f"{type(error).__name__}: {error}"
        if isinstance(error, FilesGone) and self._files_gone:
            self.refuse(files_gone(said))  # it was tried again, and they are not there yet
            return
        self._files_gone = isinstance(error, FilesGone)
        if said == self.failing:
            pass  # the same is in the log once, not with each attempt
        elif isinstance(error, TargetMoved):
            get_logger().warning("table moved", table=str(self.table), why=said)
        else:
            # What nobody thought of is of use only with the place where it happened.
            trace = None if is_ours else error
            get_logger().error("table failed", table=str(self.table), error=said, exc_info=trace)
        self.failing = said
        self.save_status()

    def recovered(self) -> None:
        """Note that the last attempt went well."""
        self._files_gone = False
        if self.failing is not None:
            get_logger().info("table goes on", table=str(self.table), after=self.failing)
            self.failing = None
            self.save_status()

    def _load_counts(self) -> None:
        before = self._status_before()
        self._counts = dict(before.counts) if before is not None else {}
        self._shown_marks = before.needs_resync if before is not None else ()
        self._told_before = before.offsets if before is not None else {}
        self._replaced_nulls = before.replaced_nulls if before is not None else {}
        self._unconverted.clear()
        for found in self._state.unconverted(self.table):
            self._count_unconverted(found)
        self._doubts = self._state.doubts(self.table)
        self._take_resyncs(self._state.resyncs(self.table))

    def _status_before(self) -> TableStatus | None:
        """Return what the last run said; what cannot be read begins anew, for all but counts is kept elsewhere."""
        try:
            return self._state.load(self.table)
        except HistoryError as error:
            aside = self._state.set_status_aside(self.table)
            self._warn(f"{error}; its counts begin anew, the file is kept as {aside}")
            return None

    def _count(self, kind: str, number: int) -> None:
        """Add to what is counted since the table's beginning."""
        self._counts[kind] = self._counts.get(kind, 0) + number
        get_logger().warning(kind, table=str(self.table), rows=number)

    def _count_unconverted(self, found: Unconverted) -> None:
        """Count what a rewrite had no place for, which is written down once however often the rewrite was begun."""
        self._unconverted[found.version] = found
        for name, number in found.counts.items():
            self._counts[f"values of {name!r} that version {found.version} has no place for"] = number

    def doubt_rows(self, told: Unlogged) -> None:
        """Mark the table for a statement that changed rows without an event, or warn of a foreign key that may."""
        if told.effect == "follow":
            self._warn(
                f"rows of it may change or go without an event, with those of another table: {told.text}; compare it "
                "with `cdc-sync verify`"
            )
            return
        version = self.history.head.number if self.history else 0
        ends = self.progress.offsets if self.progress else {}
        place, text = str(told.position), told.text
        self._note_doubt(Doubt(kind=told.effect, id=0, version=version, ends=ends, at=place, statement=text))

    def _note_doubt(self, doubt: Doubt) -> None:
        """Keep what is in doubt, and say so, unless it is known: it is told again after a start."""
        if any(known.key == doubt.key for known in self._doubts):
            return
        self._doubts = doubts_with(self._doubts, [doubt])
        self._state.save_doubts(self.table, self._doubts)
        get_logger().warning("values in doubt", table=str(self.table), why=doubt.reason)
        self.save_status()

    def _warn_of_replaced_null(self) -> None:
        live = self.history.head.schema.live if self.history is not None else ()
        names = [column.name for column in live if self._replaced_nulls.get(column.id) == ONGOING]
        text = (
            f"a NULL in {', '.join(names)}{_REPLACED_NULL}; set "
            "value.converter.replace.null.with.default=false in the connector, or policy.ambiguous_null: pause"
        )
        self._warnings = tuple(it for it in self._warnings if it == text or _REPLACED_NULL not in it)
        if names:
            self._warn(text)

    def _warn(self, text: str) -> bool:
        """Keep a warning, the same text once; return whether it is a new one."""
        if text in self._warnings:
            return False
        self._keep((text,))
        get_logger().warning("warning", table=str(self.table), warning=text)
        return True

    def _forget_warnings(self, about: str) -> None:
        """Take warnings back that hold these words."""
        self._warnings = tuple(text for text in self._warnings if about not in text)

    def _keep(self, warnings: Iterable[str]) -> None:
        self._warnings = tuple(dict.fromkeys((*self._warnings, *warnings)))

    def is_behind(self, resyncs: tuple[Resync, ...]) -> bool:
        """Whether what was asked to be read again, or how far that has come, is not in the status yet."""
        # Without any, marks change by writes alone, which save the status.
        return resyncs != self._resyncs or (bool(resyncs) and self._marks() != self._shown_marks)

    def follow_resyncs(self, resyncs: tuple[Resync, ...]) -> None:
        """Take note of what the operator asked to be read again, and how far it has come."""
        self._take_resyncs(resyncs)
        self.save_status()

    def _take_resyncs(self, resyncs: tuple[Resync, ...]) -> None:
        self._resyncs = resyncs
        for item in resyncs:
            if item.failed is not None and not item.ends:
                self._warn(f"the connector could not read the rows again ({item.failed}); `cdc-sync resync` asks anew")

    def _marks(self) -> tuple[Mark, ...]:
        if self.history is None:
            return ()
        # A changelog's rows are what the events said.
        replaced = {} if self.route.append else self._replaced_nulls
        return marks(self.history, self._unconverted.values(), self._resyncs, self.progress, replaced, self._doubts)

    @property
    def coverage(self) -> Coverage:
        """Since when the evidence tells of the table."""
        return Coverage()

    @property
    def shows_other_evidence(self) -> bool:
        """Whether the status, as it was written last, says otherwise."""
        return self.history is not None and self.coverage != self._shown_coverage

    def _end_in_words(self, end: Version) -> str:
        """Say since when the source table is gone, who says so, and what became of the target."""
        assert end.dropped is not None
        told = end.evidence[0]
        if end.renamed_to is not None:
            return (
                f"the source table is {end.renamed_to} now, by {told.text} ({told.kind}): {dropped_text(end.dropped)}"
            )
        return f"the source table was dropped, by {told.text} ({told.kind}): {dropped_text(end.dropped)}"

    def save_status(self) -> None:
        """Write the table's status for `cdc-sync status`."""
        end = self.history.head if self.history is not None and self.history.head.dropped is not None else None
        gone = None if end is None else self._end_in_words(end)
        state: StateName = (
            "paused"
            if self.pause
            else "failing"
            if self.failing
            else "waiting"
            if self.waiting
            else "gone"
            if gone
            else "running"
        )
        self._shown_marks = self._marks()
        self._shown_coverage = self.coverage
        self._warn_of_replaced_null()
        self._state.save(
            TableStatus(
                table=self.table,
                target=str(self.route.target),
                state=state,
                version=self.history.head.number if self.history else None,
                reason=self.pause.reason if self.pause else self.failing or self.waiting or gone,
                remedy=self.pause.remedy if self.pause else None,
                paused_at=self.pause.at if self.pause else None,
                # Without progress the topics are kept all the same: a later run must find the table there again.
                offsets=(self.progress.offsets if self.progress else None) or self._unread or self._told_before,
                warnings=self.warnings,
                counts=self._counts,
                needs_resync=self._shown_marks,
                replaced_nulls=self._replaced_nulls,
                evidence=self._shown_coverage.since,
                evidence_gaps=self._shown_coverage.all_gaps,
            )
        )
