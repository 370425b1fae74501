"""Folders of a Parquet table that no state needs any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cdc_sync.targets.common.files import Files
from cdc_sync.targets.parquet.commits import Snapshot
from cdc_sync.targets.parquet.properties import Past

CLAIMS = "_cdc_sync_claims"
"""The folder, below the table's own, that says whose commit comes next."""
EMPTY = "empty"
"""The folder, below the table's own, of partitions without rows."""


def let_go(
    files: Files,
    before: Snapshot,
    after: Snapshot,
    at: Callable[[str, str], Snapshot | None],
    *,
    thorough: bool = False,
) -> None:
    """Delete folders, but those that can be read again and the one that whoever reads now may have been given.

    Args:
        before: the state that the last commit replaced.
        after: the present one.
        at: returns a state by the table's folder and its reference.
        thorough: look through every folder that is needed for partitions that are not. Else those of states that are
            given up just now are deleted, which finds all but what a crash right here has left.
    """
    folder, stamp = after.folder, after.stamp
    past = {it.reference: it.partitioned for it in stamp.past}
    if stamp.kept is not None:
        past[stamp.kept.reference] = stamp.kept.partitioned
    whole = {reference.partition("/")[0] for reference, partitioned in past.items() if not partitioned}
    whole |= {it.data for it in (before, after) if not it.is_partitioned}
    needed = [it for it in (before, after) if it.is_partitioned]
    needed += [state for reference, partitioned in past.items() if partitioned and (state := at(folder, reference))]
    parts = {it.folder for state in needed for it in state.stamp.partitions}
    tops = whole | {state.data for state in needed} | {part.partition("/")[0] for part in parts}
    for name in files.children(folder) - tops - {EMPTY, CLAIMS}:
        if not _is_coming(name, stamp.number):
            files.delete(f"{folder}/{name}")
    references = {before.reference, after.reference, *past}
    for state in _states(folder, before.stamp.past, references, at):
        for it in state.stamp.partitions:
            if it.folder not in parts and it.folder.partition("/")[0] in tops:
                files.delete(f"{folder}/{it.folder}")
        files.delete(f"{folder}/{state.reference}")
    if thorough:
        for top in tops - whole:
            for inside in files.sizes(f"{folder}/{top}"):
                if inside and f"{top}/{inside}" not in parts:
                    files.delete(f"{folder}/{top}/{inside}")


def _is_coming(name: str, number: int) -> bool:
    """Whether a folder is of a commit behind the present one, which another process is at."""
    given = name.partition("-")[0]
    return given.isdecimal() and int(given) > number


def _states(
    folder: str, past: Iterable[Past], needed: set[str], at: Callable[[str, str], Snapshot | None]
) -> list[Snapshot]:
    """Return the states with partitions that are given up."""
    given_up = (it for it in past if it.partitioned and it.reference not in needed)
    return [state for it in given_up if (state := at(folder, it.reference)) is not None]
