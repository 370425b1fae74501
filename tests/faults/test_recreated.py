"""A source table that was dropped and created again under its name: the target follows, and nothing old is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cdc_sync.operations.replay import replay
from cdc_sync.testing import INT32, INT64, TEXT, Record, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal, files
from tests.faults.told import ToldTable

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_EVIDENCE = "evidence: {{messages: [{prefix}.message], wait: 5s}}"
_ID = column("id", INT32, optional=False)


def _pipeline(pipeline: NewPipeline, prefix: str, more: str = "") -> tuple[Pipeline, ToldTable]:
    lake = pipeline(prefix, settings=_EVIDENCE.format(prefix=prefix) + more)
    table = ToldTable(prefix)
    for number in range(4):
        table.insert(id=number, z="old", a=f"old {number}")
    return lake, table


def _send(produce: Produce, table: ToldTable, records: list[Record]) -> None:
    produce(f"{table._prefix}.message", table.messages)
    produce(table.topic, records)


def _made_anew(table: ToldTable) -> None:
    table.recreate(_ID, column("a", INT64), column("w", TEXT))
    table.insert(id=1, a=10, w="new")
    table.insert(id=7, a=70, w="new")
    table.update({"id": 7}, a=71)


@pytest.mark.parametrize("at_once", [True, False], ids=["in one batch", "in two"])
def test_the_target_has_the_new_table_s_columns_and_rows(
    pipeline: NewPipeline,
    produce: Produce,
    spark: Callable[[], None],
    at_once: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lake, table = _pipeline(pipeline, f"anew-{at_once}".lower())
    sent = 0
    if not at_once:
        _send(produce, table, table.records)
        sent = len(table.records)
        lake.run()
        assert_equal(lake, table)
    _made_anew(table)
    table.add_column(column("later", TEXT))
    table.insert(id=8, a=80, w="new", later="x")
    _send(produce, table, table.records[sent:])

    lake.run()

    status = lake.statuses()["t"]
    assert (status.state, status.version, status.needs_resync) == ("running", 3, ())
    assert_equal(lake, table)
    assert [field.name for field in lake.table(table.id).schema().fields] == ["id", "a", "w", "later"]
    spark()
    again = tmp_path_factory.mktemp("again")
    replay(lake.config, into=str(again), batch_size=2)
    assert files(again) == lake.history_files()
    before = lake.commits(table)
    lake.run()
    assert lake.commits(table) == before, "nothing is done twice"


def test_events_of_the_old_table_that_come_again_are_passed_over(pipeline: NewPipeline, produce: Produce) -> None:
    lake, table = _pipeline(pipeline, "anew-again")
    old = list(table.records)
    _made_anew(table)
    _send(produce, table, [*table.records, *old[-2:], *table.records[len(old) :]])

    lake.run()

    assert lake.statuses()["t"].state == "running"
    assert_equal(lake, table)


def test_the_operator_may_want_to_be_asked(pipeline: NewPipeline, produce: Produce) -> None:
    lake, table = _pipeline(pipeline, "anew-asked", "\npolicy: {recreate: pause}")
    _made_anew(table)
    _send(produce, table, table.records)

    lake.run()

    status = lake.statuses()["t"]
    assert (status.state, status.paused_at) == ("paused", f"{table.topic}[0]@4")
    assert status.reason is not None
    assert status.reason.startswith("the source table was dropped and created again")
    assert lake.table(table.id).scan().to_arrow().num_rows == 4


def test_rows_that_were_written_before_it_was_told_are_not_lost(pipeline: NewPipeline, produce: Produce) -> None:
    lake = pipeline("anew-late", settings="evidence: {messages: [anew-late.message], wait: 0s}")
    table = ToldTable("anew-late")
    table.insert(id=1, z="old", a="old")
    table.recreate(*table.columns)
    table.insert(id=2, z="new", a="new")
    produce(table.topic, table.records)
    lake.run()
    sent = len(table.records)
    table.insert(id=3, z="new", a="new")
    _send(produce, table, table.records[sent:])

    lake.run()

    assert lake.statuses()["t"].state == "paused"
    assert {row["id"] for row in lake.table(table.id).scan().to_arrow().to_pylist()} >= {1, 2}
