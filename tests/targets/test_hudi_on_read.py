"""Hudi tables whose columns are found by ids: files and logs of any age, read by Spark and merged by Hudi itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.migration.capabilities import HUDI_ON_READ, can_change_in_place
from cdc_sync.core.migration.migration import AlterTable, Migration, RewriteTable, migration
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import (
    BINARY,
    DATE,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    DataType,
    DecimalType,
    Field,
    ListType,
    MapType,
    StructType,
)
from cdc_sync.errors import TargetError
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.hive.listing import entries
from cdc_sync.targets.hudi.settings import ON_READ, TABLE_TYPE
from cdc_sync.targets.hudi.table import HudiTable
from cdc_sync.targets.hudi.target import HudiTarget
from cdc_sync.targets.protocol import Batch, Target
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake, fresh_name, shown

pytestmark = [pytest.mark.spark, pytest.mark.hudi]

PROGRESS = Progress(version=1, offsets={"t": {0: 5}})
QUERIES = ("snapshot", "read_optimized")


def opened(session: SparkSession, folder: Path, **properties: str) -> Target:
    config = TargetConfig(
        format="hudi",
        schema_evolution="on_read",
        readers=("spark",),
        catalog=Catalog(warehouse=str(folder)),
        table_properties={"hoodie.compact.inline.max.delta.commits": "100", **properties},
    )
    return open_target(config, session)


def hudi_table(lake: Lake) -> HudiTable:
    assert isinstance(lake.target, HudiTarget)
    return lake.target._table(lake.name)


def folder_of(lake: Lake) -> Path:
    assert isinstance(lake.target, HudiTarget)
    return Path(lake.target.path(lake.name))


@dataclass
class Played:
    """A table, and what it has to show: every value is known by the id of its column."""

    lake: Lake
    schema: InternalSchema
    rows: dict[int, dict[int, Any]] = field(default_factory=dict)
    merged: dict[int, dict[int, Any]] = field(default_factory=dict)
    """The rows without what is in logs: what a read-optimised query shows."""
    number: int = 1

    @property
    def has_logs(self) -> bool:
        return hudi_table(self.lake).is_merged_on_read

    def write(self, *rows: Mapping[int, Any]) -> None:
        """Write whole rows; column 1 is the key."""
        for row in rows:
            self.rows[row[1]] = dict(row)
        named = [
            {column.name: shown(row.get(column.id), column.type) for column in self.schema.columns} for row in rows
        ]
        self.lake.write(self.schema, named, progress=replace(PROGRESS, version=self.number))
        if not self.has_logs or not self.merged:
            self.merged = dict(self.rows)

    def change(self, *columns: Column, kind: type = AlterTable) -> None:
        after = replace(self.schema, columns=columns)
        before = version(self.number, self.schema)
        steps = migration(before, before, version(self.number + 1, after), capabilities=HUDI_ON_READ)
        assert [type(step) for step in steps.steps] == [kind]
        self.lake.migrate(steps, replace(PROGRESS, version=self.number + 1))
        self.schema, self.number = after, self.number + 1

    def compact(self) -> None:
        hudi_table(self.lake).merge_logs()
        self.merged = dict(self.rows)

    def _frames(self, session: SparkSession) -> Iterator[tuple[str, DataFrame, Iterable[Mapping[int, Any]]]]:
        """Return each kind of query, the table as it shows it, and the rows it has to show."""
        for query, rows in zip(QUERIES, (self.rows, self.merged), strict=True):
            reader = session.read.format("hudi").options(**ON_READ).option("hoodie.datasource.query.type", query)
            yield query, reader.load(str(folder_of(self.lake))), rows.values()

    def check(self, *, columns: Sequence[str] = ("*",), where: str = "true", by: SparkSession | None = None) -> None:
        for query, frame, rows in self._frames(by or self.lake.session):
            found = [row.asDict(recursive=True) for row in frame.where(where).select(*columns).collect()]
            expected = [
                {column.name: shown(row.get(column.id), column.type) for column in self.schema.columns} for row in rows
            ]
            if columns == ("*",):
                found = [{k: v for k, v in row.items() if not k.startswith("_hoodie_")} for row in found]
                assert [list(row) for row in found] == [list(row) for row in expected]
            else:
                expected = [{name: row[name] for name in columns} for row in expected]
            assert sorted(found, key=repr) == sorted(expected, key=repr), (query, self.number)

    def check_members(self, session: SparkSession) -> None:
        """Read each member alone, rows with the column only: Spark reads no other member of it then."""
        for query, frame, rows in self._frames(session):
            for column, name, member in _members(self.schema):
                found = frame.where(f"{column.name} is not null").selectExpr("id", member).collect()
                held = [row for row in rows if row.get(column.id) is not None]
                expected = [(row[1], _member(row[column.id], column.type, name)) for row in held]
                assert sorted(map(tuple, found), key=repr) == sorted(expected, key=repr), (query, member)


def _members(schema: InternalSchema) -> Iterator[tuple[Column, str, str]]:
    """Return each member of a struct, of a list's, and of a map's under `k`, with its column and as SQL."""
    for column in schema.columns:
        match column.type:
            case StructType() as of:
                yield from ((column, it.name, f"{column.name}.{it.name}") for it in of.fields)
            case ListType(element=StructType() as of):
                yield from ((column, it.name, f"{column.name}.{it.name}") for it in of.fields)
            case MapType(value=StructType() as of):
                yield from ((column, it.name, f"{column.name}['k'].{it.name}") for it in of.fields)


def _member(value: Any, type_: DataType, name: str) -> Any:
    found = shown(value, type_)
    match type_:
        case ListType():
            return [None if it is None else it[name] for it in found]
        case MapType():
            return None if found.get("k") is None else found["k"][name]
        case _:
            return found[name]


def played(target: Target, session: SparkSession, *columns: Column) -> Played:
    schema = InternalSchema(columns=columns, primary_key=(1,), last_column_id=1000)
    lake = Lake(target=target, session=session, name=fresh_name())
    lake.create(schema)
    return Played(lake, schema)


ID, A, B, C = (
    Column(id=1, name="id", type=INT64),
    Column(id=2, name="a", type=INT32),
    Column(id=3, name="b", type=STRING),
    Column(id=4, name="c", type=DecimalType(precision=5, scale=2)),
)


def struct(*fields: tuple[int, str, DataType]) -> StructType:
    return StructType(fields=tuple(Field(id=id_, name=name, type=type_) for id_, name, type_ in fields))


def lines(base: int, *fields: tuple[int, str, DataType]) -> ListType:
    return ListType(element_id=base, element=struct(*((base + id_, name, type_) for id_, name, type_ in fields)))


def tags(base: int, *fields: tuple[int, str, DataType]) -> MapType:
    value = struct(*((base + id_, name, type_) for id_, name, type_ in fields))
    return MapType(key_id=base, key=STRING, value_id=base + 1, value=value)


_OLD = ((2, "x", INT32), (3, "y", STRING), (4, "z", FLOAT32))
_NEW = ((3, "y", STRING), (2, "x", INT32))
"""One member goes, two change places."""
_MORE = ((9, "n", STRING), (3, "y", STRING), (2, "x", INT32))
"""One comes."""
S, L, M = (
    Column(id=20, name="s", type=struct(*((30 + i, name, t) for i, name, t in _OLD))),
    Column(id=21, name="l", type=lines(40, *_OLD)),
    Column(id=22, name="m", type=tags(60, *_OLD)),
)
(S2, L2, M2), (S3, L3, M3) = (
    (
        replace(S, type=struct(*((30 + i, name, t) for i, name, t in members))),
        replace(L, type=lines(40, *members)),
        replace(M, type=tags(60, *members)),
    )
    for members in (_NEW, _MORE)
)


def row(key: int) -> dict[int, Any]:
    one, of_list, of_map = ({base + 2: key, base + 3: f"y{key}", base + 4: 0.5} for base in (30, 40, 60))
    values = {2: key, 3: f"b{key}", 4: Decimal("1.50"), 20: one, 21: [of_list, None, of_list], 22: {"k": of_map}}
    return {1: key, **values}


N = [Column(id=100 + number, name=f"n{number}", type=STRING) for number in range(4)]
A2, AC, CA = replace(A, name="a2"), replace(A, name="c"), replace(C, name="a2")
LONG, WIDE = replace(AC, type=INT64), replace(CA, type=DecimalType(precision=9, scale=2))
OPERATIONS: Mapping[str, tuple[Column, ...]] = {
    "add behind all": (ID, A, B, C, S, L, M, N[0]),
    "add in front": (N[1], ID, A, B, C, S, L, M, N[0]),
    "add between": (N[1], ID, A, N[2], B, C, S, L, M, N[0]),
    "drop": (N[1], ID, A, N[2], C, S, L, M, N[0]),
    "rename": (N[1], ID, A2, N[2], C, S, L, M, N[0]),
    "swap": (N[1], ID, AC, N[2], replace(CA, name="q"), S, L, M, N[0]),
    "rename to a name of before": (N[1], ID, AC, N[2], CA, S, L, M, N[0]),
    "move": (ID, N[3], S, L, M, N[0], AC, N[1], N[2], CA),
    "widen": (ID, N[3], S, L, M, N[0], LONG, N[1], N[2], WIDE),
    "members": (ID, N[3], S2, L2, M2, N[0], LONG, N[1], N[2], WIDE),
    "columns of members' names": (
        *(ID, replace(N[3], name="y"), S2, L2, M2, N[0]),
        *(replace(LONG, name="x"), replace(N[1], name="n"), N[2], WIDE),
    ),
    "columns with members get each other's names": (
        *(ID, replace(S2, name="t"), replace(L2, name="s"), replace(M2, name="l"), replace(LONG, name="m")),
    ),
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_change_of_columns_is_metadata_and_every_value_stays_its_column_s(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    table = played(opened(session, tmp_path, **{TABLE_TYPE: kind}), session, ID, A, B, C, S, L, M)
    table.write(row(1), row(2), row(3))
    table.write(row(2) | {2: 22, 3: "changed"})
    files = set(folder_of(table.lake).rglob("*.parquet"))
    for columns in OPERATIONS.values():
        table.change(*columns)
        assert set(folder_of(table.lake).rglob("*.parquet")) == files
        table.check()
    # The oldest files and logs have the columns of the beginning; another row of each goes through Hudi's own merge.
    table.write({1: 3})
    table.check()
    table.compact()
    table.check()
    table.write({1: 1, 2: 2**40, 20: {32: 7, 33: "n"}, 22: {"k": None}})
    table.check()


def test_members_that_go_and_move_in_place_and_new_ones_that_do_not_are_read_alone_by_any_session(
    kept: Target, session: SparkSession, ordinary: SparkSession
) -> None:
    """Fails if a file lacks a member that is asked for: then the struct, or the list around it, reads NULL."""
    table = played(kept, session, ID, S, L, M)
    table.write(*({id_: value for id_, value in row(key).items() if id_ in (1, 20, 21, 22)} for key in (1, 2)), {1: 3})
    table.write({1: 2, 20: {32: 5, 33: "y"}, 21: [], 22: {"k": None, "other": {62: 6}}})
    files = set(folder_of(table.lake).rglob("*.parquet"))
    table.change(ID, M2, replace(S2, name="t"), L2)
    assert set(folder_of(table.lake).rglob("*.parquet")) == files
    table.check_members(ordinary)
    table.change(ID, M3, replace(S3, name="t"), L3, kind=RewriteTable)
    table.merged = dict(table.rows)
    for _ in range(2):
        table.check()
        table.check_members(ordinary)
        table.write({1: 3, 20: {39: "n"}})  # the others go through Hudi's own merge, or stay in their file


X, Y = Column(id=5, name="x", type=INT32), Column(id=6, name="y", type=INT32)
OTHER = Column(id=100, name="x", type=INT32)
FRESH = replace(OTHER, name="n")
MERGED: Mapping[str, tuple[tuple[Column, ...], str, bool]] = {
    "same id, same name": ((ID, Y, X), "x = 7", False),
    "same id, other name": ((ID, replace(X, name="z"), Y), "z = 7", False),
    "same id, other letters": ((ID, replace(X, name="X"), Y), "X = 7", False),
    "other id, same name": ((ID, OTHER, Y), "x is null", True),
    "neither id nor name": ((ID, X, Column(id=100, name="n", type=INT32)), "n is null", False),
    "each other's names": ((ID, replace(X, name="y"), replace(Y, name="x")), "y = 7 and x = 8", False),
    "each other's names and places": ((ID, replace(Y, name="x"), replace(X, name="y")), "x = 8 and y = 7", True),
    "other id, same name, the old one renamed": ((ID, OTHER, replace(X, name="z")), "x is null and z = 7", True),
    "a dropped one's name, and another new one": ((ID, replace(X, name="y"), FRESH), "y = 7 and n is null", False),
}
"""Columns, what holds of them in a row of before, and whether the change rewrites."""


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def kept(request: pytest.FixtureRequest, session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Target:
    return opened(session, tmp_path_factory.mktemp("on_read"), **{TABLE_TYPE: request.param})


@pytest.mark.parametrize("case", MERGED.values(), ids=MERGED.keys())
def test_a_file_s_columns_are_merged_with_those_that_are_asked_for(
    kept: Target, session: SparkSession, ordinary: SparkSession, case: tuple[tuple[Column, ...], str, bool]
) -> None:
    """Fails if old values come back: whole rows, one column alone, and what a filter is pushed down to."""
    columns, condition, rewritten = case
    table = played(kept, session, ID, X, Y)
    table.write({1: 1, 5: 7, 6: 8}, {1: 2, 5: 7, 6: 8})
    table.write({1: 2, 5: 7, 6: 8})
    files = set(folder_of(table.lake).glob("*.parquet"))
    table.change(*columns)
    assert (set(folder_of(table.lake).glob("*.parquet")) != files) is rewritten
    if rewritten:
        table.merged = dict(table.rows)
    for _ in range(2):
        table.check()
        table.check(columns=(columns[1].name,))
        table.check(where=condition)
        table.check(where=condition, by=ordinary)
        table.write({1: 2, 5: 7, 6: 8})  # the other row goes through Hudi's own merge, or stays in its file
    table.compact()
    table.check(where=condition)


_SUFFIX = replace(Y, name="xsuffix")
TAKEN: Mapping[str, tuple[tuple[Column, ...], tuple[Column, ...], tuple[Column, ...]]] = {
    "the name with a suffix": ((ID, X, _SUFFIX), (ID, _SUFFIX), (ID, OTHER, _SUFFIX)),
    "the name in other letters": ((ID, X, Y), (ID, Y), (ID, replace(OTHER, name="X"), Y)),
}


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN.keys())
def test_a_name_under_which_hudi_would_find_another_column_is_rewritten_once(
    kept: Target, session: SparkSession, case: tuple[tuple[Column, ...], ...]
) -> None:
    before, without, again = case
    table = played(kept, session, *before)
    table.write({1: 1, 5: 7, 6: 8})
    table.change(*without)
    table.check()
    table.change(*again)
    table.merged = dict(table.rows)
    for row in table.rows.values():
        row.pop(5, None)
    table.check()
    files = set(folder_of(table.lake).glob("*.parquet"))
    table.change(*again[1:], again[0])
    assert set(folder_of(table.lake).glob("*.parquet")) == files, "what was rewritten once needs no other time"
    table.check()


def test_what_is_not_done_in_place_is_rewritten_and_can_be_rolled_back_over_files_of_any_age(
    kept: Target, session: SparkSession
) -> None:
    table = played(kept, session, ID, A, B, S)
    first, second = ({1: key, 2: key, 3: str(key), 20: {32: key, 33: "y", 34: 0.5}} for key in (1, 2))
    table.write(first, second)
    table.change(ID, replace(A, name="b"), replace(B, name="a"), S2)
    table.write(first | {3: "new"})
    before, schema, number = dict(table.rows), table.schema, table.number
    table.change(ID, replace(A, name="b"), Column(id=100, name="n", type=STRING), S2)
    table.change(ID, replace(A, name="x", type=STRING), S2, kind=RewriteTable)
    table.rows = table.merged = {key: {1: key, 2: str(key), 20: before[key][20]} for key in before}
    table.check()
    assert table.lake.target.roll_back(table.lake.name)
    table.rows = {key: {id_: value for id_, value in row.items() if id_ != 3} for key, row in before.items()}
    table.schema = replace(schema, columns=(ID, replace(A, name="b"), Column(id=100, name="n", type=STRING), S2))
    table.merged, table.number = dict(table.rows), number + 1
    table.check()
    table.write({1: 2, 2: 5, 100: "z"})
    table.check()
    table.change(ID, replace(A, name="n"), Column(id=101, name="x", type=STRING))
    table.check()


PAIRS: Sequence[tuple[DataType, DataType, Any, Any]] = (
    (INT32, INT64, -7, -7),
    (INT32, FLOAT32, 7, 7.0),
    (INT32, FLOAT64, -7, -7.0),
    (INT32, STRING, -7, "-7"),
    (INT32, DecimalType(precision=12, scale=2), -7, Decimal("-7.00")),
    (INT64, FLOAT32, 7, 7.0),
    (INT64, FLOAT64, 2**40, 2.0**40),
    (INT64, STRING, -(2**62), str(-(2**62))),
    (INT64, DecimalType(precision=22, scale=2), -7, Decimal("-7.00")),
    (FLOAT32, FLOAT64, 0.10000000149011612, 0.10000000149011612),
    (FLOAT32, STRING, 0.5, "0.5"),
    (FLOAT32, DecimalType(precision=12, scale=2), 0.5, Decimal("0.50")),
    (FLOAT64, STRING, 0.1, "0.1"),
    (FLOAT64, DecimalType(precision=12, scale=2), 0.5, Decimal("0.50")),
    (DecimalType(precision=5, scale=2), DecimalType(precision=20, scale=2), Decimal("-1.50"), Decimal("-1.50")),
    (DecimalType(precision=5, scale=2), DecimalType(precision=9, scale=4), Decimal("1.50"), Decimal("1.5000")),
    (DecimalType(precision=9, scale=7), STRING, Decimal("0.0000001"), "0.0000001"),
    (STRING, DATE, "2020-02-29", date(2020, 2, 29)),
    (STRING, DecimalType(precision=9, scale=2), "1.50", Decimal("1.50")),
    (DATE, STRING, date(2020, 2, 29), "2020-02-29"),
    (STRING, BINARY, "x", b"x"),
    (BINARY, STRING, b"x", "x"),
)
"""Every change of a type that Hudi's schema-on-read allows, and a value before and after."""


