"""A migrator with its edges: Spark, the target, its files, and the lease that keeps others out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from cdc_sync.config.migrations import MigratorConfig
from cdc_sync.core.model.lease import End
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.errors import RefusedError
from cdc_sync.operations.migrate.filler import Filler, Pace
from cdc_sync.operations.migrate.migrator import Migrator
from cdc_sync.runtime.lease import JobLease, since_boot, this_process
from cdc_sync.spark.session import build_session
from cdc_sync.storage.fill_plans import FillPlans, Rates
from cdc_sync.storage.leases import Leases
from cdc_sync.storage.revision_logs import RevisionLogs
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.protocol import Revisable


@contextmanager
def opened(
    config: MigratorConfig,
    revisions: Sequence[Revision],
    *,
    exclusive: bool,
    stop: threading.Event,
    seconds: float | None = None,
) -> Iterator[Migrator]:
    """Open all that a migrator needs, and close it behind it.

    Args:
        exclusive: take the lease, as whoever changes columns has to; rows are filled by any number of processes.
        stop: set by whoever wants it to end; a unit of rows is brought to its end.
        seconds: after which no further unit of rows is begun.

    Raises:
        RefusedError: if revisions are not applied to tables of the format.
        LeaseHeld: if another process has the lease.
    """
    settings = config.backfill
    pace = Pace(unit_size=settings.unit_bytes, rate=settings.max_bytes_per_second, seconds=seconds)
    if not exclusive:
        with _migrator(config, revisions, RevisionLogs(config.root), lambda: None, pace, stop) as migrator:
            yield migrator
        return
    lease = JobLease(Leases(config.root, create=True), stop, process=this_process(), clock=since_boot)
    end: End = "failed"
    try:
        lease.take()
        with _migrator(config, revisions, RevisionLogs(config.root, create=True), lease.guard, pace, stop) as migrator:
            yield migrator
        end = "stopped"
    finally:
        lease.give_back(end)


@contextmanager
def _migrator(
    config: MigratorConfig,
    revisions: Sequence[Revision],
    logs: RevisionLogs,
    guard: Callable[[], None],
    pace: Pace,
    stop: threading.Event,
) -> Iterator[Migrator]:
    spark = build_session(config)
    try:
        target = open_target(config.target, spark)
        if not isinstance(target, Revisable):
            raise RefusedError(
                f"Cannot apply revisions to tables of format {config.target.format}: only of iceberg and delta"
            )
        filler = Filler(target, partial(FillPlans, config.root), Rates(config.root), pace, stop)
        yield Migrator(config.name, revisions, target, logs, filler, guard=guard)
    finally:
        spark.stop()
