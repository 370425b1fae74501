"""Whatever stands in a table's name: what is stored of it lies in the pipeline's folder, is its own, goes with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from cdc_sync.core.migration.operator_requests import Hold, Reset, Skip
from cdc_sync.core.migration.routes import Join
from cdc_sync.core.model.dead_letters import Redrive
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.times import utc
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.storage.state import StateStore
from tests.stored.test_state import (
    AT,
    COMPARED,
    DECISIONS,
    DOUBTS,
    HELD,
    JOIN,
    LETTERS,
    REDRIVE,
    RESET,
    RESYNC,
    SKIP,
    UNCONVERTED,
    files,
)

_PIECES = ["..", ".", "/", "\\", "%2E", "%", "~", "\0", "\n", "\u202e", "'", '"', "`", "$", "*", "é", "漢", "a", "A"]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80) | st.lists(
    st.sampled_from([*_PIECES, "/etc/passwd", "tables", "holds", ".json", "N" * 100]), min_size=1, max_size=8
).map("".join)
TABLES = st.builds(TableId, database=NAMES, schema=NAMES | st.just(""), table=NAMES)


def _say_all_of(store: StateStore, table: TableId) -> None:
    store.save(TableStatus(table=table, target="t", state="running"))
    store.requests.decide(replace(DECISIONS[0], table=table))
    store.requests.add(replace(JOIN, table=table))
    store.requests.add(Hold(table=table, by="ann", at=utc(0), why=""))
    store.requests.add(replace(SKIP, table=table))
    store.requests.add(replace(RESET, table=table))
    store.requests.add(replace(REDRIVE, table=table))
    store.requests.add(replace(RESYNC, table=table))
    store.keep_compared(table, AT, COMPARED)
    store.keep_unconverted(table, UNCONVERTED)
    store.save_held_columns(table, HELD)
    store.save_doubts(table, DOUBTS)
    store.save_maintained(table, 1.0)
    store.dead_letters.add([replace(LETTERS[0], table=table)])


@given(one=TABLES, other=TABLES)
@example(one=TableId(database="a", schema="b.c", table="d"), other=TableId(database="a.b", schema="c", table="d"))
@example(one=TableId(database="..", schema="..", table="../x"), other=TableId(database="..", schema="..", table="x"))
@example(one=TableId(database="A", schema="", table="t"), other=TableId(database="a", schema="", table="t"))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_said_of_a_table_is_its_own(
    one: TableId, other: TableId, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assume(one != other)
    around = tmp_path_factory.mktemp("around")
    store = StateStore(str(around / "root"), create=True)
    store.save(TableStatus(table=other, target="t", state="running"))
    before = files(around / "root")
    _say_all_of(store, one)
    store = StateStore(str(around / "root"))
    assert {status.table for status in store.tables()} == {one, other}
    said = store.requests
    assert (said.get(Hold, other), said.get(Reset, other)) == (None, None)
    assert (said.all(Skip, other), said.all(Redrive, other), said.all(Join, other)) == ((), (), ())
    found = (said.get(Hold, one), said.get(Reset, one), *said.all(Skip, one), *said.all(Join, one))
    assert [None if it is None else it.table for it in found] == [one] * 4
    assert one in store.requests.tables_with("holds")
    assert other not in store.requests.tables_with("holds")
    assert set(files(around)) == {f"root/{name}" for name in files(around / "root")}
    store.forget(one)
    store.requests.remove(replace(REDRIVE, table=one))
    left = files(around / "root")
    assert {name: left.get(name) for name in before} == before
    assert {name.partition("/")[0] for name in set(left) - set(before)} == {"dead-letters"}
