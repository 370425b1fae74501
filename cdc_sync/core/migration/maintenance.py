"""What maintenance of a table consists of, and when each part is worth it: figures in, chores out, nothing touched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

_MANIFESTS = 20
"""So many lists of files are worth merging into few: each is read to plan a scan."""
_DELETED = 0.3
"""The share of rows that are marked as deleted from which files are written anew without them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What the operator wants of maintenance.

    Attributes:
        keep_for: how long a state of the table can be read after another took its place.
        keep_at_least: how many states are kept however old they are.
        target_file_size: bytes of a data file.
        compact_from_files: so many files are worth making one of.
        orphans_older_than: files of no state are left alone for so long, for they may be of a write that goes on.
    """

    keep_for: timedelta
    keep_at_least: int
    target_file_size: int
    compact_from_files: int
    orphans_older_than: timedelta

    @property
    def small(self) -> int:
        """Files of fewer bytes than this are worth joining with others."""
        return self.target_file_size * 3 // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What a table consists of; moments are milliseconds since the epoch.

    Attributes:
        files, size: data files of the newest state, and their bytes.
        small_files, small_size: those of them that are smaller than `Upkeep.small`, in partitions where they are enough
            to be joined: files of two partitions never are.
        change_files: files that say what changed in rows of other files: position deletes, logs.
        rows, deleted_rows: in the data files, and how many of them a change file deletes; 0 where that is not told.
        manifests: lists of files.
        commits: when the states were made that can be read, but for those that are kept for a rollback whatever comes;
            no more than `Upkeep.keep_at_least` of the newest, where telling all of them would cost much.
        marker_at: when the commit was made that holds the newest marker; None if there is none.
        needed_since: states that were made at this moment or later are needed; None if that is none.
        marker_lasts: how long the format itself keeps what a commit says; None if as long as the state.
    """

    files: int = 0
    size: int = 0
    small_files: int = 0
    small_size: int = 0
    change_files: int = 0
    rows: int = 0
    deleted_rows: int = 0
    manifests: int = 0
    commits: tuple[int, ...] = ()
    marker_at: int | None = None
    needed_since: int | None = None
    marker_lasts: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chores:
    """What is to be done with one table.

    Attributes:
        compact: make few data files of many small ones.
        apply_deletes: write every data file anew that has deleted rows, without them.
        merge_changes: make one of many change files, or apply them.
        merge_manifests: make few of many.
        expire_before: states that were made before this moment go, `expired` of them; None if none may go.
        orphans_before: files that no state names go if they were last changed before this moment.
        carry_marker: say once more what the table holds, for the commit that says so is about to be forgotten.
        upkeep: what was wanted.
    """

    compact: bool
    apply_deletes: bool
    merge_changes: bool
    merge_manifests: bool
    expire_before: int | None
    expired: int
    orphans_before: int
    carry_marker: bool
    upkeep: Upkeep

    @property
    def any(self) -> bool:
        """Whether there is something to do beside looking for files of no state."""
        work = (self.compact, self.apply_deletes, self.merge_changes, self.merge_manifests, self.carry_marker)
        return any(work) or self.expired > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """What was done with one table.

    Attributes:
        files_rewritten, bytes_rewritten: data files that are no longer part of the newest state.
        files_written: what took their place.
        change_files: that are no longer part of it.
        manifests: lists of files that were merged.
        expired: states that can no longer be read.
        files_removed: that no state names, those of expired states among them.
        marker_carried: what the table holds was said once more.
    """

    files_rewritten: int = 0
    bytes_rewritten: int = 0
    files_written: int = 0
    change_files: int = 0
    manifests: int = 0
    expired: int = 0
    files_removed: int = 0
    marker_carried: bool = False

    @property
    def any(self) -> bool:
        """Whether anything was done."""
        return self != Maintained()


def chores(holdings: Holdings, upkeep: Upkeep, now: int) -> Chores:
    """Decide what a table needs.

    The commit that holds the newest marker is never expired, nor one behind it: without it nobody knows what the table
    holds. Nor is a state that is needed for a rollback.

    Args:
        now: in milliseconds since the epoch, by the clock that made the commits.
    """
    before = _expiry(holdings, upkeep, now)
    deletes = holdings.rows > 0 and holdings.deleted_rows >= _DELETED * holdings.rows
    return Chores(
        compact=holdings.small_files >= upkeep.compact_from_files,
        apply_deletes=deletes,
        merge_changes=holdings.change_files >= upkeep.compact_from_files,
        merge_manifests=holdings.manifests >= _MANIFESTS,
        expire_before=before,
        expired=0 if before is None else sum(at < before for at in holdings.commits),
        orphans_before=now - _milliseconds(upkeep.orphans_older_than),
        carry_marker=_is_fading(holdings, now),
        upkeep=upkeep,
    )


def _expiry(holdings: Holdings, upkeep: Upkeep, now: int) -> int | None:
    """Return the moment before which states may go; None if none may."""
    if holdings.marker_at is None:
        return None
    newest = sorted(holdings.commits, reverse=True)[: upkeep.keep_at_least]
    bounds = [now - _milliseconds(upkeep.keep_for), holdings.marker_at, *newest[-1:]]
    return min(bounds if holdings.needed_since is None else [*bounds, holdings.needed_since])


def _is_fading(holdings: Holdings, now: int) -> bool:
    """Whether half the time has gone that the format keeps the newest marker."""
    if holdings.marker_at is None or holdings.marker_lasts is None:
        return False
    return now - holdings.marker_at > _milliseconds(holdings.marker_lasts) // 2


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
