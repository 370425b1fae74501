"""A table as it is taken up: what was begun is ended first, and what does not fit the configuration stops it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.migration.altered import HeldColumns
from cdc_sync.core.migration.capabilities import HUDI, HUDI_ON_READ
from cdc_sync.core.migration.operator_requests import Hold, RegimeAsked, Rollback
from cdc_sync.core.migration.routes import Decision, Join
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.progress import Progress, Truncated
from cdc_sync.core.planning.stops import LOGS, Pause
from cdc_sync.core.planning.table_renames import arrival_of
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.table.loading import take_up
from cdc_sync.core.table.seen import Loaded
from cdc_sync.core.table.state import Cursor, TableState
from cdc_sync.core.table.transitions import (
    AdoptTarget,
    Become,
    DropLeftovers,
    Fail,
    ForgetRollback,
    RewriteLayout,
    RollBackRewrite,
    Settled,
)
from cdc_sync.errors import UnfitTarget
from tests.history.versions import ORDERS, at
from tests.table.model import RENAMED, ROUTE, TOPIC, end, history

DONE = Progress(version=3, offsets={TOPIC: {0: 5}})
FOUND = TargetState(version=3, progress=DONE, rows=4)
UNREAD = TableState(route=ROUTE)


def loaded(**changes: Any) -> Loaded:
    return replace(Loaded(history=history(3), found=FOUND), **changes)


def taken_up(known: TableState = UNREAD, **changes: Any) -> TableState:
    step = take_up(known, loaded(**changes))
    assert isinstance(step, Settled)
    return step.state


def on_hudi(evolution: Any = "on_write") -> TableState:
    able = HUDI_ON_READ if evolution == "on_read" else HUDI
    return replace(UNREAD, route=replace(ROUTE, capabilities=able))


def test_what_is_written_down_is_what_is_known() -> None:
    decision = Decision(table=ORDERS, at="t[0]@1", renames={})
    join = Join(table=ORDERS, kept=1, joined=2, old="a", new="b", after=2)
    known = taken_up(decisions=(decision,), joins=(join, replace(join, after=3)), now=5.0)
    assert known.is_read
    assert (known.target.stamped, known.target.rows, known.progress) == (3, 4, DONE)
    assert known.route.decisions == (decision,)
    assert known.route.joins == (join,), "one that is not carried out yet is not history"
    assert known.hints.next_look == 65.0
    assert taken_up(history=None, found=None).target.stamped is None


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (replace(FOUND, version=None), "exists and was not made by cdc_sync"),
        (replace(FOUND, union="u"), "several source tables share the target"),
    ],
)
def test_a_target_that_is_not_this_tables_alone_is_not_touched(found: TargetState, said: str) -> None:
    step = take_up(UNREAD, loaded(found=found))
    assert isinstance(step, Fail)
    assert isinstance(step.error, UnfitTarget)
    assert said in str(step.error)


def test_a_rewrite_that_is_to_be_undone_is_where_the_target_keeps_what_was_before() -> None:
    asked = Rollback(table=ORDERS, version=3)
    assert take_up(UNREAD, loaded(rollback=asked, found=replace(FOUND, kept=2))) == RollBackRewrite(asked=asked)
    assert take_up(UNREAD, loaded(rollback=asked)) == ForgetRollback(asked=asked)
    undone = taken_up(rollback=asked, found=replace(FOUND, version=2))
    assert undone.stop is not None
    assert "version 3 was rolled back" in undone.stop.reason


def arrived() -> tuple[History, Any]:
    """A table that came under its name with version 1, and its target as it was under the former one."""
    left = history(3).extended(end(history(3), "rename", RENAMED))
    arrival: Any = arrival_of(left, left.head, None)
    return History(table=RENAMED, versions=(arrival,)), arrival


def test_a_target_that_came_under_a_new_name_is_stamped_with_that_once() -> None:
    own, arrival = arrived()
    assert take_up(UNREAD, loaded(history=own)) == AdoptTarget(arrival=arrival)
    marked = replace(DONE, version=1, truncated=Truncated(position=at(40), offsets={}))
    assert not taken_up(history=own, found=replace(FOUND, version=1, progress=marked)).is_detached


def test_a_target_that_has_yet_to_come_under_its_name_is_waited_for() -> None:
    own, _ = arrived()
    assert taken_up(history=own, found=None).is_detached


def test_files_of_a_target_that_was_dropped_go_before_another_is_made() -> None:
    known = history(3).extended(end(history(3), "drop"))
    assert take_up(UNREAD, loaded(history=known, found=None)) == DropLeftovers()
    begun = taken_up(
        replace(UNREAD, cursor=Cursor(known_before={TOPIC: {0: 9}})), history=known, found=None, left_dropped=True
    )
    assert begun.cursor.unread == {TOPIC: {0: 9}}
    assert begun.progress is not None
    assert begun.progress.truncated is not None


class TestRegimes:
    ASKED = RegimeAsked(table=ORDERS, evolution="on_read")

    def test_all_rows_are_rewritten_where_the_configuration_says_what_was_asked(self) -> None:
        known = on_hudi("on_read")
        step = take_up(known, loaded(regime=self.ASKED))
        assert isinstance(step, RewriteLayout)
        assert step.steps.version == 3
        stopped = known.stopped(Pause(code=Code.UNPROVEN, reason="r", remedy="m"))
        assert take_up(stopped, loaded(regime=self.ASKED)) == Become(state=known)

    @pytest.mark.parametrize(
        ("known", "changes", "why"),
        [
            (on_hudi(), {}, "the configuration says on_write"),
            (on_hudi("on_read"), {"history": history(2)}, "its history is not complete"),
        ],
    )
    def test_what_has_to_wait_is_said(self, known: TableState, changes: Any, why: str) -> None:
        (warning, *_) = taken_up(known, regime=self.ASKED, **changes).warnings
        assert why in warning

    def test_nothing_is_asked_of_a_target_that_is_not_there(self) -> None:
        known = taken_up(on_hudi(), regime=self.ASKED, found=None)
        assert known.requests.regime is None
        assert known.warnings == ()


class TestAsConfigured:
    def test_a_changelog_does_not_become_a_copy(self) -> None:
        known = taken_up(found=replace(FOUND, mode="append"))
        assert known.is_of_another_kind
        assert known.stop is not None
        assert "the target holds a changelog" in known.stop.reason

    def test_a_target_of_the_other_regime_stops(self) -> None:
        known = taken_up(on_hudi("on_read"))
        assert known.stop is not None
        assert "the target is of schema_evolution: on_write" in known.stop.reason

    def test_logs_that_the_configuration_does_not_speak_of_stop(self) -> None:
        with_logs = replace(FOUND, logs=True)
        assert taken_up(on_hudi(), found=with_logs).stop == LOGS
        assert taken_up(on_hudi(), found=with_logs, logs=True).stop is None

    def test_a_target_that_is_divided_for_good_stops_before_readers_that_cannot_read_it(self) -> None:
        divided = replace(FOUND, partitioning=Partitioning.parse(("id",)))
        known = taken_up(on_hudi(), found=divided, unread_by=(("presto", "fails"),))
        assert known.stop is not None
        assert "names presto among its readers" in known.stop.reason
        assert taken_up(on_hudi(), unread_by=(("presto", "fails"),)).stop is None


class TestColumns:
    BEFORE = HeldColumns(identity="u", version=3, numbers={"id": 1, "remark": 2})

    def looked_at(self, **numbers: int) -> TableState:
        now = replace(self.BEFORE, numbers=numbers)
        return taken_up(columns=self.BEFORE, found=replace(FOUND, columns=now))

    def test_columns_that_are_as_they_were_left_change_nothing(self) -> None:
        known = self.looked_at(id=1, remark=2)
        assert (known.stop, known.journal.doubts) == (None, ())

    def test_a_column_that_somebody_renamed_stops_the_table(self) -> None:
        stop = self.looked_at(id=1, comment=2).stop
        assert stop is not None
        assert "column remark was renamed to comment" in stop.reason

    def test_a_column_that_somebody_replaced_is_marked(self) -> None:
        known = self.looked_at(id=1, remark=9)
        assert known.stop is None
        (doubt,) = known.journal.doubts
        assert (doubt.kind, doubt.id, doubt.at, doubt.ends) == ("replaced", 2, "9", DONE.offsets)

    def test_columns_that_the_history_does_not_know_are_left_to_their_owner(self) -> None:
        before = replace(self.BEFORE, numbers={"mine": 7})
        now = replace(before, numbers={"mine": 8})
        assert taken_up(columns=before, found=replace(FOUND, columns=now)).journal.doubts == ()
        found = replace(FOUND, columns=now)
        assert taken_up(history=None, columns=before, found=found).journal.doubts == ()


def test_what_an_operator_paused_is_stopped_for_that_whatever_else_would_stop_it() -> None:
    hold = Hold(table=ORDERS, by="ann", at="2026-01-02T03:04:05Z")
    undone = replace(FOUND, version=2)
    known = taken_up(hold=hold, rollback=Rollback(table=ORDERS, version=3), found=undone)
    assert known.requests.hold == hold
    assert known.stop == Pause(
        code=Code.PAUSED, reason="paused by ann", remedy=f"`cdc-sync resume CONFIG {ORDERS}` lets it go on"
    )
    assert taken_up(rollback=Rollback(table=ORDERS, version=3), found=undone).stop != known.stop
