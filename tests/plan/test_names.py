"""Names that a target cannot hold beside each other stop the table; all others are no matter for the plan."""

from __future__ import annotations

import pytest

from cdc_sync.core.planning.observation import TablePlan
from cdc_sync.testing import TEXT, column
from tests.plan.tables import Table


def with_columns(*names: str) -> TablePlan:
    table = Table()
    for name in names:
        table.add_column(column(name, TEXT))
    table.row()
    return table.plan()


@pytest.mark.parametrize("names", [("_file",), ("a b", "a.b", "`; DROP TABLE x; --"), ("Name", "name"), ("\u202e",)])
def test_hostile_names_are_recorded_as_the_source_has_them(names: tuple[str, ...]) -> None:
    plan = with_columns(*names)
    assert plan.refusal is None
    assert [item.name for item in plan.versions[-1].schema.columns][-len(names) :] == list(names)


def test_two_names_that_are_one_in_the_target_are_refused() -> None:
    plan = with_columns("_file", "_x005F_file")
    assert plan.refusal is not None
    assert plan.refusal.why.reason == "the names '_file' and '_x005F_file' are both '_x005F_file' in the target"
    assert plan.refusal.why.remedy == "rename one of them at the source"


def test_a_reason_about_thousands_of_columns_can_still_be_read() -> None:
    table = Table()
    for number in range(500):
        table.add_column(column(f"column_{number}", TEXT))
    table.row()
    for number in reversed(range(500)):
        table.drop_column(f"column_{number}")
    for number in reversed(range(500)):
        table.add_column(column(f"column_{number}", TEXT))
    table.row()
    refusal = table.plan().refusal
    assert refusal is not None
    assert len(refusal.why.reason) < 5_000
