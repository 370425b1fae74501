"""What a table's first message proves about the columns it had before.

A plain event trigger only tells what there is behind a command. What there was before it follows from two facts: one
message is one command, and Postgres gives numbers upwards, in the order in which it shows columns, and never twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from cdc_sync.core.lineage.column_log import Structure, Token
from cdc_sync.core.lineage.message_query import Alteration, alterations

_Places: TypeAlias = dict[str, frozenset[int]]
"""Name -> the numbers its column may have had; empty if there is no telling."""


def before_first(
    first: Structure,
    query: str,
    names: tuple[str, ...],
    *,
    tag: str = "ALTER TABLE",
    column: str | None = None,
    complete: bool = False,
) -> dict[str, Token] | None:
    """Return the tokens of the columns of which these are the names, as far as they are certain.

    Every history that may have led to the first message is thought of; what they all agree on is certain. It is not
    certain, and therefore not told, if the command may have given the table its name, for then the columns before were
    another table's.

    Args:
        first: the structure that the table's first message tells.
        query: all text the client had sent with the command, uncut; empty if it is not known.
        names: of the table's columns in events before the message and behind all commands that no message tells of, in
            order. Columns that events leave out may be missing.
        tag: the command's.
        column: the column that the command was about, under its name behind the command. With ALTER TABLE it is told
            for RENAME COLUMN, and for nothing else.
        complete: all columns are in `names`: none is excluded or generated.

    Returns:
        Tokens by name; of a column that is gone, and behind CREATE TABLE of all, they are no column's that the table
        has or will have. None if nothing fits or nothing is certain.
    """
    live = _live(first)
    if not live or not names:
        return None
    era, relid = first.columns[0].token.era, _number(first.columns[0].token)[0]
    if tag == "CREATE TABLE":
        return {name: Token(era=era, number=("before", relid, name)) for name in names}
    found = [places for places in _histories(first, live, query, names, tag, column, complete) if places is not None]
    if not found:
        return None
    agreed = {name: frozenset().union(*(places[name] for places in found)) for name in names}
    certain = [name for name, numbers in agreed.items() if len(numbers) == 1 and all(places[name] for places in found)]
    tokens = {name: Token(era=era, number=(relid, *agreed[name])) for name in certain}
    # Whatever number it had, it is none of those that are there, nor of those still to come.
    gone = [name for name, numbers in agreed.items() if name not in tokens and numbers.isdisjoint(live.values())]
    return tokens | {name: Token(era=era, number=("before", relid, name)) for name in gone} or None


def _live(first: Structure) -> dict[str, int]:
    return {column.name: _number(column.token)[1] for column in first.columns}


def _number(token: Token) -> tuple[int, int]:
    match token.number:
        case (int(relid), int(attnum)):
            return relid, attnum
        case number:
            raise ValueError(f"Cannot read token {number!r}: it is not (relid, attnum)")


def _histories(
    first: Structure,
    live: Mapping[str, int],
    query: str,
    names: Sequence[str],
    tag: str,
    column: str | None,
    complete: bool,
) -> Iterator[_Places | None]:
    if tag == "COMMENT":
        yield _with_added(live, names, 0, complete)
    elif tag == "ALTER TABLE" and column is not None:
        shown = {a.renamed[0] for a in _candidates(first, query) if a.renamed is not None and a.renamed[1] == column}
        yield from _renamed(live, names, shown.pop() if len(shown) == 1 else None, column, complete)
    elif tag == "ALTER TABLE":
        for alteration in _candidates(first, query):
            if alteration.renamed is not None:
                yield from _renamed(live, names, *alteration.renamed, complete)
            else:
                yield from _altered(live, names, alteration, complete)


def _candidates(first: Structure, query: str) -> tuple[Alteration, ...]:
    """Return the statements of which one is the command; none if that cannot be told, or one may rename the table."""
    table, schema = first.table.table, first.table.schema
    concerned = [
        alteration
        for alteration in alterations(query) or ()
        if (alteration.table == table and (alteration.schema in (None, schema) or alteration.moved))
        or alteration.moved_to == table
    ]
    return () if any(alteration.moved for alteration in concerned) else tuple(concerned)


def _altered(
    live: Mapping[str, int], names: Sequence[str], alteration: Alteration, complete: bool
) -> Iterator[_Places | None]:
    """Any mix of ADD, DROP and ALTER: what was added has the highest numbers, without a gap."""
    newest = sorted(live, key=lambda name: live[name], reverse=True)
    for count in range(len(newest) + 1):
        added = set(newest[:count])
        in_a_row = all(live[a] == live[b] + 1 for a, b in pairwise(newest[:count]))
        if in_a_row and alteration.added <= added <= alteration.added | alteration.perhaps_added:
            yield _with_added(live, names, count, complete)


def _with_added(live: Mapping[str, int], names: Sequence[str], count: int, complete: bool) -> _Places | None:
    numbers = sorted(live.values())
    old = {name: number for name, number in live.items() if number in numbers[: len(numbers) - count]}
    if complete and not old.keys() <= set(names):
        return None
    below = numbers[len(numbers) - count] if count else None
    return _places(names, {name: old[name] for name in names if name in old}, live.values(), below)


def _renamed(
    live: Mapping[str, int], names: Sequence[str], old: str | None, new: str, complete: bool
) -> Iterator[_Places | None]:
    """One RENAME COLUMN, of `old` or of any name that is gone, or of a column that events leave out."""
    if new not in live or new in names or old in live:
        return
    kept = {name: live[name] for name in names if name in live}
    for candidate in [name for name in names if name not in live and old in (None, name)]:
        if not complete or {*kept.values(), live[new]} == set(live.values()):
            yield _places(names, {**kept, candidate: live[new]}, live.values(), None)
    if not complete and old not in names:
        yield _places(names, kept, live.values(), None)


def _places(names: Sequence[str], kept: Mapping[str, int], taken: Iterable[int], below: int | None) -> _Places | None:
    """Put the columns that are gone between those that were kept, on numbers that nothing has now.

    Args:
        kept: names and numbers of those that are still there.
        taken: the numbers of all live columns.
        below: the first number that was given by the command, if it gave any; all gone columns are below it.
    """
    numbers = [kept[name] for name in names if name in kept]
    if any(left >= right for left, right in pairwise(numbers)):
        return None
    places: _Places = {name: frozenset((number,)) for name, number in kept.items()}
    free = sorted(set(range(1, below if below is not None else max(taken, default=0) + 1)).difference(taken))
    left = 0
    gone: list[str] = []
    for name in (*names, None):
        if name is not None and name not in kept:
            gone.append(name)
            continue
        right = kept[name] if name is not None else below
        slots = [number for number in free if left < number and (right is None or number < right)]
        if right is not None and len(gone) > len(slots):
            return None
        for index, one in enumerate(gone):
            # Behind the last column there may have been any number of others.
            places[one] = (
                frozenset(slots[index : len(slots) - len(gone) + index + 1]) if right is not None else frozenset()
            )
        left, gone = right or 0, []
    return places
