"""All that is known of one table between two steps. Nothing else is kept; a step makes a new value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from cdc_sync.core.debezium.position import Source
from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.history.warned import warnings_of
from cdc_sync.core.migration.altered import HeldColumns
from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.migration.names import held_target
from cdc_sync.core.migration.operator_requests import Hold, RegimeAsked, Rollback, SnapshotReset, Unconverted
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.doubts import Doubt, doubts_with
from cdc_sync.core.model.offsets import Ends
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.end_of_table import archive_name, last_end
from cdc_sync.core.planning.resync import Mark, Resync, marks
from cdc_sync.core.planning.stops import Pause, Refused
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""topic -> partition -> offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How the last attempt failed; it is tried again by itself.

    Attributes:
        files_gone: for files that the target names are not there.
    """

    text: str
    code: Code = Code.OTHER
    files_gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What the table stands before without.

    Attributes:
        table: it is not evidence but this other table that has something to do first.
    """

    text: str
    table: TableId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetView:
    """The target as it was seen or left last.

    Attributes:
        stamped: the version that its columns are of, None if there is no target.
        rows: how many there are at most, None if nobody knows.
        partitioning, partition_by: what it is divided by, and the configured text that it was brought to.
        columns: to find out what others do to them; None where the format knows no column by more than its name.
    """

    stamped: int | None = None
    rows: int | None = 0
    partitioning: Partitioning = UNPARTITIONED
    partition_by: str | None = None
    columns: HeldColumns | None = None

    def divided_as(self, found: TargetState | None) -> TargetView:
        """Return the view with the partitioning that the target has now."""
        if found is None:
            return replace(self, partitioning=UNPARTITIONED, partition_by=None)
        return replace(self, partitioning=found.partitioning, partition_by=found.partition_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far the topics were read, beside what the target's marker says.

    Attributes:
        passed: read without finding anything of this table; not worth a commit.
        awaited: by partition that the topic was given later: up to where the others are to be read before it is begun.
        unread: where partitions begin of which nothing was written.
        known_before: what the status file says of a table that could not be read yet.
        drains: what was in the topics when an end of the table was first told, by the record that told it.
        last: the last event that was read of each partition.
    """

    passed: Ends = field(default_factory=dict)
    awaited: Mapping[tuple[str, int], Mapping[int, int]] = field(default_factory=dict)
    unread: Offsets = field(default_factory=dict)
    known_before: Offsets = field(default_factory=dict)
    drains: tuple[KafkaPosition, Offsets] | None = None
    last: Mapping[tuple[str, int], Source] = field(default_factory=dict)

    def passing(self, places: Ends) -> Cursor:
        """Return the cursor behind places that were looked through."""
        further = {place: max(at, self.passed.get(place, 0)) for place, at in places.items()}
        return replace(self, passed={**self.passed, **further})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What makes the next step cheaper; a table that knows nothing of it does the same.

    Attributes:
        current: digests of the schemas whose records are rows of the head.
        appends_failed: how often in a row adding rows without a look was tried in vain.
        keeps_unchanged: events leave values out.
        numbers: records hold decimals as JSON numbers.
        aside: how often in a row a write set records aside.
        given_up: the version of a snapshot that cannot be applied.
        looked_for_end: by version that a snapshot began, up to where no end of it was found.
        next_look: when the target's columns are looked at again, by a clock that never goes back.
    """

    current: frozenset[str] = frozenset()
    appends_failed: int = 0
    keeps_unchanged: bool = False
    numbers: bool = False
    aside: int = 0
    given_up: int = 0
    looked_for_end: Mapping[int, int] = field(default_factory=dict)
    next_look: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What `status` tells beside the state.

    Attributes:
        warnings: what happened since the start, each text once.
        counts: what was not applied, by kind, since the table's beginning.
        unconverted: what rewrites had no place for, by version.
        replaced_nulls: see `planning.replaced_nulls`.
        doubts: what events left in doubt.
        resyncs: what the operator asked to be read again.
        written_at, event_at: see `TableStatus`.
    """

    warnings: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    unconverted: Mapping[int, Unconverted] = field(default_factory=dict)
    replaced_nulls: Mapping[int, int] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()
    resyncs: tuple[Resync, ...] = ()
    written_at: str | None = None
    event_at: str | None = None

    def counted(self, kind: str, number: int) -> Journal:
        """Return the journal with so many more of a kind."""
        return replace(self, counts={**self.counts, kind: self.counts.get(kind, 0) + number}) if number else self

    def with_unconverted(self, found: Unconverted) -> Journal:
        """Count what a rewrite had no place for, which is written down once however often the rewrite was begun."""
        told = {
            f"values of {name!r} that version {found.version} has no place for": number
            for name, number in found.counts.items()
        }
        return replace(self, unconverted={**self.unconverted, found.version: found}, counts={**self.counts, **told})


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What the operator asked for that keeps the table where it is.

    Attributes:
        hold: it is paused because the operator said so.
        skips: the records that it passes because the operator said so.
        rollback: the rewrite that is undone, or about to be, and keeps the table paused.
        regime: what was asked when the table was read the last time, and has to wait.
        snapshot: the next snapshot of the whole table takes the place of what the target holds.
        too_large: why it is not partitioned as configured; the answer takes another start.
        is_dividing: a new partitioning was begun and is not known to have ended: it failed, or the reply was lost.
    """

    hold: Hold | None = None
    skips: frozenset[KafkaPosition] = frozenset()
    rollback: Rollback | None = None
    regime: RegimeAsked | None = None
    snapshot: SnapshotReset | None = None
    too_large: Refused | None = None
    is_dividing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSeen:
    """How far the source's own word was looked at.

    Attributes:
        settled: structures up to here were compared with an event behind them.
        audited: how many statements were looked at for what was done without them.
        strangers: former names of the table under which no row ever came.
    """

    settled: SourcePosition | None = None
    audited: int = 0
    strangers: frozenset[TableId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """One table.

    Attributes:
        stop: why it does not go on until somebody decides, None if it does.
        failure: how the last attempt failed, None if it went well. It may have failed while it is stopped.
        wait: which evidence or table it stands before a change without, None if it does not.
        is_read: history and target were read since the start, or since they could not be.
        is_detached: the target, which was another table's before, has yet to come under this one's name.
        is_of_another_kind: the target is not what the configuration says, or is not as it was left.
        history: its versions, None before the first.
        progress: the target's marker; where there is no target, what one begins behind.
    """

    route: Route
    stop: Pause | None = None
    failure: Failure | None = None
    wait: Wait | None = None
    is_read: bool = False
    is_detached: bool = False
    is_of_another_kind: bool = False
    history: History | None = None
    progress: Progress | None = None
    target: TargetView = field(default_factory=TargetView)
    cursor: Cursor = field(default_factory=Cursor)
    hints: Hints = field(default_factory=Hints)
    journal: Journal = field(default_factory=Journal)
    requests: Requests = field(default_factory=Requests)
    evidence: EvidenceSeen = field(default_factory=EvidenceSeen)

    @property
    def table(self) -> TableId:
        """The source table."""
        return self.route.table

    @property
    def waits_for(self) -> TableId | None:
        """Another table that has something to do first, None if there is none."""
        return None if self.wait is None else self.wait.table

    @property
    def mode(self) -> Mode:
        """How rows are written."""
        return "append" if self.route.append else "upsert"

    @property
    def topics(self) -> tuple[str, ...]:
        """Those that the target has rows of."""
        return tuple(self.progress.offsets) if self.progress else ()

    @property
    def is_unread(self) -> bool:
        """Whether it fails for its history or target could not be read, the last time that was tried."""
        return self.failure is not None and self.stop is None and not self.is_read

    @property
    def is_ahead(self) -> bool:
        """Whether the target is stamped with a version that the history does not have."""
        return self.target.stamped is not None and self.target.stamped > (
            self.history.head.number if self.history else 0
        )

    @property
    def first_unseen(self) -> int:
        """Index of the first version behind the one that the target has, or begins with."""
        if self.target.stamped is not None or self.history is None:
            return self.target.stamped or 1
        end = last_end(self.history)
        return 1 if end is None else end.number + 1

    @property
    def is_gone(self) -> bool:
        """Whether the source table was dropped and its target is gone, or about to be."""
        return self.history is not None and self.history.head.ends_target

    @property
    def due(self) -> Version | None:
        """The recorded version at which the target has yet to go, None if there is none."""
        if self.history is None or self.target.stamped is None:
            return None
        end = last_end(self.history)
        return end if end is not None and end.number > self.target.stamped else None

    @property
    def renamed_to(self) -> Version | None:
        """The version at which the table got another name, where nothing is known under this one since."""
        head = None if self.history is None else self.history.head
        return head if head is not None and head.renamed_to is not None else None

    @property
    def has_key(self) -> bool:
        """Whether its rows are known to be found by a key."""
        return self.history is not None and bool(self.history.head.schema.primary_key)

    @property
    def reached(self) -> Progress | None:
        """The marker of what the table has read, which may be further than what it has committed.

        What it has only passed is of no use to anyone before the next commit, and must not be missed after it.
        """
        return None if self.progress is None else self.progress.looked_through(self.passed_of_topics)

    @property
    def passed_of_topics(self) -> Ends:
        """What was passed of the topics that the marker names."""
        return {place: at for place, at in self.cursor.passed.items() if place[0] in self.topics}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What `status` says beside the state: what happened since the start, and what the history still warns of."""
        told = {} if self.history is None else warnings_of(self.history)
        since = (text for text in self.journal.warnings if told.get(text, True))
        return tuple(dict.fromkeys((*since, *(text for text, holds in told.items() if holds))))

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The columns that have to be read again."""
        if self.history is None:
            return ()
        journal = self.journal
        # A changelog's rows are what the events said.
        replaced = {} if self.route.append else journal.replaced_nulls
        return marks(
            self.history, journal.unconverted.values(), journal.resyncs, self.progress, replaced, journal.doubts
        )

    def next_offset(self, topic: str, partition: int) -> int | None:
        """Return where the table goes on in a partition, None if it holds nothing of it."""
        committed = self.progress.next_offset(topic, partition) if self.progress else None
        passed = self.cursor.passed.get((topic, partition))
        return max((offset for offset in (committed, passed) if offset is not None), default=None)

    def lacks(self, end: Version) -> bool:
        """Whether it is not known here yet, or not carried out, that a table came under this name."""
        known = () if self.history is None else self.history.versions
        has_come = any(item.renamed_from is not None and item.position >= end.position for item in known)
        return self.stop is None and (self.is_detached or not has_come)

    def stopped(self, stop: Pause) -> TableState:
        """Return the table as it waits for a decision."""
        return replace(self, stop=stop)

    def warned(self, *texts: str) -> TableState:
        """Return the table with warnings, each text once."""
        warnings = tuple(dict.fromkeys((*self.journal.warnings, *texts)))
        return replace(self, journal=replace(self.journal, warnings=warnings))

    def doubted(self, found: Iterable[Doubt]) -> TableState:
        """Return the table with what is in doubt besides; what is told again after a start is known already."""
        known = {doubt.key for doubt in self.journal.doubts}
        new = [doubt for doubt in found if doubt.key not in known]
        if not new:
            return self
        return replace(self, journal=replace(self.journal, doubts=doubts_with(self.journal.doubts, new)))

    def with_resyncs(self, resyncs: tuple[Resync, ...]) -> TableState:
        """Return the table with what the operator asked to be read again."""
        failed = (item.failed for item in resyncs if item.failed is not None and not item.ends)
        said = (f"the connector could not read the rows again ({why}); `cdc-sync resync` asks anew" for why in failed)
        return replace(self, journal=replace(self.journal, resyncs=resyncs)).warned(*said)

    def failed(self, error: Failure) -> TableState:
        """Return the table as it fails."""
        return replace(self, failure=error)

    def recovered(self) -> TableState:
        """Return the table without a failure."""
        return self if self.failure is None else replace(self, failure=None)


def archived(state: TableState, end: Version) -> TargetName:
    """Return what the target is called once its source table was dropped."""
    return held_target(archive_name(state.route.target, end), state.route.capabilities.tables)
