"""What may have happened to columns where nothing is proven, in words, for the operator who has to say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

LIMIT = 10


def dropped_or_renamed(gone: Sequence[str], came: Sequence[str]) -> tuple[str, ...]:
    """Explain fewer columns than before between two others: some were dropped, the rest renamed in their order."""
    kept = combinations(range(len(gone)), len(came))
    return tuple(islice((_sentence(gone, came, choice) for choice in kept), LIMIT))


def renamed_or_added(gone: Sequence[str], came: Sequence[str]) -> tuple[str, ...]:
    """Explain the columns after the last known one: those that are left come first, under any name; then new ones."""

    def all_() -> Iterator[str]:
        for count in range(min(len(gone), len(came)), -1, -1):
            for choice in combinations(range(len(gone)), count):
                yield _sentence(gone, came, choice)

    return tuple(islice(all_(), LIMIT))


def swapped(gone: Sequence[str], came: Sequence[str]) -> tuple[str, ...]:
    """Explain names in an impossible order, where the same names stand on both sides."""
    places = [_sentence(gone, came, range(len(gone)))] if len(gone) == len(came) else []
    back = [name for name in came if name in gone]
    again = [f"{name!r} was dropped and added again" for name in back]
    return tuple([*places, *again][:LIMIT])


def renamed_or_replaced(gone: Sequence[str], came: Sequence[str]) -> tuple[str, ...]:
    """Explain columns of a source that places columns anywhere: every pair may be a rename, or none is."""
    renames = (f"{old!r} was renamed to {new!r}" for old in gone for new in came)
    return (*islice(renames, LIMIT - 1), f"{_all(gone, 'dropped')} and {', '.join(map(repr, came))} added")


def dropped_or_hidden(gone: Sequence[str]) -> tuple[str, ...]:
    """Explain columns that the log does not show and the snapshot did."""
    return (_all(gone, "dropped"), _all(gone, "left out of the stream"))


def _all(names: Sequence[str], what: str) -> str:
    return f"{', '.join(map(repr, names))} {'was' if len(names) == 1 else 'were'} {what}"


def _sentence(gone: Sequence[str], came: Sequence[str], kept: Sequence[int]) -> str:
    """Say that the columns at the places `kept` are, in order, the first that came; all others are gone or new."""
    clauses = [f"{gone[old]!r} was renamed to {came[new]!r}" for new, old in enumerate(kept) if gone[old] != came[new]]
    clauses += [f"{name!r} was dropped" for place, name in enumerate(gone) if place not in kept]
    clauses += [f"{name!r} was added" for name in came[len(kept) :]]
    return ", ".join(clauses)
