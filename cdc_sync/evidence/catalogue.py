"""What readings of the catalogue prove: it tells the columns of *now*, with numbers that survive a rename.

Postgres gives attribute numbers upwards and never twice, shows columns in their order, and remembers in `relnatts` how
many it ever gave. Each attribute's own row has a *stamp*: the transaction that wrote it last, and when that committed.
An attribute is certain at an event if its row was as it is now already then: because an earlier reading shows the same
stamp, or because the stamp's commit lies before the event's. What is not certain may have been anything: not there,
dropped later, under another name. The event's names then are laid over the numbers in order, and a name is proven if
every way to do so gives it one number.

SQL Server has numbers (`column_id`, `max_column_id_used`) but no stamps: only the order between two readings tells.
For readings without stamps it is taken that a table which has one number (`relid`) in two of them had it in between.

Why this is sound: docs/decisions/0012-readings-of-the-catalogue.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdc_sync.events import Commit, TableId
from cdc_sync.evidence.column_log import Token, avro_name

CLOCK_MARGIN = 1_000
"""Microseconds by which a commit has to lie before another one; both are of one server's clock."""
CLOCK_STEP = 60_000_000
"""What no clock is put back by while it runs."""
WIDE_MARGIN = 600_000_000
"""What has to lie before an event of a snapshot, whose time is of the connector's clock, and behind what changes
without a lock."""
_XIDS = 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Who wrote a row of the catalogue last.

    Attributes:
        xid: the transaction's number modulo 2^32 (`xmin`); different for different versions of one row.
        at: when it was committed, in microseconds since the epoch; None if the server does not know.
    """

    xid: int
    at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A column that is there, or was; `name` and `type` are empty if it was dropped."""

    number: int
    name: str = ""
    type: str = ""
    stamp: Stamp | None = None

    @property
    def dropped(self) -> bool:
        """Whether the column is there no more."""
        return not self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueReading:
    """A table as its source's catalogue showed it.

    Attributes:
        begun: what the source's log had reached before the reading: every row up to there has columns that the reading
            shows, or that something it shows came after.
        ended: what it had reached behind it: no row behind has columns older than the reading.
        taken: the server's clock, in microseconds since the epoch.
        server: which server, and which of its timelines; LSNs of different ones cannot be compared.
        relid: the table's own number.
        named: who gave it its name; None if that is not told.
        schema_named: who gave its schema its name, or wrote that row of the catalogue for another reason.
        attributes: in the order of their numbers, all that were ever there.
    """

    table: TableId
    begun: int
    ended: int
    relid: int
    attributes: tuple[Attribute, ...]
    taken: int = 0
    server: str = ""
    named: Stamp | None = None
    schema_named: Stamp | None = None

    @property
    def highest(self) -> int:
        """The highest number ever given."""
        return max((attribute.number for attribute in self.attributes), default=0)

    def attribute(self, number: int) -> Attribute | None:
        """Return the attribute of a number."""
        found = self.attributes[number - 1] if 0 < number <= len(self.attributes) else None
        assert found is None or found.number == number
        return found

    def token(self, number: int) -> Token:
        """Return the identity of the column of this number."""
        return Token(era=("pg", self.table.database), number=(self.relid, number))

    def shows_as(self, other: CatalogueReading) -> bool:
        """Whether another reading shows the same, at another time."""
        return _timeless(self) == _timeless(other)

    def with_avro_names(self) -> CatalogueReading | None:
        """Return the reading with names as connectors adjust them for Avro; None if two would become one."""
        adjusted = tuple(replace(item, name=avro_name(item.name)) for item in self.attributes)
        names = [item.name for item in adjusted if not item.dropped]
        return replace(self, attributes=adjusted) if len({*names}) == len(names) else None


