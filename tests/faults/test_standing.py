"""What a table's status keeps through a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cdc_sync.replacednulls import ONGOING
from cdc_sync.state import StateStore
from cdc_sync.tablestanding import TableStanding
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
