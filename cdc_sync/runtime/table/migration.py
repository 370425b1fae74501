"""Bringing one table's target to the columns of the newest version, and joining columns that were kept apart."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from structlog import get_logger

from cdc_sync.core.history.history import History
from cdc_sync.core.history.joined import joined_columns
from cdc_sync.core.history.revision import Version
from cdc_sync.core.migration.altered import Altered, HeldColumns, altered, undoing
from cdc_sync.core.migration.migration import JoinValues, Migration, RewriteTable, migration, stages
from cdc_sync.core.migration.names import held_schema
from cdc_sync.core.migration.operator_requests import Rollback
from cdc_sync.core.migration.routes import Join, Route
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.model.doubts import Doubt
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.end_of_table import last_end
from cdc_sync.core.planning.limits import too_large_to_rewrite
from cdc_sync.core.planning.merge_columns import join_version
from cdc_sync.core.planning.plan import Refusal, TablePlan
from cdc_sync.core.planning.refusals import Refused
from cdc_sync.core.planning.stops import Pause, altered_target, no_key
from cdc_sync.core.schema.changes import ChangePrimaryKey, RetireColumn, SchemaChange
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.errors import HistoryBehind, ShareRefused, TargetError
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.joined_values import Joining
from cdc_sync.runtime.table.regime import TableRegime
from cdc_sync.runtime.unconverted import find_unconverted
from cdc_sync.spark.keys import clash


class TableMigration(TableRegime):
    """The columns of one target. One thread at a time."""

    def __init__(self, context: Context, route: Route) -> None:
        super().__init__(context, route)
        self._held: HeldColumns | None = None
        self.rollback: Rollback | None = None
        """The rewrite that is undone, or about to be, and keeps the table paused."""

    def _hold_columns(self, state: TargetState | None) -> None:
        """Keep which columns the target has, to find out what others do to them."""
        if state is not None and state.columns is not None and state.version is not None:
            self._held = state.columns
            self._state.save_held_columns(self.table, state.columns)

    def _look_at_columns(self, state: TargetState) -> Pause | None:
        """Return why the table cannot go on if its target's columns are not what they were; mark those replaced."""
        now = state.columns
        self._held = self._held or self._state.held_columns(self.table)
        if now is None or state.version is None:
            return None
        found = Altered() if self._held is None else altered(self._held, now)
        if found.must_be_undone:
            target = str(self.route.target)
            return altered_target(*undoing(found, target), target)
        for name in found.replaced:
            self._doubt_replaced(name, state)
        if self._held != now:
            self._hold_columns(state)
        return None

    def _doubt_replaced(self, name: str, state: TargetState) -> None:
        history, version = self.history, state.version or 0
        if history is None or version > history.head.number or state.columns is None:
            return
        schema = held_schema(history.version(version).schema, self.route.capabilities.columns)
        id_ = next((column.id for column in schema.columns if column.name == name), None)
        if id_ is not None:
            ends = state.progress.offsets if state.progress else {}
            place = str(state.columns.numbers[name])
            self._note_doubt(Doubt(kind="replaced", id=id_, version=version, ends=ends, at=place))

    @property
    def _first_unseen(self) -> int:
        """Index of the first version behind the one that the target has, or begins with."""
        if self._stamped is not None or self.history is None:
            return self._stamped or 1
        end = last_end(self.history)
        return 1 if end is None else end.number + 1

    @property
    def _is_ahead(self) -> bool:
        """Whether the target is stamped with a version that the history does not have."""
        return self._stamped is not None and self._stamped > (self.history.head.number if self.history else 0)

    def _migrate(self) -> None:
        """Carry out what the target lacks; pauses before a key that its rows cannot be told apart by."""
        assert self.history is not None
        head = self.history.head
        if head.ends_target:
            return  # no target outlives this version, and the next one begins with a version of its own
        if self._is_ahead:
            raise self._too_short(self.history)
        for version in stages(self.history, self._stamped, self.route.capabilities):
            stop = self._key_clash(version)
            if stop is not None:
                self.refuse(stop)
                return
            on_the_way = History(table=self.table, versions=self.history.versions[: version.number])
            self._migrate_to(self.history if version is head else on_the_way)
            if self.pause is not None:
                return

    def _too_short(self, history: History) -> HistoryBehind:
        return HistoryBehind(
            f"Cannot sync {self.table}: the target is stamped with version {self._stamped}, the history ends at "
            f"{history.head.number}, and the topic does not hold what lies between",
            "restore the newest copy of the pipeline's state folder and start the job again",
        )

    def _key_clash(self, version: Version) -> Pause | None:
        """Look whether rows can be found by a key that the versions up to one bring, None if there is none."""
        assert self.history is not None
        key = version.schema.primary_key
        if self.route.append or self.progress is None or self._stamped is None or not key:
            return None
        between = self.history.versions[self._stamped : version.number]
        changed = next((item for item in between if any(map(_is_of_key, item.changes))), None)
        if changed is None:
            return None
        before = self.history.version(self._stamped).schema
        ids = {column.id for column in before.columns}
        held, added = [id_ for id_ in key if id_ in ids], [id_ for id_ in key if id_ not in ids]
        names = ", ".join(version.schema.column(id_).name for id_ in key)
        # All rows that are there read the same in a column that was added.
        if held and all(version.schema.column(id_).initial is not None for id_ in added):
            problem = clash(self._context.target.read(self.route.target, before, held), held)
        else:
            rows = self._context.target.read(self.route.target, before, [before.columns[0].id])
            problem = "rows that are there have no value of its new column" if rows.limit(1).collect() else None
        return None if problem is None else no_key(names, problem, str(changed.kafka))

    def _migrate_to(self, history: History) -> None:
        head = history.head
        partitioning = self._partitioning_to_make(history) if self._stamped is None else None
        if isinstance(partitioning, Pause):
            self.refuse(partitioning)
            return
        steps = self._steps(history, partitioning)
        if not steps.steps:
            return
        progress = replace(self.progress or Progress(version=head.number), version=head.number)
        said = self._said(steps, history)
        if isinstance(said, Refused):
            raise TargetError(f"Cannot join columns of {self.table}: {said.reason}; {said.remedy}")
        self._keep_unconverted(steps)
        try:
            self._context.target.migrate(self.route.target, steps, progress, said)
        except ShareRefused as refused:
            self.refuse(Pause(reason=refused.reason, remedy=refused.remedy, at=str(head.kafka)))
            return
        self._stamped = head.number
        self._hold_columns(self._context.target.state(self.route.target))
        if self.route.partition_by is not None:
            self._take_partitioning(self._context.target.state(self.route.target))  # columns may have taken parts of it
        if self.progress is not None:
            self.progress = progress
        get_logger().info("target migrated", table=str(self.table), version=head.number)

    def _keep_unconverted(self, steps: Migration) -> None:
        """Write down what a rewrite has no place for, before it is carried out; done again it is the same."""
        for step in steps.steps:
            if not isinstance(step, RewriteTable):
                continue
            found = find_unconverted(self._context, self.route.target, steps, step)
            if found.counts:
                self._context.state.keep_unconverted(self.table, found)
                self._count_unconverted(found)
                get_logger().warning("values have no place", table=str(self.table), columns=dict(found.counts))

    def _steps(self, history: History, partitioning: Partitioning | None = None) -> Migration:
        stamped = history.version(self._stamped) if self._stamped is not None else None
        rows_at = history.version(self.progress.version) if self.progress else None
        joined = joined_columns(history.versions)
        capabilities = self.route.capabilities
        return migration(
            stamped,
            rows_at,
            history.head,
            capabilities=capabilities,
            mode=self._mode,
            joined=joined,
            partitioning=partitioning,
        )

    def _said(self, steps: Migration, history: History) -> dict[int, DataFrame] | Refused:
        """Find out what events said of columns that are to be joined, which takes reading them again."""
        said: dict[int, DataFrame] = {}
        for step in steps.steps:
            if not isinstance(step, JoinValues) or self.progress is None:
                continue
            joining = Joining(
                context=self._context, route=self.route, history=history, step=step, progress=self.progress
            )
            found = joining.values()
            if isinstance(found, Refused):
                return found
            if found is not None:
                said[step.into] = found
        return said

    def take_up(self, join: Join) -> bool:
        """Join two columns that the operator says are one, between two batches; what was begun before is ended.

        The version is recorded first and then carried out, as every version is. What forbids it is found before that;
        then what was said is forgotten, a warning says why, and the table stays as it is.

        Returns:
            Whether it is carried out.
        """
        history = self.history
        if history is None or self._has_rows_to_come(history) or not all(map(self._is_same_topic, self._topics())):
            return False
        if self._stamped is not None:
            self._migrate()  # a join that was recorded and then interrupted is carried out here
        if any((item.id, item.into) == (join.joined, join.kept) for item in joined_columns(history.versions)):
            return True
        if self.route.merge is not None:
            return self._forget(join, _SHARED)
        version = join_version(history, join, self.route.capabilities)
        if isinstance(version, Refused):
            return self._forget(join, version)
        joined = history.extended(version)
        said = self._said(self._steps(joined), joined)
        if isinstance(said, Refused):
            return self._forget(join, said)
        # Where it stands in the history is part of what was said: a replay puts it there again.
        self._context.state.declare(replace(join, after=history.head.number))
        self._context.history.append(version)
        self.history = joined
        self._forget_warnings(f"{join.old!r} and {join.new!r}")
        get_logger().info("schema version recorded", table=str(self.table), version=version.number)
        if self._stamped is not None:
            self._migrate()
        self.save_status()
        return True

    def _has_rows_to_come(self, history: History) -> bool:
        """Whether rows of before a column was kept are still to be written, or the history is not made again yet."""
        if self._stamped is None:
            return False
        if self._stamped > history.head.number:
            return True
        return any(map(self._needs_rows_before, history.versions[self._stamped :]))

    def _needs_rows_before(self, version: Version) -> bool:
        """Whether rows of before a version must be in the target when it takes effect.

        A retired column keeps what it has, and rows that are rewritten take another way than late events do: a value
        that has no place in the new type is kept aside alone, while a late event is kept aside whole. By another key
        they are not found.
        """
        if self._rewrites(version):
            return True
        return not self.route.append and any(
            isinstance(change, (RetireColumn, ChangePrimaryKey)) for change in version.changes
        )

    def _forget(self, join: Join, why: Refused) -> bool:
        self._context.state.withdraw(join)
        self._warn(f"columns {join.old!r} and {join.new!r} were not joined: {why.reason}; {why.remedy}")
        self.save_status()
        return False

    def _topics(self) -> tuple[str, ...]:
        return tuple(self.progress.offsets) if self.progress else ()

    def _columns_since(self, history: History) -> int:
        """Return the last version that joined or rewrote columns, 0 if none did: older states have others."""
        joined = (item.version for item in joined_columns(history.versions))
        rewritten = (version.number for version in history.versions if self._rewrites(version))
        return max((*joined, *rewritten), default=0)

    def _within_the_limit(self, plan: TablePlan) -> TablePlan:
        """Stop before a version that rewrites a larger target than may be rewritten without asking."""
        for place, version in enumerate(plan.versions):
            is_new = self._stamped is not None and version.number > self._stamped
            if not is_new or not self._rewrites(version):
                continue
            state = self._context.target.state(self.route.target)
            said = None if state is None else too_large_to_rewrite(self.route.policy, rows=state.rows, size=state.size)
            if said is not None:
                refusal = Refusal(
                    reason=said.reason, remedy=said.remedy, position=version.position, kafka=version.kafka
                )
                return replace(plan, versions=plan.versions[:place], refusal=refusal, waiting=None)
        return plan

    def _rewrites(self, version: Version) -> bool:
        return rewrites(version.changes, self.route.capabilities, version.schema, self._mode)

    def _rolled_back(self, state: TargetState | None) -> TargetState | None:
        """Undo the rewrite that the operator asks to be undone, unless it is; return what the target is then."""
        asked = self._context.state.rollback(self.table)
        if asked is not None and state is not None and (state.version or 0) >= asked.version:
            if state.kept == asked.version - 1 and self._context.target.roll_back(self.route.target):
                state = self._context.target.state(self.route.target)
            else:
                self._warn(f"version {asked.version} was not rolled back: the target keeps no state from before it")
                self._context.state.withdraw_rollback(self.table)
                asked = None
        self.rollback = asked
        return state


_SHARED = Refused(
    reason="rows of other tables are in the target, where the two may be columns of theirs",
    remedy="snapshot the table into a target of its own, with the rename declared under renames",
)


def _is_of_key(change: SchemaChange) -> bool:
    return isinstance(change, ChangePrimaryKey)
