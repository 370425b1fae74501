"""What commands tell of tables: the versions of their schemas, what a run would do to them, and how one ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.wording import Phrase, dropped_text, phrases
from cdc_sync.core.model.dead_letters import DeadLetterCount
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.planning.explain import ExplainedStep
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.core.schema.alignment import Evidence
from cdc_sync.errors import RefusedError, TransientError


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionLine:
    """One schema version, and how it came about."""

    number: int
    position: SourcePosition
    kafka: KafkaPosition
    snapshot: bool
    fingerprint: str
    changes: tuple[Phrase, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHistory:
    """The versions of one table, oldest first."""

    table: TableId
    versions: tuple[VersionLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable:
    """What a run would do to one table.

    Attributes:
        offsets: how many offsets of its topics are not read yet; tombstones are among them.
        versions: what would be recorded.
        steps: what would be done to the target, in order, each a commit.
        problem: why it would not go on to the end, None if it would.
        paused: the problem needs somebody to decide; else it is waited out, or tried again.
        remedy, at: what would let it go on, and the record it would stand before.
    """

    table: TableId
    target: str
    offsets: int
    versions: tuple[VersionLine, ...]
    steps: tuple[ExplainedStep, ...]
    problem: str | None
    paused: bool
    remedy: str | None
    at: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run would do.

    Attributes:
        dead_letters: records that no table can be made of.
        problem: why nothing at all would be read; None if anything could be.
    """

    pipeline: str
    tables: tuple[PlannedTable, ...]
    dead_letters: tuple[DeadLetterCount, ...]
    problem: str | None = None

    @property
    def exit_code(self) -> int:
        """5 if a table would pause, 2 if schema or target would change or a table not get to the end, else 0.

        4 if there is no topic to read.
        """
        if any(table.paused for table in self.tables):
            return RefusedError.exit_code
        if self.problem is not None:
            return TransientError.exit_code
        return 2 if any(table.versions or table.steps or table.problem for table in self.tables) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """How a run ended.

    Attributes:
        batches: micro-batches processed.
        tables: the status at the end of every table that the configuration wants.
        other_records: records that carry no rows, by kind.
        unread: topics that could not be read and of which no table is known, and why not.
        problem: why nothing at all was read; None if anything could be.
    """

    batches: int
    tables: tuple[TableStatus, ...]
    other_records: Mapping[str, int]
    unread: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None

    @property
    def exit_code(self) -> int:
        """5 if a table waits for somebody's decision, 4 if one failed or waits, or a topic was not read, else 0."""
        states = {status.state for status in self.tables}
        if "paused" in states:
            return RefusedError.exit_code
        is_behind = states & {"failing", "waiting"} or self.unread or self.problem is not None
        return TransientError.exit_code if is_behind else 0


def _table_changes(version: Version) -> tuple[Phrase, ...]:
    """Put in words what happened to the table as a whole."""
    former = version.renamed_from
    if former is not None:
        text = f"the table came under this name: it was {former.names[-1]}, version {former.version}"
        return (Phrase(kind="RenameTable", column=None, text=text),)
    if version.dropped is None:
        return ()
    if version.renamed_to is not None:
        text = f"the source table was renamed to {version.renamed_to}: {dropped_text(version.dropped)}"
        return (Phrase(kind="RenameTable", column=None, text=text),)
    text = f"the source table was dropped: {dropped_text(version.dropped)}"
    return (Phrase(kind="DropTable", column=None, text=text),)


def table_history(recorded: History) -> TableHistory:
    """Put the versions of a table in words."""
    lines = []
    before = None
    for version in recorded.versions:
        lines.append(
            VersionLine(
                number=version.number,
                position=version.position,
                kafka=version.kafka,
                snapshot=version.snapshot,
                fingerprint=version.fingerprint,
                changes=(*_table_changes(version), *phrases(version.changes, before, version.schema)),
                evidence=version.evidence,
            )
        )
        before = version.schema
    return TableHistory(table=recorded.table, versions=tuple(lines))
