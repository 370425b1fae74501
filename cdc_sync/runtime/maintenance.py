"""Maintains the tables of a pipeline: all of them by command, or one after the other between the job's batches."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from pyspark.sql import SparkSession
from structlog import get_logger

from cdc_sync.config.models import Config
from cdc_sync.config.routes import route
from cdc_sync.core.migration.maintenance import Upkeep, chores
from cdc_sync.core.migration.names import held_target
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.maintenance_report import PipelineMaintained, TableMaintained, figures
from cdc_sync.errors import RefusedError, TargetError
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.context import Context
from cdc_sync.spark.session import build_session
from cdc_sync.storage.history import HistoryStore
from cdc_sync.storage.state import StateStore
from cdc_sync.targets.formats import makes_catalog, open_target
from cdc_sync.targets.protocol import Target
from cdc_sync.targets.wrappers.merged import SharedTables

_NO_TABLE = "there is no target table yet"


def why_left_alone(state: TargetState | None, head: int | None) -> str | None:
    """Return why a table is not to be maintained now, None if it may be.

    Between two steps of a migration nothing but the migration touches a table: its stamp, or what its rows are complete
    for, is then behind the newest version.

    Args:
        head: the newest version of the history, None if there is none.
    """
    if state is None:
        return _NO_TABLE
    if state.version is None:
        return "it was not made by cdc_sync"
    if state.progress is None:
        return "nothing was written to it yet"
    if not head == state.version == state.progress.version:
        return "a migration of it is not complete"
    return None


def most_overdue(
    last: Mapping[TableId, float], tables: Iterable[TableId], every: timedelta, now: float
) -> TableId | None:
    """Return the table whose maintenance is due longest, None if none is.

    Args:
        last: when each was maintained, in seconds since the epoch; one that never was is due.
    """
    due = [(last.get(table, 0.0), table) for table in tables if now - last.get(table, 0.0) >= every.total_seconds()]
    return min(due)[1] if due else None


def maintain(config: Config, tables: Sequence[TableId], *, dry_run: bool) -> PipelineMaintained:
    """Maintain tables, one after the other; what stands in the way of one holds up no other.

    Raises:
        RefusedError: if the format does not allow for it beside a job.
        SetupError: if Spark cannot be started.
    """
    _check_format(config, dry_run=dry_run)
    if not tables:
        return PipelineMaintained(pipeline=config.pipeline.name, tables=())
    routes = {table: route(config, table) for table in tables}
    spark = build_session(config)
    try:
        maintainer = _Maintainer(config, spark)
        found = [_one_of(maintainer, group, dry_run=dry_run) for group in _by_target(routes.values())]
    finally:
        spark.stop()
    return PipelineMaintained(pipeline=config.pipeline.name, tables=tuple(found))


def _by_target(routes: Iterable[Route | None]) -> Iterable[Sequence[Route]]:
    """Group source tables that share a target; each other one stands alone."""
    groups: dict[object, list[Route]] = {}
    for wanted in routes:
        if wanted is not None:
            groups.setdefault(wanted.table if wanted.merge is None else wanted.target, []).append(wanted)
    return groups.values()


def _one_of(maintainer: _Maintainer, group: Sequence[Route], *, dry_run: bool) -> TableMaintained:
    """Maintain the target of some source tables once, by way of the first of them that no migration goes on of."""
    for wanted in group[:-1]:
        found = maintainer.table(wanted, dry_run=dry_run)
        if found.outcome != "left_alone":
            return found
    return maintainer.table(group[-1], dry_run=dry_run)


def _check_format(config: Config, *, dry_run: bool) -> None:
    if config.target.format == "memory":
        raise RefusedError("Cannot maintain: target.format memory keeps nothing after the process ends")
    if config.target.format == "hudi" and not dry_run:
        raise RefusedError(
            "Cannot maintain by command: a Hudi table takes one writer at a time, and the job may be running; set "
            "maintenance.every, and the job does it between its batches"
        )


class _Maintainer:
    """What the tables of one command share."""

    def __init__(self, config: Config, spark: SparkSession) -> None:
        self._config = config
        self._spark = spark
        self._state = StateStore(config.pipeline.root)
        self._history = HistoryStore(f"{config.pipeline.root}/history")
        self._opened: Target | None = None

    def table(self, wanted: Route, *, dry_run: bool) -> TableMaintained:
        """Maintain one table, or tell what is due."""
        table, target = wanted.table, self._target()
        if target is None:
            return TableMaintained(table=table, target=str(wanted.target), outcome="left_alone", problem=_NO_TABLE)
        name = held_target(wanted.target, wanted.capabilities.tables)
        target = SharedTables(target).target_of(wanted)
        history = self._history.find(table)
        head = history.head.number if history is not None else None
        found = _maintained(target, table, name, head, self._config.maintenance.upkeep, dry_run=dry_run)
        if found.outcome == "maintained":
            self._state.save_maintained(table, time.time())
        return found

    def _target(self) -> Target | None:
        """Return the target; None where opening it would make an embedded catalog."""
        if self._opened is None and not makes_catalog(self._config.target):
            self._opened = open_target(self._config.target, self._spark)
        return self._opened


class MaintenanceSchedule:
    """Whose turn it is to be maintained by the running job. One thread at a time."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last: dict[TableId, float] = {}
        self._shared: dict[TargetName, set[TableId]] = {}

    def next(self, tables: Iterable[TableActor]) -> TableActor | None:
        """Return the table whose maintenance is due longest; None if none is, or the job is not to do it."""
        every = self._context.config.maintenance.every
        if every is None:
            return None
        known = {table.table: table for table in tables}
        for table in known.keys() - self._last.keys():
            self._last[table] = self._context.state.maintained(table) or 0.0
            if known[table].route.merge is not None:
                self._shared.setdefault(known[table].route.target, set()).add(table)
        due = most_overdue(self._last, known, every, time.time())
        return None if due is None else known[due]

    def maintain(self, table: TableActor) -> None:
        """Maintain a table between two batches; one that fails is said so, and has its next turn like any other."""
        self._last[table.table] = time.time()
        if table.state.failure is not None:
            return
        self._context.guard()
        head = table.state.history.head.number if table.state.history is not None else None
        upkeep = self._context.config.maintenance.upkeep
        name = table.route.target
        found = _maintained(table.target, table.table, name, head, upkeep, dry_run=False)
        if found.outcome == "maintained":
            for other in {table.table, *self._shared.get(name, ())}:
                self._last[other] = self._last[table.table]
                self._context.state.save_maintained(other, self._last[other])


def _maintained(
    target: Target, table: TableId, name: TargetName, head: int | None, upkeep: Upkeep, *, dry_run: bool
) -> TableMaintained:
    found = TableMaintained(table=table, target=str(name), outcome="left_alone")
    began = time.monotonic()
    try:
        why = why_left_alone(target.state(name), head)
        if why is not None:
            return replace(found, problem=why)
        holdings = target.holdings(name, upkeep)
        due = chores(holdings, upkeep, time.time_ns() // 1_000_000)
        found = replace(found, holdings=holdings)
        if dry_run:
            return replace(found, outcome="due" if due.any else "nothing_due", chores=due)
        done = target.maintain(name, due)
    except TargetError as error:
        get_logger().error("maintenance failed", table=str(table), error=str(error))
        return replace(found, outcome="failed", problem=str(error))
    seconds = round(time.monotonic() - began, 3)
    get_logger().info("table maintained", table=str(table), seconds=seconds, **figures(done))
    return replace(found, outcome="maintained", done=done, seconds=seconds)
