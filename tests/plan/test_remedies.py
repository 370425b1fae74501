"""What a pause tells people to do is done here as it is written, and the table goes on.

Remedies at the source or the connector are not: no word of the operator's stands for a record that is in the topic.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.routes import Decision, Route
from cdc_sync.core.planning.deciding import Words, decide
from cdc_sync.core.planning.observation import Refusal, TablePlan
from cdc_sync.core.schema.policy import Policy
from cdc_sync.testing import INT32, TEXT, array, column
from tests.plan.model import ROUTE
from tests.plan.tables import Table

_COMMAND = re.compile(r"`cdc-sync decide CONFIG (?P<table>\S+) (?P<said>[^`]*)`")
_SETTING = re.compile(r"set policy\.(\w+): (\w+)")
_INITIAL = re.compile(r"set initial_values: \{(\w+): <value>\}")


def with_policy(**said: Any) -> Route:
    return replace(ROUTE, policy=Policy(**said))


def renamed() -> Table:
    table = Table()
    table.rename_column("z", "y")
    return table.row()


def added_again_between_two_events() -> Table:
    table = Table()
    table.drop_column("a")
    table.add_column(column("a", INT32))
    return table.row()


def name_of_a_kept_column() -> Table:
    table = renamed()
    table.add_column(column("z", TEXT))
    return table.row()


def unknown_default() -> Table:
    table = Table()
    table.add_column(column("n", INT32, optional=False, default=0), initial=3)
    return table.row(n=4)


def retyped() -> Table:
    table = Table()
    table.alter_column("a", lambda _: column("a", TEXT))
    return table.row()


def added() -> Table:
    table = Table()
    table.add_column(column("n", INT32))
    return table.row()


def dropped() -> Table:
    table = Table()
    table.drop_column("a")
    return table.row()


def rekeyed() -> Table:
    table = Table()
    table.key = ("id", "a")
    return table.row(a=1)


CASES: Mapping[str, tuple[Callable[[], Table], Route, int]] = {
    "nothing proves a rename": (renamed, with_policy(unproven_rename="pause"), 3),
    "a name stands for another column, and the policy is add": (added_again_between_two_events, ROUTE, 1),
    "a new column of a kept one's name": (name_of_a_kept_column, ROUTE, 2),
    "a doubtful column is not ignored": (renamed, with_policy(add_column="ignore"), 1),
    "nobody knows what rows hold": (unknown_default, with_policy(unknown_values="pause"), 1),
    "a type that does not fit": (retyped, with_policy(incompatible_types="pause"), 1),
    "asked before a column is added": (added, with_policy(add_column="pause"), 1),
    "asked before a column is dropped": (dropped, with_policy(drop_column="pause"), 1),
    "asked before a key changes": (rekeyed, with_policy(change_key="pause"), 1),
}


def refusal(plan: TablePlan) -> Refusal:
    assert plan.refusal is not None
    return plan.refusal


def ways(stop: Refusal, route: Route, history: History) -> Iterator[Route]:
    """Do each of the things that a remedy names, one by one."""
    for found in _COMMAND.finditer(stop.why.remedy):
        assert found["table"] == str(route.table)
        for said in _filled(found["said"], stop):
            yield replace(route, decisions=_decided(said, history, str(stop.kafka)))
    for name, value in _SETTING.findall(stop.why.remedy):
        yield replace(route, policy=replace(route.policy, **{name: value}))
    for name in _INITIAL.findall(stop.why.remedy):
        yield replace(route, initials={name: 7})


def _filled(said: str, stop: Refusal) -> Iterator[str]:
    if "NAME" not in said:
        yield said
        return
    (names,) = re.findall(r"added again, (.*?);", stop.why.remedy)
    yield said.replace("NAME", names.split(" or ")[0])


def _decided(said: str, history: History, at: str) -> tuple[Decision, ...]:
    arguments = shlex.split(said)
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    old, _, new = given.get("--rename", "").partition("=")
    words = Words(
        renames={old: new} if old else {},
        not_same=tuple(filter(None, [given.get("--not-same")])),
        dropped=tuple(filter(None, [given.get("--drop")])),
    )
    return decide(history, words, at, ICEBERG).with_late(history.head.number, ())


@pytest.mark.parametrize(("build", "route", "number"), CASES.values(), ids=list(CASES))
def test_each_thing_that_it_names_lets_the_table_go_on(build: Callable[[], Table], route: Route, number: int) -> None:
    table = build()
    plan = table.plan(route)
    stop = refusal(plan)

    tried = list(ways(stop, route, History(table=table.id, versions=plan.versions)))

    assert len(tried) == number, stop.why.remedy
    for other in tried:
        assert table.plan(other).refusal is None, (stop.why.remedy, other)


def test_a_name_with_a_blank_can_be_pasted_into_a_shell() -> None:
    table = Table(column("id", INT32, optional=False), column("o'ld", TEXT))
    table.rename_column("o'ld", "the new")
    route = with_policy(unproven_rename="pause")
    plan = table.row().plan(route)

    (first, *_) = ways(refusal(plan), route, History(table=table.id, versions=plan.versions))

    assert first.decisions[0].renames == {"o'ld": "the new"}


def test_a_remedy_that_is_in_force_already_is_not_named() -> None:
    assert "unproven_rename" not in refusal(added_again_between_two_events().plan()).why.remedy
    kept = Table()
    kept.alter_column("a", lambda _: column("a", array(TEXT)), convert=lambda _: None)
    assert kept.row().plan().refusal is None
