"""Partitions of Parquet tables: a metastore server's, read over thrift and with Arrow by a reader of its own."""

from __future__ import annotations

import random
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.migration.migration import Migration, Repartition, migration
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.types import DATE, FLOAT64, INT32, INT64, STRING, TIMESTAMP_TZ
from cdc_sync.errors import TargetError
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.hive.metastore import Metastore
from cdc_sync.targets.hive.partitions import Partitions
from cdc_sync.targets.parquet.leftovers import CLAIMS
from cdc_sync.targets.parquet.target import ParquetTarget
from cdc_sync.testing.targets import version
from tests.lakes.parquet import ParquetLake
from tests.targets.conftest import fresh_name, schema_of
from tests.targets.divided import DividedLake
from tests.targets.hive import AS_ADVISED, start_metastore
from tests.targets.keyless import apply, created, deleted, updated

pytestmark = [pytest.mark.spark, pytest.mark.parquet]

ID, REGION = Column(id=1, name="id", type=INT32), Column(id=2, name="region", type=STRING)
AT, NOTE = Column(id=3, name="at", type=TIMESTAMP_TZ), Column(id=4, name="note", type=STRING)
SCHEMA = schema_of(ID, REGION, AT, NOTE)
NOON = datetime(2024, 2, 29, 12, 0, tzinfo=timezone.utc)
NULL = "__HIVE_DEFAULT_PARTITION__"
ODD = (
    "a/b=c",
    "",
    "ä€日本",
    "%41",
    "{x}[y]*?",
    "tab\tnew\nline",
    'it\'s "so" \\ ^#:',
    NULL,
    "z" * 300,
    " . ",
    "A",
    "a",
)
"""Texts that names of folders, of partitions or texts in JSON could be broken by."""

Row = dict[str, Any]


class Divided(DividedLake):
    """A lake whose table is partitioned, and a reader that knows the metastore and nothing else."""

    reader: ParquetLake

    def divide(self, schema: InternalSchema, *texts: str, at: int = 1) -> None:
        after = Partitioning.parse(texts)
        step = Repartition(before=self.state.partitioning, after=after, partitions="derived")
        self.migrate(Migration(version=at, schema=schema, steps=(step,)))

    @property
    def place(self) -> tuple[str, str]:
        return (self.name.namespace, self.name.name)

    def seen(self) -> list[Row]:
        """The rows as the reader finds them, ordered by the first column."""
        found = self.reader.table(self.place)
        assert found is not None
        return by_first(found.rows)

    def partitions(self) -> dict[tuple[str, ...], Path]:
        return self.reader.partitions(self.place)

    def filled(self) -> set[tuple[str, ...]]:
        """The partitions that have rows."""
        return {values for values, folder in self.partitions().items() if any(folder.glob("*.parquet"))}

    def entries(self) -> list[str]:
        """The names of tables that begin with this one's."""
        assert isinstance(self.target, ParquetTarget)
        with self.target._metastore.client() as client:
            found = client.getAllTables(self.name.namespace)
        return sorted(it for it in found if it == self.name.name or it.startswith(f"{self.name.name}_"))


def by_first(rows: Sequence[Any]) -> list[Row]:
    return sorted(map(dict, rows), key=lambda row: (str(row[next(iter(row))]), repr(row)))


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server, uri = start_metastore(tmp_path_factory.mktemp("metastore"), AS_ADVISED)
    yield uri
    server.stop()


@pytest.fixture(scope="module")
def config(uri: str, tmp_path_factory: pytest.TempPathFactory) -> TargetConfig:
    folder = tmp_path_factory.mktemp("warehouse")
    return TargetConfig(format="parquet", catalog=Catalog(type="hive", uri=uri, warehouse=f"{folder}/a warehouse"))


@pytest.fixture
def lake(config: TargetConfig, session: SparkSession) -> Divided:
    lake = Divided(target=open_target(config, session), session=session, name=fresh_name("shop"))
    lake.reader = ParquetLake(config)
    return lake


def progress(offset: int, at: int = 1) -> Progress:
    return Progress(version=at, offsets={"t": {0: offset}})


def row(id_: int, region: str | None = None, at: datetime | None = None, note: str | None = None) -> Row:
    return {"id": id_, "region": region, "at": at, "note": note}


def partition_of(given: Row) -> tuple[str, ...]:
    """What `region, day(at), bucket(2, id)` makes of a row, worked out without Spark."""
    region, at = given["region"], given["at"]
    bucket = zlib.crc32(str(given["id"]).encode()) % 2
    return (region[:40] if region else NULL, at.date().isoformat() if at else NULL, str(bucket))


