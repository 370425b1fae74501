"""A target is divided as configured between two batches, and is never held up by that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.migration.capabilities import HUDI, PARQUET
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.stops import Pause
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning
from cdc_sync.core.table import fold
from cdc_sync.core.table.dividing import divide, is_to_be_divided
from cdc_sync.core.table.questions import TargetNow
from cdc_sync.core.table.seen import Seen
from cdc_sync.core.table.state import Failure, Wait
from cdc_sync.core.table.transitions import Become, DivideTarget, Settled
from tests.history.versions import ORDERS
from tests.table.model import ROUTE, decided, state

BY_ID = Partitioning.parse(("bucket(4, id)",))
FOUND = TargetState(version=3, progress=None, rows=10, size=100)


def wanting(wanted: Any = BY_ID, **route: Any) -> Any:
    return state(route=replace(ROUTE, partition_by=wanted, **route))


def course(known: Any, found: TargetState | None = FOUND) -> list[Any]:
    """Return the steps until nothing is left to do."""
    steps: list[Any] = []
    seen = Seen()
    while True:
        step = decided(divide, known, seen, {TargetNow: found})
        steps.append(step)
        match step:
            case Settled():
                return steps
            case Become(state=known):
                pass
            case DivideTarget(wanted=wanted):
                known, seen = fold.divided(known, wanted), replace(seen, over=True)


def test_a_target_that_is_not_divided_as_configured_is_and_then_no_more() -> None:
    became, done, last = course(wanting())
    assert became.state.requests.is_dividing
    assert isinstance(done, DivideTarget)
    assert last.state.target.partition_by == str(BY_ID)
    assert not last.state.requests.is_dividing
    assert not is_to_be_divided(last.state)


def test_an_attempt_that_failed_is_ended_where_the_reply_alone_was_lost() -> None:
    began = replace(wanting(), failure=Failure(text="lost"), requests=replace(state().requests, is_dividing=True))
    (last,) = course(began, replace(FOUND, partitioning=BY_ID, partition_by=str(BY_ID)))
    assert last.state.failure is None
    assert last.state.target.partitioning == BY_ID


@pytest.mark.parametrize(
    "known",
    [
        state(),
        wanting(None),
        replace(wanting(), stop=Pause(code=Code.UNPROVEN, reason="r", remedy="m")),
        replace(wanting(), wait=Wait(text="w")),
        replace(wanting(), failure=Failure(text="f")),
        replace(wanting(), history=None),
        replace(wanting(), target=replace(state().target, stamped=2)),
        replace(wanting(), target=replace(state().target, partition_by=str(BY_ID))),
    ],
)
def test_only_a_sound_target_with_the_heads_columns_is_divided(known: Any) -> None:
    assert course(known) == [Settled(state=known)]


def test_a_column_that_the_table_lacks_leaves_the_target_as_it_is() -> None:
    (step,) = course(wanting(Partitioning.parse(("bucket(4, nothing)",))))
    assert "no column 'nothing'; the target stays not partitioned" in step.state.warnings[0]
    divided = replace(wanting(), target=replace(state().target, partitioning=BY_ID))
    divided = replace(divided, route=replace(divided.route, partition_by=Partitioning.parse(("bucket(4, nothing)",))))
    (step,) = course(divided)
    assert f"the target stays partitioned by {BY_ID}" in step.state.warnings[0]


def test_a_format_that_partitions_for_good_is_left_as_it_is() -> None:
    (step,) = course(wanting(Partitioning.parse(("id",)), capabilities=HUDI))
    assert "partition_by says id; the target stays not partitioned" in step.state.warnings[0]


def test_a_target_that_is_too_large_is_asked_for_once() -> None:
    known = wanting(Partitioning.parse(("id",)), capabilities=PARQUET)
    known = replace(known, route=replace(known.route, policy=replace(known.route.policy, rewrite_limit=99)))
    (step,) = course(known)
    assert "rewrite_limit is 99" in step.state.warnings[0]
    (again,) = course(step.state, replace(FOUND, size=1))
    assert again.state.warnings == step.state.warnings, "the answer takes another start"


def test_a_target_that_is_not_there_any_more_is_not_divided() -> None:
    known = wanting()
    *_, done, last = course(known, None)
    assert isinstance(done, DivideTarget)
    assert done.steps.steps[0].before == UNPARTITIONED  # type: ignore[union-attr]
    assert last.state.table == ORDERS
