"""Dead letters of tables without a key, and of changelogs: each is applied once, whatever happens on the way."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import cdc_sync
from cdc_sync.core.model.dead_letters import Redrive
from cdc_sync.storage.dead_letters import DeadLetters
from cdc_sync.storage.state import StateStore
from cdc_sync.testing import DATE, INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_BAD, _GOOD = 99_999_999, 19_000
_RULES = {"keyless": "[{pattern: '.*'}]", "append": "[{pattern: '.*', mode: append}]"}


def made(lake: Pipeline, shape: str) -> SourceTable:
    columns = [column("id", INT32), column("day", DATE), column("note", TEXT)]
    return SourceTable(
        "terms",
        columns,
        key=() if shape == "keyless" else ("id",),
        full_identity=True,
        prefix=lake.prefix,
        null_is_default=False,
    )


def live(table: SourceTable, lives: int, chosen: random.Random) -> None:
    """Rows come, change and go, some of them more than once; of a part no event can be applied."""
    for id_ in range(lives):
        day = _BAD if chosen.random() < 0.3 else _GOOD + id_
        for _ in range(chosen.choice((1, 1, 2))):
            table.insert(id=id_ + 1, day=day, note="made")
        for number in range(chosen.randint(0, 3)):
            table.update({"id": id_ + 1}, note=f"changed {number}")
        if chosen.random() < 0.3:
            table.delete({"id": id_ + 1})


def rows(lake: Pipeline, table: SourceTable) -> list[dict[str, Any]]:
    return sorted(lake.read(table.id).to_pylist(), key=str)


def left(lake: Pipeline) -> list[str]:
    return [item.place for item in cdc_sync.list_dead_letters(lake.config, limit=10_000).letters]


def mended(lake: Pipeline) -> Pipeline:
    return replace(lake, settings="policy: {out_of_range: clamp}")


@pytest.mark.parametrize("shape", ["keyless", "append"])
def test_any_history_any_part_of_it_in_any_order(pipeline: NewPipeline, produce: Produce, shape: str) -> None:
    chosen = random.Random(shape)
    lake = pipeline(f"unkeyed-{shape}", rules=_RULES[shape])
    table = made(lake, shape)
    live(table, 300, chosen)
    for start in range(0, len(table.records), 500):
        produce(table.topic, table.records[start : start + 500])
        lake.run()
    places = left(lake)
    assert len(places) > 100
    chosen.shuffle(places)
    for part in range(3):
        cdc_sync.redrive_dead_letters(mended(lake).config, places[part::3])
    mended(lake).run()
    for _ in range(5):  # a copy that is not there yet cannot be taken away: then it is said why, and tried again
        if left(lake):
            cdc_sync.redrive_dead_letters(mended(lake).config)
            mended(lake).run()

    plain = replace(mended(lake), folder=lake.folder / "plain")
    plain.run()
    assert left(lake) == []
    assert rows(lake, table) == rows(plain, table)


@pytest.mark.parametrize("shape", ["keyless", "append"])
@pytest.mark.parametrize("at", ["settle", "refuse"])
def test_a_job_that_dies_on_the_way_applies_none_twice(
    pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch, shape: str, at: str
) -> None:
    lake = pipeline(f"unkeyed-again-{shape}-{at}", rules=_RULES[shape])
    table = made(lake, shape)
    table.insert(id=1, day=_BAD)
    table.insert(id=2, day=_GOOD)
    produce(table.topic, table.records)
    lake.run()
    cdc_sync.redrive_dead_letters(mended(lake).config)

    def die(*_: object, **__: object) -> None:
        raise OSError("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(DeadLetters, at, die)
        mended(lake).run()
    assert len(rows(lake, table)) == 2
    produce(table.topic, table.insert(id=3, day=_GOOD))

    mended(lake).run()
    mended(lake).run()

    assert (left(lake), StateStore(lake.config.pipeline.root).requests.all(Redrive, table.id)) == ([], ())
    assert sorted(row["id"] for row in rows(lake, table)) == [1, 2, 3]
    produce(table.topic, table.insert(id=4, day=_GOOD))
    mended(lake).run()
    text = str(lake.table(table.id).current_snapshot())
    assert "redriven" not in text, "what is written down does not stand in each commit from there on"
