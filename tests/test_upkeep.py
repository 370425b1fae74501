"""What maintenance a table needs, decided from figures; and how it is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.migration.maintenance import Chores, Holdings, Maintained, Upkeep, chores
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.maintenance_report import PipelineMaintained, TableMaintained, figures, lines

HOUR = 3_600_000
NOW = 1000 * HOUR
UPKEEP = Upkeep(
    keep_for=timedelta(hours=100),
    keep_at_least=2,
    target_file_size=1000,
    compact_from_files=5,
    orphans_older_than=timedelta(hours=72),
)
TABLE = TableId(database="d", schema="s", table="t")


def due(**holdings: object) -> Chores:
    return chores(Holdings(**holdings), UPKEEP, NOW)  # type: ignore[arg-type]


def made(*hours_ago: int) -> tuple[int, ...]:
    return tuple(NOW - hours * HOUR for hours in hours_ago)


def test_a_table_that_was_just_maintained_needs_nothing() -> None:
    found = due(files=9, small_files=1, change_files=1, rows=100, commits=made(0, 1, 99), marker_at=NOW)
    assert not found.any


def test_few_small_files_are_left_alone_and_many_are_joined() -> None:
    assert [due(small_files=number).compact for number in (4, 5)] == [False, True]
    assert UPKEEP.small == 750


def test_files_are_written_anew_when_a_third_of_their_rows_is_deleted() -> None:
    assert [due(rows=100, deleted_rows=number).apply_deletes for number in (0, 29, 30)] == [False, False, True]
    assert not due(rows=0, deleted_rows=0).apply_deletes


def test_files_of_changes_and_lists_of_files_are_merged_when_they_are_many() -> None:
    assert [due(change_files=number).merge_changes for number in (4, 5)] == [False, True]
    assert [due(manifests=number).merge_manifests for number in (19, 20)] == [False, True]


def test_states_expire_by_their_age() -> None:
    found = due(commits=made(1, 50, 150, 200), marker_at=NOW)
    assert (found.expire_before, found.expired) == (NOW - 100 * HOUR, 2)


def test_the_newest_states_are_kept_however_old_they_are() -> None:
    assert due(commits=made(150, 160, 170), marker_at=NOW).expired == 1
    assert due(commits=made(150, 160), marker_at=NOW).expired == 0
    assert due(commits=made(150), marker_at=NOW).expired == 0


def test_the_commit_that_says_what_the_table_holds_never_expires() -> None:
    """Others have committed since, long ago."""
    commits = made(110, 120, 130, 140)
    assert due(commits=commits, marker_at=commits[2]).expire_before == commits[2]
    assert due(commits=commits, marker_at=None).expire_before is None


def test_what_a_rollback_needs_never_expires() -> None:
    commits = made(1, 110, 120, 130)
    assert due(commits=commits, marker_at=NOW, needed_since=commits[2]).expired == 1


def test_a_marker_is_said_again_when_half_the_time_is_gone_that_it_lasts() -> None:
    month = timedelta(days=30)
    assert not due(marker_at=NOW - 15 * 24 * HOUR, marker_lasts=month).carry_marker
    assert due(marker_at=NOW - 15 * 24 * HOUR - 1, marker_lasts=month).carry_marker
    assert not due(marker_at=0, marker_lasts=None).carry_marker


@given(
    commits=st.lists(st.integers(0, NOW), max_size=20, unique=True),
    marker=st.integers(0, 19),
    keep=st.integers(1, 25),
    hours=st.integers(-1, 1000),
)
def test_whatever_is_wanted_the_newest_marker_and_state_stay(
    commits: list[int], marker: int, keep: int, hours: int
) -> None:
    commits.sort(reverse=True)
    marker_at = commits[marker % len(commits)] if commits else None
    upkeep = replace(UPKEEP, keep_at_least=keep, keep_for=timedelta(hours=hours))
    found = chores(Holdings(commits=tuple(commits), marker_at=marker_at), upkeep, NOW)
    left = [at for at in commits if found.expire_before is None or at >= found.expire_before]
    assert left[:1] == commits[:1]
    assert len(left) == len(commits) - found.expired >= min(keep, len(commits))
    assert marker_at is None or marker_at in left


def told(**more: object) -> list[str]:
    table = TableMaintained(table=TABLE, target="s.t", **more)  # type: ignore[arg-type]
    return list(lines(PipelineMaintained(pipeline="p", tables=(table,))))


def test_each_table_has_one_line() -> None:
    done = Maintained(files_rewritten=12, bytes_rewritten=3_400_000, files_written=1, expired=30, files_removed=80)
    assert told(outcome="maintained", done=done, seconds=2.06) == [
        "d.s.t -> s.t: 12 files of 3.4 MB became 1, 30 states expired, 80 files removed (2.1 s)"
    ]
    assert told(outcome="maintained", done=Maintained()) == ["d.s.t -> s.t: nothing to do (0.0 s)"]
    assert told(outcome="failed", problem="Cannot maintain s.t: x") == ["d.s.t -> s.t: failed: Cannot maintain s.t: x"]
    assert told(outcome="left_alone", problem="why") == ["d.s.t -> s.t: left alone: why"]


def test_a_dry_run_tells_what_is_due() -> None:
    holdings = Holdings(small_files=7, small_size=950, change_files=6, commits=made(1, 2, 300), marker_at=NOW)
    found = chores(holdings, UPKEEP, NOW)
    assert told(outcome="due", holdings=holdings, chores=found) == [
        "d.s.t -> s.t: would join 7 small files of 950 bytes, would merge 6 files of changes, "
        "would expire 1 of 3 states"
    ]


def test_the_exit_code_tells_the_worst() -> None:
    def code(*outcomes: str) -> int:
        tables = [TableMaintained(table=TABLE, target="s.t", outcome=outcome) for outcome in outcomes]  # type: ignore[arg-type]
        return PipelineMaintained(pipeline="p", tables=tuple(tables)).exit_code

    assert code("maintained", "failed", "left_alone") == 1
    assert code("maintained", "left_alone") == 4
    assert code("due", "nothing_due") == 2
    assert code("maintained") == code("nothing_due") == code() == 0


def test_everything_that_was_done_is_told_and_how_it_ended() -> None:
    done = Maintained(change_files=3, manifests=4, marker_carried=True)
    assert told(outcome="maintained", done=done) == [
        "d.s.t -> s.t: 3 files of changes merged, 4 lists of files merged, progress said once more (0.0 s)"
    ]
    assert figures(done) == {"change_files": 3, "manifests": 4, "marker_carried": True}
    assert told(outcome="nothing_due") == ["d.s.t -> s.t: nothing to do"]
    assert list(lines(PipelineMaintained(pipeline="p", tables=()))) == ["Pipeline 'p' has seen no table yet."]


def test_everything_that_is_due_is_told() -> None:
    held = Holdings(
        files=5, size=5 * 10**9, small_files=2, small_size=2000, change_files=3, manifests=4, commits=made(1)
    )
    due = Chores(
        compact=True,
        apply_deletes=True,
        merge_changes=True,
        merge_manifests=True,
        expire_before=NOW,
        expired=1,
        orphans_before=NOW,
        carry_marker=True,
        upkeep=UPKEEP,
    )
    assert told(outcome="due", holdings=held, chores=due) == [
        "d.s.t -> s.t: would join 2 small files of 2.0 KB, would write 5 files of 5.0 GB anew without deleted rows, "
        "would merge 3 files of changes, would merge 4 lists of files, would expire 1 of 1 states, "
        "would say once more what the table holds"
    ]
