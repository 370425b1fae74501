"""When a table that was made anew may empty its target."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.planning.observation import TablePlan
from cdc_sync.core.planning.plan import in_time
from tests.plan.tables import Table


def _plan(created: int) -> TablePlan:
    """Return a plan of two versions, the second of which begins with another table, created at a place in the log."""
    table = Table()
    table.drop_column("a")
    table.row()
    first, second = table.plan().versions
    return TablePlan(versions=(first, replace(second, made_anew=_at(created))))


def _at(lsn: int) -> SourcePosition:
    return SourcePosition(kind="postgresql", parts=(lsn, lsn))


def test_what_was_written_before_it_was_created_goes() -> None:
    plan = _plan(100)

    assert in_time(plan, None) is plan
    assert in_time(plan, _at(99)) is plan


def test_what_was_written_behind_it_stops_the_table() -> None:
    plan = _plan(100)
    stopped = in_time(plan, _at(100))

    assert stopped.versions == plan.versions[:1]
    assert stopped.refusal is not None
    assert stopped.refusal.kafka == plan.versions[1].kafka
    assert "told too late" in stopped.refusal.why.reason


def test_what_no_table_was_made_anew_for_is_never_too_late() -> None:
    plan = TablePlan(versions=_plan(100).versions[:1])

    assert in_time(plan, _at(1_000)) is plan
