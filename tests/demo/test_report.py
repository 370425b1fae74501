"""The report as people read it."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from cdc_sync.demo.compare import differences, in_iceberg_types
from cdc_sync.demo.report import AlterTiming, DemoReport, TableComparison, VersionLine, parts
from tests.demo.test_compare import KEY, LAKE, SOURCE


def report(comparison: TableComparison) -> DemoReport:
    return DemoReport(
        equal=not comparison.differences,
        tables=(comparison,),
        alters=(AlterTiming(title="add a column", table="inv.orders", ddl=("alter table ...",), seconds=1.25),),
        history=(VersionLine(table="demo.inv.orders", number=2, changes=("add column price",), evidence=("why",)),),
        seconds=61.4,
        job_exit_code=0,
        folder=None,
    )


def text(comparison: TableComparison) -> str:
    console = Console(file=io.StringIO(), width=150)
    for part in parts(report(comparison)):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_equal_tables_stand_side_by_side() -> None:
    told = text(TableComparison(source=SOURCE, lake=LAKE, key=KEY, differences=()))
    assert "inv.orders: equal (3 columns, 2 rows)" in told
    assert "numeric(8,2)" in told
    assert "decimal(8, 2)" in told
    assert told.count("1  'a'  1.50") == 2
    assert "Source and lake are equal: 1 tables, 2 rows, 1 schema changes, 61 s in all" in told


def test_versions_and_times_are_told() -> None:
    told = text(TableComparison(source=SOURCE, lake=LAKE, key=KEY, differences=()))
    assert "demo.inv.orders version 2" in told
    assert "because of why" in told
    assert "1.25" in told


def test_differences_are_told() -> None:
    lake = replace(in_iceberg_types(SOURCE), rows=LAKE.rows[:1])
    told = text(TableComparison(source=SOURCE, lake=lake, key=KEY, differences=differences(SOURCE, lake, KEY)))
    assert "inv.orders: 1 difference" in told
    assert "row id=2 is missing in the lake" in told
    assert "Source and lake are NOT equal" in told


def test_a_table_that_is_not_in_the_lake_is_told() -> None:
    told = text(TableComparison(source=SOURCE, lake=None, key=KEY, differences=differences(SOURCE, None, KEY)))
    assert "table inv.orders is not in the lake" in told
