"""Which of a sequence may stay where they are when it is put into another order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def longest_run(now: Sequence[int], wanted: Sequence[int]) -> set[int]:
    """Return the largest set of ids that are in the wanted order already: the longest increasing subsequence.

    Args:
        now: ids, each once.
        wanted: the same ids.
    """
    place = {id_: index for index, id_ in enumerate(wanted)}
    tails: list[int] = []
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for id_ in now:
        index = bisect_left(tails, place[id_])
        before[id_] = ends[index - 1] if index else None
        tails[index : index + 1] = [place[id_]]
        ends[index : index + 1] = [id_]
    staying: set[int] = set()
    id_or_none = ends[-1] if ends else None
    while id_or_none is not None:
        staying.add(id_or_none)
        id_or_none = before[id_or_none]
    return staying
