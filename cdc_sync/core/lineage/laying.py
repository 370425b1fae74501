"""What readings of the catalogue prove about an event's names: what is certain, and which numbers the others can have.

What is not certain may have been anything: not there, dropped later, under another name. The event's names are laid
over the numbers in order, and a name is proven if every way to do so gives it one number. Where the operator states
which columns events leave out, a column that was there for certain has to be among the names, under whatever name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdc_sync.core.lineage.catalogue import WIDE_MARGIN, Attribute, CatalogueReading, Moment, Stamp
from cdc_sync.core.lineage.column_log import Token
from cdc_sync.core.lineage.commands import last_before
from cdc_sync.core.lineage.sent_types import is_sent
from cdc_sync.core.migration.routes import LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Certain:
    """What is certain of a table's columns at a moment.

    Attributes:
        live: number -> name.
        gone: numbers of columns that were dropped by then.
        least: the highest number that had been given for certain.
        open: numbers of which nothing else is known; whether they had been given is not known above `least`.
        kept: those of them that are there later, and so were there if they had been given.
        shown: columns that the event shows if they were there.
    """

    live: Mapping[int, str]
    gone: frozenset[int]
    least: int
    open: tuple[int, ...]
    kept: frozenset[int]
    shown: frozenset[int] = frozenset()

    def with_left_out(
        self, left_out: LeftOut, before: CatalogueReading | None, after: CatalogueReading, names: Sequence[str]
    ) -> Certain:
        """Add what follows from which columns the events of the table leave out, for an event of these names."""
        before = before if before is not None and _is_one_table(before, after) else None
        seen = {number: _seen(left_out, before, after, number) for number in self.open}
        seen |= {number: _seen(left_out, None, after, number) for number in self.live}
        # A field of the name of one that is left out is another, whose name was adjusted, or refutes what is stated.
        doubtful = {number for number, name in self.live.items() if seen[number] is False and name in names}
        return replace(
            self,
            live={number: name for number, name in self.live.items() if number not in doubtful},
            open=tuple(sorted({*(number for number in self.open if seen[number] is not False), *doubtful})),
            shown=frozenset(number for number, is_seen in seen.items() if is_seen),
        )

    def with_names(self, adjusted: Callable[[str], str]) -> Certain:
        """Give the columns the names that a connector makes of theirs; where two get one, either may be the field."""
        live = {number: adjusted(name) for number, name in self.live.items()}
        held = Counter(live.values())
        doubtful = frozenset(number for number, name in live.items() if held[name] > 1)
        return replace(
            self,
            live={number: name for number, name in live.items() if number not in doubtful},
            open=tuple(sorted({*self.open, *doubtful})),
            kept=self.kept | doubtful,
        )


def certain(before: CatalogueReading | None, after: CatalogueReading, moment: Moment) -> Certain | None:
    """Say what is certain of a table at a moment that is not before the one reading and not behind the other.

    Returns:
        None if it is not even certain that it was this table, or the readings contradict each other.
    """
    if before is not None and not _is_one_table(before, after):
        before = None
    behind = _last_command(before, after, moment)
    if behind is None:
        return None
    live: dict[int, str] = {}
    gone: set[int] = set()
    open_: list[int] = []
    for now in after.attributes:
        then = None if before is None else before.attribute(now.number)
        if then is not None and then.dropped:
            if not now.dropped:
                return None
            gone.add(now.number)
        elif moment.is_behind(now.stamp, command=behind) or (then is not None and _is_unchanged(then, now)):
            live |= {} if now.dropped else {now.number: now.name}
            gone |= {now.number} if now.dropped else set()
        else:
            open_.append(now.number)
    least = max((*live, *gone, 0 if before is None else before.highest))
    if least > after.highest:
        return None
    kept = frozenset(number for number in open_ if not after.attributes[number - 1].dropped)
    return Certain(live=live, gone=frozenset(gone), least=least, open=tuple(open_), kept=kept)


def _seen(left_out: LeftOut, before: CatalogueReading | None, after: CatalogueReading, number: int) -> bool | None:
    """Whether events show a column while it is there; None if that is not known.

    It is so all its life, so one reading that has it is enough; two that do not agree tell nothing.
    """
    items = (item.attribute(number) for item in (before, after) if item is not None)
    known = [item for item in items if item is not None and not item.dropped]
    excluded = {left_out.holds(after.table, item.name) for item in known}
    if excluded != {False}:
        return False if excluded == {True} else None
    return True if all(item.generated is False and is_sent(item.type) for item in known) else None


def _last_command(before: CatalogueReading | None, after: CatalogueReading, moment: Moment) -> int | None:
    """Return the last command of its own transaction that the row was certainly written behind.

    Returns:
        None if it is not even certain that it is of this table.
    """
    if not _has_its_schema(before, after, moment):
        return None
    stamps = (attribute.stamp for attribute in after.attributes)
    own = {command for stamp in stamps if (command := moment.own_command(stamp)) is not None}
    if (before is not None and _same_stamp(before.named, after.named)) or moment.is_behind(after.named):
        return last_before(own, None)
    named = moment.own_command(after.named)
    return None if named is None else last_before(own, named)


def _has_its_schema(before: CatalogueReading | None, after: CatalogueReading, moment: Moment) -> bool:
    if before is not None and _same_stamp(before.schema_named, after.schema_named):
        return True
    return moment.is_behind(after.schema_named, margin=WIDE_MARGIN)


def _is_one_table(before: CatalogueReading, after: CatalogueReading) -> bool:
    return (before.table, before.relid, before.server) == (after.table, after.relid, after.server)


def _same_stamp(one: Stamp | None, other: Stamp | None) -> bool:
    return (one is None) == (other is None) and (one is None or other is None or one.xid == other.xid)


def _is_unchanged(then: Attribute, now: Attribute) -> bool:
    stamped = then.stamp is not None and now.stamp is not None and then.stamp.xid == now.stamp.xid
    return stamped and then.name == now.name


def possible_numbers(found: Certain, highest: int, names: Sequence[str], *, complete: bool = False) -> Numbers | None:
    """Return which columns each name can stand for, in an event of a moment.

    Exact: a number is in the answer if and only if some history of ADD, DROP and RENAME that the readings allow leads
    over the event with that column under that name. Where hundreds of columns are uncertain, what has to be shown is
    not looked at, which leaves less certain.

    Args:
        found: what is certain at that moment.
        highest: the highest number that was given later.
        names: the event's columns in order.
        complete: no column is missing in `names`. Otherwise all may be but those of which it is known that the event
            shows them, which leaves less certain.

    Returns:
        None if no such history is there.
    """
    if complete:
        found = replace(found, shown=frozenset((*found.live, *found.open)))
    if (highest + 1 - found.least) * len(found.open) * len(names) > _MOST_STEPS:
        found = replace(found, shown=frozenset())
    union: list[set[int]] = [set() for _ in names]
    # Which numbers had been given at the event is not known; each answer is one case. Where none has to be among the
    # names, the last case holds all others.
    for given in range(found.least, highest + 1) if found.shown else (highest,):
        laid = _laid(found, given, names)
        if laid is not None:
            for numbers, more in zip(union, laid, strict=True):
                numbers |= more
    if not all(union):
        return None
    return {name: frozenset(numbers) for name, numbers in zip(names, union, strict=True)}


Numbers = Mapping[str, frozenset[int]]

_MOST_STEPS = 20_000_000
"""Some tenths of a second."""


def _laid(found: Certain, given: int, names: Sequence[str]) -> list[set[int]] | None:
    """Lay names over numbers, if `given` was the highest number given; None if that cannot be."""
    by_name = {name: number for number, name in found.live.items()}
    if not {found.live[number] for number in found.shown & found.live.keys()} <= set(names):
        return None
    open_ = [number for number in found.open if number <= given]
    must = found.kept & found.shown
    numbers: list[set[int]] = [set() for _ in names]
    for first, last, left, right in _gaps(names, by_name, given + 1):
        if left >= right:
            return None  # the names stand in another order than their numbers
        if right <= given:
            numbers[last] = {right}
        between = [number for number in open_ if left < number < right]
        laid = _between(between, must, last - first)
        if laid is None:
            return None
        numbers[first:last] = laid
    return numbers


def _gaps(names: Sequence[str], by_name: Mapping[str, int], end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the runs of names whose numbers are not certain: first index, last, and the certain numbers around."""
    first, left = 0, 0
    for index, name in enumerate(names):
        if name in by_name:
            yield first, index, left, by_name[name]
            first, left = index + 1, by_name[name]
    yield first, len(names), left, end


