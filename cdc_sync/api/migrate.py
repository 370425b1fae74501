"""Revisions of lake tables, as functions that return values; only what looks at the tables starts a JVM."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from cdc_sync.config.migrations import load_migrator, load_revisions
from cdc_sync.core.migration.capabilities import ICEBERG, KINDS
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.wording import phrases
from cdc_sync.core.revisions.actions import Adopt
from cdc_sync.core.revisions.applied import Log
from cdc_sync.core.revisions.compile import Unfit, compiled
from cdc_sync.core.revisions.lint import Finding, lint
from cdc_sync.core.revisions.order import in_order
from cdc_sync.core.revisions.squash import squashed, written
from cdc_sync.errors import ConfigError, LeaseHeld, RefusedError
from cdc_sync.operations.migrate.report import (
    Checked,
    LoggedStep,
    Migrated,
    MigrationPlan,
    MigrationStatus,
    RevisionHistory,
)
from cdc_sync.storage.revision_logs import RevisionLogs

if TYPE_CHECKING:
    from cdc_sync.core.schema.internal import InternalSchema
    from cdc_sync.operations.migrate.migrator import Migrator


def check(folder: str | Path) -> Checked:
    """Look all files of a folder over, without the lake.

    Raises:
        ConfigError: for the first that is wrong; the others are with it.
    """
    config, revisions = load_migrator(folder), in_order(load_revisions(folder))
    capabilities = next((kind for kind in KINDS if kind.format == config.target.format), ICEBERG)
    schemas: dict[TargetName, InternalSchema] = {}
    findings: list[Finding] = []
    for revision in revisions:
        before = schemas.get(revision.table)
        adopted = isinstance(revision.actions[0], Adopt) or (revision.parents and before is None)
        try:
            if not adopted:  # of a table that is adopted only the lake knows the columns
                schemas[revision.table] = compiled(revision.actions, before).schema
        except Unfit as error:
            line = revision.lines[error.index] if revision.lines else None
            raise ConfigError(f"Cannot use actions[{error.index}]: it {error}", path=revision.file, line=line) from None
        findings += lint(revision, before, capabilities)
    return Checked(name=config.name, revisions=tuple(it.id for it in revisions), findings=tuple(findings))


def squash(folder: str | Path, table: str, *, release: str | None = None) -> dict[str, object]:
    """Return what the file says of one revision that makes a table as all of its files do; without the lake.

    Args:
        release: the last one to be in it; the newest if unset.

    Raises:
        RefusedError: if there is no such table or release, or the table was adopted.
    """
    name, revisions = _named(table), load_revisions(folder)
    found = [revision for revision in in_order(revisions) if revision.table == name]
    if not found:
        raise RefusedError(f"Cannot find {table}: no revision is of it")
    releases = list(dict.fromkeys(revision.release for revision in revisions))
    if release is not None and release not in releases:
        raise RefusedError(f"Cannot find release {release}: there are {', '.join(releases)}")
    last = len(releases) if release is None else releases.index(release) + 1
    return written(squashed([it for it in found if it.release in releases[:last]]))


def plan(folder: str | Path, table: str | None = None) -> MigrationPlan:
    """Tell what `up` would do; nothing is changed anywhere."""
    with _opened(folder, exclusive=False) as migrator:
        return migrator.plan(_named(table))


def up(
    folder: str | Path, table: str | None = None, *, fill: bool = True, stop: threading.Event | None = None
) -> Migrated:
    """Apply the revisions that are pending, of one table with those that it needs, or of all.

    Args:
        fill: also fill the rows that were there before; without, `backfill` does it later.
        stop: ends it behind the unit of rows that it is at, once it is set.

    Raises:
        RefusedError: if a table cannot go on until somebody has looked at it; what was done before stands.
        LeaseHeld: if another process applies revisions just now.
    """
    with _opened(folder, exclusive=True, stop=stop) as migrator:
        return migrator.up(_named(table), fill=fill)


def backfill(
    folder: str | Path, table: str | None = None, *, seconds: float | None = None, stop: threading.Event | None = None
) -> Migrated:
    """Fill the rows that `up` left to be filled; any number of processes do it together.

    Args:
        seconds: after which no further unit is begun.
        stop: the same, once it is set.
    """
    with _opened(folder, exclusive=False, stop=stop, seconds=seconds) as migrator:
        return migrator.backfill(_named(table))


def down(folder: str | Path, table: str, *, dry_run: bool = False) -> MigrationPlan | Migrated:
    """Take back the newest revision of a table.

    Raises:
        RefusedError: if there is none, or values would have to come back that are gone.
    """
    name = _named(table)
    assert name is not None
    with _opened(folder, exclusive=not dry_run) as migrator:
        return migrator.down(name, dry_run=dry_run)


def finish(folder: str | Path, table: str | None = None, *, dry_run: bool = False) -> MigrationPlan | Migrated:
    """Drop the columns that others have taken the place of, of one table or of all.

    Raises:
        RefusedError: if rows are still to be filled from one.
    """
    with _opened(folder, exclusive=not dry_run) as migrator:
        return migrator.finish(_named(table), dry_run=dry_run)


def status(folder: str | Path) -> MigrationStatus:
    """Tell how every table stands."""
    with _opened(folder, exclusive=False) as migrator:
        return migrator.status()


def history(folder: str | Path, table: str | None = None) -> tuple[RevisionHistory, ...]:
    """Return what was done to a table, or to all; without the lake.

    Raises:
        RefusedError: if nothing was ever done to the table.
    """
    logs = RevisionLogs(load_migrator(folder).root)
    name = _named(table)
    names = logs.tables() if name is None else (name,)
    found = tuple(_told(logs.load(item)) for item in names)
    if name is not None and not found[0].steps:
        raise RefusedError(f"Cannot show the history of {name}: no revision was applied to it")
    return found


def _told(log: Log) -> RevisionHistory:
    before = None
    steps = []
    for entry in log.entries:
        changes = phrases(entry.changes, before, entry.schema)
        steps.append(
            LoggedStep(
                number=entry.number,
                revision=entry.revision,
                undoes=entry.undoes,
                finishes=entry.finishes,
                changes=changes,
            )
        )
        before = entry.schema
    return RevisionHistory(table=log.table, steps=tuple(steps))


def _named(table: str | None) -> TargetName | None:
    if table is None:
        return None
    parts = table.split(".")
    if len(parts) != 2 or not all(parts):
        raise RefusedError(f"Cannot find {table!r}: a table is schema.name; a dot inside a name is written %2E")
    return TargetName(namespace=unquote(parts[0]), name=unquote(parts[1]))


@contextmanager
def _opened(
    folder: str | Path, *, exclusive: bool, stop: threading.Event | None = None, seconds: float | None = None
) -> Iterator[Migrator]:
    """Open a lake to apply revisions to its tables; `exclusive` is one process at a time."""
    from cdc_sync.operations.migrate.session import opened

    config, revisions = load_migrator(folder), load_revisions(folder)

    ends = stop or threading.Event()
    try:
        with opened(config, revisions, exclusive=exclusive, stop=ends, seconds=seconds) as migrator:
            yield migrator
    except LeaseHeld as error:
        raise LeaseHeld(f"Cannot apply revisions: another process does just now ({error})") from error
