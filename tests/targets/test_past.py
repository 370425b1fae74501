"""What commits say of a table's past, told without a table."""

from __future__ import annotations

import pytest

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.errors import UnfitTarget
from cdc_sync.targets.common.commits import Beginning, Entry, progress_of, states
from cdc_sync.targets.protocol import Commit

pytestmark = pytest.mark.spark

NAME = TargetName(namespace="db", name="t")


def progress(offset: int, version: int = 1) -> Progress:
    return Progress(version=version, offsets={"t": {0: offset}})


def commit(number: int, offset: int | None = None, version: int = 1) -> Entry:
    return Entry(reference=str(number), marker=None if offset is None else progress(offset, version).to_text())


def test_other_people_s_commits_hold_what_the_marker_before_them_says() -> None:
    lineage: list[Entry | Beginning] = [commit(5), commit(4, 20), commit(3), commit(2, 10), commit(1), Beginning()]

    assert progress_of(NAME, iter(lineage)) == progress(20)
    assert states(iter(lineage), 9) == (
        Commit(progress=progress(20), reference="5"),
        Commit(progress=progress(10), reference="3"),
    )


def test_commits_that_only_change_columns_are_one_state() -> None:
    lineage: list[Entry | Beginning] = [
        commit(4, 20, version=3),
        commit(3, 20, version=2),
        commit(2, 20),
        commit(1, 10),
        Beginning(),
    ]

    assert [found.reference for found in states(iter(lineage), 9)] == ["4", "1", ""]


def test_a_table_that_was_never_written_holds_nothing() -> None:
    assert progress_of(NAME, iter([Beginning()])) is None
    assert states(iter([Beginning()]), 9) == (Commit(progress=None, reference=""),)


def test_no_more_states_are_told_than_asked_for() -> None:
    lineage: list[Entry | Beginning] = [commit(3, 30), commit(2, 20), commit(1, 10), Beginning()]

    assert [found.reference for found in states(iter(lineage), 2)] == ["3", "2"]
    assert len(states(iter(lineage), 3)) == 3


def test_what_a_table_holds_is_never_guessed_when_its_commits_have_expired() -> None:
    with pytest.raises(UnfitTarget, match=r"Cannot tell what db\.t holds"):
        progress_of(NAME, iter([commit(9), commit(8)]))
    assert states(iter([commit(9, 30), commit(8)]), 9) == (Commit(progress=progress(30), reference="9"),)