def _timeless(reading: CatalogueReading) -> CatalogueReading:
    return replace(reading, begun=0, ended=0, taken=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When an event's row was written.

    Attributes:
        lsn: the event's own place in the log.
        commit: of its transaction, None if it is not told.
        snapshot: a snapshot read the row.
    """

    lsn: int
    commit: Commit | None = None
    snapshot: bool = False

    def is_behind(self, stamp: Stamp | None, *, margin: int = CLOCK_MARGIN) -> bool:
        """Whether what this stamp is on was so already when the row was written.

        The clock decides; if not much time lies between, the transactions' numbers, whose order alone proves nothing,
        have to agree, so that a clock that was put back does no harm.

        Args:
            stamp: of something that only changes under a lock that waits for all writers of the table.
            margin: microseconds that have to lie between; a wide one for what changes without such a lock.
        """
        if stamp is None or stamp.at is None or self.commit is None:
            return False
        since = self.commit.at - stamp.at
        if self.snapshot:
            return since > WIDE_MARGIN
        agrees = self.commit.xid is None or 0 < (self.commit.xid - stamp.xid) % _XIDS < _XIDS // 2
        return since > margin and (agrees or since > CLOCK_STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certain:
    """What is certain of a table's columns at a moment.

    Attributes:
        live: number -> name.
        gone: numbers of columns that were dropped by then.
        least: the highest number that had been given for certain.
        open: numbers of which nothing else is known; whether they had been given is not known above `least`.
        kept: those of them that are there later, and so were there if they had been given.
    """

    live: Mapping[int, str]
    gone: frozenset[int]
    least: int
    open: tuple[int, ...]
    kept: frozenset[int]


def certain(before: CatalogueReading | None, after: CatalogueReading, moment: Moment) -> Certain | None:
    """Say what is certain of a table at a moment that is not before the one reading and not behind the other.

    Returns:
        None if it is not even certain that it was this table, or the readings contradict each other.
    """
    if before is not None and not _is_one_table(before, after):
        before = None
    if not _has_its_name(before, after, moment):
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
        elif moment.is_behind(now.stamp) or (then is not None and _is_unchanged(then, now)):
            live |= {} if now.dropped else {now.number: now.name}
            gone |= {now.number} if now.dropped else set()
        else:
            open_.append(now.number)
    least = max((*live, *gone, 0 if before is None else before.highest))
    if least > after.highest:
        return None
    kept = frozenset(number for number in open_ if not after.attributes[number - 1].dropped)
    return Certain(live=live, gone=frozenset(gone), least=least, open=tuple(open_), kept=kept)


def _has_its_name(before: CatalogueReading | None, after: CatalogueReading, moment: Moment) -> bool:
    same = before is not None and _same_stamp(before.named, after.named)
    if not (same or moment.is_behind(after.named)):
        return False
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
    over the event with that column under that name.

    Args:
        found: what is certain at that moment.
        highest: the highest number that was given later.
        names: the event's columns in order.
        complete: no column is missing in `names`. Otherwise some may be excluded or generated, which leaves less
            certain.

    Returns:
        None if no such history is there.
    """
    union: list[set[int]] = [set() for _ in names]
    # Which numbers had been given at the event is not known; each answer is one case. Where columns may be missing,
    # the last case holds all others.
    for given in range(found.least, highest + 1) if complete else (highest,):
        laid = _laid(found, given, names, complete=complete)
        if laid is not None:
            for numbers, more in zip(union, laid, strict=True):
                numbers |= more
    if not all(union):
        return None
    return {name: frozenset(numbers) for name, numbers in zip(names, union, strict=True)}


Numbers = Mapping[str, frozenset[int]]


def _laid(found: Certain, given: int, names: Sequence[str], *, complete: bool) -> list[set[int]] | None:
    """Lay names over numbers, if `given` was the highest number given; None if that cannot be."""
    by_name = {name: number for number, name in found.live.items()}
    if complete and not by_name.keys() <= set(names):
        return None
    open_ = [number for number in found.open if number <= given]
    must = found.kept if complete else frozenset()
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


def _gaps(
    names: Sequence[str], by_name: Mapping[str, int], end: int
) -> Iterator[tuple[int, int, int, int]]:  # fmt: skip
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
) -> dict[str, frozenset[Token]] | None:
    """Return which columns each name of an event can stand for; see `certain` and `possible_numbers`."""
    found = certain(before, after, moment)
    possible = None if found is None else possible_numbers(found, after.highest, names, complete=complete)
    if possible is None:
        return None
    return {name: frozenset(map(after.token, numbers)) for name, numbers in possible.items()}
