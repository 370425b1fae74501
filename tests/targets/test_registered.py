"""Delta and Hudi tables in a Hive metastore: what it says follows each change, whatever came between."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from pyspark.sql import SparkSession

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.migration.capabilities import HUDI_ON_READ, SchemaEvolution
from cdc_sync.core.migration.migration import ChangeRegime, Migration, migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.types import INT32, INT64, STRING, DecimalType, Field, ListType, StructType
from cdc_sync.errors import TargetError
from cdc_sync.targets.delta.target import DeltaTarget
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.hive.metastore import Entry
from cdc_sync.targets.hive.registered import TABLE, RegisteredTarget
from cdc_sync.targets.hudi.schema import META
from cdc_sync.targets.hudi.settings import ON_READ, TABLE_TYPE
from cdc_sync.targets.hudi.target import HudiTarget
from cdc_sync.targets.protocol import Target
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake, fresh_name, schema_of

pytestmark = pytest.mark.spark

ID, A = Column(id=1, name="Id", type=INT64), Column(id=5, name="a", type=INT32)
LINE = StructType(fields=(Field(id=2, name="n", type=DecimalType(precision=9, scale=2)),))
LINES = Column(id=4, name="lines", type=ListType(element_id=3, element=LINE))
SCHEMA = schema_of(ID, A, LINES)
WITH_B = replace(
    SCHEMA, last_column_id=6, columns=(*SCHEMA.columns, Column(id=6, name="b", type=STRING, comment="what b is"))
)

NewTarget = Callable[..., RegisteredTarget]
FORMATS = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("delta", "hudi")]


@pytest.fixture(scope="module")
def warehouse(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The embedded metastore's database waits for the disk at every commit otherwise.
    session._jvm.java.lang.System.setProperty("derby.system.durability", "test")  # type: ignore[union-attr]
    return tmp_path_factory.mktemp("registered")


@pytest.fixture
def opened(session: SparkSession, warehouse: Path) -> NewTarget:
    def make(format_: Any, **properties: str) -> RegisteredTarget:
        catalog = Catalog(type="hive", warehouse=str(warehouse))
        made = open_target(TargetConfig(format=format_, catalog=catalog, table_properties=properties), session)
        assert isinstance(made, RegisteredTarget)
        return made

    return make


def entry(target: Target, name: TargetName, suffix: str = "") -> Entry | None:
    assert isinstance(target, RegisteredTarget)
    return target._metastore.entry(replace(name, name=f"{name.name}{suffix}"))


def columns(target: Target, name: TargetName, suffix: str = "") -> list[tuple[str, str, str | None]]:
    """The source's columns, as the metastore has them."""
    found = entry(target, name, suffix)
    assert found is not None
    return [(it.name, it.type, it.comment) for it in found.columns if it.name not in META]


def spark_s(target: Target, name: TargetName) -> list[str]:
    """Names of columns as Spark's Hive catalog takes them from an entry."""
    found = entry(target, name)
    assert found is not None
    parts = range(int(found.parameters["spark.sql.sources.schema.numParts"]))
    text = "".join(found.parameters[f"spark.sql.sources.schema.part.{part}"] for part in parts)
    return [field["name"] for field in json.loads(text)["fields"] if field["name"] not in META]


def progress(offset: int) -> Progress:
    return Progress(version=1, offsets={"t": {0: offset}})


FIRST = [("id", "bigint", None), ("a", "int", None), ("lines", "array<struct<n:decimal(9,2)>>", None)]


@pytest.mark.parametrize("format_", FORMATS)
def test_an_entry_follows_its_table(format_: str, opened: NewTarget, session: SparkSession) -> None:
    target = opened(format_)
    lake = Lake(target=target, session=session, name=fresh_name("shop"))
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"Id": 1, "a": 7}], progress=progress(1))
    made = entry(target, lake.name)
    assert made is not None
    assert isinstance(target._target, DeltaTarget | HudiTarget)
    assert made.location == f"file:{target._target.path(lake.name)}"
    assert made.parameters["spark.sql.sources.provider"] == format_
    assert made.form.serde
    assert columns(target, lake.name) == FIRST

    lake.change(SCHEMA, WITH_B, progress=progress(1))
    assert columns(target, lake.name) == [*FIRST, ("b", "string", "what b is")]
    assert spark_s(target, lake.name) == ["Id", "a", "lines", "b"]

    into = replace(lake.name, name=f"{lake.name.name}__dropped_2")
    target.archive(lake.name, into)
    assert entry(target, lake.name) is None
    assert len(columns(target, into)) == 4
    target.drop(into)
    assert entry(target, into) is None
    assert target.state(into) is None


