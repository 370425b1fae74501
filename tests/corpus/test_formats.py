"""The captures end in every other format as they end in Iceberg, but for what a format is known not to hold.

Delta gets the tables that tell most of one database, thoroughly each format more tables of both; with
CDC_SYNC_CORPUS=all every table of every capture.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

from tests.corpus.conftest import IntoLake
from tests.corpus.golden import ends_as
from tests.corpus.reader import CAPTURES
from tests.corpus.report import report

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(1500)]

_ALL = os.environ.get("CDC_SYNC_CORPUS") == "all"
_FEW = ("evolve", "types_all", "pkchange", "swap")
_MORE = (*_FEW, "defaults", "recreated", "oldname", "newname")


def _runs(name: str, tables: tuple[str, ...] | None, formats: Sequence[str], captures: Sequence[str]) -> list[Any]:
    return [
        pytest.param(format_, capture, tables, marks=getattr(pytest.mark, format_), id=f"{format_}-{capture}-{name}")
        for format_ in formats
        for capture in captures
    ]


_FORMATS = ("delta", "hudi", "parquet")
_EVERY = _runs("all", None, _FORMATS, CAPTURES)
_SOME = [
    *_runs("few", _FEW, ("delta",), ("postgres-json",)),
    *_runs("more", _MORE, _FORMATS, ("postgres-json", "mariadb-avro")),
]


@pytest.mark.parametrize(("format_", "capture", "tables"), _EVERY if _ALL else _SOME)
def test_every_table_ends_as_in_iceberg_or_as_the_format_says(
    format_: str, capture: str, tables: tuple[str, ...] | None, into_lake: IntoLake
) -> None:
    ended = into_lake(capture, format_, tables)
    lines = [line for line in report(capture, ended) if tables is None or line.table in ended.statuses]

    assert [f"{line.table}: {detail}" for line in lines for detail in line.details] == []
    ends_as(format_, capture, {line.table: line.verdict for line in lines})
    assert ended.aside == ()
    assert {line.table for line in lines} >= {f"inv.{name}" for name in tables or ()}