@pytest.mark.parametrize("regime", ["hudi", "hudi_on_read"])
def test_every_change_of_a_type_reads_the_same_in_place_and_rewritten(
    request: pytest.FixtureRequest, session: SparkSession, regime: str
) -> None:
    target: Target = request.getfixturevalue(regime)
    lake = Lake(target=target, session=session, name=fresh_name())
    columns = [Column(id=10 + number, name=f"v{number}", type=old) for number, (old, *_) in enumerate(PAIRS)]
    schema = InternalSchema(columns=(ID, *columns), primary_key=(1,), last_column_id=99)
    widens = [can_change_in_place(target.capabilities, old, new) for old, new, *_ in PAIRS]
    assert sum(widens) == (1 if regime == "hudi" else 2)
    lake.create(schema)
    lake.write(schema, [{"id": key, **{f"v{n}": old for n, (_, _, old, _) in enumerate(PAIRS)}} for key in (1, 2)])
    lake.write(schema, [{"id": 3}])
    for number, of_these in enumerate((widens, [not it for it in widens]), 1):
        new = tuple(
            replace(column, type=pair[1]) if wanted else column
            for column, pair, wanted in zip(schema.columns[1:], PAIRS, of_these, strict=True)
        )
        before, after = version(number, schema), version(number + 1, replace(schema, columns=(ID, *new)))
        steps = migration(before, before, after, capabilities=target.capabilities)
        assert [type(step) for step in steps.steps] == [AlterTable if number == 1 else RewriteTable]
        lake.migrate(steps)
        schema = after.schema
        values = [
            new if of == now.type else old for now, (_, of, old, new) in zip(schema.columns[1:], PAIRS, strict=True)
        ]
        for _ in range(2):
            assert [list(row.values())[1:] for row in lake.rows()] == [values, values, [None] * len(PAIRS)]
            lake.write(schema, [{"id": 3}])