def test_rows_lie_where_they_belong_whatever_batches_do_with_them(lake: Divided) -> None:
    chance, model = random.Random(7), dict[int, Row]()
    lake.create_by(SCHEMA, "region, day(at), bucket(2, id)")
    assert set(lake.partitions()) == {(NULL,) * 3}

    def some(id_: int) -> Row:
        at = chance.choice([None, NOON, NOON.replace(year=1968, hour=23), NOON.replace(day=1, hour=0)])
        return row(id_, chance.choice([None, *ODD]), at, str(chance.random()))

    for number in range(5):
        before = lake.partitions()
        changed = [some(id_) for id_ in chance.sample(range(40), 24 if number == 0 else 5)]
        gone = chance.sample(sorted(model), 3) if number else []
        touched = {partition_of(model[id_]) for id_ in [*gone, *(it["id"] for it in changed)] if id_ in model}
        rows = [it for it in changed if it["id"] not in gone]
        touched |= {partition_of(it) for it in rows}
        lake.write(SCHEMA, [*rows, *({"id": id_, "deleted": True} for id_ in gone)], progress=progress(number))
        model |= {it["id"]: it for it in rows}
        for id_ in gone:
            del model[id_]

        assert lake.seen() == by_first([*model.values()])
        after = lake.partitions()
        assert lake.filled() == {partition_of(it) for it in model.values()}
        assert set(after) == lake.filled() | {(NULL,) * 3}
        assert {it: after[it] for it in after if it not in touched} == {
            it: before[it] for it in after if it in before and it not in touched
        }
        assert all(after[it] != before.get(it) for it in touched & lake.filled())
    lake.write(SCHEMA, [{"id": id_, "deleted": True} for id_ in model], progress=progress(9))
    assert (lake.seen(), set(lake.partitions())) == ([], {(NULL,) * 3})
    assert lake.state.progress == progress(9)
    assert lake.rows() == []


