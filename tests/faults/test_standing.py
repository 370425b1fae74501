"""What a table's status keeps through a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cdc_sync.core.lineage.column_log import Unlogged
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.replaced_nulls import ONGOING
from cdc_sync.core.planning.resync import Resync
from cdc_sync.errors import FilesGone, TargetError
from cdc_sync.runtime.table.standing import TableStanding
from cdc_sync.storage.state import StateStore
from tests.plan.model import ROUTE
from tests.plan.tables import Table


def test_a_restart_forgets_neither_the_warning_nor_the_mark(tmp_path: Path) -> None:
    table = Table()
    table.row()
    state, history = StateStore(str(tmp_path), create=True), table.history()
    route = replace(ROUTE, table=history.table)

    def status(noted: dict[int, int] | None) -> tuple[list[str], list[str]]:
        standing = TableStanding(state, route)
        standing._load_counts()
        standing.history = history
        if noted is not None:
            standing._replaced_nulls = noted
        standing.save_status()
        (found,) = state.tables()
        return [text.split(";")[0] for text in found.warnings], [mark.column for mark in found.needs_resync]

    warning = "a NULL in a arrives as the column's default"
    assert [status(told) for told in ({2: ONGOING}, None, {2: 3}, None)] == [
        ([warning], []),
        ([warning], []),
        ([], ["a"]),
        ([], ["a"]),
    ]


def test_rows_that_changed_without_an_event_are_marked_once_and_until_they_are_read_again(tmp_path: Path) -> None:
    table = Table()
    table.row()
    state, history = StateStore(str(tmp_path), create=True), table.history()
    route, position = replace(ROUTE, table=history.table), history.head.position

    def status(*told: Unlogged) -> list[str]:
        standing = TableStanding(state, route)
        standing.history = history
        standing.progress = Progress(version=1, offsets={"t": {0: 9}})
        standing._load_counts()
        for item in told:
            standing.doubt_rows(item)
        standing.save_status()
        (found,) = state.tables()
        return [f"{mark.column}: {mark.reason[-11:]}" for mark in found.needs_resync] + list(found.warnings)

    first = Unlogged(position=position, table=table.id, effect="rows", text="drop part 1")
    assert status(first) == ["*: drop part 1"]
    read = Resync(table=table.id, signal="s", version=1, columns=(0,), ends={"t": {0: 9}}, asked={"t": {0: 9}})
    state.save_resync(read)
    assert status(first) == [], "the log tells of it again after each start"
    assert status(first, replace(first, position=replace(position, parts=(99, 99)), text="drop part 2")) == []
    state.save_resync(replace(read, asked={"t": {0: 8}}))
    assert len(status()) == 2
    follows = Unlogged(position=position, table=table.id, effect="follow", text="on delete cascade")
    assert "may change or go without an event" in status(follows)[-1]


def test_files_that_are_gone_pause_a_table_once_they_were_looked_for_twice(tmp_path: Path) -> None:
    table = Table()
    table.row()
    standing = TableStanding(StateStore(str(tmp_path), create=True), replace(ROUTE, table=table.id))
    gone = FilesGone("Cannot write lake.t: File does not exist: a.parquet")
    standing.fail(gone)
    assert standing.pause is None, "they may come back, or the store is slow to show them"
    standing.recovered()
    standing.fail(gone)
    standing.fail(TargetError("something else"))
    standing.fail(gone)
    assert standing.pause is None
    standing.fail(gone)
    assert standing.pause is not None
    assert standing.pause.reason == f"files that belong to the target were deleted: {gone}"
