"""The tables of a migrator: what revisions, logs and the lake say of them. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cdc_sync.core.migration.names import held_schema
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions.actions import SetProperties
from cdc_sync.core.revisions.applied import Entry, Log, differences
from cdc_sync.core.revisions.compile import Unfit
from cdc_sync.core.revisions.order import in_order
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.revisions.steps import Held, drift, next_entry
from cdc_sync.errors import RefusedError
from cdc_sync.storage.revision_logs import RevisionLogs
from cdc_sync.targets.protocol import Revisable


class RevisedTables:
    """The tables of one lake that have revisions.

    Attributes:
        revisions: each behind all that it needs.
    """

    def __init__(self, revisions: Sequence[Revision], target: Revisable, logs: RevisionLogs) -> None:
        self.revisions = in_order(revisions)
        self._target = target
        self._logs = logs

    def names(self, table: TargetName | None) -> tuple[TargetName, ...]:
        """Return the tables that have a revision or a log, ordered; or the one that is given."""
        if table is not None:
            return (table,)
        return tuple(sorted({*self._logs.tables(), *(revision.table for revision in self.revisions)}))

    def of(self, table: TargetName | None) -> Iterator[Revision]:
        """Yield the revisions of a table and those of others that they need, or all.

        Raises:
            RefusedError: if the table has none.
        """
        if table is None:
            yield from self.revisions
            return
        known = {revision.id: revision for revision in self.revisions}
        wanted = {revision.id for revision in self.revisions if revision.table == table}
        if not wanted:
            raise RefusedError(f"Cannot find {table}: no revision is of it")
        open_ = list(wanted)
        while open_:
            needed = known[open_.pop()]
            new = {*needed.parents, *needed.depends_on} - wanted
            wanted |= new
            open_ += new
        yield from (revision for revision in self.revisions if revision.id in wanted)

    def checked(self, table: TargetName) -> tuple[Log, Held | None]:
        """Return what is in effect in a table, and what the lake says of it.

        Raises:
            RefusedError: if it is not as its revisions left it, or they are not as they were applied.
            HistoryError: if its log is not that of the table.
        """
        held = self.held(table)
        if held is not None and held.fed:
            raise RefusedError(
                f"Cannot apply revisions to {table}: a pipeline writes it, and its columns follow the source"
            )
        log = self._logs.load(table).upto(None if held is None else held.version)
        changed = differences(log, {revision.id: revision for revision in self.revisions})
        if changed:
            raise RefusedError(f"Cannot go on with {table}: {'; '.join(changed)}")
        if log.schema is not None and held is not None:
            how = drift(held_schema(log.schema, self._target.capabilities.columns), held.columns)
            if how is not None:
                raise RefusedError(
                    f"Cannot go on with {table}: somebody has changed it since its last revision: {how}; put it right"
                )
        return log, held

    def held(self, table: TargetName) -> Held | None:
        """Return what the lake says of a table, None if it is not there."""
        state = self._target.state(table)
        if state is None:
            return None
        return Held(
            columns=self._target.columns(table),
            version=state.version,
            rows=state.rows_version,
            fed=state.version is not None and state.rows_version is None,
            partitioning=state.partitioning,
            size=state.size,
        )

    def next(self, revision: Revision, log: Log, held: Held | None) -> Entry:
        """Return the entry by which a revision is applied to a table that is as it was `checked`.

        Raises:
            RefusedError: if the revision does not fit the table.
        """
        names = [name for action in revision.actions if isinstance(action, SetProperties) for name, _ in action.values]
        if names and held is not None:
            held = replace(held, properties=self._target.properties(revision.table, names))
        try:
            entry = next_entry(revision, log, held)
        except Unfit as error:
            raise RefusedError(f"Cannot apply {revision.file}: actions[{error.index}] {error}") from None
        if entry.created and held is not None:
            raise RefusedError(
                f"Cannot apply {revision.file}: there is a table {revision.table} already; say adopt to go on with it"
            )
        return entry
