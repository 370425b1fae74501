"""Since when the evidence that is configured tells of a table, and what to do where it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.kept import Kept, Span
from cdc_sync.core.model.positions import SourcePosition, TableId

MESSAGES, SCHEMA_CHANGES, CATALOGUE, VALUES = (
    "evidence.messages",
    "evidence.schema_changes",
    "evidence.catalogue",
    "evidence.values",
)
INSTALL_AGAIN = (
    "run `cdc-sync install-ddl-capture --dsn DSN` (again), which tells what each table is, while the connector runs"
)
DECIDE = "what a change of its columns is that nothing else proves, `cdc-sync decide` says"

UNSEEN = (
    "no topic is configured that tells statements, so one that changes stored values, rows or names without an event "
    "for each is not seen: set {key} (`cdc-sync docs identity`), or compare with `cdc-sync verify`"
)
"""What is said of a table all the time where nothing tells its statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """The evidence of a pipeline; topics by their names."""

    messages: Sequence[str] = ()
    schema_changes: Sequence[str] = ()
    catalogue: bool = False
    values: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What evidence there is of one table.

    Attributes:
        since: by the key of the configuration, the position in the source's log from which it tells of the table, as
            text; None if it does not, or not yet. Only what can tell of a table of this source.
        gaps: what is missing, and what to do about it.
        unseen: what no event shows is not seen, in words; None if a topic is configured that tells statements.
    """

    since: Mapping[str, str | None] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()
    unseen: str | None = None

    @property
    def all_gaps(self) -> tuple[str, ...]:
        """What `status` says is missing."""
        return self.gaps if self.unseen is None else (*self.gaps, self.unseen)

    @property
    def in_words(self) -> str:
        """Say it beside a change that nothing proves."""
        if self.gaps:
            return "; ".join(self.gaps)
        if not self.since:
            return "no evidence is configured that proves such changes: `cdc-sync docs identity` shows what would"
        told = (name if at is None else f"{name} (since {at})" for name, at in self.since.items())
        return f"what is configured does not prove it: {', '.join(told)}"


def coverage(
    table: TableId,
    head: SourcePosition,
    configured: Configured,
    logs: Sequence[ColumnLog],
    kept: Kept,
    *,
    problem: str | None = None,
    untold: str | None = None,
) -> Coverage:
    """Return what evidence there is of a table.

    Args:
        table: whose.
        head: of its newest version, which tells of which source it is.
        configured: the evidence of the pipeline.
        logs: what its topics told so far.
        kept: readings of the table in the source's catalogue.
        problem: why the catalogue cannot be read, None if it can.
        untold: why messages do not tell of new commands, as the source's catalogue shows, None if they do.
    """
    since: dict[str, str | None] = {}
    gaps: list[str] = []
    is_postgres = head.kind == "postgresql"
    key, topics = (MESSAGES, configured.messages) if is_postgres else (SCHEMA_CHANGES, configured.schema_changes)
    if topics:
        kind = "message" if is_postgres else "ddl"
        told = [_told(log, table) for log in logs if log.kind == kind]
        known = [at for at, _ in told if at is not None]
        since[key] = str(min(known)) if known else None
        gaps += _gap(key, topics, known, [text for _, text in told if text is not None], head)
        if is_postgres and untold is not None:
            gaps.append(f"{key} tells nothing new: {untold}; {INSTALL_AGAIN}")
    if is_postgres and configured.catalogue:
        read = [entry.begun for entry in kept.entries if isinstance(entry, Span)]
        since[CATALOGUE] = f"{head.kind}:{min(read)}" if read else None
        if problem is not None:
            gaps.append(f"{CATALOGUE} is not read: {problem}")
    if configured.values:
        since[VALUES] = None
    return Coverage(since=since, gaps=tuple(gaps), unseen=None if topics else UNSEEN.format(key=key))


def _told(log: ColumnLog, table: TableId) -> tuple[SourcePosition | None, str | None]:
    """Return from where on a log tells of a table, and by which statement that ended, if it did."""
    since, lost = None, None
    for structure in log.of(table):
        if structure.columns:
            since, lost = since or structure.position, None
        elif not structure.dropped:
            since, lost = None, f"at {structure.position} ({structure.statement})"
    return since, lost


def _gap(
    key: str, topics: Sequence[str], known: Sequence[SourcePosition], lost: Sequence[str], head: SourcePosition
) -> list[str]:
    names = ", ".join(topics)
    if head.incarnation:
        return [f"the source's log began anew, and what {key} ({names}) tells is not joined to it; {DECIDE}"]
    if known:
        return []
    remedy = INSTALL_AGAIN if key == MESSAGES else DECIDE
    if lost:
        return [
            f"{key} ({names}) tells nothing of the table any more since what was not understood {lost[0]}; {remedy}"
        ]
    return [f"{key} ({names}) tells nothing of the table yet; {remedy}"]
