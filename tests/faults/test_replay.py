"""The schema history can be made again from the topics: the same bytes, however the topics are read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc_sync.operations.replay import replay
from cdc_sync.testing import INT32, INT64, TEXT, Record, SourceTable, column
from tests.conftest import Produce
from tests.corpus import reader
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, files

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_ODD_ONES = ("inv.dropadd", "inv.wide", "inv.later", "inv.silent", "Odd_Schema.Odd.Table__")
_LONG_ONES = ("inv.burst", "inv.comp")


@pytest.mark.parametrize(
    ("names", "sizes"),
    [
        pytest.param(_ODD_ONES, (None, 1), id="one record at a time"),
        pytest.param(_LONG_ONES, (None, None, 7), id="twice, and in batches that fit nothing"),
    ],
)
def test_captured_topics_give_the_history_of_the_run_again(
    names: tuple[str, ...],
    sizes: tuple[int | None, ...],
    pipeline: NewPipeline,
    produce: Produce,
    spark: Callable[[], None],
) -> None:
    prefix = f"captured-{len(names)}"
    for name in names:
        messages = reader.topics()[f"pgj.{name}"]
        produce(f"{prefix}.{name}", [Record(key=message.key, value=message.value) for message in messages])
    lake = pipeline(prefix)
    lake.run()

    written = lake.history_files()
    assert len({Path(file).parts[0] for file in written}) == len(names), "a history for each table"
    assert _replayed(lake, sizes, spark) == [written] * len(sizes)


_TOLD = ("inv.swap", "inv.rename_last", "inv.dropadd_last", "inv.dropadd_same")


@pytest.mark.parametrize("late", [False, True], ids=["evidence first", "evidence long after the data"])
def test_evidence_gives_the_same_history_whenever_it_is_read(
    late: bool, pipeline: NewPipeline, produce: Produce, spark: Callable[[], None]
) -> None:
    prefix = f"told-{late}".lower()

    def send(name: str) -> None:
        messages = reader.topics()[f"pgj.{name}"]
        produce(f"{prefix}.{name}", [Record(key=message.key, value=message.value) for message in messages])

    for name in _TOLD:
        send(name)
    telling = threading.Timer(5.0 if late else 0.0, send, ["message"])
    telling.start()
    if not late:
        telling.join()
    lake = pipeline(prefix, settings=f"evidence: {{messages: [{prefix}.message], wait: 10m}}")

    lake.run()

    assert {name: status.state for name, status in lake.statuses().items()} == {
        name.partition(".")[2]: "running" for name in _TOLD
    }
    written = lake.history_files()
    assert sum(b'"message"' in text for text in written.values()) >= len(_TOLD), "versions that messages prove"
    assert _replayed(lake, (3 if late else None,), spark) == [written]


def test_two_partitions_give_one_history_in_any_order_of_reading(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None]
) -> None:
    table = SourceTable(
        "orders",
        [column("id", INT64, optional=False), column("a", TEXT), column("b", INT32)],
        prefix="halves",
        null_is_default=False,
    )
    for number in range(4):
        table.insert(id=number, a="first", b=number)
    table.rename_column("a", "renamed")
    for number in range(4, 8):
        table.insert(id=number, renamed="second", b=number)
    table.add_column(column("c", INT32, optional=False, default=7), initial=7)
    table.drop_column("b")
    for number in range(8, 12):
        table.insert(id=number, renamed="third", c=number)
    # The first partition ends before the last ALTERs, the second one has seen nothing else but them and the beginning.
    first = table.records[:1] + table.records[4:7]
    second = [record for record in table.records if record not in first]
    produce(table.topic, first, partition=0, partitions=2)
    produce(table.topic, second, partition=1)
    lake = pipeline("halves")
    lake.run()

    written = lake.history_files()

    assert len(written) == 3
    assert _replayed(lake, (None, 1, 3), spark) == [written] * 3


def _replayed(lake: Pipeline, sizes: tuple[int | None, ...], spark: Callable[[], None]) -> list[dict[str, bytes]]:
    histories = []
    for number, size in enumerate(sizes):
        into = lake.folder / f"replayed-{number}"
        spark()
        replay(lake.config, into=str(into), batch_size=size)
        histories.append(files(into))
    return histories
