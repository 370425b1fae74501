"""The tables of a pipeline: found by their events, routed by the configuration."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace

from structlog import get_logger

from cdc_sync.config.routes import route
from cdc_sync.core.migration.names import held_target
from cdc_sync.core.migration.routes import Route, check_routes
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.limits import Window, too_many_tables
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.core.planning.stops import Pause
from cdc_sync.core.table.status import status as status_of
from cdc_sync.errors import RefusedError, TransientError
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.executor import Executor
from cdc_sync.targets.wrappers.merged import SharedTables

_ONE_TARGET_EACH = (
    "give one of the two tables another target, or both rules the same merge; where they are partitions of one "
    "Postgres table, publish that one instead: publish.via.partition.root=true in the connector (`cdc-sync docs modes`)"
)


class Tables:
    """The tables of a pipeline, found so far. Thread-safe."""

    def __init__(self, context: Context, *, executor: type[Executor] = Executor, takes_known: bool = True) -> None:
        """Begin without any; for the rest see `TableActor`."""
        self._context = context
        self._executor, self._takes_known = executor, takes_known
        self._tables: dict[TableId, TableActor] = {}
        self._topics: dict[str, set[TableId]] = {}
        self._ignored: set[TableId] = set()
        self._lock = threading.Lock()
        self._shared = SharedTables(context.target)
        self._new = Window(context.config.limits.max_new_tables_per_hour)

    def all(self) -> tuple[TableActor, ...]:
        """Return every routed table, ordered by name."""
        return tuple(self._tables[table] for table in sorted(self._tables))

    def of(self, topic: str) -> tuple[TableActor, ...]:
        """Return the tables with events in a topic."""
        return tuple(self._tables[table] for table in sorted(self._topics.get(topic, ())))

    def restore(self) -> None:
        """Find the tables that earlier runs knew, so that each goes on where it stood."""
        known = {status.table: status for status in self._context.state.tables()}
        for table in {*known, *self._context.history.tables()}:
            status = known.get(table)
            found = self.add(table, topics=tuple(status.offsets) if status else ())
            if found is None:
                continue
            if found.state.progress is not None:
                self._topics_of(table, found.state.progress.offsets)
            if status is not None and (status.state == "failing" or _is_outdated(status, found)):
                found.report()  # how another process failed, or where it ended, says nothing about this one

    def add(self, table: TableId, *, topics: Sequence[str]) -> TableActor | None:
        """Return the table's sync, made if it is new; None if no rule wants the table."""
        with self._lock:
            if table in self._ignored:
                return None
            if table not in self._tables:
                made = self._make(table)
                if made is None:
                    self._ignored.add(table)
                    return None
                self._tables[table] = made
            self._topics_of(table, topics)
            return self._tables[table]

    def read_again(self, table: TableActor) -> None:
        """Read history and target of a table that could not be read, and go on with the topics that it has read.

        Raises:
            CdcSyncError: if it still cannot be read.
        """
        table.load()
        table.recovered()
        with self._lock:
            self._topics_of(table.table, table.state.progress.offsets if table.state.progress else ())

    def resume(self, table: TableActor) -> None:
        """Let a table try again, unless its target is another table's.

        Raises:
            CdcSyncError: if it cannot be read.
        """
        stop = self._clash(table.route)
        if stop is None:
            table.begin_hour()
            table.go_on()
        else:
            table.stop(stop)

    def _topics_of(self, table: TableId, topics: Iterable[str]) -> None:
        for topic in topics:
            self._topics.setdefault(topic, set()).add(table)

    def route_of(self, table: TableId) -> Route | None:
        """Return what the operator wants of a table, None if nothing; says so in the log."""
        try:
            wanted = route(self._context.config, table)
        except RefusedError as error:
            get_logger().error("table refused", table=str(table), reason=str(error))
            return None
        if wanted is None:
            get_logger().info("table ignored", table=str(table), reason="no rule of the configuration matches it")
            return None
        return replace(wanted, target=held_target(wanted.target, wanted.capabilities.tables))

    def _make(self, table: TableId) -> TableActor | None:
        wanted = self.route_of(table)
        if wanted is None:
            return None
        context = replace(self._context, target=self._shared.target_of(wanted))
        made = TableActor(context, wanted, executor=self._executor, takes_known=self._takes_known)
        stop = self._clash(wanted)
        try:
            if stop is None and self._is_new(table) and not self._new.take():
                stop = too_many_tables(self._context.config.limits).pause()
            if stop is not None:
                made.stop(stop)
            else:
                made.load()
        except TransientError:
            raise
        except Exception as error:  # one table's failure is its own
            made.fail(error)
        return made

    def _is_new(self, table: TableId) -> bool:
        return self._context.history.find(table) is None and not self._context.state.has_status(table)

    def _clash(self, wanted: Route) -> Pause | None:
        routes = [sync.route for sync in self._tables.values()]
        clashes = check_routes([*routes, wanted])
        reason = next((str(clash) for clash in clashes if clash.refused == wanted.table), None)
        return None if reason is None else Pause(code=Code.CLASH, reason=reason, remedy=_ONE_TARGET_EACH)


def _is_outdated(written: TableStatus, table: TableActor) -> bool:
    """Whether a process ended between a commit and the status that tells of it."""
    now = status_of(table.state, table.coverage)
    further = (
        offset > written.offsets.get(topic, {}).get(partition, 0)
        for topic, partitions in now.offsets.items()
        for partition, offset in partitions.items()
    )
    return (now.version or 0) > (written.version or 0) or any(further)
