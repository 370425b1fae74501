"""The captures end in every other format as they end in Iceberg, but for what a format is known not to hold.

Of each database the tables that tell most; with CDC_SYNC_CORPUS=all every table of every capture.
"""

from __future__ import annotations

import os

import pytest

from tests.corpus.conftest import IntoLake
from tests.corpus.golden import ends_as
from tests.corpus.reader import CAPTURES
from tests.corpus.report import report

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(1500)]

_ALL = os.environ.get("CDC_SYNC_CORPUS") == "all"
_TABLES = None if _ALL else ("evolve", "types_all", "defaults", "pkchange", "swap", "recreated", "oldname", "newname")
_RUNS = [
    pytest.param(format_, capture, marks=getattr(pytest.mark, format_))
    for format_ in ("delta", "hudi", "parquet")
    for capture in (CAPTURES if _ALL else ("postgres-json", "mariadb-avro"))
]


@pytest.mark.parametrize(("format_", "capture"), _RUNS)
def test_every_table_ends_as_in_iceberg_or_as_the_format_says(format_: str, capture: str, into_lake: IntoLake) -> None:
    ended = into_lake(capture, format_, _TABLES)
    lines = [line for line in report(capture, ended) if _TABLES is None or line.table in ended.statuses]

    assert [f"{line.table}: {detail}" for line in lines for detail in line.details] == []
    ends_as(format_, capture, {line.table: line.verdict for line in lines})
    assert ended.aside == ()
    assert {line.table for line in lines} >= {f"inv.{name}" for name in _TABLES or ()}
