"""What a table must not pass, an event that is refused or a record: why, and what would let it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdc_sync.core.migration.capabilities import SchemaEvolution
from cdc_sync.core.migration.operator_requests import Hold, rolled_back_text
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.offsets import OffsetRange, Place, narrowed
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.planning.problems import (
    AMBIGUOUS_NULL,
    KEY_IS_FALLBACK,
    NO_IMAGE,
    NO_LETTERS,
    PAUSING,
    SKIPPED,
    Trouble,
)

SKIPPABLE = frozenset(
    (Code.ROW_MISSING, Code.VALUE_UNKNOWN, Code.VALUE_UNSENT, Code.NULL, Code.NO_IMAGE, Code.KEY_MADE_UP)
)
"""Causes that one record has, without which the table can go on; what changes the table itself is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why something cannot be done, in words that hold no value of a row, and what would let it."""

    code: Code
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}"

    def pause(self, at: object = None) -> Pause:
        """Stop a table for it, before a record if there is one."""
        return Pause(code=self.code, reason=self.reason, remedy=self.remedy, at=None if at is None else str(at))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Why a table does not go on, what would let it, and the record it stands before, if it is one."""

    code: Code
    reason: str
    remedy: str
    at: str | None = None


def before_places(ranges: tuple[OffsetRange, ...], places: Iterable[Place]) -> tuple[OffsetRange, ...]:
    """Cut ranges of one topic before the first of some records in each partition."""
    first: dict[int, int] = {}
    for place in places:
        first[place.partition] = min(place.offset, first.get(place.partition, place.offset))
    ends = {(item.topic, item.partition): first[item.partition] for item in ranges if item.partition in first}
    return narrowed(ranges, ends=ends)


def cut_at_stops(
    ranges: tuple[OffsetRange, ...], troubles: Sequence[Trouble]
) -> tuple[tuple[OffsetRange, ...], Pause | None]:
    """Cut ranges before the first record of each partition that must not be passed; say why, if there is one."""
    stops = [trouble for trouble in troubles if trouble.problem in PAUSING]
    places = (Place(partition=trouble.partition, offset=trouble.first_offset) for trouble in stops)
    left = before_places(ranges, places)
    if not stops:
        return left, None
    first = min(stops, key=lambda trouble: (trouble.partition, trouble.first_offset))
    code, reason, remedy = _REASONS[first.problem]
    at = f"{ranges[0].topic}[{first.partition}]@{first.first_offset}"
    return left, Pause(code=code, reason=reason, remedy=remedy, at=at)


_REASONS = {
    KEY_IS_FALLBACK: (
        Code.KEY_MADE_UP,
        "a delete names the key 0, '', false or a default, and nothing in it tells whether a row has that key or the "
        "connector made it up, as it does under REPLICA IDENTITY USING INDEX, and where the primary key was changed "
        "before it read the delete",
        "declare a `key` for the table, which says that its columns are real: those of its own key if REPLICA IDENTITY "
        "is FULL, the index's if it is USING INDEX, those of the former primary key if that was changed",
    ),
    NO_IMAGE: (
        Code.NO_IMAGE,
        "an event does not hold the row before the change, or not the columns that rows are found by: the table has no "
        "key, or a declared one that the replica identity does not hold",
        "set REPLICA IDENTITY FULL at the source, or declare a `key` that the replica identity holds or `mode: append` "
        "for the table; then snapshot it again into a new target",
    ),
    AMBIGUOUS_NULL: (
        Code.NULL,
        "a value equals its nullable column's default, and this connector sends NULL as the default",
        "set value.converter.replace.null.with.default=false in the connector, or policy.ambiguous_null: warn",
    ),
}


def too_late(version: int, name: str, statement: str) -> Pause:
    """Say why a table stops after the source told that a column was taken for another one."""
    return Pause(
        code=Code.TOLD_LATE,
        reason=f"rows were written under version {version} as if column {name!r} were still the same, and only later "
        f"the source told that it is another one: {statement}",
        remedy="snapshot the table again into a new target; look why the evidence topic is late",
    )


