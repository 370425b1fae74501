"""Records that a table must not pass: where ranges end before them, and what each stop asks of the operator."""

from __future__ import annotations

import pytest

from cdc_sync.core.model.offsets import OffsetRange, Place
from cdc_sync.core.planning import stops
from cdc_sync.core.planning.problems import AMBIGUOUS_NULL, KEY_IS_FALLBACK, MALFORMED, NO_IMAGE, PAUSING, Trouble
from cdc_sync.core.planning.stops import Pause

RANGES = tuple(OffsetRange(topic="t", partition=place, start=2, end=9) for place in range(2))


def trouble(problem: str, partition: int, offset: int) -> Trouble:
    return Trouble(partition=partition, problem=problem, offsets=(offset,))


def test_ranges_end_before_the_first_record_of_each_partition() -> None:
    found, stop = stops.cut_at_stops(RANGES, [trouble(NO_IMAGE, 1, 5), trouble(KEY_IS_FALLBACK, 1, 4)])
    assert [(item.start, item.end) for item in found] == [(2, 9), (2, 4)]
    assert stop is not None
    assert stop.at == "t[1]@4"
    assert "a delete names the key 0" in stop.reason


def test_records_that_are_set_aside_stop_nothing() -> None:
    assert stops.cut_at_stops(RANGES, [trouble(MALFORMED, 0, 3)]) == (RANGES, None)


def test_a_record_at_the_beginning_leaves_nothing_of_its_partition() -> None:
    found = stops.before_places(RANGES, [Place(partition=0, offset=2)])
    assert [item.partition for item in found] == [1]


@pytest.mark.parametrize("problem", PAUSING)
def test_every_problem_that_stops_says_why_and_what_to_do(problem: str) -> None:
    _, stop = stops.cut_at_stops(RANGES, [trouble(problem, 0, 3)])
    assert stop is not None
    assert stop.reason
    assert stop.remedy
    assert problem in (KEY_IS_FALLBACK, NO_IMAGE, AMBIGUOUS_NULL)


@pytest.mark.parametrize(
    ("stop", "at"),
    [
        (stops.missing_row(RANGES), "t[0]@2"),
        (stops.missing_row(RANGES, Place(partition=1, offset=4)), "t[1]@4"),
        (stops.made_up_key(RANGES, Place(partition=1, offset=4)), "t[1]@4"),
        (stops.unknown_value(RANGES), "t[0]@2"),
        (stops.unsent_values(RANGES, "tags"), "t[0]@2"),
        (stops.unlinked_create(RANGES, Place(partition=1, offset=4)), "t[1]@4"),
    ],
)
def test_a_stop_names_the_record_it_stands_before(stop: Pause, at: str) -> None:
    assert stop.at == at
    assert stop.remedy
