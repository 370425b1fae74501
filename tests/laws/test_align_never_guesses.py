"""Whatever `align` decides about an append-only source is what really happened.

Two oracles that know nothing of `align`'s rules. The *model* plays DDL on columns with an identity of their own, as
Postgres' catalogue has it (attnum), and remembers the truth. The *enumeration* lists every history that could lead from
one list of names to another, provided that one name is one column: an increasing assignment of old to new places, where
what is not assigned on the left was dropped and on the right was appended.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.schema.align import align
from cdc_sync.core.schema.alignment import Alignment, Facts
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.observed import ObservedColumn, ObservedSchema
from cdc_sync.core.schema.types import INT32

law = settings(max_examples=250, deadline=None, derandomize=False)
Table = tuple[tuple[int, str], ...]
"""Identity and name of each column."""
START: Table = ((1, "a"), (2, "b"), (3, "c"), (4, "d"))
NAMES = ("a", "b", "c", "d", "x", "y")


def known(names: tuple[str, ...]) -> InternalSchema:
    columns = tuple(Column(id=id_, name=name, type=INT32) for id_, name in enumerate(names, 1))
    return InternalSchema(columns=columns, primary_key=(), last_column_id=len(names))


def seen(names: tuple[str, ...]) -> ObservedSchema:
    return ObservedSchema(columns=tuple(ObservedColumn(name=name, type=INT32) for name in names), key=())


def statements(table: Table, born: int) -> Iterator[tuple[Table, int]]:
    """Every table that one ALTER TABLE makes of this one."""
    names = {name for _, name in table}
    for place, (identity, _) in enumerate(table):
        yield (*table[:place], *table[place + 1 :]), born
        for name in NAMES:
            if name not in names:
                yield (*table[:place], (identity, name), *table[place + 1 :]), born
    for name in NAMES:
        if name not in names:
            yield (*table, (born + 1, name)), born + 1


def names_of(table: Table) -> tuple[str, ...]:
    return tuple(name for _, name in table)


def check_against_truth(before: Table, after: Table, alignment: Alignment) -> None:
    """Compare with the truth, unless a name that `align` had to trust stands for two columns.

    Ids in `known` are places; the model's identities stand at the same places.
    """
    identity = {id_: before[id_ - 1][0] for id_ in range(1, len(before) + 1)}
    trusted = [pair for pair in alignment.same if before[pair[0] - 1][1] == after[pair[1]][1]]
    if any(identity[id_] != after[index][0] for id_, index in trusted):
        return
    assert all(identity[id_] == after[index][0] for id_, index in alignment.same), (before, after, alignment)
    lost = set(identity.values()) - {column for column, _ in after}
    assert all(identity[id_] in lost for id_ in alignment.dropped), (before, after, alignment)
    assert all(after[index][0] not in identity.values() for index in alignment.added), (before, after, alignment)


def histories_between(old: tuple[str, ...], new: tuple[str, ...]) -> list[dict[int, int]]:
    """List every increasing assignment of old places to the first new places that keeps common names together."""
    shared = {(old.index(name), new.index(name)) for name in set(old) & set(new)}
    found = []
    for count in range(min(len(old), len(new)) + 1):
        for kept in combinations(range(len(old)), count):
            # Nothing is ever inserted, so the columns that are left are the first ones.
            pairs = dict(zip(kept, range(count), strict=True))
            if shared <= set(pairs.items()):
                found.append(pairs)
    return found


def test_every_sequence_of_five_statements_is_told_truly_or_not_at_all() -> None:
    tables = {(START, len(START))}
    for _ in range(5):
        tables |= {following for table, born in tables for following in statements(table, born)}
    assert len(tables) > 5_000
    before = known(names_of(START))
    decided = 0
    for table, _ in tables:
        alignment = align(before, seen(names_of(table)), Facts(append_only=True))
        check_against_truth(START, table, alignment)
        decided += not alignment.unproven
    assert decided > 500


def test_every_pair_of_name_lists_is_decided_if_and_only_if_one_history_explains_it() -> None:
    lists = [tuple(names) for size in range(4) for names in product("abxy", repeat=size) if len({*names}) == size]
    old_lists = [names for names in lists if names]
    for old, new in product(old_lists, lists):
        alignment = align(known(old), seen(new), Facts(append_only=True))
        decided = {id_ - 1: index for id_, index in alignment.same}
        possible = histories_between(old, new)
        if len(possible) == 1 and set(old) & set(new):
            assert not alignment.unproven, (old, new)
            assert decided == possible[0]
        else:
            assert alignment.unproven, (old, new)
        for history in possible:
            assert decided.items() <= history.items(), (old, new)
            assert not any(id_ - 1 in history for id_ in alignment.dropped), (old, new)
            assert not set(alignment.added) & set(history.values()), (old, new)


@law
@given(st.integers(1, 8), st.lists(st.integers(0, 2**16), max_size=10))
def test_long_histories_of_wide_tables_are_told_truly_or_not_at_all(width: int, numbers: list[int]) -> None:
    before: Table = tuple((place, f"c{place}") for place in range(1, width + 1))
    table, born = list(before), width
    for number in numbers:
        number, kind = divmod(number, 5)
        number, pick = divmod(number, 12)
        names = {name for _, name in table}
        fresh = f"c{pick}" if f"c{pick}" not in names else f"n{born}_{pick}"
        if kind == 0 and len(table) > 1:
            table.pop(number % len(table))
        elif kind in (1, 2) and table:
            table[number % len(table)] = (table[number % len(table)][0], fresh)
        elif kind == 3 and f"c{pick}" in names and table:
            place, other = [name for _, name in table].index(f"c{pick}"), number % len(table)
            (left, left_name), (right, right_name) = table[place], table[other]
            table[place], table[other] = (left, right_name), (right, left_name)
            if place == other:
                table[place] = (left, left_name)
        else:
            born += 1
            table.append((born, fresh if fresh not in names else f"n{born}"))
        alignment = align(known(names_of(before)), seen(names_of(tuple(table))), Facts(append_only=True))
        check_against_truth(before, tuple(table), alignment)


@law
@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_columns_that_only_the_snapshot_shows_are_never_dropped(hidden: list[bool]) -> None:
    old = tuple(f"c{place}" for place in range(len(hidden)))
    new = tuple(name for name, gone in zip(old, hidden, strict=True) if not gone)
    alignment = align(known(old), seen(new), Facts(append_only=True, snapshot_boundary=True))
    assert alignment.dropped == ()
    assert {id_ for case in alignment.unproven for id_ in case.vanished} == {
        place for place, gone in enumerate(hidden, 1) if gone
    }


@law
@given(
    st.permutations(NAMES),
    st.integers(0, 6),
    st.permutations(NAMES),
    st.integers(0, 6),
    st.booleans(),
    st.booleans(),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(NAMES), max_size=3),
    st.sets(st.sampled_from(NAMES), max_size=2),
)
def test_every_column_stands_in_exactly_one_place_whatever_is_declared(
    olds: list[str],
    old_size: int,
    news: list[str],
    new_size: int,
    append_only: bool,
    boundary: bool,
    renames: dict[str, str],
    drops: set[str],
) -> None:
    old, new = tuple(olds[:old_size]), tuple(news[:new_size])
    facts = Facts(append_only=append_only, snapshot_boundary=boundary, renames=renames, drops=frozenset(drops))
    alignment = align(known(old), seen(new), facts)
    ids = [
        *(id_ for id_, _ in alignment.same),
        *alignment.dropped,
        *(id_ for case in alignment.unproven for id_ in case.vanished),
    ]
    indexes = [
        *(index for _, index in alignment.same),
        *alignment.added,
        *(index for case in alignment.unproven for index in case.appeared),
    ]
    assert sorted(ids) == list(range(1, len(old) + 1))
    assert sorted(indexes) == list(range(len(new)))