def test_what_events_leave_out_stays_wherever_the_row_moves(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region, day(at)")
    lake.write(SCHEMA, [row(1, "a", NOON, "x"), row(2, "b", NOON, "y"), row(3, "b", None, "z")])
    lake.write(
        SCHEMA, [{"id": 1, "region": "b"}, {"id": 2, "at": NOON.replace(day=1), "region": "b"}], unchanged=(3, 4)
    )
    assert lake.seen() == [row(1, "b", NOON, "x"), row(2, "b", NOON.replace(day=1), "y"), row(3, "b", None, "z")]
    lake.write(SCHEMA, [{"id": 1, "note": "n", "at": None}], unchanged=(2,))
    assert lake.seen()[0] == row(1, "b", None, "n")
    assert lake.filled() == {("b", "2024-02-01"), ("b", NULL)}


def test_a_partition_that_follows_from_the_key_is_not_looked_for(lake: Divided) -> None:
    schema = replace(SCHEMA, primary_key=(1, 2))
    lake.create_by(schema, "region, bucket(2, id)")
    lake.write(schema, [row(1, "a"), row(1, "b"), row(2, "a")])
    lake.write(schema, [row(1, "b", note="new"), {"id": 1, "region": "a", "deleted": True}])
    assert lake.seen() == [row(1, "b", note="new"), row(2, "a")]


def test_copies_without_a_key_are_counted_in_their_partition(lake: Divided) -> None:
    number = Column(id=5, name="number", type=FLOAT64)
    schema = schema_of(REGION, number, key=())
    lake.create_by(schema, "number, region")
    one, zero = ("a", 1.5), ("a", 0.0)
    apply(lake, [*map(created, (one, one, zero, ("b", float("nan"))))], schema)
    apply(lake, [deleted(one), updated(("a", -0.0), one), deleted(("b", float("nan")))], schema)
    assert lake.seen() == [{"region": "a", "number": 1.5}] * 2
    retired = replace(schema, columns=(replace(REGION, retired=True), number))
    apply(lake, [deleted((None, 1.5))], retired)
    assert lake.seen() == [{"region": "a", "number": 1.5}]


def test_a_changelog_is_divided_by_its_own_columns_too(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region, _cdc_op", mode="append")
    assert [key.name for key in entry(lake).keys] == ["cdc_sync_by_value_region", "cdc_sync_by_value__cdc_op"]


def test_appends_carry_over_what_is_in_their_partitions(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    lake.write(SCHEMA, [row(1, "a"), row(2, "b")], append=True, progress=progress(1))
    before = lake.partitions()
    lake.write(SCHEMA, [row(3, "a"), row(4, "c")], append=True, progress=progress(2))
    assert lake.seen() == [row(1, "a"), row(2, "b"), row(3, "a"), row(4, "c")]
    assert lake.partitions()[("b",)] == before[("b",)]

    target = lake.target
    first, second = target.commits(lake.name, 9)[:2]
    ids = [column.id for column in SCHEMA.columns]
    assert [target.read(lake.name, SCHEMA, ids, it).count() for it in (first, second)] == [4, 2]
    lake.target.truncate(lake.name, progress(3), progress(2))
    assert (lake.seen(), lake.state.progress, set(lake.partitions())) == ([], progress(3), {(NULL,)})
    assert target.read(lake.name, SCHEMA, ids, first).count() == 4


def test_progress_alone_is_one_partition_s_parameter(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    lake.target.mark(lake.name, progress(1), None)
    lake.write(SCHEMA, [row(1, "a")], progress=progress(2))
    before = lake.partitions()
    lake.target.mark(lake.name, progress(3), progress(2))
    assert (lake.state.progress, lake.partitions()) == (progress(3), before)


def test_columns_are_added_to_all_partitions_in_one_call(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    lake.write(SCHEMA, [row(1, "a"), row(2, "b")], progress=progress(1))
    before = lake.partitions()
    more = replace(SCHEMA, columns=(*SCHEMA.columns, Column(id=5, name="More", type=INT64)), last_column_id=5)
    lake.change(SCHEMA, more, progress=progress(1))
    assert (lake.partitions(), lake.state.version) == (before, 2)
    lake.write(more, [{**row(1, "b"), "More": 5}], progress=progress(2))
    assert lake.seen() == [{**row(1, "b"), "More": 5}, {**row(2, "b"), "More": None}]
    assert [column.name for column in entry(lake).columns] == ["id", "region", "at", "note", "more"]


_LEFT = Column(id=5, name="region", type=STRING)
CHANGES: dict[str, tuple[tuple[Column, ...], str, set[tuple[str, ...]]]] = {
    "a column that nothing is divided by goes": (
        (ID, REGION, AT),
        "region, day(at)",
        {("a", "2024-02-29"), ("b", NULL)},
    ),
    "a source of a key goes": ((ID, AT, NOTE), "day(at)", {("2024-02-29",), (NULL,)}),
    "the only sources go": ((ID, NOTE), "", set()),
    "a source is renamed": (
        (ID, replace(REGION, name="zone"), AT, NOTE),
        "region, day(at)",
        {("a", "2024-02-29"), ("b", NULL)},
    ),
    "a source gets a type that its key takes": (
        (ID, REGION, replace(AT, type=DATE), NOTE),
        "region, day(at)",
        {("a", "2024-02-29"), ("b", NULL)},
    ),
    "a source gets a type that its key does not take": (
        (ID, REGION, replace(AT, type=STRING), NOTE),
        "region",
        {("a",), ("b",)},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_columns_become_others_and_partitions_follow(lake: Divided, change: str) -> None:
    columns, text, partitions = CHANGES[change]
    lake.create_by(SCHEMA, "region, day(at)")
    lake.write(SCHEMA, [row(1, "a", NOON, "x"), row(2, "b", None, "y")], progress=progress(1))
    rows, before = lake.seen(), lake.partitions()
    after = replace(SCHEMA, columns=columns)
    lake.change(SCHEMA, after, progress=progress(1, 2))

    names = {column.name: next(it.name for it in SCHEMA.columns if it.id == column.id) for column in columns}
    found = lake.seen()
    assert [list(it) for it in found] == [list(names)] * 2
    same = [name for name, old in names.items() if name == old and name != "at"]
    assert [[it[name] for name in same] for it in found] == [[it[name] for name in same] for it in rows]
    assert (lake.state.partition_by, lake.state.version, lake.state.kept) == (text, 2, 1)
    if partitions:
        assert lake.filled() == partitions

    lake.write(after, [{"id": 1, "deleted": True}, {"id": 3}], progress=progress(2, 2))
    assert [it["id"] for it in lake.seen()] == [2, 3]
    assert lake.target.roll_back(lake.name)
    assert (lake.seen(), lake.partitions(), lake.state.version) == (rows, before, 1)
    assert lake.state.partition_by == "region, day(at)"


def test_a_source_that_is_back_is_divided_by_again(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    lake.write(SCHEMA, [row(1, "a"), row(2, "b")], progress=progress(1))
    without = replace(SCHEMA, columns=(ID, AT, NOTE))
    lake.change(SCHEMA, without, progress=progress(1, 2))
    assert (lake.state.partition_by, str(lake.state.partitioning)) == ("", "")
    again = replace(SCHEMA, columns=(ID, AT, NOTE, _LEFT), last_column_id=5)
    able = lake.target.capabilities
    first = version(2, without)
    lake.migrate(migration(first, first, version(3, again), capabilities=able), progress(1, 3))
    lake.divide(again, "region", at=3)
    lake.write(again, [row(2, "new")], progress=progress(2, 3))
    assert lake.filled() == {(NULL,), ("new",)}
    assert [(it["id"], it["region"]) for it in lake.seen()] == [(1, None), (2, "new")]


def test_a_table_with_rows_is_divided_in_another_way_and_not_at_all(lake: Divided) -> None:
    lake.create(SCHEMA)
    lake.write(SCHEMA, [row(1, "a", NOON), row(2, "b", None)], progress=progress(1))
    rows = lake.seen()
    for texts, filled in [
        (("region",), {("a",), ("b",)}),
        (("truncate(1, region)",), {("a",), ("b",)}),
        (("year(at)", "region"), {("2024", "a"), (NULL, "b")}),
        ((), None),
        (("month(at)",), {("2024-02",), (NULL,)}),
    ]:
        lake.divide(SCHEMA, *texts)
        assert (lake.seen(), lake.state.progress, lake.state.partition_by) == (rows, progress(1), ", ".join(texts))
        assert filled is None or lake.filled() == filled
    assert lake.entries() == [lake.name.name]
    lake.divide(SCHEMA, "month(at)")
    lake.write(SCHEMA, [row(2, "b", NOON)], progress=progress(2))
    assert lake.filled() == {("2024-02",)}


def test_states_share_folders_and_what_none_needs_is_deleted(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    lake.write(SCHEMA, [row(1, "a"), row(2, "b")], progress=progress(0))
    stays = lake.partitions()[("b",)]
    for offset in range(1, 9):
        lake.write(SCHEMA, [row(1, "a", note=str(offset)), row(3, "c")], progress=progress(offset))
    assert lake.partitions()[("b",)] == stays
    table = stays.parent.parent
    assert not (stays.parent / "cdc_sync_by_value_region=a").exists()
    assert len([it for it in table.iterdir() if it.name not in ("empty", CLAIMS)]) == 6
    assert [
        next(iter(it.progress.offsets["t"].values())) for it in lake.target.commits(lake.name, 9) if it.progress
    ] == [8, 7, 6, 5, 4]

    leftover = stays.parent / "cdc_sync_by_value_region=x"
    leftover.mkdir()
    (leftover / "part.parquet").write_bytes(b"")
    (table / "00000003-crashed").mkdir()
    lake.target = open_target(lake.target._config, lake.session)  # type: ignore[attr-defined]
    lake.write(SCHEMA, [row(3, "c", note="x")], progress=progress(9))
    assert not (leftover / "part.parquet").exists()
    assert not (table / "00000003-crashed").exists()
    assert lake.seen() == [row(1, "a", note="8"), row(2, "b"), row(3, "c", note="x")]


def test_a_table_is_archived_and_dropped_with_its_partitions(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    lake.write(SCHEMA, [row(1, "a")], progress=progress(1))
    folder, into = lake.partitions()[("a",)], replace(lake.name, name=f"{lake.name.name}__dropped_2")
    lake.target.archive(lake.name, into)
    assert lake.reader.table(lake.place) is None
    assert lake.reader.partitions((into.namespace, into.name))[("a",)] == folder
    lake.create_by(SCHEMA, "region")
    lake.target.drop(into)
    assert not folder.parent.parent.exists()
    assert (lake.target.state(into), lake.seen()) == (None, [])


def test_rows_of_a_partition_that_was_not_looked_for_are_refused(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    lake.write(SCHEMA, [row(1, "a"), row(2, "b")], progress=progress(1))
    assert isinstance(lake.target, ParquetTarget)
    table = lake.target.table(lake.name)
    now = table.snapshot()
    assert now is not None
    with pytest.raises(TargetError, match="were not looked for"):
        table.commit(now, now.stamp, table.rows(now), frozenset({("a",)}))
    assert lake.seen() == [row(1, "a"), row(2, "b")]


class Crashed(BaseException):
    """The process ends here."""


_CALLS = (
    (Metastore, "create"),
    (Metastore, "replace"),
    (Metastore, "drop"),
    *((Partitions, it) for it in ("add", "replace", "drop")),
)


def crash_at(monkeypatch: pytest.MonkeyPatch, number: int) -> Callable[[], bool]:
    """Have the process end behind one of the calls that change the metastore; return whether there was none."""
    calls = 0

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            result = real(*arguments, **options)
            calls += 1
            if calls == number:
                raise Crashed
            return result

        return call

    for owner, name in _CALLS:
        monkeypatch.setattr(owner, name, wrapped(getattr(owner, name)))
    return lambda: calls < number


class Watching:
    """A reader that asks again and again while a block lasts, and remembers every set of rows that it found."""

    def __init__(self, lake: Divided) -> None:
        self._lake = lake
        self._done = threading.Event()
        self.found: list[list[Row] | None] = []
        self.failed: list[BaseException] = []

    def __enter__(self) -> Watching:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.is_set():
            try:
                table = self._lake.reader.table(self._lake.place)
                rows = None if table is None else by_first(table.rows)
                if not self.found or self.found[-1] != rows:
                    self.found.append(rows)
                self._done.wait(0.002)
            except BaseException as error:
                self.failed.append(error)
                return


def test_a_batch_is_shown_at_once_wherever_the_process_ends(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    one = [row(1, "a"), row(2, "b"), row(3, "c")]
    two = [row(1, "b", note="moved"), row(2, "b"), row(4, "d")]
    lake.write(SCHEMA, one, progress=progress(0))

    for number in range(1, 99):
        there, wanted = (one, two) if number % 2 else (two, one)
        gone = {it["id"] for it in there} - {it["id"] for it in wanted}
        rows = [*wanted, *({"id": id_, "deleted": True} for id_ in gone)]
        with pytest.MonkeyPatch.context() as patch:
            beyond = crash_at(patch, number)
            with Watching(lake) as watching:
                with suppress(Crashed):
                    lake.write(SCHEMA, rows, progress=progress(number))
                ended = beyond()
        lake.target = open_target(lake.target._config, lake.session)  # type: ignore[attr-defined]
        if lake.state.progress == progress(number - 1):
            assert lake.seen() == there
            lake.write(SCHEMA, rows, progress=progress(number))
        assert lake.state.progress == progress(number)
        assert watching.failed == []
        assert all(it in (one, two) for it in watching.found)
        assert lake.seen() == wanted
        assert lake.filled() == {(it["region"],) for it in wanted}
        if ended:
            break
    assert number >= 3
    assert set(lake.partitions()) == {(NULL,), *lake.filled()}


def test_another_partitioning_is_shown_at_once_wherever_the_process_ends(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    rows = [row(1, "a", NOON), row(2, "b", None)]
    lake.write(SCHEMA, rows, progress=progress(1))
    for number in range(1, 99):
        text = ("day(at)", "region")[(number + 1) % 2]
        with pytest.MonkeyPatch.context() as patch:
            beyond = crash_at(patch, number)
            with Watching(lake) as watching:
                with suppress(Crashed):
                    lake.divide(SCHEMA, text)
                ended = beyond()
        lake.target = open_target(lake.target._config, lake.session)  # type: ignore[attr-defined]
        assert lake.state.progress == progress(1)
        lake.divide(SCHEMA, text)
        assert lake.state.partition_by == text
        assert watching.failed == []
        assert all(it is None or it == rows for it in watching.found)
        assert lake.seen() == rows
        if ended:
            break
    assert number >= 5
    lake.write(SCHEMA, rows[:1], progress=progress(2))
    assert lake.seen() == rows
    assert lake.entries() == [lake.name.name]


def entry(lake: Divided) -> Any:
    assert isinstance(lake.target, ParquetTarget)
    found = lake.target.table(lake.name).entry()
    assert found is not None
    return found


def test_a_day_that_has_no_text_is_in_no_partition_of_its_own(lake: Divided) -> None:
    day = Column(id=3, name="day", type=DATE)
    schema = schema_of(ID, day)
    lake.create_by(schema, "day(day)")
    lake.write(schema, [{"id": 1, "day": date(1, 1, 1)}, {"id": 2, "day": date(9999, 12, 31)}])
    assert lake.filled() == {("0001-01-01",), ("9999-12-31",)}
