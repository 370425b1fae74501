"""What only Parquet tables do: folders of states, one entry of a metastore, and readers that know nothing else."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32, INT64, STRING, DecimalType, ListType, MapType, StructType, TimestampType
from cdc_sync.core.schema.types import Field as StructField
from cdc_sync.errors import TargetError
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.hive.columns import HiveColumn, hive_columns, table_struct
from cdc_sync.targets.hive.metastore import Entry, Metastore
from cdc_sync.targets.parquet.target import ParquetTarget
from tests.targets.conftest import Lake, fresh_name, schema_of
from tests.targets.hive import start_metastore

pytestmark = [pytest.mark.spark, pytest.mark.parquet]

ID, A, B = Column(id=1, name="Id", type=INT64), Column(id=2, name="a", type=INT32), Column(id=3, name="b", type=STRING)
SCHEMA = schema_of(ID, A, B)


@pytest.fixture
def lake(parquet: ParquetTarget, session: SparkSession) -> Lake:
    return Lake(target=parquet, session=session, name=fresh_name("shop"))


def entry_of(lake: Lake) -> Entry:
    assert isinstance(lake.target, ParquetTarget)
    entry = lake.target.table(lake.name).entry()
    assert entry is not None
    return entry


def location(lake: Lake) -> Path:
    return Path(entry_of(lake).location.removeprefix("file:"))


def read_by_arrow(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return sorted(rows, key=lambda row: int(row[next(iter(row))]))


def progress(offset: int) -> Progress:
    return Progress(version=1, offsets={"t": {0: offset}})


def test_types_have_hive_s_names_and_comments_hive_s_length() -> None:
    inside = (
        StructField(id=5, name="x", type=DecimalType(precision=38, scale=9)),
        StructField(id=6, name="y", type=TimestampType(zoned=False)),
    )
    columns = (
        Column(id=1, name="id", type=INT64, comment="c" * 257),
        Column(id=2, name="at", type=TimestampType(zoned=True), comment="x" * 256),
        Column(id=3, name="all", type=ListType(element_id=4, element=StructType(fields=inside))),
        Column(id=7, name="m", type=MapType(key_id=8, key=STRING, value_id=9, value=INT32)),
    )
    schema = InternalSchema(columns=columns, primary_key=(1,), last_column_id=9)
    assert hive_columns(table_struct(schema, "upsert")) == (
        HiveColumn("id", "bigint", "c" * 255 + "…"),
        HiveColumn("at", "timestamp", "x" * 256),
        HiveColumn("all", "array<struct<x:decimal(38,9),y:timestamp>>", None),
        HiveColumn("m", "map<string,int>", None),
    )


def test_who_was_told_a_folder_goes_on_reading_it(lake: Lake) -> None:
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"Id": 1, "a": 1}, {"Id": 2, "a": 2, "b": "x"}], progress=progress(2))
    told = location(lake)

    after = replace(SCHEMA, columns=(ID, replace(B, name="a")))
    lake.change(SCHEMA, after, progress=progress(2))
    lake.write(after, [{"Id": 1, "deleted": True}], progress=progress(3))

    assert read_by_arrow(told) == [{"Id": 1, "a": 1, "b": None}, {"Id": 2, "a": 2, "b": "x"}]
    assert read_by_arrow(location(lake)) == [{"Id": 2, "a": "x"}]
    assert [column.name for column in entry_of(lake).columns] == ["id", "a"]


def test_as_many_states_are_kept_as_configured_and_that_before_the_rewrite(lake: Lake) -> None:
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"Id": 0}], progress=progress(0))
    folder, before = location(lake).parent, location(lake)
    lake.change(SCHEMA, replace(SCHEMA, columns=(ID, B)), progress=progress(0))
    (folder / "00000005-crashed").mkdir()
    after = replace(SCHEMA, columns=(ID, B))
    for offset in range(1, 7):
        lake.write(after, [{"Id": offset}], progress=progress(offset), append=True)

    commits = lake.target.commits(lake.name, 99)
    assert [next(iter(found.progress.offsets["t"].values())) for found in commits if found.progress] == [6, 5, 4, 3, 2]
    assert lake.target.read(lake.name, after, [1], commits[-1]).count() == 3
    assert len(list(folder.iterdir())) == 7
    assert lake.target.roll_back(lake.name)
    assert location(lake) == before
    assert lake.rows() == [{"Id": 0, "a": None, "b": None}]


def test_a_reply_that_is_lost_is_looked_up(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.create(SCHEMA)
    really = Metastore.replace

    def lossy(self: Metastore, name: TargetName, *arguments: Any, **options: Any) -> None:
        really(self, name, *arguments, **options)
        with self.client() as client:
            client.getDatabase("no such database")

    monkeypatch.setattr(Metastore, "replace", lossy)
    lake.write(SCHEMA, [{"Id": 1}], progress=progress(1))
    assert [row["Id"] for row in lake.rows()] == [1]

    def lost(self: Metastore, name: TargetName, *arguments: Any, **options: Any) -> None:
        with self.client() as client:
            client.getDatabase("no such database")

    with monkeypatch.context() as patch:
        patch.setattr(Metastore, "replace", lost)
        with pytest.raises(TargetError, match="Cannot write shop"):
            lake.write(SCHEMA, [{"Id": 2}], progress=progress(2))
    assert [row["Id"] for row in lake.rows()] == [1], "committed, and not shown yet"
    assert lake.held == progress(2)
    assert [row["Id"] for row in lake.rows()] == [1, 2]


def test_a_table_whose_making_was_answered_by_there_is_one_keeps_its_folder(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server makes the entry, does not hear so from its database, tries again and finds it."""
    real = Metastore.create

    def create(self: Metastore, name: TargetName, entry: Entry) -> bool:
        assert real(self, name, entry)
        return real(self, name, entry)

    monkeypatch.setattr(Metastore, "create", create)
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"Id": 1, "a": 2, "b": "x"}], progress=progress(1))

    assert read_by_arrow(location(lake)) == [{"Id": 1, "a": 2, "b": "x"}]


