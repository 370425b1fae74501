"""Dead letters that are redriven end as if they had never been set aside: whatever came behind them wins."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import cdc_sync
from cdc_sync.core.model.dead_letters import Redrive
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.storage.dead_letters import DeadLetters
from cdc_sync.storage.state import StateStore
from cdc_sync.testing import DATE, INT32, INT64, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_BAD, _GOOD = 99_999_999, 19_000
_UNCHANGED = "__debezium_unavailable_value"
_MENDED = "policy: {out_of_range: clamp}"


def rows(lake: Pipeline, table: SourceTable) -> list[dict[str, Any]]:
    return sorted(lake.read(table.id).to_pylist(), key=lambda row: (row["id"], str(row)))


def letters(lake: Pipeline) -> list[tuple[int, str | None]]:
    found = cdc_sync.list_dead_letters(lake.config, limit=1000).letters
    return [(int(item.place.partition("@")[2]), item.refused) for item in found]


def mended(lake: Pipeline) -> Pipeline:
    return replace(lake, settings=_MENDED)


def never_set_aside(lake: Pipeline) -> Pipeline:
    """The same events, read by a pipeline that could read them from the start."""
    return replace(mended(lake), folder=lake.folder / "plain")


_FORMATS = ["iceberg", *(pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("delta", "hudi"))]


@pytest.mark.parametrize("format", _FORMATS)
def test_they_end_as_if_they_had_never_been_set_aside(pipeline: NewPipeline, produce: Produce, format: str) -> None:
    lake = pipeline(f"redriven-{format}", format=format)
    columns = [column("id", INT32, optional=False), column("day", DATE), column("note", TEXT), column("n", INT32)]
    table = SourceTable("terms", columns, prefix=lake.prefix, null_is_default=False)
    for id_ in range(1, 8):
        table.insert(id=id_, day=_GOOD, note=f"note {id_}", n=0)
    table.insert(id=8, day=_BAD, note="nothing comes behind it", n=1)
    table.update({"id": 1}, day=_BAD, note="older", n=1)
    table.update({"id": 1}, day=_GOOD + 1, note="newer", n=2)
    table.update({"id": 2}, day=_BAD, note="deleted later", n=1)
    table.delete({"id": 2})
    table.update({"id": 3}, day=_BAD, note="which a later event leaves out", n=1)
    table.update({"id": 3}, day=_GOOD + 2, note=_UNCHANGED, n=2)
    table.update({"id": 4}, day=_BAD, note="deleted and there again", n=1)
    table.delete({"id": 4})
    table.insert(id=4, day=_GOOD, note="again", n=3)
    table.update({"id": 5}, day=_BAD, note="of the schema before", n=1)
    table.update({"id": 6}, day=_BAD, note="twice", n=1)
    table.update({"id": 6}, day=_BAD, note="twice, and this is the last", n=2)
    produce(table.topic, table.records)
    sent = len(table.records)
    lake.run()
    table.alter_column("n", lambda _: column("n", INT64))
    table.add_column(column("more", TEXT))
    table.update({"id": 7}, more="with it")
    produce(table.topic, table.records[sent:])
    lake.run()
    assert len(letters(lake)) == 8
    before = rows(lake, table)

    # What was wrong is still wrong: nothing is lost, and each says so.
    assert cdc_sync.redrive_dead_letters(lake.config).number == 8
    lake.run()
    assert rows(lake, table) == before
    assert [why for _, why in letters(lake)] == ["does not convert: column day"] * 8

    found = cdc_sync.redrive_dead_letters(mended(lake).config, table="terms")
    assert (found.number, found.strangers, found.is_running) == (8, 0, False)
    mended(lake).run()

    assert letters(lake) == []
    assert cdc_sync.status(lake.config).dead_letters == ()
    plain = never_set_aside(lake)
    plain.run()
    after = rows(lake, table)
    assert after == rows(plain, table)
    assert {row["id"]: row["note"] for row in after} == {
        1: "newer",
        3: "which a later event leaves out",
        4: "again",
        5: "of the schema before",
        6: "twice, and this is the last",
        7: "note 7",
        8: "nothing comes behind it",
    }


@pytest.mark.parametrize("seed", [1])
def test_any_history_any_part_of_it_in_any_order(pipeline: NewPipeline, produce: Produce, seed: int) -> None:
    chosen = random.Random(seed)
    lake = pipeline(f"redriven-law-{seed}", settings="policy: {missing_rows: insert}")
    columns = [column("id", INT32, optional=False), column("day", DATE), column("note", TEXT), column("n", INT32)]
    table = SourceTable("terms", columns, prefix=lake.prefix, null_is_default=False)
    for id_ in range(1_000):
        _live(table, id_, chosen)
    for batch in range(0, len(table.records), 2_000):
        produce(table.topic, table.records[batch : batch + 2_000])
        lake.run()
    places = [item.place for item in cdc_sync.list_dead_letters(lake.config, limit=10_000).letters]
    assert len(places) > 1_000
    chosen.shuffle(places)
    after = replace(lake, settings="policy: {missing_rows: insert, out_of_range: clamp}")
    for part in range(3):
        cdc_sync.redrive_dead_letters(after.config, places[part::3])

    after.run()

    plain = replace(after, folder=lake.folder / "plain")
    plain.run()
    assert letters(lake) == []
    assert rows(lake, table) == rows(plain, table)


def _live(table: SourceTable, id_: int, chosen: random.Random) -> None:
    """One row's life: some of its events cannot be applied, some leave a value out that has not changed."""
    is_there = False
    for number in range(chosen.randint(1, 8)):
        day = _BAD if chosen.random() < 0.3 else _GOOD + number
        if not is_there:
            table.insert(id=id_, day=day, note=f"made {number}", n=number)
            is_there = True
        elif chosen.random() < 0.2:
            table.delete({"id": id_})
            is_there = False
        else:
            note = _UNCHANGED if chosen.random() < 0.4 else f"changed {number}"
            table.update({"id": id_}, day=day, note=note, n=number)


