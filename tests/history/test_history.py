"""A chain of versions that cannot be broken without being noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.schema.changes import ChangePrimaryKey
from cdc_sync.errors import HistoryError
from tests.history.versions import ORDERS, at, versions


def test_the_newest_version_is_the_head() -> None:
    history = History(table=ORDERS, versions=versions())
    assert history.head.number == 3
    assert history.version(2) is history.versions[1]


@pytest.mark.parametrize("number", [0, 4, -1])
def test_a_version_that_is_not_recorded_cannot_be_had(number: int) -> None:
    with pytest.raises(HistoryError, match=f"version {number} of shop.public.orders: versions 1 to 3 are recorded"):
        History(table=ORDERS, versions=versions()).version(number)


@pytest.mark.parametrize(("lsn", "number"), [(9, None), (10, 1), (19, 1), (20, 2), (29, 2), (30, 3), (99, 3)])
def test_the_version_in_effect_is_the_last_one_at_or_before_a_position(lsn: int, number: int | None) -> None:
    found = History(table=ORDERS, versions=versions()).at(at(lsn))
    assert (found.number if found else None) == number


def test_of_versions_at_one_position_the_last_is_in_effect() -> None:
    nowhere = SourcePosition(kind="none", parts=())
    chain = tuple(replace(version, position=nowhere) for version in versions())
    assert History(table=ORDERS, versions=chain).at(nowhere) == chain[-1]


def test_a_history_has_a_version() -> None:
    with pytest.raises(HistoryError, match="no version"):
        History(table=ORDERS, versions=())


def test_a_gap_is_noticed() -> None:
    first, _, third = versions()
    with pytest.raises(HistoryError, match=r"version 3 of shop\.public\.orders stands at place 2"):
        History(table=ORDERS, versions=(first, third))


def test_a_version_of_another_table_is_noticed() -> None:
    with pytest.raises(HistoryError, match=r"version 1 of shop\.public\.orders stands"):
        History(table=replace(ORDERS, table="others"), versions=versions())


def test_positions_out_of_order_are_noticed() -> None:
    first, second, _ = versions()
    with pytest.raises(HistoryError, match="version 2 lies before version 1"):
        History(table=ORDERS, versions=(first, replace(second, position=at(5))))


def test_changes_that_lead_elsewhere_are_noticed() -> None:
    first, second, _ = versions()
    with pytest.raises(HistoryError, match="changes of version 2 do not lead to it"):
        History(table=ORDERS, versions=(first, replace(second, changes=())))
    with pytest.raises(HistoryError, match="changes of version 2 do not lead to it"):
        History(table=ORDERS, versions=(first, replace(second, changes=(ChangePrimaryKey(old=(9,), new=(1,)),))))
