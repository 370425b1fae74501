"""What readings of the catalogue prove: it tells the columns of *now*, with numbers that survive a rename.

Postgres gives attribute numbers upwards and never twice, shows columns in their order, and remembers in `relnatts` how
many it ever gave; SQL Server does the same with `column_id` and `max_column_id_used`. Between two readings of one table
that bounds which numbers can have been live, and the names of an event in between lie on them in order. A reading alone
says nothing about events before it: a column may have been renamed, dropped, and another added under its name.

All functions take it that a table which has one number (`relid`) in two readings had it in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cdc_sync.events import SourcePosition, TableId
from cdc_sync.evidence.column_log import LoggedColumn, Structure, Token


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueReading:
    """A table as its source's catalogue showed it.

    Attributes:
        position: of the source's log when it was read. Postgres: kind `postgresql`, parts (LSN, LSN), taken while the
            reader's lock kept the table's columns from being changed.
        relid: the table's own number.
        columns: live columns as (number, name, type), in the order of their numbers.
        highest: the highest number ever given, to a dropped column perhaps.
    """

    position: SourcePosition
    table: TableId
    relid: int
    columns: tuple[tuple[int, str, str], ...]
    highest: int

    @property
    def live(self) -> frozenset[int]:
        """The numbers of the columns there are."""
        return frozenset(number for number, _, _ in self.columns)

    @property
    def dropped(self) -> frozenset[int]:
        """The numbers of the columns there were."""
        return frozenset(range(1, self.highest + 1)) - self.live

    def token(self, number: int) -> Token:
        """Return the identity of the column of this number."""
        return Token(era=("pg", self.table.database), number=(self.relid, number))

    @property
    def tokens(self) -> dict[str, Token]:
        """The identity of each live column by name."""
        return {name: self.token(number) for number, name, _ in self.columns}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What is certain about an event's columns; a pair in neither is not decided.

    Attributes:
        same: name in the event -> name in the head.
        different: pairs of name in the head and name in the event that are two columns.
    """

    same: Mapping[str, str]
    different: frozenset[tuple[str, str]]


def possible_tokens(
    before: CatalogueReading, after: CatalogueReading, names: Sequence[str], *, complete: bool = True
) -> dict[str, frozenset[Token]] | None:
    """Return which columns each name can stand for, in an event between two readings of its table.

    Exact: a token is in the answer if and only if some history of ADD, DROP and RENAME leads from the first reading
    over the event to the second one with that column under that name.

    Args:
        before, after: readings; the event is not before the one and not behind the other (`encloses`).
        names: the event's columns in order.
        complete: no column is missing in `names`; False if some are excluded or generated, which leaves less certain.

    Returns:
        None if no such history is there, as when the table was made anew in between.
    """
    if before.relid != after.relid or before.table != after.table or before.highest > after.highest:
        return None
    if not after.live & before.dropped:
        found: list[set[int]] = [set() for _ in names]
        # Which numbers had been given at the event is not known; each answer is one case.
        for given in range(before.highest, after.highest + 1):
            for index, numbers in enumerate(_at(before, after, given, len(names), complete)):
                found[index] |= numbers
        if all(found):
            return {
                name: frozenset(before.token(number) for number in numbers)
                for name, numbers in zip(names, found, strict=True)
            }
    return None


def _at(before: CatalogueReading, after: CatalogueReading, given: int, count: int, complete: bool) -> list[set[int]]:
    """Return the numbers that each of `count` columns may have, if `given` was the highest number given."""
    new = range(before.highest + 1, given + 1)
    lived = (before.live & after.live) | (after.live & frozenset(new))
    perhaps = (before.live | frozenset(new)) - lived
    must = lived if complete else frozenset()
    may = perhaps if complete else perhaps | lived
    numbers: list[set[int]] = [set() for _ in range(count)]
    ordered = sorted(must | may)
    for place, number in enumerate(ordered):
        must_below = sum(other in must for other in ordered[:place])
        may_below = place - must_below
        must_above = sum(other in must for other in ordered[place + 1 :])
        may_above = len(ordered) - place - 1 - must_above
        for index in range(count):
            if 0 <= index - must_below <= may_below and 0 <= count - 1 - index - must_above <= may_above:
                numbers[index].add(number)
    return numbers


def claims(
    known: Mapping[str, Token],
    before: CatalogueReading,
    after: CatalogueReading,
    names: Sequence[str],
    *,
    complete: bool = True,
) -> Claims:
    """Say which columns of the head an event's columns are for certain, and which they are not.

    Args:
        known: name in the head -> token, as a reading or message told it.
        before, after, names, complete: as for `possible_tokens`.
    """
    possible = possible_tokens(before, after, names, complete=complete) or {}
    heads = {token: name for name, token in known.items()}
    same = {
        name: heads[token]
        for name, tokens in possible.items()
        if len(tokens) == 1
        for token in tokens
        if token in heads
    }
    different = frozenset(
        (head, name)
        for name, tokens in possible.items()
        for head, token in known.items()
        if token not in tokens and all(token.era == other.era for other in tokens)
    )
    return Claims(same=same, different=different)


def encloses(before: CatalogueReading, after: CatalogueReading, position: SourcePosition) -> bool:
    """Tell whether an event lies between two readings.

    Only the event's own LSN is compared. Its position begins with the last commit before it, which can be older than a
    reading although the event, and a change of columns in its transaction, came later.
    """
    kinds = {before.position.kind, after.position.kind, position.kind}
    if len(kinds) != 1 or not (before.position.parts and after.position.parts and position.parts):
        return False
    return before.position.parts[-1] <= position.parts[-1] <= after.position.parts[-1]


def structure_at(
    readings: Iterable[CatalogueReading],
    table: TableId,
    position: SourcePosition,
    names: Sequence[str],
    *,
    complete: bool = True,
) -> Structure | None:
    """Return the structure of a table at an event, as far as the nearest readings around it prove it.

    It has the event's names, and only columns whose token is certain; no types. If the readings are equal, all are.
    """
    own = sorted((r for r in readings if r.table == table), key=lambda r: r.position)
    pairs = [(a, b) for a in own for b in own if encloses(a, b, position)]
    if not pairs:
        return None
    before, after = min(pairs, key=lambda pair: pair[1].position.parts[-1] - pair[0].position.parts[-1])
    possible = possible_tokens(before, after, names, complete=complete) or {}
    certain = [(name, tokens) for name, tokens in possible.items() if len(tokens) == 1]
    if not certain:
        return None
    columns = tuple(LoggedColumn(name=name, token=token) for name, tokens in certain for token in tokens)
    return Structure(table=table, position=position, columns=columns, statement="read from the catalogue")


def bracket(before: CatalogueReading, after: CatalogueReading, position: SourcePosition) -> Structure | None:
    """Return the structure at a position between two readings that agree, None if they do not.

    Numbers are proven by that; names are, unless a rename was undone in between: `structure_at` takes the event's own.
    """
    if not encloses(before, after, position) or replace(before, position=after.position) != after:
        return None
    return Structure(
        table=before.table,
        position=position,
        columns=tuple(
            LoggedColumn(name=name, token=before.token(number), type=type_) for number, name, type_ in before.columns
        ),
        statement="read from the catalogue before and after, with no difference",
    )