def missing_row(ranges: Sequence[OffsetRange], at: Place | None = None) -> Pause:
    """Say why a table stops before an update of a row it never had, somewhere in the ranges if no place is given."""
    first = ranges[0]
    partition, offset = (first.partition, first.start) if at is None else (at.partition, at.offset)
    return Pause(
        code=Code.ROW_MISSING,
        reason="an update names a row that the target never had: the topic does not hold the table's beginning "
        "(the table was renamed, or the topic's first records were deleted), or the row changed its key under a "
        "REPLICA IDENTITY USING INDEX, which does not hold the old one",
        remedy="snapshot the table again, or, if the topic does not hold its beginning, set policy.missing_rows: "
        "insert; under REPLICA IDENTITY USING INDEX declare the index's columns as `key` of the table",
        at=f"{first.topic}[{partition}]@{offset}",
    )


def letters_in(ranges: Iterable[OffsetRange], troubles: Sequence[Trouble]) -> list[tuple[KafkaPosition, str]]:
    """Return in order the records of ranges that become dead letters, each with its problem."""
    return sorted(
        (KafkaPosition(topic=item.topic, partition=item.partition, offset=offset), trouble.problem)
        for item in ranges
        for trouble in troubles
        if trouble.partition == item.partition and trouble.problem not in NO_LETTERS
        for offset in trouble.offsets
        if item.start <= offset < item.end
    )


def too_many_letters(limit: int, letters: Sequence[tuple[KafkaPosition, str]]) -> Pause:
    """Say why a table stops before records of which more would become dead letters than may."""
    place, problem = next((place, problem) for place, problem in letters if problem != SKIPPED)
    return Pause(
        code=Code.MANY_LETTERS,
        reason=f"more records could not be applied within an hour than limits.max_dead_letters_per_hour = {limit}; the "
        f"first of those that come now: {problem}",
        remedy="mend what is wrong with them, then `cdc-sync resume` the table; or raise the limit, and they become "
        "dead letters",
        at=str(place),
    )


def made_up_key(ranges: Sequence[OffsetRange], at: Place) -> Pause:
    """Say why a table stops before a delete whose key no row has and which may be made up."""
    return Pause(
        code=Code.KEY_MADE_UP,
        reason="a delete names a key of which a part is 0, '', false, the epoch or a default, and no row has it: the "
        "connector makes up what it does not know of a key, under a REPLICA IDENTITY USING INDEX that holds less "
        "than the key, or because the primary key was extended before it read the delete",
        remedy="declare the index's columns as `key` of the table; or set policy.missing_rows: insert, which leaves "
        "the row where it is and marks the table, and snapshot it again into a new target",
        at=f"{ranges[0].topic}[{at.partition}]@{at.offset}",
    )


def files_gone(said: str) -> Pause:
    """Say why a table stops whose target names files that are not there.

    Args:
        said: what failed, and which file, as in "Cannot write lake.orders: File does not exist: …".
    """
    return Pause(
        code=Code.FILES_GONE,
        reason=f"files that belong to the target were deleted: {said}",
        remedy="bring them back from a backup or the store's older versions, and `cdc-sync resume` the table; or move "
        "the target away and have the connector snapshot the table again",
    )


def altered_target(done: str, statements: str, target: str) -> Pause:
    """Say why a table stops whose target somebody else altered.

    Args:
        done: as in "column a was dropped".
        statements: SQL that undoes it.
    """
    return Pause(
        code=Code.ALTERED,
        reason=f"the target {target} was altered by somebody else: {done}",
        remedy=f"undo it ({statements}) and `cdc-sync resume` the table; rows of before read NULL in a column that is "
        "added again, and it is marked",
    )


def lost_beginning(lost: str) -> Pause:
    """Say why a table stops whose target is not there, where its topic does not begin with its first event any more.

    Args:
        lost: the offsets, as in "offsets 0 to 9 of t[0]".
    """
    return Pause(
        code=Code.BEGINNING,
        reason=f"{lost} were deleted from the topic, and the target, which held them, is not there or holds nothing: "
        "what is left does not make the whole table",
        remedy="bring the target back; or have the connector snapshot the table again, set policy.missing_rows: insert "
        "for it",
    )


_SNAPSHOT_AGAIN = (
    "set REPLICA IDENTITY FULL for the source table and snapshot it again, or set policy.missing_rows: insert, which "
    "writes NULL for such values and counts them"
)


