"""An event as readings of the catalogue tell it, whatever its connector makes of names and leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cdc_sync.core.lineage.adjusted import possible_adjustments
from cdc_sync.core.lineage.catalogue import CatalogueReading, Moment
from cdc_sync.core.lineage.column_log import Token
from cdc_sync.core.lineage.laying import Certain, Numbers, certain, possible_numbers
from cdc_sync.core.migration.routes import LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """An event as readings tell it.

    Attributes:
        tokens: name -> all columns that it can stand for.
        hidden: columns that were there for certain, and that no name can stand for.
        gone: columns that were there no more.
        after: the reading behind it.
        refutes: it lacks a column that it had to show by what is stated of columns left out.
    """

    tokens: Mapping[str, frozenset[Token]]
    hidden: frozenset[Token]
    gone: frozenset[Token]
    after: CatalogueReading
    refutes: bool

    def one(self, name: str) -> Token | None:
        """Return the column that a name stands for, None if it is not certain."""
        found = self.tokens.get(name, frozenset())
        return next(iter(found)) if len(found) == 1 else None


def sight(
    before: CatalogueReading | None,
    after: CatalogueReading,
    names: Sequence[str],
    moment: Moment,
    left_out: LeftOut | None = None,
) -> Sight | None:
    """Say which columns an event's names can stand for.

    What the connector makes of names is not known: a name can stand for whatever it can in any way that fits. Where
    what is stated of columns left out fits none of them, the event refutes it, and is judged without.

    Returns:
        None if nothing is known of the table at this moment, or nothing fits.
    """
    found = certain(before, after, moment)
    if found is None:
        return None
    adjusted = [found.with_names(adjustment.name) for adjustment in possible_adjustments(names)]
    ways = [way for place, way in enumerate(adjusted) if way not in adjusted[:place]]
    possible: list[Numbers] = []
    if left_out is not None:
        stated = (way.with_left_out(left_out, before, after, names) for way in ways)
        possible = _laid(stated, after, names)
    refutes = left_out is not None and not possible
    if not possible:
        possible = _laid(ways, after, names)
    if not possible:
        return None
    shown = {number for numbers in possible for one in numbers.values() for number in one}
    token = {number: after.token(number) for number in shown}
    return Sight(
        tokens={name: frozenset(token[number] for number in _in_any(possible, name)) for name in names},
        hidden=frozenset(map(after.token, found.live.keys() - shown)),
        gone=frozenset(map(after.token, found.gone)),
        after=after,
        refutes=refutes,
    )


def _laid(ways: Iterable[Certain], after: CatalogueReading, names: Sequence[str]) -> list[Numbers]:
    laid = (possible_numbers(way, after.highest, names) for way in ways)
    return [numbers for numbers in laid if numbers is not None]


def _in_any(possible: Iterable[Numbers], name: str) -> frozenset[int]:
    return frozenset().union(*(numbers[name] for numbers in possible))
