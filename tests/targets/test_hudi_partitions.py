"""Partitions of Hudi tables: every row is there once, where it belongs, whatever becomes of rows and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hudi import HudiTableBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.migration.capabilities import HUDI
from cdc_sync.core.migration.migration import (
    AlterTable,
    Backfill,
    ChangeRegime,
    JoinValues,
    Migration,
    Repartition,
    RewriteTable,
    migration,
)
from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
)
from cdc_sync.errors import TargetError
from cdc_sync.spark.columns import value_column
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.hudi.partitions import _folder
from cdc_sync.targets.hudi.settings import ON_READ, TABLE_TYPE
from cdc_sync.targets.hudi.table import HudiTable
from cdc_sync.targets.protocol import Batch, Target
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake, fresh_name
from tests.targets.keyless import apply, created, deleted, updated
from tests.targets.test_hudi_on_read import folder_of, hudi_table
from tests.targets.test_maintenance import maintained

pytestmark = [pytest.mark.spark, pytest.mark.hudi]

UTC = timezone.utc
ID = Column(id=1, name="id", type=INT32)
REGION = Column(id=2, name="region", type=STRING)
AT = Column(id=3, name="at", type=TIMESTAMP_TZ)
NOTE = Column(id=4, name="note", type=STRING)
COLUMNS = (ID, REGION, AT, NOTE)
NOON, LATER = datetime(2024, 2, 29, 12, tzinfo=UTC), datetime(2024, 3, 1, 0, 30, tzinfo=UTC)
ODD = (
    *(
        "",
        " ",
        ".",
        "..",
        "a/b",
        "/",
        "%",
        "50%2F",
        "x=y",
        "a:b*?",
        "'\"`",
        "#{}[]^",
        "\\",
        "a\nb\tc\x7f",
        "ä ö é",
        "😀/😀",
    ),
    *("__HIVE_DEFAULT_PARTITION__", "null", "a,b", "+", "A" * 60, "/" * 60, "ж" * 60),
)
"""Texts that folders, addresses or Hudi could take for something else."""
DERIVED = "cdc_sync_by_"
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest, session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Target:
    return opened(session, tmp_path_factory.mktemp("hudi"), request.param)


@pytest.fixture(scope="module")
def plain(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Target:
    return opened(session, tmp_path_factory.mktemp("hudi"), KINDS[0])


def opened(session: SparkSession, folder: Path, type_: str) -> Target:
    config = TargetConfig(
        format="hudi",
        catalog=Catalog(warehouse=str(folder)),
        table_properties={TABLE_TYPE: type_, "hoodie.compact.inline.max.delta.commits": "100"},
    )
    return open_target(config, session)


@dataclass
class Divided:
    """A table and what it has to show, by the ids of its columns."""

    target: Target
    session: SparkSession
    by: str
    schema: InternalSchema
    mode: Mode = "upsert"
    rows: dict[int, dict[int, Any]] = field(default_factory=dict)
    number: int = 1
    written: int = 0
    name: TargetName = field(default_factory=fresh_name)
    lake: Lake = field(init=False)

    def __post_init__(self) -> None:
        self.lake = Lake(target=self.target, session=self.session, name=self.name)
        steps = migration(
            None,
            None,
            version(1, self.schema),
            mode=self.mode,
            capabilities=self.target.capabilities,
            partitioning=Partitioning.parse([self.by]),
        )
        self.lake.migrate(steps)

    @property
    def state(self) -> TargetState:
        found = self.target.state(self.lake.name)
        assert found is not None
        return found

    @property
    def progress(self) -> Progress:
        return Progress(version=self.number, offsets={"t": {0: self.written}})

    def write(self, *rows: Mapping[int, Any], deleted: Sequence[int] = (), unchanged: tuple[int, ...] = ()) -> None:
        """Write rows by the ids of columns; one keeps its values of those of `unchanged` that it does not name."""
        self.written += 1
        names = {column.id: column.name for column in self.schema.columns}
        sent: list[dict[str, Any]] = [{names[id_]: value for id_, value in row.items()} for row in rows]
        sent += [{names[1]: key, "deleted": True} for key in deleted]
        self.lake.write(self.schema, sent, progress=self.progress, unchanged=unchanged)
        for row in rows:
            kept = self.rows.get(row[1], {})
            self.rows[row[1]] = {id_: row.get(id_, kept.get(id_) if id_ in unchanged else None) for id_ in names}
        for key in deleted:
            del self.rows[key]

    def change(self, *columns: Column, kind: type) -> None:
        after = replace(self.schema, columns=columns)
        before = version(self.number, self.schema)
        steps = migration(before, before, version(self.number + 1, after), capabilities=HUDI)
        assert kind in [type(step) for step in steps.steps]
        self.number += 1
        self.lake.migrate(steps, self.progress)
        self.schema = after
        self.rows = {
            key: {column.id: values.get(column.id, column.initial) for column in columns}
            for key, values in self.rows.items()
        }

    def frame(self, options: Mapping[str, str] | None = None) -> DataFrame:
        """What a reader sees that knows nothing of the partitions."""
        return self.session.read.format("hudi").options(**(options or {})).load(str(folder_of(self.lake)))

    def check(self, *, closely: bool = False) -> None:
        """Look at all rows; closely, in sessions that are told of the other regime too, and by partition."""
        names = [column.name for column in self.schema.columns]
        wanted = [{column.name: row.get(column.id) for column in self.schema.columns} for row in self.rows.values()]
        fields = [it.name for it in hudi_stamp(self.lake).partitions]
        for options in ({}, ON_READ) if closely else ({},):
            found = [row.asDict(recursive=True) for row in self.frame(options).collect()]
            shown = [{name: _zoned(value) for name, value in row.items() if name[0] != "_"} for row in found]
            assert all(list(row) == [*names, *fields] for row in shown)
            rows = [{name: row[name] for name in names} for row in shown]
            assert sorted(rows, key=repr) == sorted(wanted, key=repr), options
        for row in found:
            parts = row["_hoodie_partition_path"].split("/")
            assert [part.partition("=")[0] for part in parts] == fields
        for name in fields if closely else ():
            counts = sorted(Counter(row[name] for row in found).items())
            for value, count in counts[:: len(counts) // 8 + 1]:
                assert self.frame().where(F.col(quoted(name)) == value).count() == count, (name, value)
        ids = [column.id for column in self.schema.columns]
        assert self.target.read(self.lake.name, self.schema, ids).count() == len(self.rows)
        assert (self.state.version, self.state.rows) == (self.number, len(self.rows))

    def derived(self, name: str) -> dict[int, Any]:
        """Return the texts of a column that the table is divided by, by key."""
        rows = self.frame().select(self.schema.column(1).name, f"{DERIVED}{name}").collect()
        for options in ({}, ON_READ):
            alone = self.frame(options).select(f"{DERIVED}{name}").collect()
            assert Counter(row[0] for row in alone) == Counter(row[1] for row in rows), options
        return {row[0]: row[1] for row in rows}


def _zoned(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def hudi_stamp(lake: Lake) -> Any:
    found = hudi_table(lake).snapshot()
    assert found is not None
    return found.stamp


def schema_of(*columns: Column) -> InternalSchema:
    return InternalSchema(columns=columns, primary_key=(1,), last_column_id=1000)


def row(id_: int, region: str | None = "a", at: datetime | None = NOON, note: str | None = "n") -> dict[int, Any]:
    return {1: id_, 2: region, 3: at, 4: note}


def test_folders_are_named_as_hudi_names_them(session: SparkSession) -> None:
    every = [*ODD, *(chr(number) for number in range(1, 300)), "a\x01\x02/b"]
    frame = session.createDataFrame([(text,) for text in every], "text string")
    escape = session._jvm.org.apache.hudi.common.util.PartitionPathEncodeUtils.escapePathName  # type: ignore[union-attr]
    found = {it.text: it.folder for it in frame.select("text", _folder(F.col("text")).alias("folder")).collect()}
    assert found == {text: escape(text) if text else "" for text in every}


def test_rows_move_and_are_found_wherever_they_lie(kind: Target, session: SparkSession) -> None:
    table = Divided(kind, session, "region, day(at)", schema_of(*COLUMNS))
    assert (str(table.state.partitioning), table.state.partition_by) == ("region, day(at)", "region, day(at)")
    table.write(*(row(number, text) for number, text in enumerate(ODD)), row(100, None), row(101, "b", None), row(102))
    table.check()
    texts = {key: (it[2] or "")[:40] for key, it in table.rows.items()}
    nothing = ("", "__HIVE_DEFAULT_PARTITION__")
    assert table.derived("value_region") == {key: "__NULL__" if it in nothing else it for key, it in texts.items()}
    assert table.derived("day_at")[102] == "2024-02-29"
    table.write(row(0, "a/b"), row(4, "moved"), row(100, "%", LATER), row(101, None), row(200, "new"), deleted=[5, 102])
    table.write({1: 6, 2: "kept its note", 3: LATER}, {1: 7, 4: "same place"}, unchanged=(2, 3, 4))
    table.check(closely=True)
    table.write(row(4, "a/b"), row(100, None), row(200, "new again"), deleted=[0, 6])
    table.check()
    if hudi_table(table.lake).is_merged_on_read:
        assert maintained(table.lake).change_files > 0
        table.check()
        assert hudi_table(table.lake).logs() == 0
    earlier = kind.commits(table.lake.name, 10)
    counts = [kind.read(table.lake.name, table.schema, [1, 2], commit).count() for commit in earlier]
    assert counts[0] == len(table.rows)
    assert counts[-1] == 0
    sizes = hudi_table(table.lake).base_sizes()
    assert sum(sizes) == table.state.size > 0
    kind.truncate(table.lake.name, table.progress, table.progress)
    table.rows = {}
    table.check()
    table.write(row(1, "a/b"), row(2, None, None))
    table.check()


def test_what_becomes_of_a_column_becomes_of_its_partitions(kind: Target, session: SparkSession) -> None:
    amount = Column(id=5, name="amount", type=DecimalType(precision=5, scale=2))
    table = Divided(kind, session, "region, year(at), amount", schema_of(*COLUMNS, amount))
    table.write({**row(1), 5: Decimal("1.50")}, {**row(2, "b %{*}/'?"), 5: None}, {**row(3, None), 5: Decimal("-0.25")})
    table.write({**row(1, "c"), 5: Decimal("2.00")})
    zone, key = replace(REGION, name="zone"), replace(ID, type=INT64)
    added = Column(id=6, name="region", type=STRING, initial="old")
    table.change(ID, zone, AT, NOTE, amount, kind=RewriteTable)
    table.change(key, zone, AT, NOTE, amount, added, kind=AlterTable)
    table.write({**row(2**40, "d"), 5: Decimal("7.25"), 6: "x"}, {**row(2, None), 5: None, 6: "y"})
    table.check()
    assert (str(table.state.partitioning), table.state.partition_by) == (
        "zone, year(at), amount",
        "region, year(at), amount",
    )
    assert table.derived("value_region") == {1: "c", 2: "__NULL__", 3: "__NULL__", 2**40: "d"}
    assert table.derived("value_amount") == {1: "2.00", 2: "__NULL__", 3: "-0.25", 2**40: "7.25"}

    before = table.number, table.schema, table.rows, table.written
    at, other = replace(AT, type=STRING), Column(id=5, name="amount", type=FLOAT64)
    table.change(key, zone, at, NOTE, other, added, kind=RewriteTable)
    for values in table.rows.values():
        values[3], values[5] = str(values[3])[:19], None if values[5] is None else float(values[5])
    rows = table.lake.frame().select("id", "at").collect()
    table.rows = {it.id: {**table.rows[it.id], 3: it.at} for it in rows}
    table.check()
    left = "zone, amount"
    assert (str(table.state.partitioning), table.state.partition_by) == (left, left)
    assert set(table.derived("year_at").values()) == {"__NULL__"}
    assert table.derived("value_amount") == {1: "2.0", 2: "__NULL__", 3: "-0.25", 2**40: "7.25"}
    table.write({**row(2, "e"), 3: "never", 5: 0.5, 6: "z"}, deleted=[3])
    assert kind.roll_back(table.lake.name)
    table.number, table.schema, table.rows, table.written = before
    table.check()
    assert table.state.partition_by == "region, year(at), amount"
    assert set(table.derived("year_at").values()) == {"2024"}

    table.change(key, AT, NOTE, amount, added, kind=RewriteTable)
    back = Column(id=7, name="zone", type=STRING)
    table.change(key, AT, NOTE, amount, added, back, kind=AlterTable)
    table.write({1: 2, 3: NOON, 5: Decimal("1.00"), 7: "q"}, {1: 50}, deleted=[1])
    table.check(closely=True)
    assert table.state.partition_by == "year(at), amount"
    assert set(table.derived("value_region").values()) == {"__NULL__"}


def test_a_table_that_is_divided_stays_in_its_regime(kind: Target, session: SparkSession) -> None:
    table = Divided(kind, session, "region", schema_of(*COLUMNS))
    table.write(row(1), row(2, "b"))
    table.write(row(1, "c"), deleted=[2])
    steps = Migration(version=1, schema=table.schema, steps=(ChangeRegime(after="on_read"),))
    with pytest.raises(TargetError, match="it is partitioned, and Spark shows wrong values"):
        table.lake.migrate(steps, table.progress)
    table.check()


def test_copies_of_a_row_without_a_key_are_counted_in_their_partition(kind: Target, session: SparkSession) -> None:
    schema = InternalSchema(columns=(ID, REGION, AT), primary_key=(), last_column_id=1000)
    table = Divided(kind, session, "region, hour(at)", schema)
    one, other, none = (1, "a", NOON), (1, "b/c", NOON), (1, None, None)
    apply(table.lake, [*map(created, (one, one, one, other, none))], schema)
    apply(table.lake, [deleted(one), updated(one, other), created(other), deleted(none)], schema)
    frame = table.lake.frame().select("id", "region", "at")
    found = Counter((it[0], it[1], _zoned(it[2])) for it in frame.collect())
    assert found == {one: 1, other: 3}
    assert table.state.rows == 4


def test_a_value_that_is_filled_in_moves_its_row(kind: Target, session: SparkSession) -> None:
    kept = replace(REGION, retired=True)
    joined = Column(id=5, name="area", type=STRING)
    table = Divided(kind, session, "region", schema_of(ID, REGION, AT, NOTE))
    table.write(row(1), row(2, "b"))
    table.change(ID, kept, AT, NOTE, joined, kind=AlterTable)
    table.write({1: 2, 5: "c"}, {1: 3, 5: "d"}, unchanged=())
    table.rows[2][2] = "b"
    table.check()
    said = session.createDataFrame([(2, "c"), (3, "d")], f"{value_column(1)} int, {value_column(2)} string")
    step = JoinValues(schema=table.schema, into=2, joined=(5,), type=STRING, version=3)
    steps = Migration(version=3, schema=schema_of(ID, replace(REGION, name="area"), AT, NOTE), steps=(step,))
    table.target.migrate(table.lake.name, steps, replace(table.progress, version=3), {2: said})
    table.rows[2][2], table.rows[3][2] = "c", "d"
    table.check()
    assert table.derived("value_region") == {1: "a", 2: "c", 3: "d"}
    filled = Migration(
        version=2,
        schema=table.schema,
        steps=(Backfill(columns=(replace(joined, initial="filled"),)),),
    )
    table.lake.migrate(filled, table.progress)
    for values in table.rows.values():
        values[5] = values[5] or "filled"
    table.check()


def test_values_of_all_types_divide(plain: Target, session: SparkSession) -> None:
    types: tuple[DataType, ...] = (
        INT64,
        BOOLEAN,
        DATE,
        TIMESTAMP,
        FLOAT64,
        BINARY,
        DecimalType(precision=30, scale=10),
        DecimalType(precision=6, scale=2),
    )
    columns = [Column(id=number, name=f"c{number}", type=type_) for number, type_ in enumerate(types, 2)]
    values = (
        -(2**40),
        True,
        date(1500, 1, 1),
        datetime(1899, 1, 1, 1),
        -0.1,
        b"\x00/\xff",
        Decimal("1E-10"),
        Decimal("7.10"),
    )
    table = Divided(plain, session, "c3, c7, c8, truncate(2, c9), month(c4)", schema_of(ID, *columns))
    numbered = dict(enumerate(values, 2))
    table.write({1: 1, **numbered}, {1: 2}, {1: 3, **numbered, 3: False, 9: Decimal("-7.15")})
    table.rows[1][5] = table.rows[3][5] = values[3].replace(tzinfo=UTC)
    for it in table.rows.values():
        it[7] = None if it.get(7) is None else bytearray(it[7])
    table.check(closely=True)
    table.write({1: 1}, {1: 2, **numbered})
    table.rows[2][5], table.rows[2][7] = table.rows[3][5], table.rows[3][7]
    table.check()
    held = {f"value_c{number}": text for number, text in ((3, "true"), (7, "002fff"), (8, "0.0000000001"))}
    for name, text in {**held, "truncate2_c9": "7.10", "month_c4": "1500-01"}.items():
        assert table.derived(name)[2] == text
        assert table.derived(name)[1] == "__NULL__"


def test_a_reader_that_is_not_spark_sees_every_row(plain: Target, session: SparkSession) -> None:
    table = Divided(plain, session, "region, bucket(2, id)", schema_of(ID, REGION, NOTE))
    table.write(*({1: number, 2: text, 4: "n"} for number, text in enumerate(ODD)), {1: 100, 2: None, 4: "m"})
    table.write({1: 0, 2: "a/b"}, {1: 4, 2: None}, deleted=[5])
    batches = HudiTableBuilder.from_base_uri(str(folder_of(table.lake))).build().read()
    found = {it["id"]: (it["region"], it["note"]) for batch in batches for it in batch.to_pylist()}
    assert found == {key: (it[2], it[4]) for key, it in table.rows.items()}


def test_a_changelog_is_divided_by_what_it_says_of_its_events(kind: Target, session: SparkSession) -> None:
    table = Divided(kind, session, "region, _cdc_op", schema_of(*COLUMNS), mode="append")
    frame = session.createDataFrame([(1, "a", "c"), (1, "b", "u"), (1, None, "d")], "c1 int, c2 string, _cdc_op string")
    frame = frame.withColumns({"c3": F.lit(NOON), "c4": F.lit("n")})
    plain = table.target
    batch = Batch(rows=frame, schema=table.schema, progress=table.progress, behind=None, mode="append")
    plain.write(table.lake.name, batch)
    after = schema_of(*COLUMNS, Column(id=9, name="more", type=INT32))
    before = version(1, table.schema)
    able = plain.capabilities
    table.lake.migrate(migration(before, before, version(2, after), capabilities=able, mode="append"), table.progress)
    frame = frame.withColumn("c9", F.lit(5))
    plain.write(table.lake.name, replace(batch, rows=frame, schema=after, behind=table.progress))
    found = Counter((it.region, it._cdc_op, it.more) for it in table.lake.frame().collect())
    assert found == {(r, op, more): 1 for r, op in (("a", "c"), ("b", "u"), (None, "d")) for more in (None, 5)}


class TestOfATableThatIsThere:
    def test_only_the_text_changes(self, plain: Target, session: SparkSession) -> None:
        table = Divided(plain, session, "region, day(at)", schema_of(*COLUMNS))
        table.write(row(1))
        held = len(list(hudi_table(table.lake).stamps()))

        def by(text: str) -> None:
            step = Repartition(
                before=table.state.partitioning, after=Partitioning.parse([text] if text else []), partitions="derived"
            )
            table.lake.migrate(Migration(version=1, schema=table.schema, steps=(step,)), table.progress)

        by("day(at), region")
        by("day(at), region")
        assert table.state.partition_by == "day(at), region"
        assert len(list(hudi_table(table.lake).stamps())) == held + 1
        table.check()
        for other in ("region", "day(at), region, note", ""):
            with pytest.raises(TargetError, match="a Hudi table stays as it was made"):
                by(other)
        table.check()

    def test_one_that_is_not_divided_stays_so(self, plain: Target, session: SparkSession) -> None:
        lake = Lake(target=plain, session=session, name=fresh_name())
        lake.create(schema_of(*COLUMNS))
        found = plain.state(lake.name)
        assert found is not None
        assert (found.partitioning, found.partition_by) == (UNPARTITIONED, None)
        step = Repartition(before=UNPARTITIONED, after=Partitioning.parse(["region"]), partitions="derived")
        with pytest.raises(TargetError, match="a Hudi table stays as it was made"):
            lake.migrate(Migration(version=1, schema=schema_of(*COLUMNS), steps=(step,)))


class Killed(Exception):
    """The process ended here."""


def killed(patched: pytest.MonkeyPatch, method: str, *, behind: bool) -> None:
    """End whoever calls a method of a table, before it or behind it."""
    real = getattr(HudiTable, method)

    def dies(self: HudiTable, *given: Any, **options: Any) -> Any:
        if behind:
            real(self, *given, **options)
        raise Killed

    patched.setattr(HudiTable, method, dies)


class TestWhoeverDies:
    @pytest.mark.parametrize("then", ["region", "day(at), note", "region, day(at)"])
    def test_before_the_first_commit_leaves_no_table(
        self, then: str, plain: Target, session: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = fresh_name()
        with monkeypatch.context() as patched:
            killed(patched, "commit", behind=False)
            with pytest.raises(Killed):
                Divided(plain, session, "region, day(at)", schema_of(*COLUMNS), name=name)
        assert plain.state(name) is None
        table = Divided(plain, session, then, schema_of(*COLUMNS), name=name)
        table.write(row(1), row(2, None))
        table.write(row(1, "b", LATER))
        table.check()

    def test_while_rows_move_has_moved_none(
        self, kind: Target, session: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = Divided(kind, session, "region", schema_of(*COLUMNS))
        table.write(row(1), row(2, "b"), row(3, None))
        for method, behind in (("_collect", True), ("commit", True)):
            rows = dict(table.rows)
            with monkeypatch.context() as patched:
                killed(patched, method, behind=behind)
                with pytest.raises(Killed):
                    table.write(row(1, f"c{method}"), row(2, None), row(4, method), deleted=[3])
            table.rows = rows
            if method == "_collect":
                table.check()
                continue
            table.rows = {key: row(key, region) for key, region in ((1, f"c{method}"), (2, None), (4, method))}
            table.check()
        table.write(row(1), row(2, "d"), deleted=[4])
        table.check()

    def test_while_all_rows_are_written_anew_has_written_none(
        self, kind: Target, session: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = Divided(kind, session, "region, day(at)", schema_of(*COLUMNS))
        table.write(row(1), row(2, "b", LATER), row(3, None, None))
        table.write(row(1, "c"))
        with monkeypatch.context() as patched:
            killed(patched, "_collect", behind=True)
            with pytest.raises(Killed):
                table.change(ID, AT, NOTE, kind=RewriteTable)
        table.number -= 1
        table.check()
        assert table.state.partition_by == "region, day(at)"
        table.change(ID, AT, NOTE, kind=RewriteTable)
        table.check()
        assert table.state.partition_by == "day(at)"
        table.write({1: 1, 3: LATER}, {1: 3})
        table.check()