def _between(ordered: Sequence[int], must: frozenset[int], count: int) -> list[set[int]] | None:
    """Return the numbers that each of `count` names may have; None if they do not go there."""
    musts = [number in must for number in ordered]
    if not sum(musts) <= count <= len(ordered):
        return None
    numbers: list[set[int]] = [set() for _ in range(count)]
    below = 0
    for place, number in enumerate(ordered):
        above = sum(musts) - below - musts[place]
        # So many names stand before this one at least, and at most, if it stands here at all.
        least = max(below, count - len(ordered) + place)
        most = min(place, count - 1 - above)
        for index in range(least, most + 1):
            numbers[index].add(number)
        below += musts[place]
    return numbers


def possible_tokens(
    before: CatalogueReading | None,
    after: CatalogueReading,
    names: Sequence[str],
    moment: Moment,
    *,
    complete: bool = False,
    left_out: LeftOut | None = None,
) -> dict[str, frozenset[Token]] | None:
    """Return which columns each name of an event can stand for; see `certain` and `possible_numbers`."""
    found = certain(before, after, moment)
    if found is not None and left_out is not None:
        found = found.with_left_out(left_out, before, after, names)
    possible = None if found is None else possible_numbers(found, after.highest, names, complete=complete)
    if possible is None:
        return None
    return {name: frozenset(map(after.token, numbers)) for name, numbers in possible.items()}
