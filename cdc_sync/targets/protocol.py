"""The contract every target keeps, and the table of targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from pyspark.sql import DataFrame

from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.maintenance import Chores, Holdings, Maintained, Upkeep
from cdc_sync.core.migration.migration import Backfill, Migration
from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.model.shared_schema import RowMoves
from cdc_sync.core.revisions.fills import DataFile, Fill
from cdc_sync.core.schema.expressions import Expression
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.errors import TargetMoved


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows to apply and the progress that goes into the same commit.

    Attributes:
        behind: what the table is known to hold; see `Target`.
        rows: columns `deleted`, `created`, and `value_column(id)` for every column of `schema`, at most one row for
            each key. Where the schema has no key, the net counts of `spark.whole_rows`; in mode `append`, the rows of
            `spark.changelog`.
        append: no row is a delete and no key is in the table, so rows may be added without looking.
        require_rows: an update (no create in the batch) of a key the table does not hold fails the write; without a
            key, taking more copies of a row than there are.
        mode: as the table was created; `append` adds the rows as they are.
        unchanged: ids of columns that events may leave out; never with `append`. `rows` has `unchanged_column(id)` for
            each, TRUE where the row keeps the value that the table has, and `forgotten`: what the table has under
            the key is of another row, so it is not to be kept.
        require_values: a row to keep a value that the table does not have fails the write; else NULL is stored.
    """

    rows: DataFrame
    schema: InternalSchema
    progress: Progress
    behind: Progress | None
    append: bool = False
    require_rows: bool = False
    mode: Mode = "upsert"
    unchanged: tuple[int, ...] = ()
    require_values: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A state of a table that can be read again.

    Attributes:
        progress: what the rows contain; None before anything was written.
        reference: what the target calls it.
    """

    progress: Progress | None
    reference: str


def same_offsets(one: Progress | None, other: Progress | None) -> bool:
    """Whether two states hold the same events; a migration between them changes columns only."""
    if one is None or other is None:
        return one is other
    return one.offsets == other.offsets and {name: share.offsets for name, share in one.shares.items()} == {
        name: share.offsets for name, share in other.shares.items()
    }


def check_held(name: object, held: Progress | None, behind: Progress | None) -> None:
    """Refuse a change of a table that holds other events than it is made for.

    Args:
        name: the table's, for the message.
        held: what the state says that the change is committed on.
        behind: what whoever makes the change knows of the table.

    Raises:
        TargetMoved: if they differ.
    """
    nothing = Progress(version=0)
    if not same_offsets(held or nothing, behind or nothing):
        raise moved(name)


def moved(name: object) -> TargetMoved:
    """Return the error of a commit that another one came before."""
    return TargetMoved(
        f"Cannot write {name}: somebody else has changed it since the last commit, for another job writes it, or an "
        "earlier state was restored. Nothing was written, and the job goes on behind what the table holds now; run one "
        "job per pipeline"
    )


def marker_after_join(progress: Progress, version: int) -> Progress:
    """Return the marker of a commit that joins columns.

    The rows are complete for the version that joins, if they were for the one before; else a back-fill is still due.
    """
    return replace(progress, version=version) if progress.version == version - 1 else progress


MISSING_ROW = "missing_row"
"""What `Target.write` fails with, inside the error's text, when `Batch.require_rows` is not met."""
UNKNOWN_VALUE = "unknown_value"
"""The same for `Batch.require_values`."""


