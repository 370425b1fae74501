"""A table that is partitioned while the job's configuration and the source's columns change, read by others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from deltalake import DeltaTable

from cdc_sync.api import commands
from cdc_sync.core.migration.migration import Migration, Repartition
from cdc_sync.core.migration.namerules import DERIVED_PREFIX
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.errors import TargetError
from cdc_sync.targets.delta.target import DeltaTarget
from cdc_sync.targets.iceberg.target import IcebergTarget
from cdc_sync.targets.parquet.target import ParquetTarget
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline
from tests.faults.pipeline import assert_equal as assert_rows

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


def by(lake: Pipeline, partition_by: str) -> Pipeline:
    return replace(lake, rules=f"[{{pattern: '.*', renames: {{region: zone}}, partition_by: {partition_by}}}]")


def spec(lake: Pipeline, source: SourceTable) -> list[str]:
    """What new files are divided by, as pyiceberg reads it."""
    table = lake.table(source.id)
    return [f"{field.transform} of {table.schema().find_column_name(field.source_id)}" for field in table.spec().fields]


def assert_equal(lake: Pipeline, source: SourceTable) -> None:
    """As everywhere, but for columns that only a partition spec of before needs."""
    data = lake.read(source.id)
    names = [name for name in data.column_names if not name.startswith("__cdc_sync_dropped_")]
    assert names == [item.field for item in source.columns]
    rows: list[dict[str, Any]] = data.select(names).to_pylist()
    assert sorted(rows, key=repr) == sorted(source.rows, key=repr)


def orders(prefix: str) -> SourceTable:
    columns = [column("id", INT32, optional=False), column("region", TEXT)]
    return SourceTable("orders", columns, prefix=prefix, null_is_default=False)


def test_partitions_follow_the_configuration_and_the_columns(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, sent = orders("divided"), 0
    lake = pipeline("divided", rules="[{pattern: '.*'}]")

    def run() -> None:
        nonlocal sent
        produce(table.topic, table.records[sent:])
        sent = len(table.records)
        lake.run()
        assert_equal(lake, table)

    for number in range(6):
        table.insert(id=number, region="ab"[number % 2])
    run()
    assert spec(lake, table) == []

    lake = by(lake, "[region, bucket(4, id)]")
    spark()
    (planned,) = commands.plan(lake.config).tables
    assert [step.statements for step in planned.steps] == [
        (
            "ALTER TABLE public.orders ADD PARTITION FIELD region",
            "ALTER TABLE public.orders ADD PARTITION FIELD bucket(4, id)",
        )
    ]
    fail_once(monkeypatch, IcebergTarget)
    lake.run()
    assert lake.statuses()["orders"].state == "running"
    assert spec(lake, table) == ["identity of region", "bucket[4] of id"]

    table.rename_column("region", "zone")
    table.update({"id": 1}, zone="c")
    table.delete({"id": 2})
    run()
    assert spec(lake, table) == ["identity of zone", "bucket[4] of id"]
    before = lake.commits(table)
    lake.run()
    assert lake.commits(table) == before

    table.drop_column("zone")
    table.update({"id": 3})
    run()
    assert spec(lake, table) == ["bucket[4] of id"]
    (warning,) = lake.statuses()["orders"].warnings
    assert warning.startswith("partition_by names region, and the table has no column 'region'; the target stays")

    table.add_column(column("region", TEXT))
    table.insert(id=9, region="new")
    run()
    assert sorted(spec(lake, table)) == ["bucket[4] of id", "identity of region"]
    table.update({"id": 3}, region="newer")
    run()


@pytest.mark.delta
def test_rows_of_a_delta_table_are_divided_anew_and_follow_its_columns(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, sent = orders("derived"), 0
    lake = pipeline("derived", format="delta")

    def run() -> list[str]:
        nonlocal sent
        produce(table.topic, table.records[sent:])
        sent = len(table.records)
        lake.run()
        assert_rows(lake, table)
        found = DeltaTable(f"{lake.config.target.catalog.warehouse}/public/orders")
        return [name.removeprefix(DERIVED_PREFIX) for name in found.metadata().partition_columns]

    for number in range(4):
        table.insert(id=number, region=("a", "")[number % 2])
    assert run() == []

    lake = replace(by(lake, "[region, bucket(4, id)]"), settings="policy: {rewrite_limit: 1}")
    assert run() == []
    (warning,) = lake.statuses()["orders"].warnings
    assert warning.startswith("partition_by says something else, for which the target has to be rewritten: ")
    assert "set policy.rewrite_limit: " in warning

    lake = replace(lake, settings="")
    spark()
    (planned,) = commands.plan(lake.config).tables
    assert [(step.cost, step.statements) for step in planned.steps] == [
        (
            "rewrite",
            (
                "INSERT OVERWRITE TABLE public.orders <all rows, partitioned by "
                "(cdc_sync_by_value_region, cdc_sync_by_bucket4_id)>",
            ),
        )
    ]
    fail_once(monkeypatch, DeltaTarget)
    assert run() == ["value_region", "bucket4_id"]

    table.rename_column("region", "zone")
    table.update({"id": 1}, zone="c")
    table.delete({"id": 2})
    assert run() == ["value_zone", "bucket4_id"]
    table.drop_column("zone")
    table.update({"id": 3})
    assert [name.partition("_")[0] for name in run()] == ["dropped", "bucket4"]
    (warning,) = lake.statuses()["orders"].warnings
    assert warning.startswith("partition_by names region, and the table has no column 'region'; the target stays")

    table.add_column(column("region", TEXT))
    table.insert(id=9, region="new")
    assert run() == ["value_region", "bucket4_id"]
    table.update({"id": 3}, region="newer")
    run()
    assert lake.statuses()["orders"].warnings == ()


@pytest.mark.parquet
def test_partitions_of_a_parquet_table_follow_the_configuration_and_the_columns(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, sent = orders("hive"), 0
    lake = pipeline("hive", format="parquet")

    def run() -> set[str]:
        nonlocal sent
        produce(table.topic, table.records[sent:])
        sent = len(table.records)
        lake.run()
        assert_rows(lake, table)
        return {name.replace("__HIVE_DEFAULT_PARTITION__", "NULL") for name in lake.places_of_parquet(table.id)}

    for number in range(4):
        table.insert(id=number, region=("a", "")[number % 2])
    assert run() == {""}

    lake = by(lake, "[region]")
    spark()
    (planned,) = commands.plan(lake.config).tables
    assert [step.cost for step in planned.steps] == ["rewrite"]
    fail_once(monkeypatch, ParquetTarget)
    assert run() == {"value_region=a", "value_region=NULL"}

    table.rename_column("region", "zone")
    table.update({"id": 1}, zone="c")
    table.delete({"id": 2})
    assert run() == {"value_zone=a", "value_zone=c", "value_zone=NULL"}
    table.drop_column("zone")
    table.update({"id": 3})
    assert run() == {""}
    (warning,) = lake.statuses()["orders"].warnings
    assert warning.startswith("partition_by names region, and the table has no column 'region'; the target stays")

    table.add_column(column("region", TEXT))
    table.insert(id=9, region="new")
    assert run() == {"value_region=new", "value_region=NULL"}
    table.update({"id": 3}, region="newer")
    assert run() == {"value_region=new", "value_region=newer", "value_region=NULL"}
    assert lake.statuses()["orders"].warnings == ()


def fail_once(monkeypatch: pytest.MonkeyPatch, format_: type[Any]) -> None:
    """Have the target partition a table and lose the reply, once."""
    migrate, failed = format_.migrate, False

    def losing(target: Any, name: TargetName, migration: Migration, progress: Progress, said: Any = None) -> None:
        nonlocal failed
        migrate(target, name, migration, progress, said)
        if not failed and any(isinstance(step, Repartition) for step in migration.steps):
            failed = True
            raise TargetError("the reply was lost")

    monkeypatch.setattr(format_, "migrate", losing)
