"""The captures end in every other format as they end in Iceberg, but for what a format is known not to hold."""

from __future__ import annotations

import os

import pytest

from tests.corpus.conftest import IntoLake
from tests.corpus.golden import REPORT, agrees, differing, golden
from tests.corpus.reader import CAPTURES
from tests.corpus.report import report, report_text

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(1500)]

_FORMATS = ("delta", "hudi", "parquet")
_CAPTURES = CAPTURES if os.environ.get("CDC_SYNC_CORPUS") == "all" else ("postgres-json", "mariadb-avro")
_RUNS = [
    pytest.param(format_, capture, marks=getattr(pytest.mark, format_)) for format_ in _FORMATS for capture in _CAPTURES
]


@pytest.mark.parametrize(("format_", "capture"), _RUNS)
def test_every_table_ends_as_in_iceberg_or_as_the_format_says(format_: str, capture: str, into_lake: IntoLake) -> None:
    ended = into_lake(capture, format_)
    lines = report(capture, ended)

    assert [f"{line.table}: {detail}" for line in lines for detail in line.details] == []
    text = report_text(capture, lines)
    assert len(text.splitlines()) == len(golden(REPORT)[capture].splitlines())
    agrees(REPORT.with_name(f"report.{format_}.golden.txt"), capture, differing(capture, text))
    assert ended.aside == ()
