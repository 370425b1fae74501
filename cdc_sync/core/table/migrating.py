"""Bringing a target to the columns of a version, and which rows must be there before it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_sync.core.history.history import History
from cdc_sync.core.history.joined import joined_columns
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.migration import Migration, migration, stages
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.partition_fit import misfit
from cdc_sync.core.planning.stops import Pause, no_key
from cdc_sync.core.schema.changes import ChangePrimaryKey, RetireColumn
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.table.questions import KeyClash
from cdc_sync.core.table.seen import Facts, Seen
from cdc_sync.core.table.state import TableState
from cdc_sync.core.table.transitions import Fail, Migrate, Settled, WriteRange
from cdc_sync.errors import HistoryBehind

FOR_GOOD = (
    "a hudi table is partitioned as it was made: let partition_by say what it said, or drop the table and have it "
    "built anew, from its topic or a snapshot"
)


def upto(history: History, number: int) -> History:
    """Return the history up to a version."""
    return (
        history if number == history.head.number else History(table=history.table, versions=history.versions[:number])
    )


def toward(
    state: TableState, seen: Seen, history: History, ranges: tuple[OffsetRange, ...]
) -> Migrate | WriteRange | Fail | Settled | None:
    """Return what comes next on the way to a history's head with the rows of ranges; None if all is done.

    Rows of before a version that needs them are written under the one right before it, whatever batches there were.
    """
    for version in history.versions[state.first_unseen :]:
        if not needs_rows_before(state, version):
            continue
        before = seen.before(ranges, version.position, version.kafka)
        if before:
            short = upto(history, version.number - 1)
            return migration_to(state, seen.facts, short) or WriteRange(ranges=before, history=short)
    move = migration_to(state, seen.facts, history)
    if move is None and ranges:
        return WriteRange(ranges=ranges, history=history)
    return move


def migration_to(state: TableState, facts: Facts, history: History) -> Migrate | Fail | Settled | None:
    """Return what the target lacks next of a history's head; stops before a key that rows cannot be told apart by."""
    head, stamped = history.head, state.target.stamped
    if head.ends_target:
        return None  # no target outlives this version, and the next one begins with a version of its own
    if stamped is not None and stamped > head.number:
        return too_short(state, history)
    for version in stages(history, stamped, state.route.capabilities):
        stop = _key_clash(state, facts, history, version)
        if stop is not None:
            return Settled(state=state.stopped(stop))
        on_the_way = upto(history, version.number)
        partitioning = partitioning_to_make(state, on_the_way) if stamped is None else None
        if isinstance(partitioning, Pause):
            return Settled(state=state.stopped(partitioning))
        steps = steps_to(state, on_the_way, partitioning)
        if steps.steps:
            progress = replace(state.progress or Progress(version=version.number), version=version.number)
            return Migrate(steps=steps, history=on_the_way, progress=progress)
    return None


def too_short(state: TableState, history: History) -> Fail:
    """Say that the target has versions that the history lacks, and that the topic does not tell."""
    return Fail(
        error=HistoryBehind(
            Code.BEHIND,
            f"Cannot sync {state.table}: the target is stamped with version {state.target.stamped}, the history ends "
            f"at {history.head.number}, and the topic does not hold what lies between",
            "restore the newest copy of the pipeline's state folder and start the job again",
        )
    )


def steps_to(state: TableState, history: History, partitioning: Partitioning | None = None) -> Migration:
    """Return the steps from what the target has to a history's head."""
    stamped = state.target.stamped
    return migration(
        None if stamped is None else history.version(stamped),
        history.version(state.progress.version) if state.progress else None,
        history.head,
        capabilities=state.route.capabilities,
        mode=state.mode,
        joined=joined_columns(history.versions),
        partitioning=partitioning,
    )


def partitioning_to_make(state: TableState, history: History) -> Partitioning | Pause | None:
    """Return how to partition a target that is made with the columns of a history's head.

    A new target waits for a partitioning that fits it: there is nothing yet that could go on.

    Returns:
        None where nothing is configured, or what is fits columns that come later in this very batch.
    """
    wanted = state.route.partition_by
    if wanted is None:
        return None
    why = misfit(wanted, history.head.schema, state.mode)
    if why is None:
        return wanted
    if state.route.capabilities.partitions_stay:
        return Pause(
            code=why.code, reason=f"{why.reason}, so its target is not made", remedy=f"{why.remedy}; {FOR_GOOD}"
        )
    recorded = state.history or history
    if misfit(wanted, recorded.head.schema, state.mode) is None:
        return None
    return Pause(code=why.code, reason=f"{why.reason}, so its target is not made", remedy=why.remedy)


def _key_clash(state: TableState, facts: Facts, history: History, version: Version) -> Pause | None:
    """Return why rows cannot be found by a key that the versions up to one bring, None if they can."""
    stamped, key = state.target.stamped, version.schema.primary_key
    if state.route.append or state.progress is None or stamped is None or not key:
        return None
    between = history.versions[stamped : version.number]
    changed = next((it for it in between if any(isinstance(item, ChangePrimaryKey) for item in it.changes)), None)
    if changed is None:
        return None
    ids = {column.id for column in history.version(stamped).schema.columns}
    held, added = tuple(id_ for id_ in key if id_ in ids), [id_ for id_ in key if id_ not in ids]
    # All rows that are there read the same in a column that was added.
    told_apart = held and all(version.schema.column(id_).initial is not None for id_ in added)
    problem = facts.need(KeyClash(stamped, held if told_apart else ()))
    names = ", ".join(version.schema.column(id_).name for id_ in key)
    return None if problem is None else no_key(names, problem, str(changed.kafka))


def needs_rows_before(state: TableState, version: Version) -> bool:
    """Whether rows of before a version must be in the target when it takes effect.

    A retired column keeps what it has, and rows that are rewritten take another way than late events do: a value that
    has no place in the new type is kept aside alone, while a late event is kept aside whole. By another key they are
    not found.
    """
    if rewrites_rows(state, version):
        return True
    return not state.route.append and any(
        isinstance(change, RetireColumn | ChangePrimaryKey) for change in version.changes
    )


def rewrites_rows(state: TableState, version: Version) -> bool:
    """Whether a version has the rows that are there written anew."""
    return rewrites(version.changes, state.route.capabilities, version.schema, state.mode)


def columns_since(state: TableState, history: History) -> int:
    """Return the last version that joined or rewrote columns, 0 if none did: older states of the target have others."""
    joined: Sequence[int] = [item.version for item in joined_columns(history.versions)]
    rewritten = [version.number for version in history.versions if rewrites_rows(state, version)]
    return max((*joined, *rewritten), default=0)
