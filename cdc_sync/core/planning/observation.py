"""What planning looks at, which is the first event of each stretch, and what it answers: values only."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.core.history.version import Version
from cdc_sync.core.model.incarnations import Began
from cdc_sync.core.model.positions import Commit, KafkaPosition, SourcePosition, TableId
from cdc_sync.core.planning.stops import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The first event of a stretch that shares one schema.

    Attributes:
        snapshot: the event was read by a snapshot (op `r`), not from the log.
        truncate: the event empties the table; it has no key and says nothing about columns.
        append_only: the source never inserts a column between others.
        partitions: how many partitions the topic has.
        opaque_key: records have keys that cannot be read.
        exceeded: which of the operator's limits the schema is beyond.
        holds_default: columns whose value in this very event equals their default.
        betrays_default: columns whose value in this very event shows that the default was cut off.
        before_seen_in_stream: events of the schema in effect before were also read from the log, not only by a
            snapshot; not looked up, and false, if this one was read by a snapshot.
        commit: of the event's transaction, None if the event does not tell it.
        reading: a snapshot of the whole table read it, and no incremental one.
        begins_reading: it says itself that it is the first row of one.
        began: when each incarnation of the source's log began up to the one that the event is of, see `incarnations`.
    """

    table: TableId
    position: SourcePosition
    kafka: KafkaPosition
    schema: EventSchema
    fingerprint: str
    snapshot: bool
    append_only: bool
    truncate: bool = False
    partitions: int = 1
    opaque_key: bool = False
    exceeded: Refused | None = None
    holds_default: frozenset[str] = frozenset()
    betrays_default: frozenset[str] = frozenset()
    before_seen_in_stream: bool = False
    commit: Commit | None = None
    reading: bool = False
    begins_reading: bool = False
    began: Began = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Consecutive events, in source order, of one table with one schema text; `kafka` is the first of them.

    A TRUNCATE is a stretch of its own, and so are the rows of a snapshot; a log that begins anew begins one.

    Attributes:
        began: when the source's log began anew under the table, as far as the survey shows it.
    """

    table: TableId
    position: SourcePosition
    kafka: KafkaPosition
    digest: str
    truncate: bool = False
    began: Began = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a table cannot go past an event, and what would let it."""

    why: Refused
    position: SourcePosition
    kafka: KafkaPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An event that shows a change which the evidence does not tell of yet, and what is missing.

    Attributes:
        table: it is not evidence that is missing, but what this table has yet to do, however long that takes.
    """

    reason: str
    position: SourcePosition
    kafka: KafkaPosition
    table: TableId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """New versions to record, in order; then what stops the table there, if anything: a refusal, or a wait."""

    versions: tuple[Version, ...]
    refusal: Refusal | None = None
    waiting: Waiting | None = None
    warnings: tuple[str, ...] = ()
