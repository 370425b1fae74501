"""A table of the lake that cannot be read stands alone, through restarts too, and goes on where it stood."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cdc_sync.api import commands
from cdc_sync.testing import INT32, TEXT, SourceTable, Wal, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.mark.parametrize(
    "format", [pytest.param("iceberg", marks=pytest.mark.iceberg), pytest.param("delta", marks=pytest.mark.delta)]
)
def test_a_table_whose_metadata_is_gone_keeps_no_other_one_from_its_rows(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None], format: str
) -> None:
    wal, columns = Wal(), [column("id", INT32, optional=False), column("a", TEXT)]
    good, bad = (SourceTable(name, columns, prefix=f"gone-{format}", wal=wal) for name in ("good", "bad"))
    lake = pipeline(f"gone-{format}", format=format)

    def send(number: int) -> None:
        for table in (good, bad):
            sent = len(table.records)
            table.insert(id=number, a=f"row {number}")
            produce(table.topic, table.records[sent:])

    send(1)
    lake.run()
    send(2)
    metadata = _metadata(lake, bad)
    metadata.rename(metadata.with_suffix(".gone"))

    lake.run()

    assert_equal(lake, good)
    status = lake.statuses()["bad"]
    assert status.state in ("failing", "paused"), "it pauses once it looked twice for a file"
    assert "Cannot read public.bad: " in (status.reason or "")
    assert status.offsets == {bad.topic: {0: 1}}, "where it stands is still told"
    send(3)
    spark()
    planned = {table.table.table: table for table in commands.plan(lake.config).tables}
    assert (planned["good"].problem, planned["good"].offsets) == (None, 1)
    assert "Cannot read public.bad: " in (planned["bad"].problem or "")
    assert planned["bad"].offsets == 2
    metadata.with_suffix(".gone").rename(metadata)
    lake.run()
    assert_equal(lake, good, bad)
    assert {status.state for status in lake.statuses().values()} == {"running"}


def _metadata(lake: Pipeline, table: SourceTable) -> Path:
    if lake.format == "iceberg":
        return Path(lake.table(table.id).metadata_location.removeprefix("file:"))
    return Path(f"{lake.folder}/warehouse/public/{table.id.table}/_delta_log/{0:020}.json")