def unknown_value(ranges: Sequence[OffsetRange]) -> Pause:
    """Say why a table stops before ranges with a row whose value nobody knows."""
    first = ranges[0]
    return Pause(
        code=Code.VALUE_UNKNOWN,
        reason="an event leaves an unchanged large value out (placeholder), and the target has no row to keep it from",
        remedy=_SNAPSHOT_AGAIN,
        at=f"{first.topic}[{first.partition}]@{first.start}",
    )


def unsent_values(ranges: Sequence[OffsetRange], names: str) -> Pause:
    """Say why a table stops before updates with NULLs that may stand for unchanged values.

    Args:
        names: of the columns, as in "tags, sizes".
    """
    first = ranges[0]
    return Pause(
        code=Code.VALUE_UNSENT,
        reason=f"an update shows NULL in {names}, and the row has a value there: the connector has no placeholder for "
        "a large value of this type that did not change",
        remedy="set REPLICA IDENTITY FULL for the source table, and policy.unsent_values: keep (the row's value stays, "
        "and the column is marked) or null (what is NULL is NULL)",
        at=f"{first.topic}[{first.partition}]@{first.start}",
    )


def unlinked_create(ranges: Sequence[OffsetRange], create: Place) -> Pause:
    """Say why a table stops before a create that leaves values out and whose old row is not found."""
    return Pause(
        code=Code.VALUE_UNKNOWN,
        reason="a row changed its key, the event under the new key leaves an unchanged large value out (placeholder), "
        "and the row under the old key is not found",
        remedy=_SNAPSHOT_AGAIN,
        at=f"{ranges[0].topic}[{create.partition}]@{create.offset}",
    )


def no_key(names: str, problem: str, at: str) -> Pause:
    """Say why a table stops before a key that its rows cannot be told apart by."""
    return Pause(
        code=Code.KEY,
        reason=f"the key is ({names}) from here on, and {problem}, so rows cannot be found by it",
        remedy="declare other columns as `key` of the table, or snapshot it again into a new target",
        at=at,
    )


def other_regime(table: TableId, *, has: SchemaEvolution, wanted: SchemaEvolution) -> Pause:
    """Say why a table stops whose target is of another regime than the configuration asks for."""
    return Pause(
        code=Code.OTHER_MODE,
        reason=f"the target is of schema_evolution: {has}, which its readers find columns by, and the configuration "
        f"asks for {wanted}",
        remedy=f"set schema_evolution: {has} for it again; or have all its rows rewritten by `cdc-sync regime CONFIG "
        f"{table}`, once its readers are ready for that (`cdc-sync docs hudi`)",
    )


LOGS = Pause(
    code=Code.OTHER_MODE,
    reason="the target is of the type MERGE_ON_READ: changed rows lie in logs, which its readers have to know, and the "
    "configuration does not say so",
    remedy="set hoodie.datasource.write.table.type: MERGE_ON_READ among target.table_properties again; or give the "
    "table another target and have its rows sent once more (`cdc-sync docs hudi`)",
)
"""Why a table stops whose readers were looked at as if there were no logs."""


def unread_partitions(engine: str, reason: str) -> Pause:
    """Say why a table stops whose target is partitioned for good, which one of its readers was not looked at for.

    Args:
        reason: what the engine does, as in "it fails".
    """
    return Pause(
        code=Code.UNREAD,
        reason=f"the target is partitioned, as it was made, and the configuration names {engine} among its readers, "
        f"which is not to read such tables: it {reason}",
        remedy="say in the rule's readers who does; or give the table another target and have its rows sent once more "
        "(`cdc-sync docs readers`)",
    )


def held(hold: Hold) -> Pause:
    """Stop a table because the operator said so, until the operator lets it go on."""
    return Pause(
        code=Code.PAUSED,
        reason=f"paused by {hold.by}" + (f": {hold.why}" if hold.why else ""),
        remedy=f"`cdc-sync resume CONFIG {hold.table}` lets it go on",
    )


def rolled_back(table: TableId, version: int) -> Pause:
    """Stop a table whose rewrite the operator undid, until the operator lets it go on."""
    return Pause(
        code=Code.ROLLED_BACK,
        reason=rolled_back_text(version),
        remedy=f"`cdc-sync rollback CONFIG {table} --undo` carries it out again; else snapshot the table again into a "
        "new target",
    )
