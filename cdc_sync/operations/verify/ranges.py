"""Which ranges differ, and how they are narrowed down to rows within a bound of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cdc_sync.operations.verify.queries import DIGITS

_FAN = 16
"""One digit more makes so many ranges of one."""


@dataclass(frozen=True, slots=True)
class Sum:
    """What is compared of a range: how many rows it has, and the sum of their digests."""

    rows: int
    digests: int


NOTHING = Sum(0, 0)


@dataclass(frozen=True, slots=True)
class Range:
    """A range that differs; `rows` is what the side has that has more."""

    prefix: str
    rows: int


@dataclass(frozen=True, slots=True)
class Compare:
    """Compare the rows of these ranges one by one."""

    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Narrow:
    """Cut these ranges into smaller ones, which have `digits` digits."""

    prefixes: tuple[str, ...]
    digits: int


Step: TypeAlias = Compare | Narrow


def first_digits(bound: int) -> int:
    """Return into how many ranges, as digits, a whole table is cut; at least one, and never more than `bound`."""
    return max(1, _more_digits(1, bound))


def differing(source: Mapping[str, Sum], target: Mapping[str, Sum]) -> tuple[Range, ...]:
    """Return the ranges in which the two sides differ."""
    found = []
    for prefix in sorted({*source, *target}):
        one, other = source.get(prefix, NOTHING), target.get(prefix, NOTHING)
        if one != other:
            found.append(Range(prefix, max(one.rows, other.rows)))
    return tuple(found)


def steps(ranges: Sequence[Range], bound: int) -> Iterator[Step]:
    """Yield what is to be done about ranges of one length, so that nothing holds more than `bound` rows or sums.

    Every range is in exactly one step. One whose digest has no more digits is one key's rows, and compared as it is.
    """
    if not ranges:
        return
    if sum(item.rows for item in ranges) <= bound or len(ranges[0].prefix) == DIGITS:
        yield Compare(tuple(item.prefix for item in ranges))
        return
    size = max(1, bound // _FAN)
    for start in range(0, len(ranges), size):
        chunk = ranges[start : start + size]
        prefixes = tuple(item.prefix for item in chunk)
        if sum(item.rows for item in chunk) <= bound:
            yield Compare(prefixes)
        else:
            digits = len(prefixes[0]) + max(1, _more_digits(len(chunk), bound))
            yield Narrow(prefixes, min(DIGITS, digits))


def _more_digits(ranges: int, bound: int) -> int:
    """Return how many more digits these ranges can have with at most `bound` ranges in the end."""
    digits = 0
    while ranges * _FAN ** (digits + 1) <= bound:
        digits += 1
    return digits