@pytest.mark.parametrize("at", ["settle", "refuse"])
def test_a_job_that_dies_on_the_way_does_it_again(
    pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    lake = pipeline(f"redriven-again-{at}")
    table = SourceTable("terms", [column("id", INT32, optional=False), column("day", DATE)], prefix=lake.prefix)
    table.insert(id=1, day=_BAD)
    table.insert(id=2, day=_GOOD)
    produce(table.topic, table.records)
    lake.run()
    cdc_sync.redrive_dead_letters(mended(lake).config)
    kept = getattr(DeadLetters, at)

    def die(*_: object, **__: object) -> None:
        raise OSError("the store is away")

    monkeypatch.setattr(DeadLetters, at, die)
    mended(lake).run()
    assert len(rows(lake, table)) == 2
    assert StateStore(lake.config.pipeline.root).requests.all(Redrive, table.id)

    monkeypatch.setattr(DeadLetters, at, kept)
    mended(lake).run()

    assert (letters(lake), StateStore(lake.config.pipeline.root).requests.all(Redrive, table.id)) == ([], ())
    assert [row["id"] for row in rows(lake, table)] == [1, 2]
    assert lake.statuses()["terms"].state == "running"


def test_what_cannot_be_redriven_says_why(pipeline: NewPipeline, produce: Produce) -> None:
    rules = "[{pattern: '.*keyless', policy: {missing_rows: insert}}, {pattern: '.*'}]"
    lake = pipeline("redriven-not", rules=rules)
    table = SourceTable("keyed", [column("id", INT32, optional=False), column("day", DATE)], prefix=lake.prefix)
    columns = [column("id", INT32, optional=False), column("day", DATE)]
    keyless = SourceTable("keyless", columns, key=(), full_identity=True, prefix=lake.prefix)
    for each in (table, keyless):
        each.insert(id=1, day=_GOOD)
        each.insert(id=2, day=_BAD)
        produce(each.topic, each.records)
    (good,) = table.insert(id=3, day=_GOOD)
    assert good.value is not None
    produce(table.topic, [replace(good, value=good.value.replace(b'"id":3', b'"id":"x"'))])
    lake.run()
    store = StateStore(lake.config.pipeline.root)
    never = KafkaPosition(topic=table.topic, partition=0, offset=0)
    cdc_sync.redrive_dead_letters(mended(lake).config)
    (word,) = store.requests.all(Redrive, table.id)
    store.requests.add(replace(word, id="of no letter", places=(never, replace(never, offset=10_000))))

    mended(lake).run()

    found = {item.place: store.dead_letters.refused(item.place) or "" for item in store.dead_letters.letters()}
    left = {(place.topic, place.offset): why.partition(": value.converter")[0] for place, why in found.items()}
    assert left == {
        (table.topic, 2): "malformed payload: after.id is a text where its schema says int32",
        (
            keyless.topic,
            1,
        ): "the table has no key, and policy.missing_rows is insert: a later delete of the row may have "
        "been passed over",
    }
    assert store.dead_letters.refused(replace(never, offset=10_000)) == "the table has not come to it yet"
    assert [row["id"] for row in rows(lake, table)] == [1, 2]


def test_more_than_may_become_dead_letters_pause_the_table(pipeline: NewPipeline, produce: Produce) -> None:
    lake = pipeline("redriven-limit", settings="limits: {max_dead_letters_per_hour: 2}")
    table = SourceTable("terms", [column("id", INT32, optional=False), column("day", DATE)], prefix=lake.prefix)
    for id_, day in enumerate((_GOOD, _BAD, _BAD, _BAD, _GOOD)):
        table.insert(id=id_, day=day)
    produce(table.topic, table.records)

    lake.run()

    status = lake.statuses()["terms"]
    assert (status.state, status.code, status.paused_at) == ("paused", "limit-dead-letters", f"{table.topic}[0]@1")
    assert letters(lake) == []

    raised = replace(lake, settings="limits: {max_dead_letters_per_hour: 3}")
    raised.run()

    assert raised.statuses()["terms"].state == "running"
    assert [row["id"] for row in rows(lake, table)] == [0, 4]
    assert len(letters(lake)) == 3