def test_the_folder_of_a_table_that_somebody_else_made_first_is_not_left(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, theirs = Metastore.create, []

    def create(self: Metastore, name: TargetName, entry: Entry) -> bool:
        folder = f"{entry.parameters['cdc_sync.folder']}-theirs"
        theirs.append(replace(entry, parameters={**entry.parameters, "cdc_sync.folder": folder}))
        assert real(self, name, theirs[0])
        return real(self, name, entry)

    monkeypatch.setattr(Metastore, "create", create)
    lake.create(SCHEMA)

    assert not location(lake).parent.exists()


def test_what_another_writer_did_is_not_undone(lake: Lake) -> None:
    assert isinstance(lake.target, ParquetTarget)
    lake.create(SCHEMA)
    table = lake.target.table(lake.name)
    seen = table.snapshot()
    assert seen is not None
    lake.write(SCHEMA, [{"Id": 1}])
    with pytest.raises(TargetError, match="somebody else has changed it"):
        table.commit(seen, seen.stamp, None)
    assert [row["Id"] for row in lake.rows()] == [1]


def test_an_entry_is_read_whole_at_any_moment(lake: Lake) -> None:
    assert isinstance(lake.target, ParquetTarget)
    lake.create(SCHEMA)
    metastore, entry = lake.target._metastore, entry_of(lake)
    states = [
        replace(entry, location=f"{entry.location}/{name}", columns=(HiveColumn(name, "int", None),)) for name in "ab"
    ]

    def look() -> list[Entry | None]:
        return [metastore.entry(lake.name) for _ in range(100)]

    metastore.replace(lake.name, states[0])
    with ThreadPoolExecutor() as pool:
        looking = pool.submit(look)
        for state in itertools.takewhile(lambda _: not looking.done(), itertools.cycle(states)):
            metastore.replace(lake.name, state)
    found = {(seen.location[-1], seen.columns[0].name) for seen in looking.result() if seen}
    assert found == {("a", "a"), ("b", "b")}
    metastore.replace(lake.name, entry)


def test_names_that_differ_in_case_only_are_not_mixed_up(lake: Lake) -> None:
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"Id": 1}])
    other = replace(lake.name, name=lake.name.name.upper())
    with pytest.raises(TargetError, match="differs only in case"):
        lake.target.state(other)
    with pytest.raises(TargetError, match="differs only in case"):
        lake.target.drop(other)
    assert [row["Id"] for row in lake.rows()] == [1]


def test_a_table_of_somebody_else_is_left_alone(lake: Lake) -> None:
    assert isinstance(lake.target, ParquetTarget)
    lake.create(SCHEMA)
    foreign, ours = replace(lake.name, name=f"{lake.name.name}_theirs"), entry_of(lake)
    assert lake.target._metastore.create(foreign, replace(ours, parameters={}))
    state = lake.target.state(foreign)
    assert state is not None
    assert state.version is None
    with pytest.raises(TargetError, match="cdc_sync"):
        lake.target.drop(foreign)
    with pytest.raises(TargetError, match="cdc_sync"):
        lake.target.truncate(foreign, progress(0), None)
    assert lake.rows() == []


