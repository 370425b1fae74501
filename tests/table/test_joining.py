"""Two columns that the operator says are one: what is waited for, what forbids it, and how it is carried out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.merge_columns import find_join
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.table import fold
from cdc_sync.core.table.joining import join_columns
from cdc_sync.core.table.questions import IsSameTopic, KeyClash, RefusedJoin
from cdc_sync.core.table.seen import Seen
from cdc_sync.core.table.state import TableState
from cdc_sync.core.table.transitions import ForgetJoin, Migrate, RecordJoin, Settled
from tests.plan.model import ROUTE as SHOP_ROUTE
from tests.plan.test_joins import split
from tests.table.model import decided, state

CAN: dict[type[Any], Any] = {IsSameTopic: True, RefusedJoin: None, KeyClash: None}


def split_table() -> tuple[TableState, History, Any]:
    """A table whose column `z` was renamed to `y`, which nothing proved when it was read."""
    history = split().history()
    known = replace(state(2), history=history, route=SHOP_ROUTE)
    return known, history, find_join(history, "z", "y")


def step(known: TableState, join: Any, **answers: Any) -> Any:
    changed = {kind: answers.get(kind.__name__, answer) for kind, answer in CAN.items()}
    return decided(join_columns, known, Seen(join=join), changed)


def test_it_is_recorded_then_carried_out_and_then_done() -> None:
    known, history, join = split_table()
    known = known.warned("version 2: 'z' and 'y' are one column", "something else")
    first = step(known, join)
    assert isinstance(first, RecordJoin)
    assert (first.version.number, first.join.after) == (3, history.head.number)
    recorded = fold.joined(known, first)
    assert recorded.warnings[0] == "something else", "what was said of the two is no news any more"
    then = step(recorded, first.join)
    assert isinstance(then, Migrate)
    done = step(fold.migrated(recorded, then, None), first.join)
    assert isinstance(done, Settled)
    assert done.done


@pytest.mark.parametrize(
    "change",
    [
        {"history": None},
        {"is_of_another_kind": True},
        {"target": replace(state(2).target, stamped=9)},
    ],
    ids=["never seen", "of another kind", "its history is made again"],
)
def test_what_does_not_stand_still_is_waited_for(change: Any) -> None:
    known, _, join = split_table()
    known = replace(known, **change)
    assert step(known, join) == Settled(state=known)


def test_nothing_is_done_without_a_join_on_another_topic_or_in_the_run_after() -> None:
    known, _, join = split_table()
    assert step(known, None) == Settled(state=known)
    assert step(known, join, IsSameTopic=False) == Settled(state=known)
    assert decided(join_columns, known, Seen(join=join, over=True), CAN) == Settled(state=known)


def test_rows_from_before_a_column_was_kept_are_written_first() -> None:
    known, _, join = split_table()
    behind = replace(known, target=replace(known.target, stamped=1))
    assert step(behind, join) == Settled(state=behind)


def test_what_forbids_it_is_said_and_the_word_is_forgotten() -> None:
    known, _, join = split_table()
    shared = step(replace(known, route=replace(known.route, merge="origin")), join)
    assert isinstance(shared, ForgetJoin)
    assert shared.why.startswith("rows of other tables are in the target")
    refused = step(known, join, RefusedJoin=Refused(code=Code.UNPROVEN, reason="no state of before", remedy="snapshot"))
    assert refused == ForgetJoin(join=join, why="no state of before; snapshot")
    reverted = step(known, replace(join, kept=1))
    assert isinstance(reverted, ForgetJoin)


def test_a_target_that_is_not_there_needs_only_the_record() -> None:
    known, _, join = split_table()
    known = replace(known, target=replace(known.target, stamped=None), progress=None)
    assert isinstance(step(known, join), RecordJoin)
