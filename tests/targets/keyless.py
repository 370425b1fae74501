"""Events of a table without a key, as converted rows, and the plainest model of what they lead to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import BINARY, FLOAT64, INT32, STRING, DecimalType, Field, ListType, StructType
from cdc_sync.spark.columns import HAS_BEFORE, OFFSET, OP, PARTITION, before_column, value_column
from cdc_sync.spark.types import to_spark
from cdc_sync.spark.whole_rows import whole_rows
from cdc_sync.targets.common.keyless import comparable
from cdc_sync.targets.protocol import Batch
from tests.targets.conftest import Lake

Row = tuple[Any, ...]

MEMBERS = StructType(fields=(Field(id=6, name="n", type=INT32), Field(id=7, name="d", type=FLOAT64)))
SCHEMA = InternalSchema(
    columns=(
        Column(id=1, name="number", type=FLOAT64),
        Column(id=2, name="te`xt", type=STRING),
        Column(id=3, name="list", type=ListType(element_id=4, element=FLOAT64)),
        Column(id=5, name="members", type=MEMBERS),
        Column(id=8, name="bytes", type=BINARY),
        Column(id=9, name="exact", type=DecimalType(precision=10, scale=2)),
    ),
    primary_key=(),
    last_column_id=9,
)
NOTHING: Row = (None,) * 6


@dataclass(frozen=True, slots=True)
class Event:
    """A change; `before` and `after` as the operation has them."""

    op: str
    before: Row | None = None
    after: Row | None = None


def created(row: Row) -> Event:
    return Event("c", None, row)


def updated(before: Row, after: Row) -> Event:
    return Event("u", before, after)


def deleted(row: Row) -> Event:
    return Event("d", row, None)


def converted(session: SparkSession, events: Sequence[Event], schema: InternalSchema = SCHEMA) -> DataFrame:
    """Return the events as `compile.convert` does with images."""
    fields = [
        T.StructField(PARTITION, T.IntegerType()),
        T.StructField(OFFSET, T.LongType()),
        T.StructField(OP, T.StringType()),
        T.StructField(HAS_BEFORE, T.BooleanType()),
        *(T.StructField(value_column(column.id), to_spark(column.type)) for column in schema.columns),
        *(T.StructField(before_column(column.id), to_spark(column.type)) for column in schema.columns),
    ]
    empty: Row = (None,) * len(schema.columns)
    rows = [
        (0, offset, event.op, event.before is not None, *(event.after or empty), *(event.before or empty))
        for offset, event in enumerate(events)
    ]
    return session.createDataFrame(rows, T.StructType(fields))


def apply(lake: Lake, events: Sequence[Event], schema: InternalSchema = SCHEMA, **options: Any) -> None:
    """Write the events as one batch."""
    rows = whole_rows(converted(lake.session, events, schema), schema)
    batch = Batch(rows=rows, schema=schema, progress=Progress(version=1), behind=lake.held, require_rows=True)
    lake.target.write(lake.name, replace(batch, **options))


def counted(rows: Sequence[dict[str, Any]]) -> Counter[Hashable]:
    """Return how often each row is there, equal as Spark has it."""
    return Counter(comparable(row) for row in rows)


def expected(events: Sequence[Event]) -> Counter[Hashable]:
    """Return what the events lead to, from nothing."""
    held: Counter[Hashable] = Counter()
    for event in events:
        if event.before is not None:
            held[comparable(event.before)] -= 1
        if event.after is not None:
            held[comparable(event.after)] += 1
    assert min(held.values(), default=0) >= 0
    return +held
