"""Ranges are narrowed down to the rows that differ, and never more than the bound is held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from hashlib import md5
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.operations.verify.compare import Row, compare
from cdc_sync.operations.verify.ranges import Compare, Narrow, Range, Sum, differing, first_digits, steps
from cdc_sync.operations.verify.settle import Clock, settle
from cdc_sync.operations.verify.sides import Side


def digest(text: str) -> str:
    return md5(text.encode()).hexdigest()


@dataclass
class Fake:
    """A side whose rows are (key, value) pairs; keeps how much was asked of it at once.

    Attributes:
        later: what the rows are after each renewal, the last one for good.
    """

    rows: list[tuple[str, str]]
    later: list[list[tuple[str, str]]] = field(default_factory=list)
    most: int = 0
    scans: int = 0

    def renew(self) -> None:
        if self.later:
            self.rows = self.later.pop(0)

    def sums(self, digits: int, within: Collection[str] = ()) -> dict[str, Sum]:
        found: dict[str, Sum] = {}
        for key, row in self._digests(within):
            before = found.get(key[:digits], Sum(0, 0))
            found[key[:digits]] = Sum(before.rows + 1, before.digests + int(row[:15], 16))
        self.most = max(self.most, len(found))
        return found

    def digests(self, within: Collection[str]) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = {}
        for key, row in self._digests(within):
            found.setdefault(key, Counter())[row] += 1
        self.most = max(self.most, len(found))
        return found

    def _digests(self, within: Collection[str]) -> Iterable[tuple[str, str]]:
        self.scans += 1
        length = len(next(iter(within), ""))
        for key, value in self.rows:
            if not within or digest(key)[:length] in within:
                yield digest(key), digest(f"{key}={value}")


def side(fake: Fake) -> Side:
    return cast(Side, fake)


def fakes(count: int, *differences: tuple[int, str | None]) -> tuple[Fake, Fake]:
    """Return two sides of `count` rows; the target has other values at some places, or, where None, no row."""
    rows = [(str(number), "v") for number in range(count)]
    other = {str(number): value for number, value in differences}
    changed = [(key, other.get(key, value)) for key, value in rows]
    return Fake(rows), Fake([(key, value) for key, value in changed if value is not None])


def test_as_many_ranges_at_first_as_the_bound_allows() -> None:
    assert [first_digits(bound) for bound in (1, 16, 255, 256, 20_000, 65_536)] == [1, 1, 1, 2, 3, 4]


def test_ranges_differ_by_count_or_by_sum() -> None:
    assert differing({"a": Sum(2, 5), "b": Sum(1, 1)}, {"a": Sum(2, 5), "b": Sum(1, 2), "c": Sum(3, 0)}) == (
        Range("b", 1),
        Range("c", 3),
    )


@given(
    st.lists(st.integers(1, 5000), max_size=300),
    st.integers(256, 5000),
    st.integers(1, 32),
)
def test_every_range_is_in_one_step_and_no_step_is_beyond_the_bound(rows: list[int], bound: int, length: int) -> None:
    ranges = [Range(f"{number:032x}"[-length:].rjust(length, "0"), size) for number, size in enumerate(rows)]
    sizes = {item.prefix: item.rows for item in ranges}
    seen: list[str] = []
    for step in steps(ranges, bound):
        seen += step.prefixes
        match step:
            case Compare(prefixes=prefixes):
                assert sum(sizes[prefix] for prefix in prefixes) <= bound or length == 32
            case Narrow(prefixes=prefixes, digits=digits):
                assert length < digits <= 32
                assert len(prefixes) * 16 ** (digits - length) <= max(bound, 16)
    assert seen == [item.prefix for item in ranges]


def test_the_rows_that_differ_are_found_and_no_others() -> None:
    ours, theirs = fakes(30_000, (7, "other"), (8, None), (29_999, ""))
    ours.rows.append(("new", "v"))
    found = compare(side(ours), side(theirs), 500)
    assert set(found.rows) == {digest(key) for key in ("7", "8", "29999", "new")}
    assert found.rows[digest("8")] == Row(Counter({digest("8=v"): 1}), Counter())
    assert (found.source_rows, found.target_rows, found.left) == (30_001, 29_999, [])
    assert max(ours.most, theirs.most) <= 500
    assert ours.scans <= 5


def test_equal_sides_are_asked_once() -> None:
    ours, theirs = fakes(3000)
    found = compare(side(ours), side(theirs), 500)
    assert (found.rows, found.ranges_differing, ours.scans, theirs.scans) == ({}, 0, 1, 1)


def test_a_row_that_is_there_twice_is_found() -> None:
    ours, theirs = fakes(3000)
    theirs.rows.append(("5", "v"))
    assert compare(side(ours), side(theirs), 300).rows == {
        digest("5"): Row(Counter({digest("5=v"): 1}), Counter({digest("5=v"): 2}))
    }


def test_narrowing_ends_when_as_many_rows_as_are_held_differ() -> None:
    ours, theirs = fakes(20_000, *((number, "other") for number in range(20_000)))
    found = compare(side(ours), side(theirs), 256)
    assert 256 <= len(found.rows) < 512
    # Every row is either found or in a range that is left.
    assert len(found.rows) + sum(item.rows for item in found.left) == 20_000
    assert max(ours.most, theirs.most) <= 256


class Time:
    """Seconds that pass only by sleeping."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.seconds, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds


def settled(ours: Fake, theirs: Fake, seconds: float = 30) -> tuple[set[str], set[str], float]:
    """Return what differs for good, what has not settled, and how long it took."""
    time = Time()
    found = compare(side(ours), side(theirs), 256)
    outcome = settle(side(ours), side(theirs), found, bound=256, seconds=seconds, clock=time.clock)
    return set(outcome.rows) - outcome.unsettled, set(outcome.unsettled), time.seconds


def test_a_row_on_its_way_is_no_difference() -> None:
    ours, theirs = fakes(10, (3, "old"))
    theirs.later = [theirs.rows, ours.rows]
    different, unsettled, seconds = settled(ours, theirs)
    assert (different, unsettled) == (set(), set())
    assert seconds < 5, "it ends when all is equal"


def test_a_row_that_stays_different_is_one() -> None:
    assert settled(*fakes(10, (3, "old"))) == ({digest("3")}, set(), 30)


def test_without_waiting_what_was_found_counts() -> None:
    assert settled(*fakes(10, (3, "old")), seconds=0) == ({digest("3")}, set(), 0)


def test_a_row_whose_source_changes_meanwhile_is_unsettled() -> None:
    ours, theirs = fakes(10, (3, "old"), (4, "wrong"))
    ours.later = [[*ours.rows[:3], ("3", "newer"), *ours.rows[4:]]]
    assert settled(ours, theirs)[:2] == ({digest("4")}, {digest("3")})


@pytest.mark.parametrize("late", [True, False])
def test_ranges_that_are_left_are_looked_at_when_there_is_room(late: bool) -> None:
    ours, theirs = fakes(2000, *((number, "other") for number in range(2000)))
    if late:
        theirs.later = [theirs.rows, ours.rows]
    time = Time()
    found = compare(side(ours), side(theirs), 256)
    assert found.left
    outcome = settle(side(ours), side(theirs), found, bound=256, seconds=30, clock=time.clock)
    assert (not outcome.rows) is late
    assert (not found.left) is late
