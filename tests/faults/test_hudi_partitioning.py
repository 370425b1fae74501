"""A Hudi table that is partitioned while columns, rows and the configuration change, read by hudi-rs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdc_sync.api import commands
from cdc_sync.errors import TargetError
from cdc_sync.targets.hudi.table import HudiTable
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.hudi]


def by(lake: Pipeline, partition_by: str) -> Pipeline:
    return replace(lake, rules=f"[{{pattern: '.*', renames: {{region: zone}}, partition_by: {partition_by}}}]")


def folders(lake: Pipeline, table: SourceTable) -> set[str]:
    """Where data files of any age lie."""
    folder = Path(lake.config.target.catalog.warehouse) / table.id.schema / table.id.table
    return {str(path.parent.relative_to(folder)) for path in folder.rglob("*.parquet")}


def test_partitions_stay_while_columns_rows_and_the_configuration_change(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = [column("id", INT32, optional=False), column("region", TEXT)]
    table = SourceTable("orders", columns, prefix="hudi-divided", null_is_default=False)
    lake, sent = by(pipeline("hudi-divided", format="hudi"), "[day(region)]"), 0

    def run() -> Any:
        nonlocal sent
        produce(table.topic, table.records[sent:])
        sent = len(table.records)
        lake.run()
        return lake.statuses()["orders"]

    for number in range(4):
        table.insert(id=number, region="ab"[number % 2])
    status = run()
    assert status.state == "paused"
    assert "it takes dates and timestamps only, so its target is not made" in status.reason

    lake = by(lake, "[region, bucket(2, id)]")
    spark()
    (planned,) = commands.plan(lake.config).tables
    assert [step.kind for step in planned.steps] == ["CreateTable"]
    assert "PARTITIONED BY (cdc_sync_by_value_region, cdc_sync_by_bucket2_id)" in planned.steps[0].statements[0]
    assert run().state == "running"
    assert_equal(lake, table)
    assert {folder.partition("/")[0] for folder in folders(lake, table)} == {
        "cdc_sync_by_value_region=a",
        "cdc_sync_by_value_region=b",
    }

    table.rename_column("region", "zone")
    table.update({"id": 1}, zone="c/d")
    table.delete({"id": 2})
    with monkeypatch.context() as patched:
        commit = HudiTable.commit

        def unanswered(self: HudiTable, *given: Any) -> None:
            commit(self, *given)
            raise TargetError("the reply was lost")

        patched.setattr(HudiTable, "commit", unanswered)
        run()
    assert run().state == "running"
    assert not lake.statuses()["orders"].warnings
    assert_equal(lake, table)
    assert any(folder.startswith("cdc_sync_by_value_region=c%2Fd/") for folder in folders(lake, table))

    lake = by(lake, "[zone, bucket(2, id)]")
    table.update({"id": 1}, zone="a")
    status = run()
    assert (status.state, status.warnings) == ("running", ())
    assert_equal(lake, table)

    lake = by(lake, "[bucket(2, id)]")
    table.update({"id": 3}, zone=None)
    status = run()
    assert status.state == "running"
    (warning,) = status.warnings
    assert warning.startswith(
        "partition_by says bucket(2, id); the target stays partitioned by zone, bucket(2, id); a hudi table is "
        "partitioned as it was made: "
    )
    assert_equal(lake, table)

    lake = by(lake, "[]")
    table.update({"id": 3}, zone="b")
    (warning,) = run().warnings
    assert warning.startswith("partition_by says nothing; the target stays partitioned by zone, bucket(2, id); ")
    assert_equal(lake, table)

    lake = by(lake, "[zone, bucket(2, id)]")
    table.drop_column("zone")
    table.update({"id": 3})
    status = run()
    assert status.state == "running"
    (warning,) = status.warnings
    assert warning.startswith("partition_by names zone, and the table has no column 'zone'; the target stays")
    assert_equal(lake, table)

    lake = replace(lake, rules="[{pattern: '.*', readers: [spark, trino]}]")
    table.update({"id": 3})
    status = run()
    assert status.state == "paused"
    assert "is partitioned, as it was made, and the configuration names trino among its readers" in status.reason
    lake = replace(lake, rules="[{pattern: '.*', readers: [spark]}]")
    assert run().state == "running"
    assert_equal(lake, table)