def test_a_crash_between_history_and_commit_leaves_the_columns_as_they_were(
    kept: Target, session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = played(kept, session, ID, X, Y)
    table.write({1: 1, 5: 7, 6: 8})
    after = (ID, replace(X, name="y"), FRESH)
    with monkeypatch.context() as crash:
        crash.setattr(HudiTable, "_option", lambda *_: (_ for _ in ()).throw(TargetError("killed")))
        with pytest.raises(TargetError, match="killed"):
            table.lake.migrate(_steps(table, after))
    left = _histories(table)
    table.check()
    table.change(*after)
    table.check()
    assert not left[-1:] or left[-1] not in _histories(table), "what the crash left is removed"
    table.write({1: 1, 5: 9})
    table.check()


def _steps(table: Played, columns: tuple[Column, ...]) -> Migration:
    before = version(table.number, table.schema)
    after = version(table.number + 1, replace(table.schema, columns=columns))
    return migration(before, before, after, capabilities=HUDI_ON_READ)


def _histories(table: Played) -> list[str]:
    return sorted(path.name for path in (folder_of(table.lake) / ".hoodie" / ".schema").glob("*.schemacommit"))


def test_a_file_is_read_right_after_its_commit_and_that_of_its_change_were_archived(
    session: SparkSession, tmp_path: Path
) -> None:
    few = {"hoodie.clean.commits.retained": "2", "hoodie.clean.trigger.max.commits": "1"}
    archived = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5", "hoodie.parquet.small.file.limit": "0"}
    table = played(opened(session, tmp_path, **few, **archived), session, ID, X, Y)
    table.write({1: 1, 5: 7, 6: 8})
    (old,) = folder_of(table.lake).glob("*.parquet")
    table.change(ID, replace(X, name="y"), FRESH)
    for number in range(8):
        table.write({1: 2, 5: number, 100: number})
    assert old.exists()
    commits = {path.name.partition(".")[0] for path in (folder_of(table.lake) / ".hoodie").glob("*.commit")}
    assert old.stem.rpartition("_")[2] not in commits, "it was not archived"
    table.check()
    assert len(_histories(table)) <= 9
    table.write({1: 1, 5: 70})
    table.check()


def test_clustering_by_others_keeps_columns_and_stamp(kept: Target, session: SparkSession) -> None:
    table = played(kept, session, ID, X, Y)
    table.write({1: 1, 5: 7, 6: 8}, {1: 2, 5: 1})
    table.change(ID, replace(X, name="y"), FRESH)
    table.compact()  # clustering takes files that have no logs
    state = table.lake.target.state(table.lake.name)

    def cluster(client: Any) -> None:
        jvm: Any = session._jvm
        scheduled = client.scheduleClustering(jvm.org.apache.hudi.common.util.Option.empty())
        assert scheduled.isPresent()
        client.cluster(scheduled.get(), True)

    hudi_table(table.lake)._with_client(cluster, {"hoodie.clustering.inline.max.commits": "1"})
    table.check()
    after = table.lake.target.state(table.lake.name)
    assert state is not None
    assert after is not None
    assert replace(after, size=state.size) == state
    table.change(ID, FRESH, replace(X, name="z"))
    table.write({1: 2, 100: 5})
    table.compact()
    table.check()


def test_a_changelog_s_own_columns_stay_behind_all_others(kept: Target, session: SparkSession) -> None:
    lake = Lake(target=kept, session=session, name=fresh_name())
    before = InternalSchema(columns=(ID, X, Y), primary_key=(), last_column_id=6)
    after = replace(before, columns=(ID, replace(Y, name="z"), FRESH), last_column_id=100)
    lake.migrate(migration(None, None, version(1, before), capabilities=HUDI_ON_READ, mode="append"))
    rows = session.createDataFrame(
        [(1, 7, 8, "c", "topic")], "c1 bigint, c5 int, c6 int, _cdc_op string, _cdc_topic string"
    )
    kept.write(lake.name, Batch(rows=rows, schema=before, progress=PROGRESS, behind=None, append=True, mode="append"))
    first = version(1, before)
    lake.migrate(migration(first, first, version(2, after), capabilities=HUDI_ON_READ, mode="append"))
    (found,) = lake.rows()
    assert [*found][:3] == ["id", "z", "n"]
    assert (found["id"], found["z"], found["n"], found["_cdc_op"], found["_cdc_topic"]) == (1, 8, None, "c", "topic")


def test_an_entry_in_a_metastore_tells_spark_of_the_regime(kept: Target, session: SparkSession) -> None:
    assert isinstance(kept, HudiTarget)
    table = played(kept, session, ID, X, Y)
    table.write({1: 1, 5: 7, 6: 8})
    table.change(ID, replace(X, name="y"), FRESH)
    listed = kept.listed(table.lake.name)
    assert listed is not None
    found = entries(listed, {})
    assert set(found) == ({"_ro", "_rt"} if table.has_logs else {""})
    for entry in found.values():
        frame = session.read.format("hudi").options(**entry.form.options).load(listed.location)
        assert [tuple(row) for row in frame.select("id", "y", "n").collect()] == [(1, 7, None)]
