"""What commands return that no other package does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cdc_sync.config import Config
from cdc_sync.core.migration.capabilities import SchemaEvolution
from cdc_sync.core.migration.wording import Phrase
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.status import StateName


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """A configuration that can be used.

    Attributes:
        topics: the topics that match now; None if Kafka was not asked.
    """

    config: Config
    warnings: tuple[str, ...]
    topics: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDifference:
    """What leads from one version of a table to another."""

    table: TableId
    before: int
    after: int
    changes: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """What the job is to do about a rewrite of a table.

    Attributes:
        version: the version that rewrote the rows.
        undo: it is to be carried out again; else rows and columns go back to those before.
        is_back: by the job's last word, rows and columns are those before already.
    """

    table: TableId
    version: int
    undo: bool
    is_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What the job is to do about how a table's columns are found.

    Attributes:
        evolution: the regime that all its rows are rewritten in.
        undo: they are not, though that was asked before.
    """

    table: TableId
    target: str
    evolution: SchemaEvolution
    undo: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedOfTable:
    """What becomes of one table.

    Attributes:
        state, reason: how it stands, as the job said last.
        is_new: something is asked of it, which was not before.
        text: what becomes of it, as in "is paused until ...".
    """

    table: TableId
    state: StateName
    reason: str | None
    is_new: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedOfTables:
    """What the job is to do with some tables.

    Attributes:
        is_running: a job runs, and takes it up; else the next one does.
        dry_run: nothing was asked.
    """

    word: Literal["forget", "pause", "resume", "skip"]
    tables: tuple[RequestedOfTable, ...]
    is_running: bool
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetAsked:
    """A table that is to be read again.

    Attributes:
        target, into: what its target is called now and then; None if it is emptied for a snapshot's rows.
        topic: where the connector is asked for a snapshot; None where it is not, or is the reader's to be asked.
        statement: how, as SQL for the source's signalling table.
        is_running: a job runs, and takes it up; else the next one does.
        dry_run: nothing was asked.
    """

    table: TableId
    target: str
    into: str | None
    is_running: bool
    dry_run: bool
    topic: str | None = None
    statement: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Which pages of documentation there are."""

    pages: tuple[str, ...]
