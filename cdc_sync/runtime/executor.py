"""Carries out what was decided of one table: each arm has one effect, and returns the state and what is left to do."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TypeAlias

from structlog import get_logger
from typing_extensions import assert_never

from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.migration import AlterTable, Migration, RewriteTable
from cdc_sync.core.migration.operator_requests import Unconverted, UnconvertedValue
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.offsets import places_in
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.model.times import utc
from cdc_sync.core.planning.end_of_table import begun_behind
from cdc_sync.core.planning.limits import Window
from cdc_sync.core.planning.replaced_nulls import noted, shown_defaults
from cdc_sync.core.planning.status import event_moment
from cdc_sync.core.planning.stops import Pause, Refused
from cdc_sync.core.planning.truncation import progress_behind
from cdc_sync.core.schema.casts import always_converts, needs_cast
from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.types import DataType
from cdc_sync.core.table import fold
from cdc_sync.core.table.ending import arrival
from cdc_sync.core.table.loading import LOOK_EVERY, look_at_columns
from cdc_sync.core.table.migrating import columns_since
from cdc_sync.core.table.seen import Loaded, Seen
from cdc_sync.core.table.state import TableState
from cdc_sync.core.table.transitions import (
    AdoptTarget,
    DivideTarget,
    DropLeftovers,
    Effect,
    EndTable,
    ForgetJoin,
    ForgetRollback,
    LoadEffect,
    Migrate,
    ReadRest,
    Record,
    RecordJoin,
    ReleaseTarget,
    RewriteLayout,
    RollBackRewrite,
    TruncateTarget,
    WriteRange,
)
from cdc_sync.errors import HistoryError, ShareRefused, TargetError, VersionExists
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.evidence import settled
from cdc_sync.runtime.joined_values import joined_values
from cdc_sync.runtime.now import Now
from cdc_sync.runtime.range_schemas import converters_of
from cdc_sync.runtime.write import write_range
from cdc_sync.runtime.write_plan import Outcome, WritePlan
from cdc_sync.spark.converter import Converter
from cdc_sync.spark.unconverted import count_lost, first_lost

Made: TypeAlias = tuple[TableState, Seen]
_RACES = 10
_ASIDE_IN_A_ROW = 2
"""Writes that set records aside, behind which the next one looks for such before it is tried."""
_ONE_JOB = "run one job per pipeline"
_KEPT = 1_000
"""Values of each column that are kept with their keys; all of them are in the state before the rewrite."""


class Executor:
    """Acts on history, target and files of one table. One thread at a time.

    Attributes:
        now: tells what it carries out.
    """

    def __init__(self, context: Context) -> None:
        self.now = Now()
        self._context = context
        self.begin_hour()

    def begin_hour(self) -> None:
        """Count anew how many records become dead letters within an hour."""
        self._letters = Window(self._context.config.limits.max_dead_letters_per_hour)

    def __call__(self, state: TableState, seen: Seen, step: Effect) -> Made:
        """Carry out one step; it may be carried out again.

        Raises:
            CdcSyncError: if it cannot be; whether it was all the same shows when the table is read again.
        """
        self._context.guard()
        with self.now.telling(step):
            return self._carry_out(state, seen, step)

    def _carry_out(self, state: TableState, seen: Seen, step: Effect) -> Made:
        match step:
            case Record():
                return self._record(state, seen, step)
            case Migrate():
                return self._migrate(state, step), fold.changed(seen)
            case WriteRange():
                return self._write_range(state, seen, step)
            case TruncateTarget():
                return self._truncate(state, step), replace(seen, over=True)
            case ReadRest(ranges=ranges, stretches=stretches):
                return state, Seen.of(ranges, stretches)
            case EndTable(end=end):
                return self._end(state, end), replace(seen, ended=end)
            case ReleaseTarget():
                return self._release(state, step), replace(seen, over=True)
            case DivideTarget():
                return self._divide(state, step), replace(seen, over=True)
            case RecordJoin():
                return self._record_join(state, step), seen
            case ForgetJoin():
                return self._forget_join(state, step), replace(seen, over=True)
            case _:
                assert_never(step)

    def _record(self, state: TableState, seen: Seen, step: Record) -> Made:
        """Record versions; a lost race reads the history and plans again, a bounded number of times."""
        try:
            for version in step.versions:
                self._context.history.append(version)
        except VersionExists:
            if seen.races >= _RACES:
                raise HistoryError(
                    f"Cannot record the schema of {state.table}: another writer keeps recording versions; {_ONE_JOB}"
                ) from None
            return replace(state, history=self._context.history.find(state.table)), fold.raced(seen)
        state = fold.recorded(state, step)
        for version in step.versions:
            self._say_recorded(version)
            if version.renamed_to is not None:  # a replay; a run does it with the target
                self._record_arrival(self._arrival(state, version))
        if step.stop is None:
            state = settled(self._context, state, seen.stretches)
        return state, replace(seen, recorded=True, stop=step.stop)

    def _arrival(self, state: TableState, end: Version) -> Version | None:
        assert end.renamed_to is not None
        found = arrival(state, self._context.history.find(end.renamed_to), end)
        if isinstance(found, Refused):
            raise HistoryError(f"Cannot rename {state.table}: {found.reason}; {found.remedy}")
        return found

    def _record_arrival(self, version: Version | None) -> None:
        """Record under the new name where the table comes from."""
        if version is not None:
            self._append(version)

    def _append(self, version: Version) -> None:
        try:
            self._context.history.append(version)
        except VersionExists as error:
            raise HistoryError(f"{error}; {_ONE_JOB}") from error
        self._say_recorded(version)

    def _say_recorded(self, version: Version) -> None:
        get_logger().info("schema version recorded", table=str(version.table), version=version.number)

    def _migrate(self, state: TableState, step: Migrate) -> TableState:
        head, name, target = step.history.head, state.route.target, self._context.target
        said = joined_values(self._context, state, step.steps, step.history)
        if isinstance(said, Refused):
            raise TargetError(f"Cannot join columns of {state.table}: {said.reason}; {said.remedy}")
        state = self._keep_unconverted(state, step.steps)
        try:
            target.migrate(name, step.steps, step.progress, said)
        except ShareRefused as refused:
            return state.stopped(
                Pause(code=Code.SHARED, reason=refused.reason, remedy=refused.remedy, at=str(head.kafka))
            )
        get_logger().info("target migrated", table=str(state.table), version=head.number)
        return fold.migrated(state, step, target.state(name))

    def _keep_unconverted(self, state: TableState, steps: Migration) -> TableState:
        """Write down what a rewrite has no place for, before it is carried out; done again it is the same."""
        for step in steps.steps:
            if not isinstance(step, RewriteTable):
                continue
            found = find_unconverted(self._context, state.route.target, steps, step)
            if found.counts:
                self._context.state.keep_unconverted(state.table, found)
                state = replace(state, journal=state.journal.with_unconverted(found))
                get_logger().warning("values have no place", table=str(state.table), columns=dict(found.counts))
        return state

    def _write_range(self, state: TableState, seen: Seen, step: WriteRange) -> Made:
        state, converters = converters_of(self._context, state, step.history, step.ranges, seen.stretches)
        if not converters:
            return state, seen.behind(step.ranges)  # nothing of the table is in them
        written = self.write(state, step, converters, exact=True)
        if written is None:
            raise TargetError(f"Cannot write {state.route.target}: its ranges hold what a survey of them did not show")
        return written, fold.behind_write(written, seen, step.ranges)

    def write(
        self, state: TableState, step: WriteRange, converters: tuple[Converter, ...], *, exact: bool
    ) -> TableState | None:
        """Write ranges in one commit; None if they hold something that has to be looked at first.

        Args:
            exact: the converters are for every schema that the table has in the ranges.
        """
        state = self._with_its_columns(state)
        if state.stop is not None:
            return state
        hints = state.hints
        plan = WritePlan(
            table=state.table,
            route=state.route,
            head=step.history.head,
            ranges=step.ranges,
            converters=converters,
            exact=exact,
            progress=state.reached,
            held=state.progress,
            may_append=hints.appends_failed < 3,
            keep_unchanged=hints.keeps_unchanged,
            numbers=hints.numbers,
            inspects=hints.aside >= _ASIDE_IN_A_ROW,
            columns_since=columns_since(state, step.history),
            letters=self._letters,
            skipped=places_in(state.requests.skips, step.ranges),
        )
        with self.now.telling(step):
            outcome = self._written(plan)
        return None if outcome.progress is None else self._behind(state, plan, outcome)

    def _written(self, plan: WritePlan) -> Outcome:
        self._context.guard()
        return write_range(self._context, plan)

    def _with_its_columns(self, state: TableState) -> TableState:
        """Look once in a while whether somebody altered the target; writes tell only of some of it."""
        now = time.monotonic()
        if now < state.hints.next_look:
            return state
        found = self._context.target.state(state.route.target)
        state = replace(state, hints=replace(state.hints, next_look=now + LOOK_EVERY))
        return state if found is None else look_at_columns(state, found)

    def _behind(self, state: TableState, plan: WritePlan, outcome: Outcome) -> TableState:
        assert outcome.progress is not None
        hints, journal = state.hints, state.journal
        failures = hints.appends_failed + (1 if outcome.tried_append else 0)
        doubts = self._context.state.doubts(state.table) if outcome.in_doubt else journal.doubts
        journal = replace(
            journal.counted("values unknown, NULL stored", outcome.unknown_values).counted(
                "values out of range, NULL stored", outcome.out_of_range
            ),
            doubts=doubts,
            replaced_nulls=noted(
                journal.replaced_nulls,
                shown_defaults(plan.converters),
                replaces=outcome.replaces_null,
                version=plan.head.number,
            ),
            written_at=utc(time.time()),
            event_at=event_moment(outcome.newest) or journal.event_at,
        )
        return replace(
            fold.written(state, plan.ranges, outcome.progress),
            stop=outcome.stop or state.stop,
            hints=replace(
                hints,
                appends_failed=0 if outcome.appended else failures,
                keeps_unchanged=hints.keeps_unchanged or outcome.left_out,
                numbers=hints.numbers or outcome.numbers,
                aside=hints.aside + 1 if outcome.aside else 0,
            ),
            journal=journal,
        )

    def _truncate(self, state: TableState, step: TruncateTarget) -> TableState:
        """Empty the target; one commit holds that and where each partition goes on."""
        topic_ids = self._context.kafka.topic_ids(step.truncated.offsets.keys())
        progress = progress_behind(state.progress, step.truncated, step.version, topic_ids)
        self._context.target.truncate(state.route.target, progress, state.progress)
        get_logger().info("target emptied", table=str(state.table), why=step.why, at=str(step.at))
        return fold.emptied(state, progress)

    def _end(self, state: TableState, end: Version) -> TableState:
        self._append(end)
        return fold.ended(state, end)

    def _release(self, state: TableState, step: ReleaseTarget) -> TableState:
        """Drop or rename the target of a recorded end."""
        target, end, name = self._context.target, step.end, state.route.target
        self._record_arrival(step.arrival)
        if step.into is not None:
            target.archive(name, step.into)
        else:
            target.drop(name)
        get_logger().info("target let go", table=str(state.table), how=end.dropped, at=str(end.position))
        return fold.released(state, step)

    def _divide(self, state: TableState, step: DivideTarget) -> TableState:
        self._context.target.migrate(state.route.target, step.steps, step.progress)
        get_logger().info("target partitioned", table=str(state.table), by=str(step.wanted))
        return fold.divided(state, step.wanted)

    def _record_join(self, state: TableState, step: RecordJoin) -> TableState:
        self._context.state.requests.add(step.join)
        self._context.history.append(step.version)
        self._say_recorded(step.version)
        return fold.joined(state, step)

    def _forget_join(self, state: TableState, step: ForgetJoin) -> TableState:
        self._context.state.requests.remove(step.join)
        return state.warned(f"columns {step.join.old!r} and {step.join.new!r} were not joined: {step.why}")

    def load(self, state: TableState, seen: Loaded, step: LoadEffect) -> tuple[TableState, Loaded]:
        """Carry out what is to be done before a table can be taken up; it may be carried out again.

        Raises:
            CdcSyncError: if it cannot be.
        """
        self._context.guard()
        target, name = self._context.target, state.route.target
        match step:
            case RollBackRewrite(asked=asked):
                if not target.roll_back(name):
                    return self.load(state, seen, ForgetRollback(asked=asked))
                return state, replace(seen, found=target.state(name))
            case ForgetRollback(asked=asked):
                self._context.state.requests.remove(asked)
                said = f"version {asked.version} was not rolled back: the target keeps no state from before it"
                return state.warned(said), replace(seen, rollback=None)
            case AdoptTarget(arrival=version):
                assert seen.found is not None
                self._adopt(state, seen.found, version)
                return state, replace(seen, found=target.state(name))
            case RewriteLayout(asked=asked_for, steps=steps):
                found = seen.found
                assert found is not None
                target.migrate(name, steps, found.progress or Progress(version=steps.version))
                if found.evolution != asked_for.evolution:
                    get_logger().info("target rewritten", table=str(state.table), schema_evolution=asked_for.evolution)
                self._context.state.requests.remove(asked_for)
                return state, replace(seen, found=target.state(name), regime=None)
            case DropLeftovers():
                target.drop(name)
                return state, replace(seen, left_dropped=True)
            case _:
                assert_never(step)

    def _adopt(self, state: TableState, found: TargetState, version: Version) -> None:
        """Stamp a target that came under this name and still has the marker of the old one."""
        progress = begun_behind(version, version.number)
        steps = Migration(version=version.number, schema=version.schema, steps=(AlterTable(steps=()),))
        self._context.target.migrate(state.route.target, steps, found.progress or progress)
        # Last, for until then the stamp may be of the old name's history.
        self._context.target.mark(state.route.target, progress, found.progress)
        get_logger().info("target came under a new name", table=str(state.table), version=version.number)


def find_unconverted(context: Context, target: TargetName, migration: Migration, step: RewriteTable) -> Unconverted:
    """Count the stored values that have no place in their column's new type, and take down the first of them.

    One pass over the columns concerned, and another for each that has such values; none if every value converts.
    """
    columns = _may_lose(step, migration)
    key = step.before.key_columns
    counts: dict[str, int] = {}
    values: list[UnconvertedValue] = []
    if columns:
        ids = dict.fromkeys([*(column.id for column in key), *(column.id for column, _ in columns)])
        rows = context.target.read(target, step.before, tuple(ids))
        counts = count_lost(rows, columns)
        for column, new in columns:
            if column.name in counts:
                values += first_lost(rows, column, new, key, limit=_KEPT)
    values.sort(key=lambda item: (item.column, sorted(item.key.items())))
    return Unconverted(version=migration.version, counts=counts, values=tuple(values))


def _may_lose(step: RewriteTable, migration: Migration) -> list[tuple[Column, DataType]]:
    after = {column.id: column.type for column in migration.schema.columns}
    found = ((column, after[column.id]) for column in step.before.columns if column.id in after)
    return [
        (column, new) for column, new in found if needs_cast(column.type, new) and not always_converts(column.type, new)
    ]
