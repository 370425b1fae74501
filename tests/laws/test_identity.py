"""What is decided about columns is what happened, whatever the evidence; `bench/identity.py` tries many more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from cdc_sync.core.lineage.catalogue import Moment
from tests.laws import identity_faults, identity_matrix
from tests.laws.identity_course import Course
from tests.laws.identity_matrix import EVIDENCE, SAME_AS, SOURCES, STATED, Matrix
from tests.laws.identity_postgres_themes import postgres_course

HISTORIES = 80
FAULTY = 10
TELLING = [("Postgres", "message"), ("Postgres", "all"), ("MySQL", "DDL")]
"""Where the source tells of changes as they happen."""
RISING = ("none", "position", "catalogue without times", "catalogue", STATED, "message")
AT_LEAST = 0.95
"""99 % are found of many; of few, a table that is read by a snapshot again before any row shows what was done to it,
so that statements before and after it do not join, takes more than its share."""


@pytest.fixture(scope="module")
def cells() -> Matrix:
    return identity_matrix.matrix(HISTORIES, seed=5_000_000)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("evidence", EVIDENCE)
def test_no_column_takes_the_place_of_another_by_a_rename_that_never_was(
    cells: Matrix, source: str, evidence: str
) -> None:
    counts = cells[source, evidence].counts
    assert counts["renames"] > HISTORIES
    assert counts["wrong"] == 0
    assert counts["emptied"] == 0, "no table is taken for another one under its name"


@pytest.mark.parametrize(("source", "evidence"), TELLING)
def test_a_source_that_tells_of_changes_leaves_no_name_to_be_trusted_wrongly(
    cells: Matrix, source: str, evidence: str
) -> None:
    assert cells[source, evidence].counts["wrong beside a reused name"] == 0


@pytest.mark.parametrize(("source", "evidence"), TELLING)
def test_a_source_that_tells_of_changes_has_its_renames_found(cells: Matrix, source: str, evidence: str) -> None:
    assert cells[source, evidence].share >= AT_LEAST


def test_more_evidence_finds_more(cells: Matrix) -> None:
    shares = [cells["Postgres", kind].share for kind in RISING]
    assert shares == sorted(shares)
    assert shares[1] > 0.3
    assert shares[3] > 0.9


def test_rows_of_the_transaction_that_gave_the_table_its_name_are_known_by_its_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    courses = [postgres_course(seed) for seed in (1334, 1594, 1621, 1710, 2334, 2349, 2515, 2536, 2735)]
    assert [counts["renames"] - counts["found"] for counts in stated(courses)] == [0] * len(courses)
    monkeypatch.setattr(Moment, "own_command", lambda *_: None)
    assert all(counts["found"] < counts["renames"] for counts in stated(courses))


def stated(courses: Sequence[Course]) -> list[Counter[str]]:
    return [identity_matrix.planned(course, STATED) for course in courses]


@pytest.mark.parametrize("source", SOURCES)
def test_late_events_of_an_older_schema_evolve_nothing(cells: Matrix, source: str) -> None:
    assert not any(cells[source, kind].counts["late"] for kind in EVIDENCE)


@pytest.mark.parametrize("source", SOURCES)
def test_faulty_evidence_makes_no_rename_that_never_was_unless_it_says_so_in_the_end(source: str) -> None:
    for fault, counts in identity_faults.counted(source, range(6_000_000, 6_000_000 + FAULTY)).items():
        assert counts["renames"] > FAULTY
        assert counts["wrong"] == counts["wrong, told afterwards"], fault
        if fault in (identity_faults.BASELINE_LOST, identity_faults.RETENTION):
            assert counts["found"] == counts["renames"], "each message tells enough by itself"


@pytest.mark.parametrize("source", SOURCES)
def test_the_generated_histories_reach_what_the_laws_are_about(source: str) -> None:
    """Unless all kinds of changes occur, the laws above say little."""
    courses = [SOURCES[source](seed) for seed in range(400)]
    themes = Counter(theme for course in courses for theme in set(course.themes))
    wanted = {"Postgres": 16, "MySQL": 23}[source]
    assert len(themes) >= wanted, themes
    assert min(count for theme, count in themes.items() if theme != "said oddly") > 5, themes
    assert sum(len(course.rows) for course in courses) > 5 * len(courses)


def test_cells_without_evidence_of_their_own_are_named(cells: Matrix) -> None:
    assert all(cells[source, kind].counts == cells[source, same].counts for (source, kind), same in SAME_AS.items())
