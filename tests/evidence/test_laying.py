"""What readings prove where it is stated which columns events leave out, against the same models."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cdc_sync.core.lineage.catalogue import CatalogueReading, Moment, Stamp
from cdc_sync.core.lineage.laying import certain, possible_numbers
from cdc_sync.core.lineage.sent_types import is_sent
from cdc_sync.core.migration.routes import LeftOut
from tests.evidence.test_catalogue import (
    BEFORE,
    EVENT,
    NOW,
    Database,
    Numbers,
    change,
    fits,
    names_of,
    numbers,
    reachable,
    reading,
    states,
)

NONE = LeftOut()
SECRET = LeftOut((r"public\.orders\.h_.*",))


def told(reading: CatalogueReading, generated: frozenset[int] = frozenset()) -> CatalogueReading:
    """Let a reading tell which columns are generated."""
    attributes = (
        item if item.dropped else replace(item, generated=item.number in generated) for item in reading.attributes
    )
    return replace(reading, attributes=tuple(attributes))


def secret(reading: CatalogueReading, hidden: frozenset[int]) -> CatalogueReading:
    """Give these columns names that are left out."""
    attributes = (
        replace(item, name=f"h_{item.name}") if item.number in hidden and not item.dropped else item
        for item in reading.attributes
    )
    return replace(reading, attributes=tuple(attributes))


def typed(reading: CatalogueReading, types: Mapping[int, str]) -> CatalogueReading:
    """Give columns other types."""
    attributes = (replace(item, type=types.get(item.number, item.type)) for item in reading.attributes)
    return replace(reading, attributes=tuple(attributes))


def test_a_column_that_stayed_has_to_be_among_the_names() -> None:
    after = told(reading(200, {1: "id", 3: "b"}))
    assert numbers(BEFORE, after, "id", "b", complete=False) == {"id": {1, 2}, "b": {2, 3}}
    assert numbers(told(BEFORE), after, "id", "b", complete=False, left_out=NONE) == {"id": {1}, "b": {3}}


def test_an_excluded_column_is_no_name_and_a_generated_one_may_be() -> None:
    before, after = told(BEFORE), told(reading(200, {1: "id", 2: "a", 3: "b"}))
    assert numbers(secret(before, frozenset({3})), secret(after, frozenset({3})), "id", "x", complete=False,
                   left_out=SECRET) == {"id": {1}, "x": {2}}  # fmt: skip
    generated = told(BEFORE, frozenset({3})), told(after, frozenset({3}))
    assert numbers(*generated, "i", "x", complete=False, left_out=NONE) == {"i": {1}, "x": {2}}
    assert numbers(*generated, "i", "x", "y", complete=False, left_out=NONE) == {"i": {1}, "x": {2}, "y": {3}}


def test_readings_that_do_not_tell_what_is_generated_make_nothing_more_certain() -> None:
    after = reading(200, {1: "id", 3: "b"})
    assert numbers(BEFORE, after, "id", "b", complete=False, left_out=NONE) == {"id": {1, 2}, "b": {2, 3}}


def test_a_column_that_came_out_of_hiding_against_what_was_stated_proves_nothing() -> None:
    before = secret(told(BEFORE), frozenset({3}))
    after = told(reading(200, {1: "id", 3: "b"}))
    assert numbers(before, after, "id", "b", complete=False, left_out=SECRET) == {"id": {1}, "b": {2, 3}}


def test_an_event_without_a_column_that_was_there_contradicts_what_was_stated() -> None:
    same = Stamp(xid=40, at=NOW - 5000)
    after = told(reading(200, {1: "id", 2: "b"}, a1=same, a2=same))
    assert numbers(None, after, "id", complete=False, left_out=NONE) is None
    assert numbers(None, after, "id", complete=False) == {"id": {1}}


def test_a_column_whose_type_connectors_may_not_send_may_be_left_out() -> None:
    """A box is no field of any event, so that the column comes to be one with its next type."""
    texts = {2: "box", 3: "text"}
    before = typed(told(reading(100, {1: "id", 2: "p", 3: "a"})), texts)
    after = typed(told(reading(200, {1: "id", 2: "p"}, 3)), {2: "text"})
    assert numbers(before, after, "id", "a", complete=False, left_out=NONE) == {"id": {1}, "a": {2, 3}}
    assert numbers(typed(before, {2: "text"}), after, "id", "a", complete=False, left_out=NONE) == {"id": {1}, "a": {2}}


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        *((name, True) for name in ("integer", "numeric(8,2)", "timestamp(3) with time zone", "text[]", "bit(3)")),
        *((name, False) for name in ("box", "mood", "public.text", "interval[]", "numeric(8,2", "")),
    ],
)
def test_types_that_every_connector_sends(type_: str, expected: bool) -> None:
    assert is_sent(type_) is expected


def test_an_event_with_the_name_of_a_column_that_is_left_out_shows_it_or_another_of_that_name_adjusted() -> None:
    same = Stamp(xid=40, at=NOW - 5000)
    after = secret(told(reading(200, {1: "id", 2: "a", 3: "b"}, a1=same, a2=same)), frozenset({2}))
    found = numbers(None, after, "id", "h_a", complete=False, left_out=SECRET)
    assert found == {"id": {1}, "h_a": {2, 3}}


def test_a_wide_table_of_which_nothing_is_certain_is_laid_soon() -> None:
    """Without the times of commits, with half of its columns dropped: what is stated counts for less then."""
    live = {number: f"c{number}" for number in range(1, 1601, 2)}
    after = told(reading(200, live, 1600))
    names = [*live.values()]
    known = certain(None, after, EVENT)
    assert known is not None
    began = time.monotonic()
    found = possible_numbers(known.with_left_out(NONE, None, after, names), 1600, names)
    assert time.monotonic() - began < 5
    assert found is not None
    assert 1 in found["c1"]


def test_patterns_match_the_whole_name_in_any_case() -> None:
    table = BEFORE.table
    assert SECRET.holds(table, "H_x")
    assert not SECRET.holds(table, "xh_")
    assert not SECRET.holds(replace(table, table="orders2"), "h_x")


@pytest.mark.parametrize("name", ["naïve", "\u212aelvin", "x\u0663"])
def test_patterns_know_only_ascii_letters_as_in_java(name: str) -> None:
    assert not LeftOut((r".*\.\w+", r".*\.kelvin", r".*\.x\d")).holds(BEFORE.table, name)


Seen = Mapping[int, bool | None]


def seen_of(live: frozenset[int], seen: Seen) -> Iterator[tuple[int, ...]]:
    """Yield all ways in which an event can show these columns."""
    musts = [number for number in live if seen.get(number) is True]
    mays = [number for number in live if seen.get(number) is None]
    for count in range(len(mays) + 1):
        for more in combinations(mays, count):
            yield tuple(sorted((*musts, *more)))


@settings(max_examples=300, deadline=None)
@given(states, st.data(), st.booleans())
def test_what_is_possible_is_exactly_what_some_history_does(start: Numbers, data: st.DataObject, first: bool) -> None:
    limit = start[1] + data.draw(st.integers(0, 3))
    everything = frozenset(range(1, limit + 1))
    ends = sorted(reachable(start, limit, everything), key=lambda state: (state[1], sorted(state[0])))
    end = data.draw(st.sampled_from(ends))
    if first:
        start = (frozenset(), 0)
    hidden = data.draw(st.frozensets(st.integers(1, max(limit, 1))))
    generated = data.draw(st.frozensets(st.integers(1, max(limit, 1)))) - hidden
    settled = data.draw(st.frozensets(st.integers(1, max(end[1], 1)))) & frozenset(range(1, end[1] + 1))
    seen: dict[int, bool | None] = {
        number: False if number in hidden else None if number in generated else True
        for number in start[0] | end[0]
    }  # fmt: skip
    names = data.draw(names_of(end, settled - hidden, complete=False))
    expected: list[set[int]] = [set() for _ in names]
    for live, highest in reachable(start, limit, everything):
        if not all(number <= highest for number in settled):
            continue
        if end not in reachable((live, highest), limit, everything - settled):
            continue
        for shown in seen_of(live, seen):
            if fits(shown, names, live & settled):
                for index, number in enumerate(shown):
                    expected[index].add(number)
    before = None if first else reading(1, {number: f"b{number}" for number in start[0]}, start[1])
    stamps = {f"a{number}": Stamp(xid=40, at=NOW - 5000) for number in settled}
    after = reading(9, {number: f"c{number}" for number in end[0]}, end[1], **stamps)
    around = [None if item is None else secret(told(item, generated), hidden) for item in (before, after)]
    assert around[1] is not None
    found = numbers(around[0], around[1], *names, complete=False, left_out=SECRET)
    if not all(expected) or not names:
        assert found is None or not names
        return
    assert found is not None
    assert [found[name] for name in names] == expected
    event(f"certain: {sum(len(one) == 1 for one in expected)} of {len(names)}")


@settings(max_examples=300, deadline=None)
@given(st.data(), st.booleans())
def test_no_column_of_a_random_history_is_told_wrongly(data: st.DataObject, to_the_millisecond: bool) -> None:
    hidden = data.draw(st.frozensets(st.integers(1, 7), max_size=2))
    generated = data.draw(st.frozensets(st.integers(1, 7), max_size=2)) - hidden
    base = Database()
    base.columns, base.highest = dict(enumerate("abcd", 1)), 4
    base.commit({1, 2, 3, 4}, 0)
    readings: list[CatalogueReading] = []
    events: list[tuple[Moment, dict[int, str]]] = []
    for _ in range(data.draw(st.integers(3, 12))):
        kind = data.draw(st.sampled_from(["change", "row", "row", "read"]))
        if kind == "read":
            readings.append(secret(told(base.read(times=True), generated), hidden))
            continue
        touched: set[int] = set()
        inside: list[dict[int, str]] = []
        for _ in range(data.draw(st.integers(1, 4)) if kind == "change" else 0):
            touched |= change(base, data)
            inside += [dict(base.columns)] if data.draw(st.booleans()) else []
        lsn = base.lsn + 5
        commit = base.commit(touched, data.draw(st.sampled_from([0, 1, 900, 5_000, 2_000_000])))
        at = commit.at - commit.at % 1000 if to_the_millisecond else commit.at
        shown = inside or ([dict(base.columns)] if kind == "row" else [])
        events += [(Moment(lsn=lsn, commit=replace(commit, at=at)), columns) for columns in shown]
    readings.append(secret(told(base.read(times=True), generated), hidden))
    check(readings, events, hidden, data.draw(st.frozensets(st.sampled_from(range(1, 8)))) & generated)


def check(
    readings: Sequence[CatalogueReading],
    events: Sequence[tuple[Moment, dict[int, str]]],
    hidden: frozenset[int],
    missing: frozenset[int],
) -> None:
    decided = 0
    for moment, columns in events:
        after = next(item for item in readings if item.begun >= moment.lsn)
        before = next((item for item in reversed(readings) if item.ended <= moment.lsn), None)
        seen = {number: name for number, name in columns.items() if number not in hidden | missing}
        found = numbers(before, after, *seen.values(), moment=moment, complete=False, left_out=SECRET)
        if found is None:
            assert not moment.is_behind(after.named) or not seen
            continue
        for number, name in seen.items():
            assert number in found[name]
            decided += found[name] == {number}
    event(f"decided: {min(decided, 5)}")
