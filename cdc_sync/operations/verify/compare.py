"""Finds the rows that differ between two sides, holding no more than a bound of rows or sums of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from typing_extensions import assert_never

from cdc_sync.operations.verify.ranges import Compare, Narrow, Range, Sum, differing, first_digits, steps
from cdc_sync.operations.verify.sides import Side

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Row:
    """The rows of one key on both sides: how many of each row digest."""

    source: Counter[str]
    target: Counter[str]


@dataclass(slots=True, kw_only=True)
class Found:
    """What a comparison found, so far.

    Attributes:
        source_rows, target_rows: of the whole table; 0 where only ranges were asked for.
        ranges: how many were compared at first.
        ranges_differing: how many of them differ.
        rows: the keys whose rows differ.
        left: ranges that differ and were not narrowed down, because `rows` is full.
    """

    source_rows: int = 0
    target_rows: int = 0
    ranges: int = 0
    ranges_differing: int = 0
    rows: dict[str, Row] = field(default_factory=dict)
    left: list[Range] = field(default_factory=list)


def compare(
    source: Side,
    target: Side,
    bound: int,
    *,
    within: Collection[str] = (),
    room: int | None = None,
    say: Callable[..., None] = lambda *_, **__: None,
) -> Found:
    """Compare two sides.

    Args:
        bound: how many sums or digests of rows of one side are held at most.
        within: the ranges to look at; () for the whole table.
        room: how many keys may be found; `bound` if None. One step may find some more.
        say: is told how it goes on.
    """
    room = bound if room is None else room
    found = Found()
    digits = len(next(iter(within))) if within else first_digits(bound)
    ours, theirs = both(lambda side: side.sums(digits, within), source, target)
    found.source_rows = sum(item.rows for item in ours.values())
    found.target_rows = sum(item.rows for item in theirs.values())
    found.ranges = len({*ours, *theirs})
    open_ = [differing(ours, theirs)]
    found.ranges_differing = len(open_[0])
    say("ranges compared", ranges=found.ranges, differing=found.ranges_differing, rows=found.source_rows)
    while open_:
        ranges = open_.pop()
        if len(found.rows) >= room:
            found.left += ranges
            continue
        for step in steps(ranges, bound):
            if len(found.rows) >= room:
                known = {*step.prefixes}
                found.left += [item for item in ranges if item.prefix in known]
                continue
            match step:
                case Compare(prefixes=prefixes):
                    found.rows |= rows_of(source, target, prefixes)
                    say("rows compared", ranges=len(prefixes), differing=len(found.rows))
                case Narrow(prefixes=prefixes, digits=digits):
                    narrow = _sums_of(digits, prefixes)
                    ours, theirs = both(narrow, source, target)
                    open_.append(differing(ours, theirs))
                    say("ranges narrowed down", ranges=len(prefixes), differing=len(open_[-1]))
                case _:
                    assert_never(step)
    return found


def rows_of(source: Side, target: Side, within: Collection[str]) -> dict[str, Row]:
    """Return the keys, in some ranges or among some keys, whose rows differ."""
    ours, theirs = both(lambda side: side.digests(within), source, target)
    return rows_that_differ(ours, theirs)


def rows_that_differ(source: Mapping[str, Counter[str]], target: Mapping[str, Counter[str]]) -> dict[str, Row]:
    """Return the keys whose rows are not the same, copies counted."""
    found = {}
    for key in {*source, *target}:
        row = Row(source.get(key, Counter()), target.get(key, Counter()))
        if row.source != row.target:
            found[key] = row
    return found


def both(ask: Callable[[Side], _Answer], source: Side, target: Side) -> tuple[_Answer, _Answer]:
    """Ask both sides the same at the same time."""
    with ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.submit(ask, source), pool.submit(ask, target)
        return ours.result(), theirs.result()


def _sums_of(digits: int, prefixes: Collection[str]) -> Callable[[Side], dict[str, Sum]]:
    return lambda side: side.sums(digits, prefixes)
