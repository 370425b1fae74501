"""A snapshot that reads the whole table again: seen for what it is, and told from all that looks alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.model.progress import Progress, Truncated
from cdc_sync.core.planning.resync import ALL_ROWS, marks
from cdc_sync.storage.history import _version_from_text, version_to_text
from cdc_sync.testing import INT32, TEXT, Record, SourceTable, column
from tests.plan.model import ROUTE
from tests.plan.surveying import Reader, events_of


def table(rows: int = 3) -> SourceTable:
    """Three rows, read by the first snapshot."""
    found = SourceTable("t", [column("id", INT32, optional=False), column("a", TEXT)], null_is_default=False)
    for number in range(rows):
        found.insert(id=number)
    found.records.clear()
    connect_anew(found)
    return found


def connect_anew(of: SourceTable) -> None:
    of.wal.last_commit = None
    of.snapshot()


def changed(of: SourceTable, source: dict[str, object]) -> None:
    """Change what the source blocks of events say."""
    for index, record in enumerate(of.records):
        if record.value is not None:
            value = json.loads(record.value)
            value["payload"]["source"].update(source)
            of.records[index] = Record(key=record.key, value=json.dumps(value, separators=(",", ":")).encode())


def read(of: SourceTable, *cuts: int) -> History:
    found = Reader(events_of(of)).run(cuts).history
    assert found is not None
    return found


def again(of: SourceTable) -> list[int]:
    return [version.kafka.offset for version in read(of).versions if version.read_again]


def deleted_unheard(of: SourceTable) -> None:
    of.rows = [row for row in of.rows if row["id"] != 1]
    of.insert(id=9)
    of.records.pop()


def test_it_marks_the_rows_of_before() -> None:
    it = table()
    deleted_unheard(it)
    connect_anew(it)
    history = read(it)
    assert again(it) == [3]
    (mark,) = marks(history, (), (), None)
    assert (mark.column, mark.version) == (ALL_ROWS, 2)
    assert "second_snapshot: apply" in mark.reason
    assert _version_from_text(version_to_text(history.head), "x") == history.head


def test_the_mark_goes_when_the_target_was_emptied_for_it() -> None:
    it = table()
    connect_anew(it)
    history = read(it)
    emptied = Truncated(position=history.head.position, offsets={"t": {0: 3}})
    assert marks(history, (), (), Progress(version=2, truncated=emptied)) == ()


def test_one_that_was_cut_off_and_begun_again_is_another_one() -> None:
    it = table()
    it.records = it.records[:2]
    connect_anew(it)
    assert again(it) == [2]


def _first_only(it: SourceTable) -> None:
    it.insert(id=7)


def _incremental(it: SourceTable) -> None:
    it.insert(id=7)
    it.snapshot(incremental=True)


def _resent(it: SourceTable) -> None:
    it.insert(id=7)
    it.records += it.records[:]


def _empty(it: SourceTable) -> None:
    it.rows = []
    connect_anew(it)


@pytest.mark.parametrize("live", [_first_only, _incremental, _resent, _empty])
def test_what_is_none(live: Callable[[SourceTable], None]) -> None:
    it = table()
    live(it)
    assert again(it) == []


def test_a_change_of_columns_that_it_shows_is_made_with_it() -> None:
    it = table()
    it.add_column(column("n", INT32))
    connect_anew(it)
    history = read(it)
    assert [version.read_again for version in history.versions] == [False, True]
    assert [item.name for item in history.head.schema.live] == ["id", "a", "n"]


def test_any_split_gives_the_same() -> None:
    it = table()
    it.insert(id=7)
    deleted_unheard(it)
    connect_anew(it)
    it.add_column(column("n", INT32))
    it.insert(id=8)
    connect_anew(it)
    whole = read(it)
    assert sum(version.read_again for version in whole.versions) == 2
    for first in range(len(it.records)):
        for second in range(first, len(it.records)):
            assert read(it, first, second) == whole, (first, second)


def test_a_connector_without_positions_tells_its_first_row() -> None:
    it = table()
    it.insert(id=7)
    connect_anew(it)
    changed(it, {"connector": "sqlserver", "lsn": None, "sequence": None})
    assert again(it) == [4]


def test_it_pauses_where_the_operator_wants_to_be_asked() -> None:
    route = replace(ROUTE, policy=replace(ROUTE.policy, second_snapshot="pause"))
    it = table()
    connect_anew(it)
    refusal = Reader(events_of(it), route).run().refusal
    assert refusal is not None
    assert refusal.kafka.offset == 3


def test_a_changelog_has_its_rows_and_no_mark() -> None:
    route = replace(ROUTE, append=True)
    it = table()
    connect_anew(it)
    history = Reader(events_of(it), route).run().history
    assert history is not None
    assert history.head.read_again
    assert marks(history, (), (), None) == ()
