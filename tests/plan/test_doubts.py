"""Values that events leave in doubt: kept once for each column, gone with a resync that was asked for behind them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.model.doubts import Doubt, Kind, doubts_with
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.resync import Resync, marks
from tests.plan.tables import Table


def doubt(id_: int, end: int, *, partition: int = 0, version: int = 1, kind: Kind = "unsent") -> Doubt:
    return Doubt(kind=kind, id=id_, version=version, ends={"t": {partition: end}})


def test_a_column_is_in_doubt_once_and_since_its_first_version() -> None:
    first = doubts_with((), [doubt(2, 5), doubt(3, 5, kind="unread")])
    again = doubts_with(first, [doubt(2, 9, version=4), doubt(2, 3, partition=1, version=4)])
    assert {(item.kind, item.id): item for item in again} == {
        ("unsent", 2): Doubt(kind="unsent", id=2, version=1, ends={"t": {0: 9, 1: 3}}),
        ("unread", 3): doubt(3, 5, kind="unread"),
    }


@pytest.mark.parametrize(
    ("asked", "is_marked"), [({}, True), ({"t": {0: 4}}, True), ({"t": {0: 5}}, False), ({"u": {0: 9}}, True)]
)
def test_a_mark_goes_with_a_resync_that_was_asked_for_behind_it(
    asked: dict[str, dict[int, int]], *, is_marked: bool
) -> None:
    history = Table().row().history()
    read = Resync(table=history.table, signal="s", version=1, columns=(2,), ends={"t": {0: 8}}, asked=asked)
    progress = Progress(version=1, offsets={"t": {0: 8}})
    found = marks(history, (), [read], progress, doubts=[doubt(2, 5)])
    assert [mark.column for mark in found] == (["a"] if is_marked else [])
    open_ = replace(read, ends={"t": {0: 9}})
    assert len(marks(history, (), [open_], progress, doubts=[doubt(2, 5)])) == 1, "not all of it has arrived"
    other = replace(read, columns=(1,))
    assert len(marks(history, (), [other], progress, doubts=[doubt(2, 5)])) == 1, "another column was read again"


def test_a_column_that_is_gone_is_not_marked() -> None:
    assert marks(Table().row().history(), (), (), None, doubts=[doubt(9, 5)]) == ()
