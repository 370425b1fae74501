"""A migrator with its edges: Spark, the target, its files, and the lease that keeps others out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from cdc_sync.config.migrations import MigratorConfig
from cdc_sync.core.model.lease import End
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.errors import RefusedError
from cdc_sync.operations.migrate.migrator import Migrator
from cdc_sync.runtime.lease import JobLease, since_boot, this_process
from cdc_sync.spark.session import build_session
from cdc_sync.storage.leases import Leases
from cdc_sync.storage.revision_logs import RevisionLogs
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.protocol import Revisable


@contextmanager
def opened(
    config: MigratorConfig, revisions: Sequence[Revision], *, exclusive: bool, stop: threading.Event
) -> Iterator[Migrator]:
    """Open all that a migrator needs, and close it behind it.

    Args:
        exclusive: take the lease, as whoever changes a table has to.

    Raises:
        RefusedError: if revisions are not applied to tables of the format.
        LeaseHeld: if another process has the lease.
    """
    if not exclusive:
        with _migrator(config, revisions, RevisionLogs(config.root), lambda: None) as migrator:
            yield migrator
        return
    lease = JobLease(Leases(config.root, create=True), stop, process=this_process(), clock=since_boot)
    end: End = "failed"
    try:
        lease.take()
        with _migrator(config, revisions, RevisionLogs(config.root, create=True), lease.guard) as migrator:
            yield migrator
        end = "stopped"
    finally:
        lease.give_back(end)


@contextmanager
def _migrator(
    config: MigratorConfig, revisions: Sequence[Revision], logs: RevisionLogs, guard: Callable[[], None]
) -> Iterator[Migrator]:
    spark = build_session(config)
    try:
        target = open_target(config.target, spark)
        if not isinstance(target, Revisable):
            raise RefusedError(
                f"Cannot apply revisions to tables of format {config.target.format}: only iceberg's are, so far"
            )
        yield Migrator(config.name, revisions, target, logs, guard=guard)
    finally:
        spark.stop()
