"""Bringing one table's target to the columns of the newest version, and joining columns that were kept apart."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from structlog import get_logger

from cdc_sync.context import Context
from cdc_sync.errors import HistoryError, TargetError
from cdc_sync.history.history import History
from cdc_sync.history.joined import joined_columns
from cdc_sync.joining import Joining
from cdc_sync.joins import join_version
from cdc_sync.migrate.migration import JoinValues, Migration, migration
from cdc_sync.migrate.modes import Mode
from cdc_sync.naming import Join, Route
from cdc_sync.progress import Progress
from cdc_sync.refused import Refused
from cdc_sync.schema.changes import RetireColumn
from cdc_sync.tablereading import TableReading


class TableMigration(TableReading):
    """The columns of one target. One thread at a time."""

    def __init__(self, context: Context, route: Route) -> None:
        super().__init__(context, route)
        self._stamped: int | None = None

    @property
    def _mode(self) -> Mode:
        return "append" if self.route.append else "upsert"

    def _migrate(self) -> None:
        assert self.history is not None
        head = self.history.head
        if self._stamped is not None and self._stamped > head.number:
            raise HistoryError(
                f"Cannot sync {self.table}: the target is stamped with version {self._stamped}, the history ends at "
                f"{head.number}; restore the pipeline's state folder"
            )
        steps = self._steps(self.history)
        if not steps.steps:
            return
        progress = replace(self.progress or Progress(version=head.number), version=head.number)
        said = self._said(steps, self.history)
        if isinstance(said, Refused):
            raise TargetError(f"Cannot join columns of {self.table}: {said.reason}; {said.remedy}")
        self._context.target.migrate(self.route.target, steps, progress, said)
        self._stamped = head.number
        if self.progress is not None:
            self.progress = progress
        get_logger().info("target migrated", table=str(self.table), version=head.number)

    def _steps(self, history: History) -> Migration:
        stamped = history.version(self._stamped) if self._stamped is not None else None
        rows_at = history.version(self.progress.version) if self.progress else None
        joined = joined_columns(history.versions)
        return migration(stamped, rows_at, history.head, mode=self._mode, joined=joined)

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
        version = join_version(history, join, self._context.target.capabilities)
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
        pending = history.versions[self._stamped :]
        return any(isinstance(change, RetireColumn) for version in pending for change in version.changes)

    def _forget(self, join: Join, why: Refused) -> bool:
        self._context.state.withdraw(join)
        self._warn(f"columns {join.old!r} and {join.new!r} were not joined: {why.reason}; {why.remedy}")
        self.save_status()
        return False

    def _topics(self) -> tuple[str, ...]:
        return tuple(self.progress.offsets) if self.progress else ()
