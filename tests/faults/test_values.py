"""Rows that show what became of a column, through the real job: enough of them, too few, and read again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc_sync.operations.replay import replay
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal, files

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_EVIDENCE = "evidence: {values: {distinct: 5, records: 50}, wait: 2s}"


def _table(lake: Pipeline) -> SourceTable:
    columns = [column("id", INT32, optional=False), column("kind", TEXT), column("note", TEXT)]
    table = SourceTable("notes", columns, prefix=lake.prefix, null_is_default=False, full_identity=True)
    for number in range(20):
        table.insert(id=number, kind="a", note=f"note {number}")
    return table


def _send(produce: Produce, table: SourceTable, since: int = 0) -> int:
    produce(table.topic, table.records[since:])
    return len(table.records)


def _evidence(lake: Pipeline) -> list[tuple[str, str]]:
    """The newest version's evidence: kinds and texts."""
    newest = json.loads(list(lake.history_files().values())[-1])
    return [(item["kind"], item["text"]) for item in newest["evidence"]]


def test_a_last_column_whose_values_go_on_is_a_renamed_one(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None], tmp_path: Path
) -> None:
    lake = pipeline("values-renamed", settings=_EVIDENCE)
    table = _table(lake)
    sent = _send(produce, table)
    lake.run()
    table.rename_column("note", "remark")
    for number in range(8):
        table.update({"id": number}, kind="b")
    _send(produce, table, sent)
    lake.run()

    ((kind, text), *_) = _evidence(lake)
    assert (kind, text.partition(":")[0]) == ("values", "renamed to 'remark'")
    assert "8 different ones" in text
    assert_equal(lake, table)
    spark()
    replay(lake.config, into=str(tmp_path / "again"), batch_size=3)
    assert files(tmp_path / "again") == lake.history_files()