@pytest.mark.parametrize("format_", FORMATS)
def test_a_type_that_changed_and_its_roll_back_are_seen(format_: str, opened: NewTarget, session: SparkSession) -> None:
    target = opened(format_)
    lake = Lake(target=target, session=session, name=fresh_name("shop"))
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"Id": 1, "a": 7}], progress=progress(1))
    as_text = replace(SCHEMA, columns=(ID, replace(A, name="A text", type=STRING), LINES))
    lake.change(SCHEMA, as_text, progress=progress(1))
    held = {"delta": "A text", "hudi": "A_x0020_text"}[format_]
    assert columns(target, lake.name) == [FIRST[0], (held.lower(), "string", None), FIRST[2]]
    assert spark_s(target, lake.name) == ["Id", held, "lines"]

    assert target.roll_back(lake.name)
    assert columns(target, lake.name) == FIRST


@pytest.mark.parametrize("format_", FORMATS)
def test_an_entry_that_a_crash_left_behind_is_mended_by_the_next_writing(
    format_: str, opened: NewTarget, session: SparkSession
) -> None:
    target = opened(format_)
    lake = Lake(target=target, session=session, name=fresh_name("shop"))
    lake.create(SCHEMA)
    crashed = Lake(target=target._target, session=session, name=lake.name)
    crashed.change(SCHEMA, WITH_B, rows=False)
    assert columns(target, lake.name) == FIRST

    later = Lake(target=opened(format_), session=session, name=lake.name)
    later.write(WITH_B, [{"Id": 1, "b": "x"}], progress=progress(1))
    assert [name for name, *_ in columns(target, lake.name)] == ["id", "a", "lines", "b"]


@pytest.mark.delta
def test_what_is_not_ours_is_neither_replaced_nor_dropped(opened: NewTarget, session: SparkSession) -> None:
    target = opened("delta")
    lake = Lake(target=target, session=session, name=fresh_name("shop"))
    lake.create(SCHEMA)
    ours = entry(target, lake.name)
    assert ours is not None
    target._metastore.replace(lake.name, replace(ours, parameters={}))
    with pytest.raises(TargetError, match="not made by cdc_sync"):
        lake.change(SCHEMA, WITH_B, rows=False)
    assert columns(target, lake.name) == FIRST

    target.drop(lake.name)
    assert entry(target, lake.name) is not None
    upper = Lake(target=target, session=session, name=replace(lake.name, name="Upper"))
    upper.create(SCHEMA)
    lower = Lake(target=target, session=session, name=replace(lake.name, name="upper"))
    with pytest.raises(TargetError, match=r"has a table shop\.upper already \(shop\.Upper\)"):
        lower.create(SCHEMA)


@pytest.mark.hudi
def test_a_table_with_logs_has_hudi_s_two_entries(opened: NewTarget, session: SparkSession) -> None:
    target = opened("hudi", **{TABLE_TYPE: "MERGE_ON_READ"})
    lake = Lake(target=target, session=session, name=fresh_name("shop"))
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"Id": 1, "a": 7}], progress=progress(1))
    lake.change(SCHEMA, WITH_B, progress=progress(1))

    assert entry(target, lake.name) is None
    for suffix, input_, read_only in (
        ("_ro", "HoodieParquetInputFormat", "true"),
        ("_rt", "realtime.HoodieParquetRealtimeInputFormat", "false"),
    ):
        found = entry(target, lake.name, suffix)
        assert found is not None
        assert found.form.input == f"org.apache.hudi.hadoop.{input_}"
        assert found.form.options == {"hoodie.query.as.ro.table": read_only}
        assert found.parameters[TABLE] == str(lake.name)
        assert [column.name for column in found.columns] == [*META, "id", "a", "lines", "b"]
    target.drop(lake.name)
    assert entry(target, lake.name, "_ro") is None
    assert entry(target, lake.name, "_rt") is None


