"""Members of structs that a query asks for alone, in a session that nobody set up for it, in files that are older.

Spark reads no more than what is asked for. Of a file that has nothing of that its readers make a NULL of the struct, or
of the list around it, and nothing fails. So either every file has every member, or those who read have to be told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.core.migration.migration import AlterTable, RewriteTable, migration
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32, INT64, STRING, DataType, Field, ListType, MapType, StructType
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake, shown

pytestmark = pytest.mark.spark

Members: TypeAlias = "tuple[tuple[int, str, DataType | Members], ...]"
Row: TypeAlias = Mapping[str, Any]
Path: TypeAlias = tuple[str, ...]

OLD: Members = ((1, "x", INT32), (2, "gone", STRING), (3, "y", STRING), (4, "in", ((5, "p", INT32), (6, "q", STRING))))
FEWER: Members = ((3, "y", STRING), (1, "x", INT32), (4, "in", ((6, "q", STRING), (5, "p", INT32))))
MORE: Members = (
    *((9, "new", STRING), (3, "y", STRING), (1, "x", INT32)),
    (4, "in", ((6, "q", STRING), (10, "new", INT32), (5, "p", INT32))),
    (11, "made", ((12, "r", INT32),)),
)
OTHER_NAMES: Members = (
    *((9, "y", STRING), (3, "new", STRING), (1, "x", INT32)),
    (4, "in", ((10, "p", INT32), (6, "q", STRING), (5, "new", INT32))),
)
HISTORY: Sequence[tuple[Members, str]] = ((FEWER, "slm"), (MORE, "lms"), (OTHER_NAMES, "slm"))
"""Members, and the names of the three columns they are in: one goes and others move; three come; they swap names."""
HOW: Mapping[str, Sequence[type]] = {
    "iceberg": (AlterTable, AlterTable, RewriteTable),
    "delta": (AlterTable, RewriteTable, RewriteTable),
}
"""What becomes of each; other formats rewrite all of it."""
ASKED: Sequence[Path] = (("new",), ("in", "new"), ("y",))

ID = Column(id=1, name="id", type=INT64)
PROGRESS = Progress(version=1, offsets={"t": {0: 5}})


def struct(base: int, members: Members) -> StructType:
    return StructType(
        fields=tuple(
            Field(id=base + id_, name=name, type=struct(base, of) if isinstance(of, tuple) else of)
            for id_, name, of in members
        )
    )


def columns(members: Members, names: str) -> tuple[Column, ...]:
    """A column that is the struct, one that is a list of it, and one that is a map to it."""
    one, listed, keyed = (struct(base, members) for base in (100, 200, 300))
    of_map = MapType(key_id=350, key=STRING, value_id=351, value=keyed)
    types: tuple[DataType, ...] = (one, ListType(element_id=250, element=listed), of_map)
    return ID, *(Column(id=n, name=name, type=of) for n, name, of in zip((2, 3, 4), names, types, strict=True))


def filled(type_: DataType, key: int) -> Any:
    """A value by ids, no two parts of which are the same."""
    match type_:
        case StructType(fields=fields):
            return {it.id: filled(it.type, 10 * it.id + key) for it in fields}
        case ListType(element=element):
            return [filled(element, key), None, filled(element, key + 5)]
        case MapType(value=value):
            return {"k": filled(value, key), "none": None}
        case _:
            return str(key) if type_ == STRING else key


@dataclass(frozen=True, kw_only=True)
class Question:
    """A query, and what it has to say of each row.

    Attributes:
        exploded: the list or map whose parts are asked, as `it`; empty for the rows themselves.
        with_id: the key is asked for beside it.
    """

    select: str
    where: str = "true"
    exploded: str = ""
    with_id: bool = True
    answers: Callable[[Row], Sequence[Any]]

    def query(self, frame: DataFrame) -> DataFrame:
        if self.exploded:
            frame = frame.selectExpr("id", self.exploded)
        key = ["id"] if self.with_id else ["0 as id"]
        return frame.where(self.where).selectExpr(*key, f"{self.select} as v")

    def answer(self, rows: Sequence[Row]) -> list[Row]:
        return [{"id": row["id"] if self.with_id else 0, "v": it} for row in rows for it in self.answers(row)]


def reached(held: Any, path: Path) -> Any:
    """What is at a path: NULL behind what is NULL or not there, of lists what each element has."""
    if isinstance(held, list):
        return [reached(it, path) for it in held]
    return held if held is None or not path else reached(held.get(path[0]), path[1:])


def has(type_: DataType, path: Path) -> bool:
    match type_:
        case _ if not path:
            return True
        case StructType(fields=fields):
            return any(it.name == path[0] and has(it.type, path[1:]) for it in fields)
        case ListType(element=of) | MapType(value=of):
            return has(of, path)
        case _:
            return False


def questions(schema: InternalSchema) -> Iterator[Question]:
    """Every member alone, in several ways, all together, and whole rows."""
    yield Question(select="struct(*)", answers=lambda row: [row])
    for column in schema.columns[1:]:
        paths = [path for path in ASKED if has(column.type, path)]
        for path in paths:
            yield from about_member(column, path)
        yield about_all(column, paths)


def about_member(column: Column, path: Path) -> Iterator[Question]:
    sql, inside = in_struct(column)
    asked, whole = ".".join((sql, *path)), (*inside, *path)
    yield Question(select=asked, with_id=False, answers=lambda row: [reached(row, whole)])
    yield Question(
        select="'none'", where=f"{asked} is null", answers=lambda row: ["none"] if reached(row, whole) is None else []
    )
    if isinstance(column.type, ListType):
        around, held = column.name, inside
    else:
        around, held = ".".join((sql, *path[:-1])), whole[:-1]
    yield Question(
        select=asked,
        where=f"{around} is not null",
        answers=lambda row: [] if reached(row, held) is None else [reached(row, whole)],
    )
    if not isinstance(column.type, StructType):
        parts = "k, it" if isinstance(column.type, MapType) else "it"
        yield Question(
            exploded=f"explode({column.name}) as ({parts})",
            select=".".join(("it", *path)),
            answers=lambda row: [reached(it, path) for it in elements(row[column.name])],
        )


def about_all(column: Column, paths: Sequence[Path]) -> Question:
    sql, inside = in_struct(column)
    members = (f"'v{n}', {'.'.join((sql, *path))}" for n, path in enumerate(paths))
    return Question(
        select=f"named_struct({', '.join(members)})",
        answers=lambda row: [{f"v{n}": reached(row, (*inside, *path)) for n, path in enumerate(paths)}],
    )


def in_struct(column: Column) -> tuple[str, Path]:
    """What a query calls the struct of a column, or one of them, and where it is."""
    if isinstance(column.type, MapType):
        return f"{column.name}['k']", (column.name, "k")
    return column.name, (column.name,)


def elements(held: Any) -> Sequence[Any]:
    return [*held.values()] if isinstance(held, dict) else held or []


def wrong(frame: DataFrame, asked: Sequence[Question], rows: Sequence[Row]) -> list[str]:
    """Return the questions that get another answer. All are one job; each is a scan of its own."""
    as_json = (
        it.query(frame).select(
            F.lit(n).alias("n"), F.to_json(F.struct("id", "v"), {"ignoreNullFields": "false"}).alias("row")
        )
        for n, it in enumerate(asked)
    )
    found: dict[int, list[str]] = {}
    for row in reduce(DataFrame.union, as_json).collect():
        found.setdefault(row["n"], []).append(_text(json.loads(row["row"])))
    answers = ((it, sorted(found.get(n, [])), sorted(map(_text, it.answer(rows)))) for n, it in enumerate(asked))
    return [
        f"{it.select} {it.exploded} where {it.where}: {got}, not {right}" for it, got, right in answers if got != right
    ]


def _text(row: Row) -> str:
    return json.dumps(row, sort_keys=True)


@dataclass
class Table:
    """A table, and its rows by ids."""

    lake: Lake
    schema: InternalSchema
    held: dict[int, Mapping[int, Any]] = field(default_factory=dict)
    number: int = 1

    def append(self, *rows: Mapping[int, Any]) -> None:
        """Write a file of new rows."""
        self.held |= {row[1]: row for row in rows}
        self.lake.write(self.schema, map(self._shown, rows), progress=self._progress, append=True)

    def full(self, key: int) -> Mapping[int, Any]:
        return {1: key, **{column.id: filled(column.type, key) for column in self.schema.columns[1:]}}

    def change(self, columns: tuple[Column, ...]) -> type:
        """Migrate, and return in what way."""
        after, before = replace(self.schema, columns=columns), version(self.number, self.schema)
        steps = migration(before, before, version(self.number + 1, after), capabilities=self.lake.target.capabilities)
        self.schema, self.number = after, self.number + 1
        self.lake.migrate(steps, self._progress)
        (step,) = steps.steps
        return type(step)

    def wrong(self, session: SparkSession) -> list[str]:
        """Ask a session, and return what it says that an independent model does not."""
        rows = [self._shown(row) for row in self.held.values()]
        frame = replace(self.lake, session=session).frame()
        assert frame.count() == len(rows)
        return wrong(frame, list(questions(self.schema)), rows)

    @property
    def _progress(self) -> Progress:
        return replace(PROGRESS, version=self.number)

    def _shown(self, row: Mapping[int, Any]) -> Row:
        return {column.name: shown(row.get(column.id), column.type) for column in self.schema.columns}


@contextmanager
def told(session: SparkSession, **settings: str) -> Iterator[SparkSession]:
    """The session with other settings of `spark.sql`."""
    named = {f"spark.sql.{key.replace('__', '.')}": value for key, value in settings.items()}
    for key, value in named.items():
        session.conf.set(key, value)
    try:
        yield session
    finally:
        for key in named:
            session.conf.unset(key)


@pytest.fixture
def table(lake: Lake) -> Table:
    found = Table(lake, InternalSchema(columns=columns(OLD, "slm"), primary_key=(1,), last_column_id=1000))
    lake.create(found.schema)
    found.append(found.full(1), {1: 2}, {1: 3, 2: {}, 3: [{}, None], 4: {"k": {}}})
    found.append(found.full(4), {1: 5, 2: {103: "y"}, 3: [], 4: {}})
    return found


_WRITTEN = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("delta", "parquet")]


@pytest.mark.parametrize("lake", _WRITTEN, indirect=True)
def test_a_member_is_read_alone_right_by_any_session(table: Table, ordinary: SparkSession) -> None:
    """Fails if a file lacks a member that is asked for: then the struct, or the list around it, reads NULL."""
    how = HOW.get(table.lake.target.capabilities.format, (RewriteTable,) * len(HISTORY))
    for (members, names), wanted in zip(HISTORY, how, strict=True):
        assert table.change(columns(members, names)) is wanted
        assert table.wrong(ordinary) == []
        table.append(table.full(table.number * 10))
        if members is MORE:
            with told(ordinary, parquet__enableVectorizedReader="false") as row_by_row:
                assert table.wrong(row_by_row) == []


@pytest.mark.iceberg
@pytest.mark.parametrize("lake", [pytest.param("iceberg")], indirect=True)
def test_iceberg_has_each_member_right_for_sessions_that_read_whole_columns(
    table: Table, ordinary: SparkSession
) -> None:
    """Others go wrong at members that files lack, as docs/formats.md says."""
    for (members, names), wanted in zip(HISTORY, HOW["iceberg"], strict=True):
        assert table.change(columns(members, names)) is wanted
        if members is not MORE:
            assert table.wrong(ordinary) == []
        with told(ordinary, optimizer__nestedSchemaPruning__enabled="false") as whole:
            assert table.wrong(whole) == []
        table.append(table.full(table.number * 10))
