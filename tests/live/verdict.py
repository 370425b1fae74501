"""What the job made of a history: the ids it gave, against the numbers that the columns have at the source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.live.databases import Place
from tests.live.history import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A version of the job's: where in the source's log its first event stands, and its live columns with their ids."""

    number: int
    place: Place
    columns: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How one history ended.

    Attributes:
        states: how many states of the columns rows were seen in.
        columns: how many columns in those had an id to compare.
        wrong: two columns that were taken for one.
        split: one column that was taken for two.
        other: names or order that differ.
    """

    states: int
    columns: int
    wrong: tuple[str, ...]
    split: tuple[str, ...]
    other: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """Return everything that is not as it should be."""
        return (
            *(f"two columns as one: {text}" for text in self.wrong),
            *(f"one column as two: {text}" for text in self.split),
            *(f"other columns: {text}" for text in self.other),
        )


def judge(states: Sequence[State], versions: Sequence[Recorded]) -> Verdict:
    """Compare ids with numbers in every state in which rows were seen."""
    wrong, split, other = [], [], []
    ids: dict[int, int] = {}
    numbers: dict[int, int] = {}
    pairs = [(state, version) for state, version in _pairs(states, versions) if state.seen]
    count = 0
    for state, version in pairs:
        where = f"in version {version.number}, since {state.statement}"
        if [name for name, _ in version.columns] != [name for name, _ in state.columns]:
            other.append(f"{version.columns}, at the source {state.columns}, {where}")
            continue
        for (name, id_), (_, number) in zip(version.columns, state.columns, strict=True):
            count += 1
            if numbers.setdefault(id_, number) != number:
                wrong.append(f"{name!r} has id {id_}, which was another column's, {where}")
            if ids.setdefault(number, id_) != id_:
                split.append(f"{name!r} had id {ids[number]} and now has {id_}, {where}")
            ids[number] = id_
            numbers[id_] = number
    return Verdict(states=len(pairs), columns=count, wrong=tuple(wrong), split=tuple(split), other=tuple(other))


def _pairs(states: Sequence[State], versions: Sequence[Recorded]) -> Iterator[tuple[State, Recorded]]:
    """Yield each state with the last version whose first event comes before the next state."""
    for number, state in enumerate(states):
        later = states[number + 1 :]
        found = [version for version in versions if not later or version.place < later[0].place]
        if found:
            yield state, found[-1]
