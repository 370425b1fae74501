"""A target that goes on under another name, because its source table does.

Under the old name all rows from before are written; then the version is recorded at which the table left, then the one
at which it comes under the new name, then the target is renamed, and at last it is stamped with the new name's version.
So each step may be repeated, and whoever starts between two of them finds what is left to do: a target that has an
older version than the recorded end has yet to leave, and one whose marker does not lie behind the arrival just came.
"""

from __future__ import annotations

from structlog import get_logger

from cdc_sync.config import route
from cdc_sync.core.history.revision import Version
from cdc_sync.core.migration.migration import AlterTable, Migration
from cdc_sync.core.migration.names import held_target
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.end_of_table import begun_behind, last_end
from cdc_sync.core.planning.refusals import Refused
from cdc_sync.core.planning.stops import Pause
from cdc_sync.core.planning.table_renames import arrival_of
from cdc_sync.errors import HistoryError, RefusedError, TargetError, VersionExists
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.table.truncation import TableTruncation


class TableRenaming(TableTruncation):
    """How the target of one table comes from and goes to another name. One thread at a time."""

    def __init__(self, context: Context, route: Route) -> None:
        super().__init__(context, route)
        self._is_homeless = False

    @property
    def renamed_to(self) -> Version | None:
        """The version at which the table got another name, where nothing is known under this one since."""
        head = None if self.history is None else self.history.head
        return head if head is not None and head.renamed_to is not None else None

    def lacks(self, end: Version) -> bool:
        """Whether it is not known here yet, or not carried out, that a table came under this name."""
        known = () if self.history is None else self.history.versions
        has_come = any(item.renamed_from is not None and item.position >= end.position for item in known)
        return self.pause is None and (self._is_homeless or not has_come)

    def _claim(self, state: TargetState | None) -> TargetState | None:
        """Stamp a target that came under this name and still has the marker of the old one; return what it is then."""
        arrival = None if self.history is None else self.history.arrival
        self._is_homeless = False
        if self.history is None or arrival is None:
            return state
        if state is None:
            end = last_end(self.history)
            self._is_homeless = end is None or end.number < arrival.number
            return None
        truncated = None if state.progress is None else state.progress.truncated
        if truncated is not None and truncated.position >= arrival.position:
            return state
        progress = begun_behind(arrival, arrival.number)
        steps = Migration(version=arrival.number, schema=arrival.schema, steps=(AlterTable(steps=()),))
        self._context.target.migrate(self.route.target, steps, state.progress or progress)
        # Last, for until then the stamp may be of the old name's history.
        self._context.target.mark(self.route.target, progress, state.progress)
        get_logger().info("target came under a new name", table=str(self.table), version=arrival.number)
        return self._context.target.state(self.route.target)

    def _why_homeless(self) -> str | Pause:
        """Say why there is no target yet, or pause if there is none to come."""
        origin = self._origin
        former = self._target_of(origin)
        if former is not None and self._context.target.state(former) is not None:
            return f"the table was {origin} before, and its target has yet to be renamed"
        return Pause(
            reason=f"the target, which was that of {origin} before, is not there",
            remedy=f"bring it back as {self.route.target} and start the job again, or snapshot the table anew",
        )

    @property
    def _origin(self) -> TableId:
        """The name that a table had before it came under this one."""
        assert self.history is not None
        assert self.history.arrival is not None
        assert self.history.arrival.renamed_from is not None
        return self.history.arrival.renamed_from.names[-1]

    def _route_of(self, table: TableId) -> Route | None:
        try:
            return route(self._context.config, table)
        except RefusedError:
            return None

    def _target_of(self, table: TableId) -> TargetName | None:
        found = self._route_of(table)
        return None if found is None else held_target(found.target, found.capabilities.tables)

    def _into(self, end: Version) -> TargetName:
        """Return what the target is called from an end on.

        Raises:
            TargetError: if no rule matches the table's new name any more.
        """
        assert end.renamed_to is not None
        found = self._target_of(end.renamed_to)
        if found is None:
            raise TargetError(
                f"Cannot rename the target of {self.table}: it is {end.renamed_to} now, which no rule of tables "
                "matches any more; bring the rule back"
            )
        return found

    def _arrival(self, end: Version) -> Version | Refused | None:
        """Return the version to record under the new name, None if it is recorded."""
        assert self.history is not None
        assert end.renamed_to is not None
        own = self._context.history.find(end.renamed_to)
        if own is not None and any(
            item.renamed_from is not None and item.position == end.position for item in own.versions
        ):
            return None
        left = self.history if self.history.head.number >= end.number else self.history.extended(end)
        return arrival_of(left, end, own)

    def _record_arrival(self, end: Version) -> None:
        """Record under the new name where the table comes from.

        Raises:
            HistoryError: if that cannot be, or another job records versions of that table.
        """
        version = self._arrival(end)
        if isinstance(version, Refused):
            raise HistoryError(f"Cannot rename {self.table}: {version.reason}; {version.remedy}")
        if version is None:
            return
        try:
            self._context.history.append(version)
        except VersionExists as error:
            raise HistoryError(f"{error}; run one job per pipeline") from error
        get_logger().info("schema version recorded", table=str(version.table), version=version.number)

    def _cannot_move(self, end: Version) -> Pause | None:
        """Return why the target cannot have the new name."""
        into, target = self._into(end), self._context.target
        there = None if end.renamed_to is None else self._route_of(end.renamed_to)
        if there is not None and there.merge is not None:
            return Pause(
                reason=f"the source table was renamed to {end.renamed_to}, whose rows go to {into} with those of other "
                "tables, so the target cannot be renamed to that",
                remedy=f"set policy.rename_table: stay for {self.table} and start the job again",
                at=str(end.kafka),
            )
        version = self._arrival(end)
        if isinstance(version, Refused):
            return Pause(reason=version.reason, remedy=version.remedy, at=str(end.kafka))
        if into == self.route.target or target.state(into) is None or target.state(self.route.target) is None:
            return None
        return Pause(
            reason=f"the source table was renamed to {end.renamed_to}, and the target cannot be renamed to {into}, for "
            "there is a table of that name",
            remedy=f"move {into} away and start the job again, or set policy.rename_table: stay for {self.table}",
            at=str(end.kafka),
        )
