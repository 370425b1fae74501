"""The two sides of a comparison: a relation, and whoever answers what is asked of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cdc_sync.operations.verify.queries import Relation
from cdc_sync.operations.verify.ranges import Sum

_AT_ONCE = 5000
"""Ranges or keys that one query names."""
_COLUMNS_AT_ONCE = 400
"""Two texts each, and Postgres returns at most 1664."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A row as it is shown: what stands for each value, and its beginning as text (None for NULL)."""

    parts: tuple[str, ...]
    texts: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side.

    Attributes:
        ask: runs a query on a state that stays the same until `renew`.
        renew: goes on to the newest state.
    """

    relation: Relation
    ask: Callable[[str], Sequence[Sequence[Any]]]
    renew: Callable[[], None]

    def sums(self, digits: int, within: Collection[str] = ()) -> dict[str, Sum]:
        """Return the sums of ranges; see `Relation.sums`."""
        answer = self.ask(self.relation.sums(digits, within))
        return {str(prefix): Sum(int(rows), int(digests)) for prefix, rows, digests in answer}

    def digests(self, within: Collection[str]) -> dict[str, Counter[str]]:
        """Return the rows' digests by key digest, in some ranges or of some keys; keys without a row are left out."""
        found: dict[str, Counter[str]] = {}
        for some in _chunks(sorted(within), _AT_ONCE):
            for key, row, copies in self.ask(self.relation.digests(some)):
                found.setdefault(str(key), Counter())[str(row)] += int(copies)
        return found

    def shown(self, keys: Collection[str]) -> dict[str, list[Shown]]:
        """Return rows as they are shown, by key digest; rows that are equal are one."""
        found: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
        width = len(self.relation.columns)
        for some in _chunks(sorted(keys), _AT_ONCE):
            for first in range(0, width, _COLUMNS_AT_ONCE):
                for key, row, *cells in self.ask(self.relation.values(some, first, first + _COLUMNS_AT_ONCE)):
                    texts = found.setdefault((str(key), str(row)), [])
                    if len(texts) == first:
                        texts += zip(cells[::2], cells[1::2], strict=True)
        rows: dict[str, list[Shown]] = {}
        for (key, _), pairs in sorted(found.items()):
            shown = Shown(tuple(str(part) for part, _ in pairs), tuple(text for _, text in pairs))
            rows.setdefault(key, []).append(shown)
        return rows


def _chunks(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