def by_name(session: SparkSession, target: RegisteredTarget) -> SparkSession:
    """A session of Spark's own, whose catalogue is the metastore of the target: it knows nothing of the tables."""
    jvm: Any = session._jvm
    settings = jvm.java.util.HashMap()
    settings.put("spark.sql.catalogImplementation", "hive")
    for key in ("javax.jdo.option.ConnectionURL", "hive.metastore.warehouse.dir", "datanucleus.connectionPoolingType"):
        settings.put(key, target._metastore._conf.get(key))
    made = jvm.org.apache.spark.sql.SparkSession(session._jsparkSession.sparkContext(), settings)
    return SparkSession(session.sparkContext, made)


@pytest.mark.hudi
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_tables_whose_columns_have_ids_are_read_by_their_name_alone(
    kind: str, session: SparkSession, warehouse: Path
) -> None:
    target = open_target(
        TargetConfig(
            format="hudi",
            schema_evolution="on_read",
            readers=("spark",),
            catalog=Catalog(type="hive", warehouse=str(warehouse)),
            table_properties={TABLE_TYPE: kind},
        ),
        session,
    )
    assert isinstance(target, RegisteredTarget)
    reader = by_name(session, target)
    assert reader.conf.get("hoodie.schema.on.read.enable", None) is None
    key, a, b = replace(ID, name="id"), A, Column(id=6, name="b", type=INT32)
    schema = replace(SCHEMA, columns=(key, a, b), last_column_id=9)
    lake = Lake(target=target, session=session, name=fresh_name("shop"))
    lake.create(schema)
    lake.write(schema, [{"id": 1, "a": 7, "b": 8}], progress=progress(1))
    changes = (
        (key, replace(a, name="b"), Column(id=7, name="n", type=INT32)),
        (key, replace(a, name="c"), Column(id=7, name="n", type=INT32), Column(id=8, name="a", type=INT32)),
    )
    for number, (columns, expected) in enumerate(zip(changes, ((1, 7, None), (1, 7, None, None)), strict=True), 1):
        after = replace(schema, columns=columns)
        before = version(number, schema)
        lake.migrate(migration(before, before, version(number + 1, after), capabilities=HUDI_ON_READ), progress(1))
        schema = after
        for suffix in ("",) if kind == "COPY_ON_WRITE" else ("_ro", "_rt"):
            name = f"{lake.name.namespace}.{lake.name.name}{suffix}"
            reader.catalog.refreshTable(name)
            found = reader.table(name)
            assert found.columns[len(META) :] == [column.name for column in columns]
            assert [tuple(row)[len(META) :] for row in found.collect()] == [expected]
            named = reader.sql(f"select {columns[1].name} from {name} where {columns[1].name} = 7")
            assert [tuple(row) for row in named.collect()] == [(7,)]


@pytest.mark.hudi
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_entry_follows_its_table_into_another_regime(kind: str, opened: NewTarget, session: SparkSession) -> None:
    target = opened("hudi", **{TABLE_TYPE: kind})
    lake = Lake(target=target, session=session, name=fresh_name("shop"))
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"Id": 1, "a": 7}], progress=progress(1))
    for evolution in get_args(SchemaEvolution)[::-1]:
        steps = Migration(version=1, schema=SCHEMA, steps=(ChangeRegime(after=evolution),))
        lake.migrate(steps, progress(1))
        for suffix in ("",) if kind == "COPY_ON_WRITE" else ("_ro", "_rt"):
            found = entry(target, lake.name, suffix)
            assert found is not None
            told = {key: value for key, value in found.form.options.items() if key in ON_READ}
            assert told == (ON_READ if evolution == "on_read" else {}), (evolution, suffix)
