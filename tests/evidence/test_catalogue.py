"""What readings prove, against a model that walks every history one command at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from hypothesis import event, given, settings
from hypothesis import strategies as st

from cdc_sync.capture.catalogue_sql import postgres_reading, sqlserver_reading
from cdc_sync.events import NO_POSITION, SourcePosition, TableId
from cdc_sync.evidence.catalogue import (
    CatalogueReading,
    bracket,
    claims,
    encloses,
    possible_tokens,
    structure_at,
)

TABLE = TableId(database="shop", schema="public", table="orders")


def at(lsn: int) -> SourcePosition:
    return SourcePosition(kind="postgresql", parts=(lsn, lsn))


def reading(lsn: int, columns: dict[int, str], highest: int | None = None) -> CatalogueReading:
    return CatalogueReading(
        position=at(lsn),
        table=TABLE,
        relid=16409,
        columns=tuple((number, name, "integer") for number, name in sorted(columns.items())),
        highest=max(columns, default=0) if highest is None else highest,
    )


def numbers(before: CatalogueReading, after: CatalogueReading, *names: str) -> dict[str, set[int]] | None:
    possible = possible_tokens(before, after, names)
    if possible is None:
        return None
    return {name: {token.number[1] for token in tokens} for name, tokens in possible.items()}  # type: ignore[index]


BEFORE = reading(100, {1: "id", 2: "a", 3: "z"})


def test_one_rename_is_proven() -> None:
    after = reading(200, {1: "id", 2: "b", 3: "z"})
    assert numbers(BEFORE, after, "id", "b", "z") == {"id": {1}, "b": {2}, "z": {3}}
    assert claims(BEFORE.tokens, BEFORE, after, ("id", "b", "z")).same == {"id": "id", "b": "a", "z": "z"}


def test_one_drop_is_proven() -> None:
    after = reading(200, {1: "id", 3: "z"})
    assert numbers(BEFORE, after, "id", "z") == {"id": {1}, "z": {3}}
    assert ("a", "z") in claims(BEFORE.tokens, BEFORE, after, ("id", "z")).different


def test_one_add_is_proven_to_be_none_of_the_old_columns() -> None:
    after = reading(200, {1: "id", 2: "a", 3: "z", 4: "n"})
    found = claims(BEFORE.tokens, BEFORE, after, ("id", "a", "z", "n"))
    assert found.same == {"id": "id", "a": "a", "z": "z"}
    assert {(head, "n") for head in ("id", "a", "z")} <= found.different


def test_a_rename_in_the_middle_with_an_add_is_proven() -> None:
    after = reading(200, {1: "id", 2: "b", 3: "z", 4: "n"})
    assert numbers(BEFORE, after, "id", "b", "z", "n") == {"id": {1}, "b": {2}, "z": {3}, "n": {4}}


def test_swapped_names_are_proven() -> None:
    after = reading(200, {1: "id", 2: "z", 3: "a"})
    assert claims(BEFORE.tokens, BEFORE, after, ("id", "z", "a")).same == {"id": "id", "z": "a", "a": "z"}


def test_a_last_column_that_was_replaced_may_have_been_renamed_first() -> None:
    after = reading(200, {1: "id", 2: "a", 4: "n"})
    assert numbers(BEFORE, after, "id", "a", "n") == {"id": {1}, "a": {2}, "n": {3, 4}}
    found = claims(BEFORE.tokens, BEFORE, after, ("id", "a", "n"))
    assert "n" not in found.same
    assert ("z", "n") not in found.different


def test_a_column_that_came_and_went_between_the_readings_is_thought_of() -> None:
    after = reading(200, {1: "id", 2: "a", 3: "z"}, highest=4)
    assert numbers(BEFORE, after, "id", "a", "z", "n") == {"id": {1}, "a": {2}, "z": {3}, "n": {4}}


def test_nothing_is_told_of_a_table_that_was_made_anew() -> None:
    assert numbers(BEFORE, replace(BEFORE, relid=7, position=at(200)), "id", "a", "z") is None


def test_more_columns_than_there_can_have_been_are_a_contradiction() -> None:
    assert numbers(BEFORE, replace(BEFORE, position=at(200)), "id", "a", "z", "n") is None


def test_equal_readings_around_an_event_prove_its_structure() -> None:
    after = replace(BEFORE, position=at(200))
    structure = bracket(BEFORE, after, at(150))
    assert structure is not None
    assert {column.name: column.token for column in structure.columns} == BEFORE.tokens
    assert bracket(BEFORE, after, at(250)) is None
    assert bracket(BEFORE, reading(200, {1: "id", 2: "b", 3: "z"}), at(150)) is None


def test_a_rename_that_was_undone_between_equal_readings_is_still_read_right() -> None:
    structure = structure_at([BEFORE, replace(BEFORE, position=at(200))], TABLE, at(150), ("id", "tmp", "z"))
    assert structure is not None
    assert structure.token("tmp") == BEFORE.tokens["a"]


def test_the_nearest_readings_around_an_event_are_used() -> None:
    readings = [reading(300, {1: "id"}, highest=9), BEFORE, replace(BEFORE, position=at(200)), reading(10, {1: "id"})]
    structure = structure_at(readings, TABLE, at(150), ("id", "a", "z"))
    assert structure is not None
    assert len(structure.columns) == 3
    assert structure_at(readings, TABLE, at(301), ("id",)) is None


def test_an_event_is_placed_by_its_own_lsn_and_not_by_the_commit_before_it() -> None:
    late = SourcePosition(kind="postgresql", parts=(95, 250))
    assert not encloses(BEFORE, reading(200, {1: "id"}), late)
    assert late < at(200)


def test_columns_left_out_of_events_make_less_certain() -> None:
    after = replace(BEFORE, position=at(200))
    partial = possible_tokens(BEFORE, after, ("id", "b"), complete=False)
    assert partial is not None
    assert {name: len(tokens) for name, tokens in partial.items()} == {"id": 2, "b": 2}
    whole = possible_tokens(BEFORE, after, ("id", "b", "z"), complete=False)
    assert whole is not None
    assert all(len(tokens) == 1 for tokens in whole.values())


def test_rows_of_the_catalogues_are_read() -> None:
    rows = [(26214400, 16409, 3, 1, "id", "integer"), (26214400, 16409, 3, 3, "b", "text")]
    read = postgres_reading(TABLE, rows)
    assert read is not None
    assert (read.position, set(read.live), set(read.dropped)) == (at(26214400), {1, 3}, {2})
    empty = postgres_reading(TABLE, [(5, 16409, 1, None, None, None)])
    assert empty is not None
    assert (empty.columns, set(empty.dropped)) == ((), {1})
    assert postgres_reading(TABLE, []) is None
    server = sqlserver_reading(TABLE, NO_POSITION, [(77, 4, 1, "id", "int"), (77, 4, 4, "b", "nvarchar")])
    assert server is not None
    assert (server.relid, set(server.live), server.highest) == (77, {1, 4}, 4)
    assert sqlserver_reading(TABLE, NO_POSITION, []) is None


# ---- the model: live numbers and the highest number ever given; a command adds or drops one column

Numbers = tuple[frozenset[int], int]


def commands(state: Numbers, limit: int) -> Iterator[Numbers]:
    live, highest = state
    if highest < limit:
        yield live | {highest + 1}, highest + 1
    for number in live:
        yield live - {number}, highest


@cache
def reachable(state: Numbers, limit: int) -> frozenset[Numbers]:
    found, front = {state}, [state]
    while front:
        front = [new for old in front for new in commands(old, limit) if new not in found]
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
@given(states, st.data(), st.booleans())
def test_what_is_possible_is_exactly_what_some_history_does(
    start: Numbers, data: st.DataObject, complete: bool
) -> None:
    limit = start[1] + data.draw(st.integers(0, 3))
    end = data.draw(st.sampled_from(sorted(reachable(start, limit), key=lambda state: (state[1], sorted(state[0])))))
    middles = [m for m in reachable(start, limit) if end in reachable(m, limit)]
    count = data.draw(st.integers(1, 6))
    expected: list[set[int]] = [set() for _ in range(count)]
    for live, _ in middles:
        for seen in [live] if complete else subsets(live, count):
            if len(seen) == count:
                for index, number in enumerate(sorted(seen)):
                    expected[index].add(number)
    before = reading(1, {number: f"c{number}" for number in start[0]}, start[1])
    after = reading(9, {number: f"d{number}" for number in end[0]}, end[1])
    names = tuple(f"n{index}" for index in range(count))
    found = possible_tokens(before, after, names, complete=complete)
    if not all(expected):
        assert found is None
        return
    assert found is not None
    assert [{t.number[1] for t in found[name]} for name in names] == expected  # type: ignore[index]
    event(f"certain: {sum(len(one) == 1 for one in expected)} of {count}")


def subsets(live: frozenset[int], count: int) -> list[frozenset[int]]:
    found = [frozenset[int]()]
    for number in live:
        found += [one | {number} for one in found]
    return [one for one in found if len(one) == count]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_claim_about_a_random_history_is_wrong(data: st.DataObject) -> None:
    table = dict(enumerate(data.draw(st.permutations(["a", "b", "c", "d"])), 1))
    highest = 4
    shots: list[tuple[dict[int, str], int]] = [(dict(table), highest)]
    for _ in range(2):
        for _ in range(data.draw(st.integers(0, 3))):
            free = sorted({"a", "b", "c", "d", "e", "f"} - set(table.values()))
            match data.draw(st.sampled_from(["add", "drop", "rename"])):
                case "add" if free:
                    highest += 1
                    table[highest] = data.draw(st.sampled_from(free))
                case "drop" if len(table) > 1:
                    del table[data.draw(st.sampled_from(sorted(table)))]
                case "rename" if free:
                    table[data.draw(st.sampled_from(sorted(table)))] = data.draw(st.sampled_from(free))
        shots.append((dict(table), highest))
    before, middle, after = reading(1, *shots[0]), shots[1][0], reading(9, *shots[2])
    names = [middle[number] for number in sorted(middle)]
    found = claims(before.tokens, before, after, names)
    by_name = {name: number for number, name in middle.items()}
    heads = {name: number for number, name, _ in before.columns}
    for name, head in found.same.items():
        assert by_name[name] == heads[head]
    for head, name in found.different:
        assert by_name[name] != heads[head]
    event(f"decided: {len(found.same)} of {len(names)}")