class Target(Protocol):
    """One table format. Every call may be repeated; every write is atomic for readers.

    Whoever changes a table says what events it holds, `behind`. The commit itself compares that with the state that it
    is made on, and is made on no other: of two writers that saw the same state, one gets `TargetMoved`.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What the format is able to do in tables that nothing else is said of (`Route.capabilities`)."""
        ...

    def state(self, name: TargetName) -> TargetState | None:
        """Return what the table says about itself now, None if there is no such table.

        Raises:
            TargetError: if that cannot be read.
        """
        ...

    def migrate(
        self, name: TargetName, migration: Migration, progress: Progress, said: Mapping[int, DataFrame] | None = None
    ) -> None:
        """Carry out the steps and stamp the version; `progress` is what the rows contain, unchanged: as `behind`, too.

        Args:
            said: for `JoinValues` of a table whose rows are found by a key, by the id of the column that stays: what
                events said of it since it was kept. `value_column(id)` of the key's columns and of that one, at most
                one row for each key; rows of the target that are not among them keep what they have. Nothing is done
                for a column that is not named.

        Raises:
            TargetError: if the format refuses a step; nothing of that step is done then.
        """
        ...

    def roll_back(self, name: TargetName) -> bool:
        """Bring back rows, columns, stamp and progress of before the last `RewriteTable`, in one commit.

        Returns:
            False if they are not kept; nothing happens then.
        """
        ...

    def write(self, name: TargetName, batch: Batch) -> None:
        """Apply a batch and its progress in one commit."""
        ...

    def truncate(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Remove all rows, with the progress, in one commit; earlier states can be read as after any other commit.

        Raises:
            TargetError: if the format refuses; nothing is removed then.
        """
        ...

    def mark(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Commit progress alone; rows, columns and stamp are the same afterwards."""
        ...

    def drop(self, name: TargetName) -> None:
        """Take the table away, its files too; called again, it ends what was begun, and nothing happens after that.

        Raises:
            TargetError: if the catalogue or the file system refuses.
        """
        ...

    def archive(self, name: TargetName, into: TargetName) -> None:
        """Give the table another name, in one step, with all its states; nothing happens if it is not there.

        A table that is made under the old name afterwards shares no file and no folder with it.

        Raises:
            TargetError: if there is a table of the new name, or the catalogue or the file system refuses.
        """
        ...

    def read(
        self, name: TargetName, schema: InternalSchema, ids: Sequence[int], commit: Commit | None = None
    ) -> DataFrame:
        """Return `value_column(id)` of all rows, as they are when this is called or as they were after a commit.

        Args:
            schema: what the table has now; a column that a commit did not have reads its initial value.
        """
        ...

    def commits(self, name: TargetName, limit: int) -> tuple[Commit, ...]:
        """Return the newest states with different offsets that can still be read, newest first, the present one too.

        The state before the first commit is the last of them, where nothing up to there has been forgotten.
        """
        ...

    def holdings(self, name: TargetName, upkeep: Upkeep) -> Holdings:
        """Return the figures that `migration.maintenance.chores` decides by; reads metadata only."""
        ...

    def maintain(self, name: TargetName, chores: Chores) -> Maintained:
        """Do the chores. Rows, columns, stamp, progress and what `roll_back` needs are the same afterwards.

        Beside another writer either this or the other's commit may fail, and nothing is lost by that.

        Raises:
            TargetError: if the format refuses, or another writer came between; what was done until then stands.
        """
        ...


class Filling(Protocol):
    """A table whose rows are being filled, as one snapshot of it is.

    Attributes:
        files: in which there may be rows that are not filled yet, by their paths.
    """

    files: Mapping[str, DataFile]

    def run(self, paths: Sequence[str]) -> None:
        """Fill the rows of some of the files, in one commit that is made if all of them are still there, as they were.

        Raises:
            TargetMoved: if somebody has changed them; nothing is written then.
            TargetError: if a value cannot be computed, or the format refuses.
        """
        ...


@runtime_checkable
class Revisable(Target, Protocol):
    """A format whose tables revisions can be applied to, whoever made them."""

    def columns(self, name: TargetName) -> InternalSchema:
        """Return the columns that a table has, with ids that stay the same as long as nobody changes them.

        Raises:
            TargetError: if one has a type that is not tracked.
        """
        ...

    def properties(self, name: TargetName, keys: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
        """Return properties of a table, None for those that it has not."""
        ...

    def filling(self, name: TargetName, fill: Fill) -> Filling:
        """Look which files of a table are still to be filled; reads metadata only.

        Raises:
            TargetMoved: if the table's columns are not those of the fill any more.
        """
        ...

    def complete(self, name: TargetName, number: int) -> None:
        """Stamp that the rows are complete for an entry; nothing happens if the columns are of another one by now."""
        ...

    def why_not_computed(self, schema: InternalSchema, id_: int, expression: Expression) -> str | None:
        """Say why a column of a schema cannot be computed so, None if it can; reads no row. It continues "it "."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOf:
    """The rows of one source table in a target that several share.

    Attributes:
        schema: the target's columns; the first holds the name of the source table.
        label: what it holds in these rows.
    """

    schema: InternalSchema
    label: str


class Shareable(Target, Protocol):
    """A format in which rows of several source tables can share a table (`Capabilities.merges`)."""

    def change_rows(
        self,
        name: TargetName,
        rows: RowsOf,
        change: RowMoves | Backfill,
        progress: Progress,
        behind: Progress | None,
    ) -> None:
        """Move or empty values, or fill those that are NULL in new columns, of these rows only, with the progress.

        One commit; where there is no such row there need not be one. Moves are not to be repeated.
        """
        ...

    def remove_rows(self, name: TargetName, rows: RowsOf, progress: Progress, behind: Progress | None) -> None:
        """Remove these rows, with the progress, in one commit; earlier states can be read as after any other."""
        ...
