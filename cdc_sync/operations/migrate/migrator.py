"""One table after the other, one revision after the other, one commit after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from structlog import get_logger

from cdc_sync.core.migration.migration import CreateTable, Repartition, RewriteTable
from cdc_sync.core.migration.names import held_schema
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.explain import explain, explain_fill, explain_properties
from cdc_sync.core.revisions.applied import Entry, Log
from cdc_sync.core.revisions.fills import Converted, Fill
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.revisions.steps import (
    Held,
    Work,
    finish_entry,
    may_lose,
    needs_rows,
    pending,
    undo_entry,
    unfinished,
    work,
)
from cdc_sync.core.schema.expressions import Expression
from cdc_sync.errors import CdcSyncError, RefusedError, TargetMoved
from cdc_sync.operations.migrate.filler import Filler
from cdc_sync.operations.migrate.report import (
    Migrated,
    MigrationPlan,
    MigrationStatus,
    PlannedStep,
    RevisedTable,
    Way,
)
from cdc_sync.operations.migrate.tables import RevisedTables
from cdc_sync.spark.unconverted import count_lost
from cdc_sync.storage.revision_logs import RevisionLogs
from cdc_sync.targets.protocol import Revisable

_NOTHING = Progress(version=0)
"""No event is in a table that no pipeline writes."""
_ATTEMPTS = 5
"""Commits that others come before until one is given up."""


class Migrator:
    """Applies revisions to the tables of one lake. One thread at a time."""

    def __init__(
        self,
        name: str,
        revisions: Sequence[Revision],
        target: Revisable,
        logs: RevisionLogs,
        filler: Filler,
        *,
        guard: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin.

        Args:
            name: of the migrator, for reports.
            filler: of rows.
            guard: called before each commit; raises if another migrator works by now.
        """
        self._name = name
        self._tables = RevisedTables(revisions, target, logs)
        self._target = target
        self._logs = logs
        self._filler = filler
        self._guard = guard

    def plan(self, table: TargetName | None = None) -> MigrationPlan:
        """Tell what `up` would do; nothing is changed."""
        steps: list[PlannedStep] = []
        fills: list[TargetName] = []
        problems: list[str] = []
        known: dict[TargetName, tuple[Log, Held | None]] = {}
        for revision in self._tables.of(table):
            try:
                if revision.table not in known:
                    log, held = known[revision.table] = self._tables.checked(revision.table)
                    if held is not None and held.is_left:
                        fills.append(revision.table)
                log, held = known[revision.table]
                if not pending((revision,), log):
                    continue
                entry = self._tables.next(revision, log, held)
                self._refuse_sql(entry)
            except CdcSyncError as error:
                problems.append(str(error))
                break
            steps.append(self._planned(entry, log, held, revision.description))
            known[revision.table] = Log(table=log.table, entries=(*log.entries, entry)), held
        return MigrationPlan(name=self._name, steps=tuple(steps), fills=tuple(fills), problems=tuple(problems))

    def up(self, table: TargetName | None = None, *, fill: bool = True) -> Migrated:
        """Apply what is pending, each revision behind those it needs; the first that is refused ends it.

        Args:
            fill: also fill rows; without, only columns change, until a revision needs the rows.

        Raises:
            RefusedError: if a table cannot go on until somebody has looked at it.
            TargetError: if the format refuses a step.
        """
        steps: list[PlannedStep] = []
        filled = self._filled(table) if fill else ()
        for revision in self._tables.of(table):
            if self._filler.is_over:
                break
            log, held = self._tables.checked(revision.table)
            if not pending((revision,), log):
                continue
            entry = self._tables.next(revision, log, held)
            rows = None if held is None else held.rows
            planned = self._planned(entry, log, held, revision.description)
            if rows is not None and rows != len(log.entries) and needs_rows(entry):
                break
            steps.append(planned)
            self._carry_out(entry, log, rows, fill=fill)
            get_logger().info("revision applied", table=str(entry.table), revision=entry.revision, way=planned.way)
        return Migrated(
            name=self._name,
            steps=tuple(steps),
            filled=filled,
            left=() if fill and not self._filler.is_over else self._left(table),
        )

    def backfill(self, table: TargetName | None = None) -> Migrated:
        """Fill the rows that revisions have left to be filled."""
        filled = self._filled(table)
        return Migrated(name=self._name, steps=(), filled=filled, left=self._left(table))

    def _filled(self, table: TargetName | None) -> tuple[TargetName, ...]:
        return tuple(name for name in self._tables.names(table) if self._fill(name))

    def _left(self, table: TargetName | None) -> tuple[TargetName, ...]:
        held = ((name, self._tables.held(name)) for name in self._tables.names(table))
        return tuple(name for name, found in held if found is not None and found.is_left)

    def down(self, table: TargetName, *, dry_run: bool = False) -> MigrationPlan | Migrated:
        """Take back the newest revision in effect of a table.

        Raises:
            RefusedError: if there is none, or values would have to come back that are gone.
        """
        log, held = self._tables.checked(table)
        files = {revision.id: revision for revision in self._tables.revisions}
        if not log.in_effect or held is None:
            raise RefusedError(f"Cannot take anything back of {table}: no revision is in effect")
        newest = files[log.in_effect[-1].revision]
        entry = undo_entry(log, newest)
        step = self._planned(entry, log, held, newest.description)
        if dry_run:
            return MigrationPlan(name=self._name, steps=(step,))
        self._carry_out(entry, log, held.rows, fill=True)
        get_logger().info("revision taken back", table=str(table), revision=entry.revision)
        return Migrated(name=self._name, steps=(step,))

    def finish(self, table: TargetName | None = None, *, dry_run: bool = False) -> MigrationPlan | Migrated:
        """Drop the columns that others have taken the place of.

        Raises:
            RefusedError: if rows are still to be filled from one.
        """
        steps: list[PlannedStep] = []
        for name in self._tables.names(table):
            log, held = self._tables.checked(name)
            entry = finish_entry(log) if held is not None and log.entries else None
            if held is None or entry is None:
                continue
            if held.is_left:
                raise RefusedError(
                    f"Cannot finish {name}: rows are still to be filled; `cdc-sync migrate backfill` does"
                )
            steps.append(self._planned(entry, log, held, ""))
            if not dry_run:
                self._carry_out(entry, log, held.rows, fill=True)
                get_logger().info("revision finished", table=str(name), dropped=len(entry.changes))
        if dry_run:
            return MigrationPlan(name=self._name, steps=tuple(steps))
        return Migrated(name=self._name, steps=tuple(steps))

    def status(self) -> MigrationStatus:
        """Tell how every table stands that has a revision or a log."""
        return MigrationStatus(name=self._name, tables=tuple(self._stands(name) for name in self._tables.names(None)))

    def _stands(self, table: TargetName) -> RevisedTable:
        problem, units, left = None, 0, 0
        try:
            log, held = self._tables.checked(table)
            if held is not None and held.is_left:
                units, left = self._filler.units(table, self._left_to_fill(log, held))
        except CdcSyncError as error:
            problem, log, held = str(error), self._logs.load(table), None
        done = log.in_effect
        return RevisedTable(
            table=table,
            number=held.version or 0 if held is not None else len(log.entries) if problem else 0,
            revision=done[-1].revision if done else None,
            pending=tuple(revision.id for revision in pending(self._tables.revisions, log)),
            fill=held is not None and held.is_left,
            units=units,
            units_left=left,
            unfinished=tuple(column.name for column in unfinished(log)),
            problem=problem,
        )

    def _carry_out(self, entry: Entry, log: Log, rows: int | None, *, fill: bool) -> None:
        """Do it, with or without the rows."""
        self._refuse_lost(entry, log)
        self._refuse_sql(entry)
        todo = work(entry, log, rows, self._target.capabilities)
        self._guard()
        self._logs.begin(entry)
        if todo.columns is not None:
            self._commit(partial(self._target.migrate, entry.table, todo.columns, _NOTHING))
        if todo.fill is not None and fill:
            self._fill_rows(entry.table, todo.fill)

    def _fill(self, table: TargetName) -> bool:
        """Do what is left of the table's newest entry; return whether it was done."""
        log, held = self._tables.checked(table)
        if held is None or not held.is_left:
            return False
        return self._fill_rows(table, self._left_to_fill(log, held))

    def _left_to_fill(self, log: Log, held: Held) -> Fill:
        entry = log.entries[-1]
        todo = work(entry, log, held.rows, self._target.capabilities)
        return todo.fill or Fill(number=entry.number, schema=entry.schema, values=())

    def _fill_rows(self, table: TargetName, fill: Fill) -> bool:
        if fill.values and not self._filler.fill(table, fill):
            return False
        self._commit(partial(self._target.complete, table, fill.number))
        get_logger().info("rows filled", table=str(table))
        return True

    def _commit(self, change: Callable[[], None]) -> None:
        """Make one commit; where somebody else's came first, on what the table is then."""
        for attempt in range(1, _ATTEMPTS + 1):
            self._guard()
            try:
                change()
            except TargetMoved:
                if attempt == _ATTEMPTS:
                    raise
            else:
                return

    def _refuse_lost(self, entry: Entry, log: Log) -> None:
        """Look whether every value has a place in its column's new type, where it has to.

        Raises:
            RefusedError: if one has none.
        """
        casts = may_lose(entry, log)
        if not casts:
            return
        assert log.schema is not None
        rows = self._target.read(entry.table, log.schema, [column.id for column, _ in casts])
        lost = count_lost(rows, casts)
        if lost:
            said = " and ".join(f"{count} values of {name}" for name, count in lost.items())
            raise RefusedError(
                f"Cannot apply {entry.revision} to {entry.table}: {said} have no place in the new type; mend them, or "
                "say lost: null to have NULL in their place"
            )

    def _refuse_sql(self, entry: Entry) -> None:
        """Have Spark look at what columns are computed from, before anything is changed.

        Raises:
            RefusedError: if it cannot be computed.
        """
        for id_, expression in entry.computed:
            if not isinstance(expression, Expression):
                continue
            reason = self._target.why_not_computed(entry.schema, id_, expression)
            if reason is not None:
                name = entry.schema.column(id_).name
                raise RefusedError(f"Cannot apply {entry.revision} to {entry.table}: the sql of {name} {reason}")

    def _planned(self, entry: Entry, log: Log, held: Held | None, description: str) -> PlannedStep:
        todo = work(entry, log, len(log.entries) or None, self._target.capabilities)
        steps = () if todo.columns is None else todo.columns.steps
        statements = [text for step in steps for text in explain(step, entry.table).statements]
        statements += explain_properties(entry.properties, entry.table)
        if todo.fill is not None:
            named = held_schema(entry.schema, self._target.capabilities.columns)
            statements += explain_fill(replace(todo.fill, schema=named), entry.table)
        way = _way(todo, log)
        rewrites = held.size if held is not None and way in ("fill", "expand", "exchange") else 0
        return PlannedStep(
            table=entry.table,
            revision=entry.revision,
            number=entry.number,
            way=way,
            rewrites=rewrites,
            seconds=self._filler.seconds(rewrites) if rewrites else None,
            statements=tuple(statements),
            description=description,
            undoes=entry.undoes,
            finishes=entry.finishes,
        )


def _way(todo: Work, log: Log) -> Way:
    steps = () if todo.columns is None else todo.columns.steps
    if any(isinstance(step, CreateTable) for step in steps):
        return "create"
    if not log.entries:
        return "adopt"
    if any(isinstance(step, RewriteTable) or (isinstance(step, Repartition) and step.rewrites) for step in steps):
        return "exchange"
    if todo.fill is None:
        return "in_place"
    return "expand" if any(isinstance(value, Converted) for _, value in todo.fill.values) else "fill"
