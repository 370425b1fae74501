"""A source of rows with large values, as plain Python: what it holds, and the events a connector makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32, INT64, STRING, BinaryType, ListType
from cdc_sync.spark.columns import OFFSET, OP, PARTITION, POSITION, unchanged_column, value_column
from cdc_sync.spark.position import POSITION_TYPE
from cdc_sync.spark.types import to_spark

ID, N, TEXT, DATA, TAGS = 1, 2, 3, 4, 5
LARGE = (TEXT, DATA, TAGS)
"""Ids of the columns that an event may leave out."""
SCHEMA = InternalSchema(
    columns=(
        Column(id=ID, name="id", type=INT64, optional=False),
        Column(id=TEXT, name="text", type=STRING),
        Column(id=N, name="n", type=INT32),
        Column(id=DATA, name="data", type=BinaryType()),
        Column(id=TAGS, name="tags", type=ListType(element=STRING, element_id=6)),
    ),
    primary_key=(ID,),
    last_column_id=6,
)
Row: TypeAlias = dict[int, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change; `row` holds what the event has, so neither what it leaves out nor, for deletes, more than the key."""

    partition: int
    offset: int
    op: str
    position: int
    row: Mapping[int, Any]


@dataclass
class Source:
    """Rows by key, and one log for each partition; a value is left out where it is large and did not change."""

    partitions: int = 1
    rows: dict[int, Row] = field(default_factory=dict)
    logs: list[list[Event]] = field(default_factory=list)
    _position: int = 0

    def __post_init__(self) -> None:
        self.logs = [[] for _ in range(self.partitions)]

    def insert(self, key: int, op: str = "c", **values: Any) -> None:
        self._position += 1
        self.rows[key] = {ID: key, N: 0, TEXT: None, DATA: None, TAGS: None} | _by_id(values)
        self._log(op, self.rows[key])

    def update(self, key: int, **values: Any) -> None:
        """Change values; a new `id` makes a delete and a create."""
        self._position += 1
        before = self.rows.pop(key)
        row = before | _by_id(values)
        self.rows[row[ID]] = row
        sent = {id_: value for id_, value in row.items() if id_ in _by_id(values) or not _is_large(value)}
        if row[ID] == key:
            self._log("u", sent)
            return
        self._log("d", {ID: key})
        self._log("c", sent)

    def delete(self, key: int) -> None:
        self._position += 1
        del self.rows[key]
        self._log("d", {ID: key})

    def repeat(self, position: int) -> None:
        """Send every event from a position on once more, as a connector does that lost its offsets."""
        again = sorted((event for log in self.logs for event in log if event.position >= position), key=_in_time)
        sent = set()
        for event in again:
            if (event.position, event.op) not in sent:
                sent.add((event.position, event.op))
                self._log(event.op, event.row, event.position)

    @property
    def position(self) -> int:
        return self._position

    @property
    def ends(self) -> dict[int, int]:
        return {partition: len(log) for partition, log in enumerate(self.logs)}

    def _log(self, op: str, row: Mapping[int, Any], position: int | None = None) -> None:
        log = self.logs[row[ID] % self.partitions]
        at = self._position if position is None else position
        partition = row[ID] % self.partitions
        log.append(Event(partition=partition, offset=len(log), op=op, position=at, row=dict(row)))


def _in_time(event: Event) -> tuple[int, bool]:
    return event.position, event.op != "d"


def _by_id(values: Mapping[str, Any]) -> Row:
    return {column.id: values[column.name] for column in SCHEMA.columns if column.name in values}


def _is_large(value: Any) -> bool:
    return isinstance(value, (str, bytes, list)) and len(value) >= 3


_EVENT = T.StructType(
    [
        T.StructField(PARTITION, T.IntegerType()),
        T.StructField(OFFSET, T.LongType()),
        T.StructField(OP, T.StringType()),
        *(T.StructField(value_column(c.id), to_spark(c.type)) for c in SCHEMA.columns),
        *(T.StructField(unchanged_column(id_), T.BooleanType(), False) for id_ in LARGE),
        T.StructField(POSITION, POSITION_TYPE),
    ]
)


def converted(session: SparkSession, events: Sequence[Event]) -> DataFrame:
    """Return events as `spark.compile.convert` does with `keep_unchanged`; position 0 is one that is not told."""
    rows = [
        (
            event.partition,
            event.offset,
            event.op,
            *(event.row.get(column.id) for column in SCHEMA.columns),
            *(event.op != "d" and id_ not in event.row for id_ in LARGE),
            (0, "postgresql", [7, event.position]) if event.position else (0, "none", []),
        )
        for event in events
    ]
    return session.createDataFrame(rows, _EVENT)


def live(source: Source, random: Random, changes: int, *, keys: int = 8, repeats: bool = False) -> None:
    """Let random things happen to the rows of a few keys."""
    for _ in range(changes):
        present, absent = sorted(source.rows), sorted(set(range(keys)) - source.rows.keys())
        what = random.choices(("insert", "update", "rekey", "delete", "repeat"), (4, 6, 4, 1, 0.2))[0]
        if what == "insert" and absent:
            source.insert(random.choice(absent), random.choice("ccr"), n=random.randrange(99), **_large(random, 1))
        elif what == "update" and present:
            source.update(random.choice(present), n=random.randrange(99), **_large(random, 0.3))
        elif what == "rekey" and present and absent:
            source.update(random.choice(present), id=random.choice(absent), **_large(random, 0.15))
        elif what == "delete" and present:
            source.delete(random.choice(present))
        elif what == "repeat" and repeats:
            source.repeat(max(1, source.position - random.randrange(12)))


def _large(random: Random, chance: float) -> dict[str, Any]:
    """Values for some of the columns that can be large: large ones, small ones, and NULL."""
    letters = "".join(random.choices("abcdefgh", k=random.choice((1, 5, 5, 5))))
    made = {"text": letters, "data": letters.encode(), "tags": list(letters)}
    return {name: random.choices((value, None), (5, 1))[0] for name, value in made.items() if random.random() < chance}
