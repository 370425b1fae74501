"""Several tables in one topic, as ByLogicalTableRouter makes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.testing import INT32, TEXT, SourceTable, Wal, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


def test_tables_that_share_a_topic_are_told_apart_also_where_only_one_has_events(
    pipeline: NewPipeline, produce: Produce
) -> None:
    wal = Wal()
    columns = [column("id", INT32, optional=False), column("a", TEXT)]
    first, second = (SourceTable(name, columns, prefix="router", wal=wal) for name in ("first", "second"))
    first.insert(id=1, a="one")
    second.insert(id=1, a="uno")
    first.insert(id=2, a="two")
    first.add_column(column("b", INT32))
    for id_ in range(3, 9):
        first.insert(id=id_, a="only the first", b=id_)
    second.update({"id": 1}, a="at last")
    in_order = [first.records[0], second.records[0], *first.records[1:], *second.records[1:]]
    produce("router.public.all", in_order)
    lake = pipeline("router", settings="job: {max_offsets_per_batch: 3}")

    lake.run()

    assert_equal(lake, first, second)
    assert {name: status.state for name, status in lake.statuses().items()} == {"first": "running", "second": "running"}


def test_where_topics_are_bound_nobody_writes_to_a_table_through_the_topic_of_another(
    pipeline: NewPipeline, produce: Produce
) -> None:
    wal = Wal()
    columns = [column("id", INT32, optional=False), column("a", TEXT)]
    mine, theirs = (SourceTable(name, columns, prefix="bound", wal=wal) for name in ("mine", "theirs"))
    mine.insert(id=1, a="one")
    theirs.insert(id=1, a="uno")
    lake = pipeline("bound", settings="job: {max_offsets_per_batch: 3}")
    lake = replace(lake, kafka="bound_topics: true")
    for table in (mine, theirs):
        produce(table.topic, table.records)
    lake.run()
    forged = SourceTable("theirs", columns, prefix="bound", wal=wal)
    forged.insert(id=2, a="not theirs")
    forged.insert(id=3, a="not theirs either")
    mine.insert(id=2, a="two")
    produce(mine.topic, [mine.records[1], *forged.records, *mine.update({"id": 1}, a="later")])

    for _ in range(2):
        lake.run()
        assert_equal(lake, mine, theirs)
    aside = lake.set_aside()
    assert [(record.topic, record.offset) for record in aside] == [(mine.topic, 2), (mine.topic, 3)]
    assert {record.reason for record in aside} == {
        "an event of another table than the topic is named after, and kafka.bound_topics is set (shop.public.theirs)"
    }
