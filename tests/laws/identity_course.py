"""What a source went through, as its readers see it: row events, and what it said of its columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cdc_sync.core.debezium.wire import EventSchema, WireColumn
from cdc_sync.core.lineage.catalogue import Attribute, Stamp
from cdc_sync.core.lineage.records import SchemaChangeRecord
from cdc_sync.core.model.positions import Commit, KafkaPosition, SourcePosition, TableId
from cdc_sync.core.planning.observation import Observation
from tests.laws.identity_model import KINDS, Col

DATABASE = "shop"
NAME = "t"
POSTGRES = TableId(database=DATABASE, schema="public", table=NAME)
MYSQL = TableId(database=DATABASE, schema="", table=NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row event of the table.

    Attributes:
        columns: those it shows.
        known_at: LSN of its transaction's commit; nobody sees the row before.
        commit: of its transaction; Postgres only.
    """

    position: SourcePosition
    kafka: KafkaPosition
    snapshot: bool
    columns: tuple[Col, ...]
    known_at: int = 0
    commit: Commit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What Postgres' event trigger knows about one command, or about a table when it is installed.

    Attributes:
        tag: of the command; empty for what is told when the trigger is installed.
        object: the command's object identity, as `pg_event_trigger_ddl_commands` shows it.
        columns: all that the relation has after the command; None after a DROP TABLE.
    """

    position: SourcePosition
    tag: str
    object: str
    table: str
    relid: int
    columns: tuple[Col, ...] | None
    statement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What Postgres' catalogue shows from a commit on.

    Attributes:
        at: the commit's time in microseconds.
        attributes: all that the table ever had, with who wrote them last; None while no table has the name.
        named: who gave the table its name.
    """

    position: SourcePosition
    at: int
    relid: int
    attributes: tuple[Attribute, ...] | None
    named: Stamp

    def without_commands(self, keys: Collection[tuple[int, int]]) -> State:
        """Return what is shown if transactions that were taken back wrote these rows: (relid, attnum or 0)."""

        def told(number: int, stamp: Stamp) -> Stamp:
            return replace(stamp, command=None) if (self.relid, number) in keys else stamp

        attributes = self.attributes and tuple(
            replace(item, stamp=told(item.number, item.stamp)) for item in self.attributes if item.stamp is not None
        )
        return replace(self, attributes=attributes, named=told(0, self.named))


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One generated history of one table.

    Attributes:
        connector: `postgresql`, `mysql` or `mariadb`.
        rows: in source order.
        told: Postgres' messages, in source order.
        states: of Postgres' catalogue, in source order.
        changes: the schema-change topic of MySQL and MariaDB, in its order.
        themes: what was done, for counting.
        statements: as they were given to the source, those of other sessions and of the capture's own left out.
        script: Postgres only: the same with rows, and with what was taken back, in its transactions.
        final: the tables at the end, by name, for comparing with a real database.
        partitions: of the table's topic.
        pick: an integer for whatever else has to be chosen.
    """

    connector: str
    rows: tuple[Row, ...]
    told: tuple[Told, ...] = ()
    states: tuple[State, ...] = ()
    changes: tuple[SchemaChangeRecord, ...] = ()
    themes: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    final: tuple[tuple[str, tuple[Col, ...]], ...] = ()
    partitions: int = 1
    pick: int = 0

    @property
    def table(self) -> TableId:
        return POSTGRES if self.connector == "postgresql" else MYSQL


def shown(columns: list[Col], *, snapshot: bool, connector: str) -> tuple[Col, ...]:
    """Return the columns that a row event shows."""
    hides = connector == "postgresql" and not snapshot
    return tuple(c for c in columns if not c.is_excluded and not (hides and c.generated))


@lru_cache(maxsize=100_000)
def schema_of(shape: tuple[tuple[str, str, bool], ...]) -> EventSchema:
    key = tuple(name for name, _, is_key in shape if is_key)
    return EventSchema(
        columns=tuple(
            WireColumn(name=name, field=name, wire=KINDS[kind].wire, optional=not key) for name, kind, key in shape
        ),
        key=key,
        record_key=key,
    )


def shape_of(row: Row) -> tuple[tuple[str, str, bool], ...]:
    return tuple((column.name, column.kind, column.key) for column in row.columns)


def observations(course: Course, told: Sequence[SourcePosition]) -> Iterator[tuple[Row, Observation]]:
    """Cut the rows into stretches: one begins where the schema changes, and behind every position in `told`.

    More may be told while an observation is looked at.
    """
    previous: Row | None = None
    streamed_before = streamed = False
    passed: set[SourcePosition] = set()
    for row in course.rows:
        cuts = {position for position in told if position <= row.position} - passed
        passed |= cuts
        if previous is not None and shape_of(previous) != shape_of(row):
            streamed_before, streamed = streamed, False
        if previous is None or cuts or shape_of(previous) != shape_of(row):
            yield row, observation(course, row, before_seen_in_stream=streamed_before or streamed)
        streamed = streamed or not row.snapshot
        previous = row


def observation(course: Course, row: Row, *, before_seen_in_stream: bool = True) -> Observation:
    shape = shape_of(row)
    return Observation(
        table=course.table,
        position=row.position,
        kafka=row.kafka,
        schema=schema_of(shape),
        fingerprint=str(hash(shape)),
        snapshot=row.snapshot,
        append_only=course.connector == "postgresql",
        partitions=course.partitions,
        before_seen_in_stream=before_seen_in_stream,
        commit=row.commit,
    )
