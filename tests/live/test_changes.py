"""The random changes and the verdict do what the live test takes them to do."""

from __future__ import annotations

import random
import re

import pytest

from tests.live.changes import CHANGES, Table
from tests.live.dialects import Dialect, Mariadb, Postgres
from tests.live.history import State
from tests.live.model import KEY, Model
from tests.live.verdict import Recorded, judge


def changed_at_random(dialect: Dialect, chance: random.Random, count: int) -> list[tuple[Model, list[str]]]:
    model = Model(table="h1")
    for place, kind in enumerate((KEY, "int", "text", "money", "int")):
        model.add("id" if kind == KEY else f"c{place}", kind)
    table = Table(model, "live.h1", dialect, chance)
    found = []
    for change in chance.choices(list(CHANGES), k=count):
        statements = change(table)
        if statements is not None:
            found.append((model.copy(), statements))
    return found


@pytest.mark.parametrize("dialect", [Postgres, Mariadb])
def test_the_model_stays_a_table(dialect: type[Dialect]) -> None:
    chance = random.Random(1)
    for model, statements in changed_at_random(dialect(chance=chance), chance, 1000):
        names = [column.name.casefold() for column in model.columns]
        assert len(set(names)) == len(names), statements
        assert len({column.number for column in model.columns}) == len(names), statements
        assert [column.kind for column in model.columns].count(KEY) == 1, statements
        assert len(names) > 2, statements


def test_no_alter_uses_a_name_that_it_gives_away() -> None:
    chance = random.Random(2)
    for _, statements in changed_at_random(Mariadb(chance=chance), chance, 1000):
        for statement in statements:
            clauses = statement.split(", ") if statement.startswith("alter") else []
            names = [re.findall("`([^`]*)`", clause) for clause in clauses if "drop" in clause or len(clauses) > 1]
            if len(names) > 1:
                flat = [name for each in names for name in set(each)]
                assert len(set(flat)) == len(flat), statement


def states(*columns: str) -> list[State]:
    """States as `"id=1 a=2"`."""
    found = []
    for place, text in enumerate(columns):
        pairs = tuple((name, int(number)) for name, _, number in (part.partition("=") for part in text.split()))
        found.append(State(place=(10 * place,), columns=pairs, statement=text, seen=True))
    return found


def versions(*columns: str) -> list[Recorded]:
    """Versions as `"id=1 a=2"`, with ids; each begins while the state of the same place is in effect."""
    return [
        Recorded(number=number, place=(state.place[0] + 5,), columns=state.columns)
        for number, state in enumerate(states(*columns), 1)
    ]


def test_a_rename_that_was_followed_is_right() -> None:
    verdict = judge(states("id=1 a=2", "id=1 b=2"), versions("id=1 a=7", "id=1 b=7"))
    assert (verdict.problems, verdict.states, verdict.columns) == ((), 2, 4)


def test_a_rename_that_was_missed_splits_a_column() -> None:
    verdict = judge(states("id=1 a=2", "id=1 b=2"), versions("id=1 a=7", "id=1 b=8"))
    assert (len(verdict.wrong), len(verdict.split)) == (0, 1)


def test_a_rename_that_never_was_makes_two_columns_one() -> None:
    verdict = judge(states("id=1 a=2", "id=1 b=3"), versions("id=1 a=7", "id=1 b=7"))
    assert (len(verdict.wrong), len(verdict.split)) == (1, 0)


def test_a_swap_that_nobody_noticed_is_wrong_twice() -> None:
    verdict = judge(states("a=1 b=2", "a=2 b=1"), versions("a=1 b=2"))
    assert (len(verdict.wrong), len(verdict.split)) == (2, 2)


def test_a_state_that_no_row_was_seen_in_does_not_count() -> None:
    truth = states("a=1", "b=1", "c=1")
    truth[1].seen = False
    found = versions("a=1", "c=1", "c=1")
    assert judge(truth, [found[0], found[2]]).problems == ()


def test_names_that_differ_are_told() -> None:
    assert len(judge(states("a=1 b=2"), versions("b=2 a=1")).other) == 1
