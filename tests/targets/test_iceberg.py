"""What is Iceberg's own: the statement, the marker, and that a failing job leaves no trace."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import (
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
from cdc_sync.targets.common.merge import merge_statement
from cdc_sync.targets.common.properties import VERSION_PROPERTY
from cdc_sync.targets.iceberg.target import IcebergTarget
from cdc_sync.targets.protocol import Batch, Target
from tests.targets.conftest import Lake, fresh_name, schema_of

SCHEMA = schema_of(
    Column(id=1, name="id", type=INT64), Column(id=2, name="na`me", type=STRING), Column(id=5, name="no", type=INT64)
)
GOLDEN = Path(__file__).parent / "golden"
PROGRESS = Progress(version=1, offsets={"t": {0: 5}})


TWO_KEYS = InternalSchema(columns=SCHEMA.columns, primary_key=(5, 1), last_column_id=5)
STATEMENTS: dict[str, dict[str, Any]] = {
    "merge": {},
    "merge_requiring_rows": {"require_rows": True},
    "merge_keeping_values": {"unchanged": (2,), "require_values": False},
    "merge_requiring_values": {"unchanged": (2,)},
    "merge_requiring_both": {"unchanged": (2,), "require_rows": True},
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_statement(session: SparkSession, name: str) -> None:
    batch = Batch(rows=session.range(0), schema=TWO_KEYS, progress=PROGRESS, behind=None, **STATEMENTS[name])
    statement = merge_statement("`lake`.`a.b`.`t`", "view", batch)
    assert re.sub(r" (WHEN (?:NOT )?MATCHED)", r"\n\1", statement) + "\n" == (GOLDEN / f"{name}.sql").read_text()


@pytest.fixture
def table(iceberg: Target, session: SparkSession) -> Lake:
    lake = Lake(target=iceberg, session=session, name=fresh_name())
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"id": 1, "no": 1}, {"id": 2, "no": 2}], progress=PROGRESS)
    return lake


def _prices(price: DataType, id_: int) -> StructType:
    return StructType(fields=(Field(id=id_, name="price", type=price),))


def snapshots(lake: Lake) -> int:
    return lake.session.sql(f"SELECT * FROM {lake.sql_name}.snapshots").count()


@pytest.mark.spark
@pytest.mark.iceberg
def test_a_namespace_is_made_once_though_many_tables_of_it_are_made_together(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = session.conf.get("spark.sql.catalog.lake.warehouse")
    assert warehouse is not None
    target = IcebergTarget(config=TargetConfig(catalog=Catalog(warehouse=warehouse)), spark=session)
    catalog, asked = target._catalog, []

    class Slow:
        """The catalog, which takes its time over a namespace."""

        def __getattr__(self, name: str) -> Any:
            return getattr(catalog, name)

        def createNamespace(self, namespace: Any) -> None:
            asked.append(str(namespace))
            time.sleep(0.2)
            catalog.createNamespace(namespace)

    monkeypatch.setattr(target, "_catalog", Slow())
    lakes = [Lake(target=target, session=session, name=fresh_name("made_together")) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda lake: lake.create(SCHEMA), lakes))

    assert asked == ["made_together"]
    assert [lake.rows() for lake in lakes] == [[], [], []]


@pytest.mark.spark
@pytest.mark.iceberg
class TestTables:
    def test_the_marker_is_found_through_snapshots_without_one(self, table: Lake) -> None:
        for number in range(2):
            table.session.sql(f"INSERT INTO {table.sql_name} VALUES ({10 + number}, 'by hand', 0)")
        state = table.target.state(table.name)
        assert state is not None
        assert state.progress == PROGRESS

    def test_parts_of_lists_maps_and_structs_are_widened_and_structs_added_without_a_snapshot(
        self, iceberg: Target, session: SparkSession
    ) -> None:
        def with_parts(whole: DataType, real: DataType, price: DataType) -> InternalSchema:
            pair = StructType(fields=(Field(id=5, name="x", type=whole), Field(id=6, name="y", type=STRING)))
            columns = (
                Column(id=1, name="id", type=INT64),
                Column(id=2, name="list", type=ListType(element_id=3, element=whole)),
                Column(id=4, name="pair", type=pair),
                Column(id=7, name="map", type=MapType(key_id=8, key=STRING, value_id=9, value=real)),
                Column(id=10, name="pairs", type=ListType(element_id=11, element=_prices(price, 12))),
            )
            return InternalSchema(columns=columns, primary_key=(1,), last_column_id=12)

        before = with_parts(INT32, FLOAT32, DecimalType(precision=8, scale=2))
        wider = with_parts(INT64, FLOAT64, DecimalType(precision=12, scale=2))
        spot = Column(id=13, name="spot", type=_prices(INT32, 14))
        after = replace(wider, columns=(*wider.columns, spot), last_column_id=14)
        lake = Lake(target=iceberg, session=session, name=fresh_name())
        lake.create(before)
        price = [{"price": Decimal("1.50")}]
        old = {"id": 1, "list": [1, None], "pair": {"x": 7, "y": "seven"}, "map": {"k": 0.5}, "pairs": price}
        lake.write(before, [old])
        count = snapshots(lake)
        lake.change(before, after)
        assert snapshots(lake) == count
        new = {
            "id": 2,
            "list": [2**40],
            "pair": {"x": 2**40, "y": None},
            "map": {"k": 0.1},
            "pairs": None,
            "spot": {"price": 3},
        }
        lake.write(after, [new])
        assert lake.rows() == [{**old, "spot": None}, new]

    @pytest.mark.parametrize("append", [True, False])
    def test_nothing_is_written_when_the_job_raises(self, table: Lake, append: bool) -> None:
        before = snapshots(table)
        failing = F.when(F.col("id") < 40, F.col("id")).otherwise(F.raise_error(F.lit("found it")).cast("bigint"))
        rows = table.session.range(20, 60, 1, 4).select(
            F.lit(False).alias("deleted"),
            F.lit(True).alias("created"),
            failing.alias("c1"),
            F.lit("x").alias("c2"),
            F.lit(1).cast("bigint").alias("c5"),
        )
        batch = Batch(rows=rows, schema=SCHEMA, progress=Progress(version=9), behind=PROGRESS, append=append)
        with pytest.raises(TargetError, match="found it"):
            table.target.write(table.name, batch)
        state = table.target.state(table.name)
        assert state is not None
        assert (state.progress, snapshots(table)) == (PROGRESS, before)
        assert [row["id"] for row in table.rows()] == [1, 2]

    def test_a_table_that_is_not_ours_has_no_stamp(self, iceberg: Target, session: SparkSession) -> None:
        lake = Lake(target=iceberg, session=session, name=fresh_name())
        session.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
        session.sql(f"CREATE TABLE {lake.sql_name} (id BIGINT) USING iceberg")
        state = iceberg.state(lake.name)
        assert state is not None
        assert (state.version, state.progress) == (None, None)

    def test_a_table_that_cannot_be_read_is_said_so(self, table: Lake, session: SparkSession) -> None:
        (entry,) = session.sql(f"SELECT file FROM {table.sql_name}.metadata_log_entries ORDER BY timestamp").tail(1)
        metadata = Path(entry.file.removeprefix("file:"))
        metadata.rename(metadata.with_suffix(".gone"))
        with pytest.raises(TargetError, match=f"Cannot read {table.name}: "):
            table.target.state(table.name)
        metadata.with_suffix(".gone").rename(metadata)
        assert table.target.state(table.name) is not None

    def test_stamp_and_format_are_properties_any_reader_sees(self, table: Lake) -> None:
        found: dict[str, str] = dict(table.session.sql(f"SHOW TBLPROPERTIES {table.sql_name}").collect())
        assert found[VERSION_PROPERTY] == "1"
        assert found["format-version"] == "2"

    def test_comments_reach_the_catalog(self, iceberg: Target, session: SparkSession) -> None:
        lake = Lake(target=iceberg, session=session, name=fresh_name())
        lake.create(schema_of(Column(id=1, name="id", type=INT64, comment="the é key")))
        (described,) = session.sql(f"DESCRIBE {lake.sql_name}").where("col_name = 'id'").collect()
        assert described.comment == "the é key"

    def test_rows_are_counted_without_those_that_were_changed_or_deleted(self, table: Lake) -> None:
        table.write(SCHEMA, [{"id": 1, "no": 2}, {"id": 2, "no": 3}, {"id": 3}])
        table.write(SCHEMA, [{"id": 2, "deleted": True}])
        state = table.target.state(table.name)
        assert state is not None
        assert (state.rows, len(table.rows())) == (2, 2)

    def test_no_view_is_left_behind(self, table: Lake) -> None:
        assert [view for view in table.session.catalog.listTables() if view.isTemporary] == []

    def test_a_namespace_is_one_part_whatever_it_holds(self, iceberg: Target, session: SparkSession) -> None:
        names = [TargetName(namespace=text, name="t") for text in ("a b`c", "é😀", "x;--")]
        for name in names:
            lake: Any = Lake(target=iceberg, session=session, name=name)
            lake.create(SCHEMA)
            lake.write(SCHEMA, [{"id": 1}])
            assert [row["id"] for row in lake.rows()] == [1]
