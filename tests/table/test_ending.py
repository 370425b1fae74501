"""A table whose source ended: what is written before, what becomes of the target, and what stops it there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import HUDI
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.observation import TablePlan
from cdc_sync.core.planning.stops import Pause
from cdc_sync.core.table import fold
from cdc_sync.core.table.advance import decide
from cdc_sync.core.table.questions import Destination, Exists, HistoryOf, PlanOf, Rest, RestBefore, RoomFor
from cdc_sync.core.table.seen import Seen
from cdc_sync.core.table.transitions import EndTable, Fail, Migrate, ReadRest, Record, ReleaseTarget, Settled
from tests.history.versions import versions
from tests.table.model import RENAMED, ROUTE, decided, end, history, ranges, state, stretch

THERE = TargetName(namespace="public", name="sales")
NOWHERE: dict[type[Any], Any] = {
    Exists: lambda question: question.name == ROUTE.target,
    Destination: (THERE, False),
    HistoryOf: None,
    RestBefore: Rest(),
}


def at_end(version: Any, answers: dict[type[Any], Any] | None = None, **changes: Any) -> Any:
    """What comes at an end whose version is to be recorded once everything before is written."""
    seen = Seen(recorded=True, stop=version)
    return decided(decide, state(3, **changes), seen, {**NOWHERE, **(answers or {})})


def behind_end(version: Any, answers: dict[type[Any], Any] | None = None, **changes: Any) -> Any:
    """What comes once the end is recorded and the target is there."""
    known = replace(state(3, **changes), history=history(3).extended(version))
    return decided(decide, known, Seen(), {**NOWHERE, **(answers or {})})


@pytest.mark.parametrize("answer", ["drop", "archive"])
def test_a_plan_is_recorded_up_to_the_end_which_waits_until_everything_is_written(answer: Any) -> None:
    ends = end(history(2), answer)
    plan = TablePlan(versions=(ends, versions()[2]), warnings=("w",))
    answers = {PlanOf: plan, RoomFor: (2, None)}
    assert decided(decide, state(2), Seen(), answers) == Record(versions=(), warnings=("w",), stop=ends)


def test_what_was_in_the_topics_before_an_end_is_read_first() -> None:
    rest = Rest(ranges=ranges(5, 9), stretches=(stretch(31, 5),))
    assert at_end(end(history(3), "drop"), {RestBefore: rest}) == ReadRest(ranges=rest.ranges, stretches=rest.stretches)


def test_a_rest_that_cannot_be_read_stops_the_table() -> None:
    stop = Pause(code=Code.UNPROVEN, reason="gone", remedy="snapshot")
    assert at_end(end(history(3), "drop"), {RestBefore: Rest(stop=stop)}) == Settled(state=state(3, stop=stop))


def test_an_end_is_recorded_then_the_target_goes() -> None:
    version = end(history(3), "drop")
    assert at_end(version) == EndTable(end=version)
    known = fold.ended(state(3), version)
    assert known.due == version
    step = decided(decide, known, Seen(), NOWHERE)
    assert step == ReleaseTarget(end=version, into=None, arrival=None)
    gone = fold.released(known, step)
    assert (gone.target.stamped, gone.due, gone.is_gone) == (None, None, True)
    assert gone.next_offset("pg.public.orders", 0) == 5, "what was read is not read again"
    assert gone.progress is not None
    assert gone.progress.truncated is not None
    assert gone.progress.truncated.position == version.position, "rows from before the end never come back"


def test_an_archive_has_a_name_that_the_format_can_hold() -> None:
    route = replace(ROUTE, target=replace(ROUTE.target, name="a:b"), capabilities=HUDI)
    into = behind_end(end(history(3), "archive"), {Exists: False}, route=route).into
    assert into.name.endswith("__dropped_4")
    assert ":" not in into.name


@pytest.mark.parametrize("recorded", [False, True])
def test_a_table_of_the_archives_name_stops_it_before_and_behind_the_record(recorded: bool) -> None:
    version = end(history(3), "archive")
    step = (behind_end if recorded else at_end)(version, {Exists: True})
    assert "cannot be archived as public.orders__dropped_4" in step.state.stop.reason
    assert step.state.stop.at == "pg.message[0]@9"


def test_a_renamed_table_is_recorded_under_its_new_name_and_its_target_follows() -> None:
    version = end(history(3), "rename", RENAMED)
    assert at_end(version) == EndTable(end=version)
    step = behind_end(version)
    assert step.into == THERE
    assert (step.arrival.table, step.arrival.number, step.arrival.position) == (RENAMED, 1, version.position)
    # The arrival was recorded, and the reply lost.
    again = behind_end(version, {HistoryOf: History(table=RENAMED, versions=(step.arrival,))})
    assert again == ReleaseTarget(end=version, into=THERE, arrival=None)


def test_a_renamed_table_is_brought_to_the_columns_of_its_last_version_first() -> None:
    version = end(history(3), "rename", RENAMED)
    step = at_end(version, stamped=2)
    assert isinstance(step, Migrate)
    assert step.history == history(3)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({Destination: (THERE, True)}, "whose rows go to public.sales with those of other tables"),
        ({HistoryOf: History(table=RENAMED, versions=versions(RENAMED)[:1])}, "the two histories cannot be joined"),
        ({Exists: True}, "there is a table of that name"),
    ],
    ids=["shared", "another table before", "taken"],
)
def test_a_target_that_cannot_have_the_new_name_stops_the_table(recorded: bool, answers: Any, said: str) -> None:
    version = end(history(3), "rename", RENAMED)
    step = (behind_end if recorded else at_end)(version, answers)
    assert said in step.state.stop.reason
    assert step.state.stop.remedy


@pytest.mark.parametrize("recorded", [False, True])
def test_a_new_name_that_no_rule_matches_is_an_error_that_is_tried_again(recorded: bool) -> None:
    version = end(history(3), "rename", RENAMED)
    step = (behind_end if recorded else at_end)(version, {Destination: None})
    assert isinstance(step, Fail)
    assert "no rule of tables matches any more; bring the rule back" in str(step.error)


def test_a_target_that_stays_where_it_is_collides_with_nothing() -> None:
    version = end(history(3), "rename", RENAMED)
    step = behind_end(version, {Destination: (ROUTE.target, False), Exists: True})
    assert isinstance(step, ReleaseTarget)
