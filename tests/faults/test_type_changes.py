"""Types that change as the target cannot follow in place: rows are rewritten, all or none, and nothing is lost."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from cdc_sync.api import commands, requests
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.errors import RefusedError
from cdc_sync.storage.state import StateStore
from cdc_sync.testing import (
    DATE,
    FLOAT64,
    INT32,
    INT64,
    TEXT,
    TIMESTAMP,
    Record,
    SourceTable,
    array,
    column,
    decimal,
)
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_CENT = Decimal("0.01")


class Shop:
    """One table of a pipeline, whose new records are sent before each run."""

    def __init__(self, lake: Pipeline, produce: Produce, *columns: Any, **options: Any) -> None:
        self.lake = lake
        start = [column("id", INT32, optional=False), *columns]
        self.table = SourceTable("t", start, prefix=lake.prefix, null_is_default=False, **options)
        self._produce, self._sent = produce, 0

    def send(self) -> None:
        self.send_these(self.table.records[self._sent :])
        self._sent = len(self.table.records)

    def send_these(self, records: list[Record]) -> None:
        self._produce(self.table.topic, records)

    def run(self) -> TableStatus:
        self.send()
        self.lake.run()
        return self.lake.statuses()["t"]

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.lake.table(self.table.id).scan().to_arrow().to_pylist()
        return sorted(found, key=lambda row: repr(row.get("id")))

    def alter(self, name: str, new: Any, convert: Callable[[Any], Any]) -> None:
        self.table.alter_column(
            name, lambda _: column(name, new), convert=lambda value: None if value is None else convert(value)
        )


def _cents(value: object) -> Decimal:
    return Decimal(str(value)).quantize(_CENT, ROUND_HALF_UP)


def _columns() -> list[Any]:
    return [
        column("i", INT32),
        column("t", TEXT),
        column("n", decimal(10, 4)),
        column("d", FLOAT64),
        column("s", TIMESTAMP),
        column("r", INT32),
    ]


def _open(table: SourceTable) -> None:
    noon = datetime(2024, 2, 29, 12, 0, 0)
    table.insert(id=1, i=1, t="10", n=Decimal("1.0050"), d=0.125, s=noon, r=7)
    table.insert(id=2, i=-2, t="twenty", n=Decimal("-1.0049"), d=99.995, s=datetime(1969, 12, 31, 23, 59), r=8)
    table.insert(id=3)
    table.insert(id=4, i=4, t="4", n=Decimal("4"), d=4.0, s=noon, r=4)


def _alter(shop: Shop) -> None:
    table = shop.table
    table.update({"id": 4}, t="40")
    shop.alter("i", TEXT, str)
    shop.alter("t", INT32, lambda text: int(text) if text.isdigit() else None)
    shop.alter("n", decimal(8, 2), _cents)
    shop.alter("d", decimal(8, 2), _cents)
    shop.alter("s", DATE, lambda moment: moment.date())
    table.rename_column("r", "q")
    shop.alter("q", TEXT, str)
    table.insert(id=5, i="five", t=5, n=Decimal("5.55"), d=Decimal("5.55"), s=date(2024, 5, 5), q="five")
    table.update({"id": 1}, q="one")


def test_every_kind_at_once_then_again_then_late_events_then_all_in_one_batch(
    pipeline: NewPipeline, produce: Produce, tmp_path: Path
) -> None:
    shop = Shop(pipeline("types-all", rules="[{pattern: '.*', renames: {r: q}}]"), produce, *_columns())
    _open(shop.table)
    shop.table.insert(id=30, i=30, t="30", r=30)
    shop.table.insert(id=31, i=31, t="thirty", r=31)
    late = [shop.table.records.pop(), shop.table.records.pop()]
    assert shop.run().state == "running"
    _alter(shop)
    shop.table.rows = [row for row in shop.table.rows if row["id"] != 31]
    status = shop.run()

    assert (status.state, status.version) == ("running", 2), status
    assert status.counts == {"values of 't' that version 2 has no place for": 1}
    (kept,) = StateStore(shop.lake.config.pipeline.root).unconverted(shop.table.id)
    assert [(item.column, item.key, item.value) for item in kept.values] == [("t", {"id": "2"}, "twenty")]
    shop.alter("i", INT64, lambda text: int(text) if text.lstrip("-").isdigit() else None)
    shop.table.update({"id": 2}, i=1 << 40)
    assert shop.run().version == 3
    shop.send_these(late)
    assert shop.run().state == "running"
    assert_equal(shop.lake, shop.table)
    (aside,) = shop.lake.set_aside()
    assert aside.reason == "does not convert: column t"
    lines = commands.history(shop.lake.config, "t")[0].versions
    assert "change type of column i from INT to STRING" in [change.text for change in lines[1].changes]
    assert {item.kind for item in lines[1].evidence} >= {"rewrite", "declared"}

    again = replace(shop.lake, folder=tmp_path / "again")
    again.folder.mkdir()
    again.run()
    assert again.history_files() == shop.lake.history_files()
    assert_equal(again, shop.table)
    assert again.statuses()["t"].counts == shop.lake.statuses()["t"].counts


_POINTS = (
    "cdc_sync.storage.history.HistoryStore.append",
    "cdc_sync.storage.state.StateStore.keep_unconverted",
    "cdc_sync.targets.iceberg.rewrite.alter",
    "cdc_sync.targets.iceberg.rewrite._keep",
    "cdc_sync.targets.iceberg.change.Change.overwrite",
    "cdc_sync.targets.iceberg.target.rewrite",
    "cdc_sync.targets.iceberg.target.IcebergTarget.migrate",
)
"""Whatever is done on the way; killed before each and behind each."""


class _Killed(Exception):
    """The process ended here."""


def test_killed_anywhere_on_the_way_it_ends_the_same(
    pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(pipeline("types-killed"), produce, column("t", TEXT))
    for number, text in enumerate(("1", "two", "3"), 1):
        shop.table.insert(id=number, t=text)
    shop.run()
    before = shop.rows()
    shop.table.update({"id": 1}, t="11")
    shop.alter("t", INT32, lambda text: int(text) if text.isdigit() else None)
    shop.table.insert(id=4, t=4)
    seen = []
    for point in _POINTS:
        for when in ("before", "behind"):
            with monkeypatch.context() as patched:
                _kill(patched, point, when)
                shop.run()
            seen.append({type(row["t"]) for row in shop.rows()} - {type(None)})
            if seen[-1] == {str}:
                assert len(shop.rows()) == len(before)
            else:
                assert {row["id"]: row["t"] for row in shop.rows() if row["id"] < 4} == {1: 11, 2: None, 3: 3}
    assert sorted(map(str, seen), reverse=True) == list(map(str, seen)), "the column changes once"
    assert {str} in seen
    status = shop.run()
    assert (status.state, status.version) == ("running", 2)
    assert status.counts == {"values of 't' that version 2 has no place for": 1}
    assert_equal(shop.lake, shop.table)


def _kill(patched: pytest.MonkeyPatch, point: str, when: str) -> None:
    module, _, name = point.rpartition(".")
    owner = pkgutil.resolve_name(module)
    original = getattr(owner, name)

    def killed(*arguments: Any, **named: Any) -> None:
        if when == "behind":
            original(*arguments, **named)
        raise _Killed(f"{when} {point}")

    patched.setattr(owner, name, killed)


def test_a_rewrite_is_rolled_back_and_carried_out_again(pipeline: NewPipeline, produce: Produce) -> None:
    shop = Shop(pipeline("types-back"), produce, column("t", TEXT))
    for number, text in enumerate(("1", "two", "3"), 1):
        shop.table.insert(id=number, t=text)
    shop.run()
    with pytest.raises(RefusedError, match="no version of it rewrote the rows"):
        requests.rollback(shop.lake.config, "t", undo=False)
    before = shop.rows()
    shop.alter("t", INT32, lambda text: int(text) if text.isdigit() else None)
    shop.table.insert(id=4, t=4)
    assert shop.run().version == 2
    assert shop.rows() != before

    requests.rollback(shop.lake.config, "t", undo=False)
    shop.table.insert(id=5, t=5)
    status = shop.run()
    assert (status.state, shop.rows()) == ("paused", before)
    assert status.reason == "version 2 was rolled back: rows and columns are those of version 1"
    assert "--undo" in (status.remedy or "")
    assert shop.run().state == "paused"

    requests.rollback(shop.lake.config, "t", undo=True)
    status = shop.run()
    assert (status.state, status.version) == ("running", 2)
    assert_equal(shop.lake, shop.table)


def test_a_changelog_and_a_type_without_a_conversion(pipeline: NewPipeline, produce: Produce) -> None:
    shop = Shop(
        pipeline("types-log", rules="[{pattern: '.*', mode: append}]"),
        produce,
        column("a", INT32),
        column("b", INT32),
    )
    shop.table.insert(id=1, a=1, b=1)
    shop.run()
    shop.alter("a", TEXT, str)
    shop.alter("b", array(INT32), lambda value: [value])
    shop.table.update({"id": 1}, a="one", b=[1, 2])
    status = shop.run()
    assert (status.state, status.version) == ("running", 2), status
    found = sorted((row["_cdc_offset"], row["a"], row["b"], row["b__retired_3"]) for row in shop.rows())
    assert found == [(0, "1", None, 1), (1, "one", [1, 2], None)]


def test_rows_are_still_found_by_a_key_of_another_type(pipeline: NewPipeline, produce: Produce) -> None:
    shop = Shop(pipeline("types-key"), produce, column("a", INT32))
    for number in range(1, 5):
        shop.table.insert(id=number, a=number)
    shop.run()
    shop.table.update({"id": 1}, a=11)
    shop.table.alter_column("id", lambda _: column("id", TEXT, optional=False), convert=str)
    shop.table.update({"id": "1"}, a=12)
    shop.table.update({"id": "2"}, id="two")
    shop.table.delete({"id": "3"})
    shop.table.insert(id="five", a=5)
    assert shop.run().state == "running"
    assert_equal(shop.lake, shop.table)
