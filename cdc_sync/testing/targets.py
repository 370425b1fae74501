"""What every target promises, as a check for whoever adds a table format; its own tests need no other table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.migration import migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32, INT64, STRING
from cdc_sync.errors import TargetMoved
from cdc_sync.spark.columns import CREATED, DELETED, unchanged_column, value_column
from cdc_sync.spark.types import to_spark
from cdc_sync.spark.unchanged import FORGOTTEN
from cdc_sync.targets.protocol import Batch, Target

Row: TypeAlias = Mapping[str, Any]
_ID = Column(id=1, name="id", type=INT64, optional=False)
_A, _B = Column(id=2, name="a", type=INT32), Column(id=3, name="b", type=STRING)
_BEFORE = InternalSchema(columns=(_ID, _A, _B), primary_key=(1,), last_column_id=3)
_NEW = Column(id=4, name="new", type=STRING, default="x", initial="x")
_AFTER = InternalSchema(columns=(_ID, replace(_A, name="renamed"), _NEW), primary_key=(1,), last_column_id=4)
_FIRST = Progress(version=1, offsets={"t": {0: 5, 1: 0}}, topic_ids={"t": "AbC"}, high_water={"t": {0: 2**40}})


def check_target(target: Target, spark: SparkSession, name: TargetName, rows: Callable[[], Iterable[Row]]) -> None:
    """Take a table through what a job does with one, and through every call that it may repeat.

    Args:
        target: as the format opens it.
        spark: the session that it was opened with.
        name: of a table that is not there.
        rows: what a reader of the format sees of it now, by column name.

    Raises:
        AssertionError: saying what is promised and what was found instead.
    """

    def expect(promise: str, held: list[dict[str, Any]], progress: Progress | None, stamped: int) -> None:
        state = target.state(name)
        found = sorted((dict(row) for row in rows()), key=lambda row: int(row["id"]))
        _same(f"{promise}: rows", found, held)
        _same(f"{promise}: progress", None if state is None else state.progress, progress)
        _same(f"{promise}: version", None if state is None else state.version, stamped)

    def write(
        schema: InternalSchema, values: list[dict[str, Any]], progress: Progress, behind: Progress | None
    ) -> None:
        frame = frame_of(spark, schema, values)
        target.write(name, Batch(rows=frame, schema=schema, progress=progress, behind=behind))

    able = target.capabilities
    _same("a table that is not there has no state", target.state(name), None)
    made = migration(None, None, version(1, _BEFORE), capabilities=able)
    for _ in range(2):
        target.migrate(name, made, Progress(version=1))
        expect("a new table is stamped and empty, also when it is made again", [], None, 1)

    one, two = {"id": 1, "a": 10, "b": "x"}, {"id": 2, "a": None, "b": None}
    write(_BEFORE, [one, two], _FIRST, None)
    expect("rows and progress are one commit", [one, two], _FIRST, 1)
    second = replace(_FIRST, offsets={"t": {0: 7, 1: 1}})
    changed = {**one, "a": 11}
    write(_BEFORE, [{**changed, "created": False}, {"id": 2, "deleted": True, "created": False}], second, _FIRST)
    expect("rows are changed and deleted by their key", [changed], second, 1)
    _refused("a write that was begun on an older state", lambda: write(_BEFORE, [two], second, _FIRST))
    expect("what is refused leaves the table as it is", [changed], second, 1)
    third = replace(second, offsets={"t": {0: 8, 1: 1}})
    target.mark(name, third, second)
    expect("progress alone changes nothing else", [changed], third, 1)

    steps = migration(version(1, _BEFORE), version(1, _BEFORE), version(2, _AFTER), capabilities=able)
    fourth = replace(third, version=2)
    for _ in range(2):
        target.migrate(name, steps, fourth)
        evolved = {"id": 1, "renamed": 11, "new": "x"}
        expect("columns are added, renamed and dropped, rows keep what they hold", [evolved], fourth, 2)
    read = target.read(name, _AFTER, [1, 2]).collect()
    _same("rows are read by the ids of columns", [tuple(row) for row in read], [(1, 11)])

    fifth = replace(fourth, offsets={"t": {0: 9, 1: 1}})
    target.truncate(name, fifth, fourth)
    expect("a truncated table is empty", [], fifth, 2)
    _refused("a TRUNCATE that was begun on an older state", lambda: target.truncate(name, third, third))
    for _ in range(2):
        target.drop(name)
        _same("a dropped table is gone, also when it is dropped again", target.state(name), None)


def frame_of(
    spark: SparkSession, schema: InternalSchema, rows: Iterable[Row], unchanged: Sequence[int] = ()
) -> DataFrame:
    """Return rows as a batch holds them.

    Args:
        spark: the session.
        schema: names the columns, by which values are given; `deleted` and `created` are false and true where they are
            not given.
        rows: the values.
        unchanged: ids of columns that a row keeps the value of if it does not name them.
    """
    flags = [DELETED, CREATED, *([FORGOTTEN, *map(unchanged_column, unchanged)] if unchanged else [])]
    fields = [T.StructField(name, T.BooleanType()) for name in flags]
    fields += [T.StructField(value_column(column.id), to_spark(column.type)) for column in schema.columns]
    names = [column.name for column in schema.columns]
    values = []
    for row in rows:
        kept = {unchanged_column(id_): schema.column(id_).name not in row for id_ in unchanged}
        given = {DELETED: False, CREATED: True, FORGOTTEN: False, **kept}
        # A column of the source may have the name of a flag.
        said = (given[name] if name in names else bool(row.get(name, given[name])) for name in flags)
        values.append((*said, *map(row.get, names)))
    return spark.createDataFrame(values, T.StructType(fields))


def _same(promise: str, found: object, promised: object) -> None:
    if found != promised:
        raise AssertionError(f"{promise}: found {found!r}, promised {promised!r}")


def _refused(what: str, do: Callable[[], None]) -> None:
    try:
        do()
    except TargetMoved:
        return
    raise AssertionError(f"{what} is refused with TargetMoved")


def version(number: int, schema: InternalSchema) -> Version:
    """Return a version of a table `t` that has a schema, and no changes that led to it."""
    return Version(
        table=TableId(database="shop", schema="public", table="t"),
        number=number,
        fingerprint=f"{number:016x}",
        schema=schema,
        changes=(),
        evidence=(),
        position=SourcePosition(kind="postgresql", parts=(number, number)),
        kafka=KafkaPosition(topic="t", partition=0, offset=number),
        snapshot=False,
        append_only=True,
    )
