"""What readings prove, against models that walk every history one command at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cdc_sync.core.lineage.catalogue import (
    CLOCK_MARGIN,
    CLOCK_STEP,
    WIDE_MARGIN,
    Attribute,
    CatalogueReading,
    Moment,
    Stamp,
)
from cdc_sync.core.lineage.laying import possible_tokens
from cdc_sync.core.migration.routes import LeftOut
from cdc_sync.core.model.positions import Commit, TableId

TABLE = TableId(database="shop", schema="public", table="orders")
OLD = Stamp(xid=10, at=0)
NOW = 1_700_000_000_000_000
EVENT = Moment(lsn=150, commit=Commit(at=NOW, xid=50))


def reading(lsn: int, columns: dict[int, str], highest: int | None = None, **stamps: Stamp) -> CatalogueReading:
    """`stamps` are those of attributes, as `a<number>`; the others are of a time that is not known."""
    last = max(columns, default=0) if highest is None else highest
    return CatalogueReading(
        table=TABLE,
        begun=lsn,
        ended=lsn,
        relid=16409,
        named=OLD,
        schema_named=OLD,
        attributes=tuple(
            Attribute(
                number=number,
                name=columns.get(number, ""),
                type="integer" if number in columns else "",
                stamp=stamps.get(f"a{number}", Stamp(xid=1000 * lsn + number)),
            )
            for number in range(1, last + 1)
        ),
    )


def numbers(
    before: CatalogueReading | None,
    after: CatalogueReading,
    *names: str,
    moment: Moment = EVENT,
    complete: bool = True,
    left_out: LeftOut | None = None,
) -> dict[str, set[int]] | None:
    possible = possible_tokens(before, after, names, moment, complete=complete, left_out=left_out)
    if possible is None:
        return None
    return {name: {token.number[1] for token in tokens} for name, tokens in possible.items()}  # type: ignore[index]


BEFORE = reading(100, {1: "id", 2: "a", 3: "z"})


def test_one_rename_is_proven() -> None:
    after = reading(200, {1: "id", 2: "b", 3: "z"})
    assert numbers(BEFORE, after, "id", "b", "z") == {"id": {1}, "b": {2}, "z": {3}}


def test_a_rename_in_the_middle_with_an_add_is_proven() -> None:
    after = reading(200, {1: "id", 2: "b", 3: "z", 4: "n"})
    assert numbers(BEFORE, after, "id", "b", "z", "n") == {"id": {1}, "b": {2}, "z": {3}, "n": {4}}


def test_a_last_column_that_was_replaced_may_have_been_renamed_first() -> None:
    after = reading(200, {1: "id", 2: "a", 4: "n"})
    assert numbers(BEFORE, after, "id", "a", "n") == {"id": {1}, "a": {2}, "n": {3, 4}}


def test_it_was_not_if_the_new_column_was_there_before_the_event() -> None:
    after = reading(200, {1: "id", 2: "a", 4: "n"}, a4=Stamp(xid=40, at=NOW - 5000))
    assert numbers(BEFORE, after, "id", "a", "n") == {"id": {1}, "a": {2}, "n": {4}}
    assert numbers(None, after, "n", complete=False) == {"n": {4}}, "and no reading from before is needed"


def test_an_attribute_that_nobody_wrote_between_two_readings_is_certain() -> None:
    same = Stamp(xid=7)
    before = reading(100, {1: "id", 2: "a"}, a1=same, a2=same)
    after = reading(200, {1: "id", 2: "a", 3: "n"}, a1=same, a2=same)
    assert numbers(before, after, "a", complete=False) == {"a": {2}}
    assert numbers(before, after, "id", "a", "b", complete=False) == {"id": {1}, "a": {2}, "b": {3}}
    assert numbers(before, after, "a", "id", complete=False) is None, "numbers never stand in another order"


def test_nothing_is_told_of_a_table_that_was_made_anew() -> None:
    unnamed = replace(BEFORE, relid=7, named=Stamp(xid=3))
    assert numbers(BEFORE, unnamed, "id", "a", "z") is None


@pytest.mark.parametrize("part", ["named", "schema_named"])
def test_a_table_that_may_have_had_its_name_from_another_one_tells_nothing(part: str) -> None:
    now = reading(200, {1: "id"}, a1=OLD)
    assert numbers(None, now, "id") == {"id": {1}}
    stamp = Stamp(xid=60, at=NOW + 5000)
    later = replace(now, named=stamp) if part == "named" else replace(now, schema_named=stamp)
    assert numbers(None, later, "id") is None
    assert numbers(replace(later, begun=100, ended=100), later, "id") == {"id": {1}}


def test_a_schema_gets_its_name_without_a_lock_so_that_more_time_has_to_lie_between() -> None:
    near = reading(200, {1: "id"}, a1=OLD)
    assert numbers(None, replace(near, schema_named=Stamp(xid=40, at=NOW - WIDE_MARGIN)), "id") is None
    assert numbers(None, replace(near, schema_named=Stamp(xid=40, at=NOW - WIDE_MARGIN - 1)), "id") == {"id": {1}}


def test_readings_of_another_server_or_timeline_are_not_joined() -> None:
    same = Stamp(xid=7)
    before = reading(100, {1: "id"}, a1=same)
    after = replace(reading(200, {1: "id"}, a1=same), server="1/00000002")
    assert numbers(before, after, "id", complete=False) == {"id": {1}}
    assert numbers(before, after, "x", complete=False) == {"x": {1}}
    longer = replace(after, attributes=(*after.attributes, *BEFORE.attributes[1:]))
    assert numbers(before, longer, "id", complete=False) == {"id": {1, 2, 3}}
    assert numbers(before, replace(longer, server=""), "id", complete=False) == {"id": {1}}


def test_more_columns_than_there_can_have_been_are_a_contradiction() -> None:
    assert numbers(BEFORE, replace(BEFORE, begun=200, ended=200), "id", "a", "z", "n") is None


def test_a_reading_with_fewer_numbers_than_before_is_a_contradiction() -> None:
    assert numbers(BEFORE, reading(200, {1: "id"}), "id") is None
    gone = reading(100, {2: "a"}, 2)
    assert numbers(gone, reading(200, {1: "id", 2: "a"}), "id", "a") is None


def test_columns_left_out_of_events_make_less_certain() -> None:
    after = reading(200, {1: "id", 2: "b", 3: "z"})
    partial = numbers(BEFORE, after, "id", "b", complete=False)
    assert partial == {"id": {1, 2}, "b": {2, 3}}
    assert numbers(BEFORE, after, "id", "b", "z", complete=False) == {"id": {1}, "b": {2}, "z": {3}}


@pytest.mark.parametrize(
    ("stamp", "commit", "snapshot", "expected"),
    [
        (Stamp(xid=40, at=NOW - 1), Commit(at=NOW, xid=50), False, True),
        (Stamp(xid=40, at=NOW), Commit(at=NOW, xid=50), False, False),
        (Stamp(xid=40, at=NOW - CLOCK_MARGIN - 1), Commit(at=NOW), False, True),
        (Stamp(xid=40, at=NOW - CLOCK_MARGIN), Commit(at=NOW), False, False),
        (Stamp(xid=50, at=NOW), Commit(at=NOW, xid=50), False, False),
        (Stamp(xid=60, at=NOW - 5000), Commit(at=NOW, xid=50), False, False),
        (Stamp(xid=60, at=NOW - CLOCK_STEP - 1), Commit(at=NOW, xid=50), False, True),
        (Stamp(xid=2**32 - 5, at=NOW - 5000), Commit(at=NOW, xid=50), False, True),
        (Stamp(xid=60, at=NOW - 5000), Commit(at=NOW), False, True),
        (Stamp(xid=40), Commit(at=NOW, xid=50), False, False),
        (Stamp(xid=40, at=NOW - 5000), None, False, False),
        (Stamp(xid=40, at=NOW - 5000), Commit(at=NOW), True, False),
        (Stamp(xid=40, at=NOW - WIDE_MARGIN - 1), Commit(at=NOW), True, True),
        (None, Commit(at=NOW), False, False),
    ],
)
def test_an_event_is_behind_what_was_committed_clearly_before_it(
    stamp: Stamp | None, commit: Commit | None, snapshot: bool, expected: bool
) -> None:
    assert Moment(lsn=1, commit=commit, snapshot=snapshot).is_behind(stamp) is expected


# ---- exactness: live numbers and the highest number ever given; a command adds, drops or rewrites one column

Numbers = tuple[frozenset[int], int]


def commands(state: Numbers, limit: int, may_touch: frozenset[int]) -> Iterator[Numbers]:
    live, highest = state
    if highest < limit and highest + 1 in may_touch:
        yield live | {highest + 1}, highest + 1
    for number in live & may_touch:
        yield live - {number}, highest


@cache
def reachable(state: Numbers, limit: int, may_touch: frozenset[int]) -> frozenset[Numbers]:
    found, front = {state}, [state]
    while front:
        front = [new for old in front for new in commands(old, limit, may_touch) if new not in found]
        found |= set(front)
    return frozenset(found)


states = (
    st.integers(0, 4)
    .flatmap(
        lambda highest: st.tuples(st.frozensets(st.integers(1, max(highest, 1)), max_size=highest), st.just(highest))
    )
    .filter(lambda state: all(number <= state[1] for number in state[0]))
)


@settings(max_examples=150, deadline=None)
@given(states, st.data(), st.booleans(), st.booleans())
def test_what_is_possible_is_exactly_what_some_history_does(
    start: Numbers, data: st.DataObject, complete: bool, has_before: bool
) -> None:
    limit = start[1] + data.draw(st.integers(0, 3))
    everything = frozenset(range(1, limit + 1))
    end = data.draw(
        st.sampled_from(sorted(reachable(start, limit, everything), key=lambda state: (state[1], sorted(state[0]))))
    )
    if not has_before:
        start = (frozenset(), 0)
    # Numbers of which it is known that nobody touched them behind the event; all below them had been given then.
    settled = data.draw(st.frozensets(st.integers(1, max(end[1], 1)))) & frozenset(range(1, end[1] + 1))
    middles = [
        middle
        for middle in reachable(start, limit, everything)
        if end in reachable(middle, limit, everything - settled) and all(number <= middle[1] for number in settled)
    ]
    names = data.draw(names_of(end, settled, complete))
    expected: list[set[int]] = [set() for _ in names]
    for live, _ in middles:
        for seen in [tuple(sorted(live))] if complete else combinations(sorted(live), len(names)):
            if fits(seen, names, live & settled):
                for index, number in enumerate(seen):
                    expected[index].add(number)
    stamps = {f"a{number}": Stamp(xid=40, at=NOW - 5000) for number in settled}
    before = reading(1, {number: f"b{number}" for number in start[0]}, start[1]) if has_before else None
    after = reading(9, {number: f"c{number}" for number in end[0]}, end[1], **stamps)
    found = numbers(before, after, *names, complete=complete)
    if not all(expected):
        assert found is None
        return
    assert found is not None
    assert [found[name] for name in names] == expected
    event(f"certain: {sum(len(one) == 1 for one in expected)} of {len(names)}")


@st.composite
def names_of(draw: st.DrawFn, end: Numbers, settled: frozenset[int], complete: bool) -> tuple[str, ...]:
    """Settled columns by the names they have, others by names that none of these has."""
    shown = [f"c{number}" for number in sorted(end[0] & settled) if complete or draw(st.booleans())]
    others = [f"n{index}" for index in range(draw(st.integers(0 if shown else 1, 4)))]
    for other in others:
        shown.insert(draw(st.integers(0, len(shown))), other)
    return tuple(shown)


def fits(seen: Sequence[int], names: Sequence[str], named: frozenset[int]) -> bool:
    """Whether columns can have these names in this order: those of `named` have their own, and no other has them."""
    if len(seen) != len(names):
        return False
    pairs = zip(seen, names, strict=True)
    return all((name == f"c{number}") if number in named else not name.startswith("c") for number, name in pairs)


# ---- soundness: a database with transactions that overlap and a clock, read at any time


@dataclass
class Database:
    """One table; each committed transaction changes columns or writes a row, and takes a number before or late."""

    lsn: int = 0
    clock: int = NOW
    xid: int = 100
    early: list[int] = field(default_factory=list)
    columns: dict[int, str] = field(default_factory=dict)
    highest: int = 0
    stamps: dict[int, Stamp] = field(default_factory=dict)

    def commit(self, touched: set[int], gap: int, *, xid: int | None = None) -> Commit:
        self.lsn += 10
        self.clock += gap
        if xid is None:
            self.xid += 1
            xid = self.xid
        self.stamps |= dict.fromkeys(touched, Stamp(xid=xid, at=self.clock))
        return Commit(at=self.clock, xid=xid)

    def read(self, *, times: bool) -> CatalogueReading:
        stamps = {
            f"a{number}": stamp if times else replace(stamp, at=None) for number, stamp in self.stamps.items()
        }  # fmt: skip
        return reading(self.lsn, self.columns, self.highest, **stamps)


@settings(max_examples=250, deadline=None)
@given(st.data(), st.booleans(), st.booleans())
def test_no_column_of_a_random_history_is_told_wrongly(data: st.DataObject, times: bool, complete: bool) -> None:
    base = Database()
    base.columns, base.highest = dict(enumerate("abcd", 1)), 4
    base.commit({1, 2, 3, 4}, 0)
    readings: list[CatalogueReading] = []
    events: list[tuple[Moment, dict[int, str]]] = []
    for _ in range(data.draw(st.integers(3, 12))):
        kind = data.draw(st.sampled_from(["change", "row", "row", "read"]))
        gap = data.draw(st.sampled_from([0, 1, 900, 5_000, 2_000_000]))
        if kind == "read":
            readings.append(base.read(times=times))
            continue
        if data.draw(st.booleans()):
            base.xid += 1
            base.early.append(base.xid)
        late = data.draw(st.booleans())
        xid = base.early.pop() if base.early and late else None
        inside: list[dict[int, str]] = []
        touched: set[int] = set()
        for _ in range(data.draw(st.integers(1, 3)) if kind == "change" else 0):
            touched |= change(base, data)
            if data.draw(st.booleans()):
                inside.append(dict(base.columns))
        lsn = base.lsn + 5
        commit = base.commit(touched, gap, xid=xid)
        shown = inside or ([dict(base.columns)] if kind == "row" else [])
        events += [(Moment(lsn=lsn, commit=replace(commit, at=commit.at - commit.at % 1000)), at) for at in shown]
    readings.append(base.read(times=times))
    decided = 0
    for moment, columns in events:
        after = next(item for item in readings if item.begun >= moment.lsn)
        before = next((item for item in reversed(readings) if item.ended <= moment.lsn), None)
        drawn: frozenset[int] = frozenset()
        if columns and not complete:
            drawn = data.draw(st.frozensets(st.sampled_from(sorted(columns))))
        seen = {number: name for number, name in columns.items() if number not in drawn}
        found = numbers(before, after, *seen.values(), moment=moment, complete=complete)
        if found is None:
            assert not moment.is_behind(after.named) or not seen
            continue
        for number, name in seen.items():
            assert number in found[name]
            decided += found[name] == {number}
    event(f"decided: {min(decided, 5)}")


def change(base: Database, data: st.DataObject) -> set[int]:
    free = sorted(set("abcdefg") - set(base.columns.values()))
    match data.draw(st.sampled_from(["add", "drop", "rename", "rename", "default"])):
        case "add" if free:
            base.highest += 1
            base.columns[base.highest] = data.draw(st.sampled_from(free))
            return {base.highest}
        case "drop" if len(base.columns) > 1:
            number = data.draw(st.sampled_from(sorted(base.columns)))
            del base.columns[number]
            return {number}
        case "rename" if free:
            number = data.draw(st.sampled_from(sorted(base.columns)))
            base.columns[number] = data.draw(st.sampled_from(free))
            return {number}
        case _:
            return {data.draw(st.sampled_from(sorted(base.columns)))}