def test_a_drop_that_was_interrupted_is_ended_by_the_next(lake: Lake) -> None:
    assert isinstance(lake.target, ParquetTarget)
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"Id": 1}])
    folder = location(lake).parent
    leaving = replace(lake.name, name=f"{lake.name.name}__dropping")
    lake.target._metastore.replace(lake.name, entry_of(lake), into=leaving)
    lake.create(SCHEMA)
    for _ in range(2):
        lake.target.drop(lake.name)
    assert not folder.exists()
    assert lake.target.state(lake.name) is None
    assert lake.target.state(leaving) is None


def test_properties_of_tables_are_for_the_writer_and_the_metastore(session: SparkSession, parquet: Any) -> None:
    config = parquet._config.model_copy(update={"table_properties": {"compression": "zstd", "owner-team": "shop"}})
    lake = Lake(target=open_target(config, session), session=session, name=fresh_name("shop"))
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"Id": 1}])
    assert entry_of(lake).parameters["owner-team"] == "shop"
    (file,) = (file for file in location(lake).glob("*.parquet") if pq.read_metadata(file).num_rows)
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server, uri = start_metastore(tmp_path_factory.mktemp("metastore"))
    yield uri
    server.stop()


class TestAServer:
    """A metastore server of Hive 2.3 with its default settings, over thrift."""

    @pytest.fixture
    def served(self, uri: str, session: SparkSession, tmp_path: Path) -> Lake:
        catalog = Catalog(type="hive", uri=uri, warehouse=f"{tmp_path}/a warehouse")
        target = open_target(TargetConfig(format="parquet", catalog=catalog), session)
        return Lake(target=target, session=session, name=fresh_name("shop"))

    def test_spark_s_own_client_finds_every_state(self, served: Lake, uri: str) -> None:
        local = Column(id=4, name="At", type=TimestampType(zoned=False))
        schema = schema_of(ID, A, local)
        served.create(schema)
        served.write(schema, [{"Id": 1, "a": 1}, {"Id": 2}], progress=progress(1))
        assert found_by_spark(served, uri) == (["Id", "a", "At"], "timestamp_ntz", [1, 2])

        added = replace(schema, columns=(*schema.columns, replace(B, id=5)), last_column_id=5)
        served.change(schema, added, progress=progress(1))
        served.write(added, [{"Id": 2, "deleted": True}, {"Id": 3, "b": "x"}], progress=progress(2))
        assert found_by_spark(served, uri) == (["Id", "a", "At", "b"], "timestamp_ntz", [1, 3])
        assert [row["b"] for row in read_by_arrow(location(served))] == [None, "x"]

        into = replace(served.name, name=f"{served.name.name}__dropped_2")
        served.target.archive(served.name, into)
        assert served.target.state(served.name) is None
        served.target.drop(into)
        assert served.target.state(into) is None

    def test_a_type_that_the_server_does_not_take_is_refused_with_the_setting(self, served: Lake) -> None:
        served.create(SCHEMA)
        served.write(SCHEMA, [{"Id": 1, "b": "x"}], progress=progress(1))
        with pytest.raises(TargetError, match=r"set hive\.metastore\.disallow\.incompatible\.col\.type\.changes"):
            served.change(SCHEMA, replace(SCHEMA, columns=(ID, B, A)), progress=progress(1))
        assert served.rows() == [{"Id": 1, "a": None, "b": "x"}]

    def test_a_server_that_is_not_there_is_named(self, session: SparkSession, tmp_path: Path) -> None:
        properties = {"hive.metastore.connect.retries": "0", "hive.metastore.client.connect.retry.delay": "1ms"}
        catalog = Catalog(type="hive", uri="thrift://localhost:9", warehouse=str(tmp_path), properties=properties)
        with pytest.raises(TargetError, match="Cannot reach the metastore at thrift://localhost:9"):
            open_target(TargetConfig(format="parquet", catalog=catalog), session)


def found_by_spark(lake: Lake, uri: str) -> tuple[list[str], str, list[int]]:
    """What Spark's Hive catalog makes of an entry: names, the type of the third column, and the rows' first values."""
    jvm: Any = lake.session._jvm
    hadoop = lake.session._jsparkSession.sessionState().newHadoopConf()
    hadoop.set("hive.metastore.uris", uri)
    settings = jvm.org.apache.spark.SparkConf().set("spark.sql.hive.metastore.jars", "builtin")
    catalog = jvm.org.apache.spark.sql.hive.HiveExternalCatalog(settings, hadoop)
    table = catalog.getTable(lake.name.namespace, lake.name.name)
    struct = T.StructType.fromJson(json.loads(table.schema().json()))
    place = jvm.org.apache.hadoop.fs.Path(table.location()).toString()
    rows = lake.session.read.format(table.provider().get()).schema(struct).load(place)
    return struct.fieldNames(), struct[2].dataType.simpleString(), sorted(row[0] for row in rows.collect())
