"""A source's log that begins anew under a table: noticed on proof, ordered behind the old one, and marked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.model.incarnations import Began, Moment, begin, placed
from cdc_sync.core.model.positions import NO_POSITION, SourcePosition
from cdc_sync.core.model.progress import Progress, Truncated
from cdc_sync.core.planning.resync import ALL_ROWS, Resync, marks
from cdc_sync.storage.history import _version_from_text, version_to_text
from cdc_sync.testing import INT32, TEXT, Record, SourceTable, Wal, column, json_text
from tests.plan.model import ROUTE, Event, topic
from tests.plan.surveying import Reader, events_of

_CAPTURED = Path(__file__).parent / "data" / "failover-lower-lsn.jsonl"


def at(lsn: int, time: int | None, *, incremental: bool = False) -> Moment:
    return Moment(position=SourcePosition(kind="postgresql", parts=(lsn, lsn)), at=time, incremental=incremental)


def binlog(file: int, pos: int, time: int) -> Moment:
    return Moment(position=SourcePosition(kind="binlog", parts=(file, pos, 0)), at=time)


@pytest.mark.parametrize(
    ("events", "began"),
    [
        pytest.param([at(100, 10), at(110, 11), at(120, 12)], (), id="one log"),
        pytest.param([at(900, 10), at(500, 20)], (15,), id="another server, behind in its log"),
        pytest.param([at(900, 10), at(500, 20), at(950, 30)], (15,), id="its log passes the old one's end"),
        pytest.param([at(900, 10), at(500, 20), at(100, 30)], (15, 25), id="and another one"),
        pytest.param([at(100, 10), at(110, 11), at(100, 10), at(110, 11), at(120, 12)], (), id="sent again"),
        pytest.param([at(100, 10), at(110, 10), at(100, 10)], (), id="sent again, of one moment"),
        pytest.param(
            [at(900, 10), at(910, 11), at(900, 10), at(910, 11), at(500, 20)], (16,), id="sent again, then another log"
        ),
        pytest.param(
            [at(900, 10), at(500, 20), at(510, 21), at(500, 20), at(510, 21)], (15,), id="another log, sent again"
        ),
        pytest.param([at(100, 10), at(90, 20, incremental=True), at(110, 21)], (), id="an incremental snapshot"),
        pytest.param([at(900, 10), at(910, 20, incremental=True), at(500, 19)], (), id="a clock that is behind"),
        pytest.param([binlog(7, 50, 30), binlog(7, 90, 5), binlog(7, 50, 30)], (), id="a long transaction, sent again"),
        pytest.param([binlog(7, 50, 30), binlog(1, 90, 40)], (35,), id="binlog files are counted anew"),
        pytest.param([at(900, 10), at(500, None)], (), id="no time is told"),
        pytest.param([at(900, 10), Moment(position=NO_POSITION, at=20)], (), id="no position is told"),
        pytest.param([at(900, 10), binlog(1, 4, 20)], (15,), id="a connector of another kind"),
    ],
)
def test_what_begins_a_new_incarnation(events: Sequence[Moment], began: Began) -> None:
    assert begin({0: events}) == began


def test_partitions_of_one_failover_agree_on_when_it_was() -> None:
    assert begin({0: [at(900, 10), at(500, 20)], 1: [at(910, 12), at(510, 21)], 2: [at(905, 11)]}) == (15,)


def test_an_incarnation_that_was_begun_without_need_changes_no_order() -> None:
    moments = [at(lsn, lsn // 10) for lsn in range(100, 200, 7)]
    for begun in range(9, 21):
        positions = [placed(item.position, item.at, (begun,)) for item in moments]
        assert positions == sorted(positions)


def test_positions_of_a_later_incarnation_come_behind_all_and_keep_their_text() -> None:
    old, new = (
        SourcePosition(kind="postgresql", parts=(900, 900)),
        SourcePosition(kind="postgresql", parts=(500, 500), incarnation=1),
    )
    assert old < new
    assert (str(old), str(new)) == ("postgresql:900/900", "postgresql.1:500/500")
    assert [SourcePosition.parse(str(item)) for item in (old, new)] == [old, new]


def captured() -> list[Event]:
    lines = [json.loads(line) for line in _CAPTURED.read_text().splitlines()]
    (events,) = topic([Record(key=_side(line["key"]), value=_side(line["value"])) for line in lines])
    return events


def _side(value: object) -> bytes | None:
    return None if value is None else json_text(value).encode()


def test_a_failover_to_a_server_whose_log_is_behind_is_followed() -> None:
    reader = Reader(captured()).run()
    history = reader.history
    assert history is not None
    assert [[item.name for item in version.schema.live] for version in history.versions] == [
        ["id", "v", "n"],
        ["id", "v", "n"],
        ["id", "v", "num"],
        ["id", "v", "num", "x"],
    ]
    assert [str(version.position) for version in history.versions] == [
        "postgresql:23871792/23871792",
        "postgresql.1:22048976/22048976",
        "postgresql.1:22050776/22050776",
        "postgresql.1:22054168/22054168",
    ]
    behind = Reader(captured()[5:]).run().history
    assert behind is not None
    assert history.head.schema == behind.head.schema, "what one log alone leads to"
    found = [(mark.column, mark.version) for mark in marks(history, (), (), None)]
    assert found == [(ALL_ROWS, 2), ("num", 3), ("x", 4)], "of new columns nothing tells what they were added with"


def test_the_capture_is_judged_the_same_however_it_is_split() -> None:
    events = captured()
    whole = Reader(events).run().history
    for first in range(len(events)):
        for second in range(first, len(events)):
            assert Reader(events).run((first, second)).history == whole, (first, second)


def _after_failover() -> History:
    table = SourceTable("t", [column("id", INT32, optional=False), column("a", TEXT)], null_is_default=False)
    table.insert(id=1)
    table.wal = Wal(lsn=5_000_000, later_than=table.wal)
    table.insert(id=2)
    history = Reader(events_of(table)).run().history
    assert history is not None
    return history


def test_the_mark_goes_by_the_operators_word_or_with_the_rows() -> None:
    history = _after_failover()
    columns = Resync(table=history.table, signal="s", version=2, columns=(1, 2), ends={"t": {0: 2}})
    rows = replace(columns, columns=(0,))
    done = Progress(version=2, offsets={"t": {0: 2}})
    assert [mark.column for mark in marks(history, (), (columns,), done)] == [ALL_ROWS], (
        "deleted rows are not read again"
    )
    assert marks(history, (), (rows,), done) == ()
    position = replace(history.head.position, parts=(6_000_000, 6_000_000))
    emptied = Truncated(position=position, offsets={"t": {0: 2}})
    assert marks(history, (), (), replace(done, truncated=emptied)) == ()


def test_a_truncate_that_is_the_first_event_of_a_new_log_begins_it() -> None:
    table = SourceTable("t", [column("id", INT32, optional=False), column("a", TEXT)], null_is_default=False)
    table.insert(id=1)
    table.wal = Wal(lsn=5_000_000, later_than=table.wal)
    table.truncate()
    history = Reader(events_of(table)).run().history
    assert history is not None
    assert [version.position.incarnation for version in history.versions] == [0, 1]
    assert history.began == history.head.began != ()


def test_a_version_of_a_new_log_is_stored_and_read_again() -> None:
    for version in _after_failover().versions:
        assert _version_from_text(version_to_text(version), "x") == version


def test_places_of_columns_prove_nothing_across_two_logs() -> None:
    """A rename in place is proven within one log; a restored copy may have its columns otherwise."""
    route = replace(ROUTE, policy=replace(ROUTE.policy, unproven_rename="pause"))
    table = SourceTable("t", [column("id", INT32, optional=False), column("a", TEXT)], null_is_default=False)
    table.insert(id=1)
    table.wal = Wal(lsn=5_000_000, later_than=table.wal)
    table.rename_column("a", "b")
    table.insert(id=2)
    assert Reader(events_of(table), route).run().refusal is not None
