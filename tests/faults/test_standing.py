"""What a table's status keeps through a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cdc_sync.core.lineage.column_log import Unlogged
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.replaced_nulls import ONGOING
from cdc_sync.core.planning.resync import Resync
from cdc_sync.core.table.checks import audited, failed
from cdc_sync.core.table.state import TableState
from cdc_sync.errors import FilesGone, TargetError
from cdc_sync.storage.state import StateStore
from tests.faults.actors import actor_of
from tests.plan.model import ROUTE
from tests.plan.tables import Table


def test_a_restart_forgets_neither_the_warning_nor_the_mark(tmp_path: Path) -> None:
    table = Table()
    table.row()
    state, history = StateStore(str(tmp_path), create=True), table.history()
    route = replace(ROUTE, table=history.table)

    def status(noted: dict[int, int] | None) -> tuple[list[str], list[str]]:
        actor = actor_of(route, state=state)
        actor.state = actor._files.with_journal(actor.state)
        known = replace(actor.state, history=history)
        if noted is not None:
            known = replace(known, journal=replace(known.journal, replaced_nulls=noted))
        actor.become(known)
        actor.report()
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
        actor = actor_of(route, state=state)
        actor.state = actor._files.with_journal(actor.state)
        progress = Progress(version=1, offsets={"t": {0: 9}})
        actor.become(audited(replace(actor.state, history=history, progress=progress), told))
        actor.report()
        (found,) = state.tables()
        return [f"{mark.column}: {mark.reason[-11:]}" for mark in found.needs_resync] + list(found.warnings)

    first = Unlogged(position=position, table=table.id, effect="rows", text="drop part 1")
    assert status(first) == ["*: drop part 1"]
    read = Resync(table=table.id, signal="s", version=1, columns=(0,), ends={"t": {0: 9}}, asked={"t": {0: 9}})
    state.requests.add(read)
    assert status(first) == [], "the log tells of it again after each start"
    assert status(first, replace(first, position=replace(position, parts=(99, 99)), text="drop part 2")) == []
    state.requests.add(replace(read, asked={"t": {0: 8}}))
    assert len(status()) == 2
    follows = Unlogged(position=position, table=table.id, effect="follow", text="on delete cascade")
    assert "may change or go without an event" in status(follows)[-1]


def test_files_that_are_gone_pause_a_table_once_they_were_looked_for_twice() -> None:
    gone = FilesGone("Cannot write lake.t: File does not exist: a.parquet")
    once = failed(TableState(route=ROUTE), gone)
    assert once.stop is None, "they may come back, or the store is slow to show them"
    others = failed(failed(once.recovered(), gone), TargetError("something else"))
    again = failed(others, gone)
    assert again.stop is None
    stop = failed(again, gone).stop
    assert stop is not None
    assert stop.reason == f"files that belong to the target were deleted: {gone}"
