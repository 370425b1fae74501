"""What each mode makes of each kind of change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.config import parse_config
from cdc_sync.config.routes import route as find_route
from cdc_sync.core.debezium.conversions import observed
from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.planning.change_policy import Wanted, wanted
from cdc_sync.core.planning.observation import Observation, TablePlan
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.schema.align import align
from cdc_sync.core.schema.alignment import NEEDS_RESYNC, Alignment, Evidence, Facts, Proof
from cdc_sync.core.schema.types import DataType
from cdc_sync.testing import FLOAT64, INT32, INT64, column
from tests.plan.model import ROUTE, observations
from tests.plan.tables import Table

MODE_NAMES = ("evolve", "try_evolve", "lenient", "exception", "ignore")


def added(table: Table) -> None:
    table.add_column(column("n", INT32))


def dropped(table: Table) -> None:
    table.drop_column("a")


def renamed(table: Table) -> None:
    table.rename_column("a", "b")


def renamed_and_widened(table: Table) -> None:
    table.alter_column("a", lambda it: replace(column("b", INT64), optional=it.optional))


def retyped(table: Table) -> None:
    table.alter_column("a", lambda it: column("a", FLOAT64))


def rekeyed(table: Table) -> None:
    table.key = ("a",)


_ASKED = "pauses: {}, and policy.{} is pause"
_COLUMNS = "id a z"

SCRIPT: dict[Any, tuple[str, str, str, str, str]] = {
    added: (
        "id a z n",
        "id a z n",
        "id a z n",
        _ASKED.format("column 'n' was added", "add_column"),
        _COLUMNS,
    ),
    dropped: ("id z", "id z", "id (a) z", _ASKED.format("column 'a' was dropped", "drop_column"), "id (a) z"),
    renamed: (
        "id b z",
        "id b z",
        "id b z",
        _ASKED.format("column 'a' was renamed to 'b'", "rename_column"),
        _ASKED.format("column 'a' was renamed to 'b'", "rename_column"),
    ),
    renamed_and_widened: (
        "id b:BIGINT z",
        "id b:BIGINT z",
        "id b:BIGINT z",
        _ASKED.format("column 'a' was renamed to 'b'", "rename_column"),
        _ASKED.format("column 'a' was renamed to 'b'", "rename_column"),
    ),
    retyped: (
        "id a:DOUBLE z",
        "id (a__retired_2) a:DOUBLE z",
        "id (a__retired_2) a:DOUBLE z",
        _ASKED.format("column 'a' has another type", "change_type"),
        _ASKED.format("column 'a' has another type", "change_type"),
    ),
    rekeyed: (
        _COLUMNS,
        _COLUMNS,
        _COLUMNS,
        _ASKED.format("the key is (a) now", "change_key"),
        _ASKED.format("the key is (a) now", "change_key"),
    ),
}
"""Change -> what becomes of the columns `id a z` in each mode: the columns (kept ones in brackets), or a pause."""


def route_of(for_all: str, for_one: str) -> Route:
    config = parse_config(
        "pipeline: {name: p, state: /tmp/p}\nkafka: {bootstrap_servers: 'k:9', topics: [t]}\n"
        f"tables: [{{table: {ROUTE.table}, policy: {for_one}}}]\npolicy: {for_all}\n"
    )
    found = find_route(config, ROUTE.table)
    assert found is not None
    return found


def route(mode: str) -> Route:
    return replace(ROUTE, policy=route_of("{}", f"{{mode: {mode}}}").policy)


def _behind(table: Table) -> list[Observation]:
    """The last event, as the first of a stretch."""
    events = table.events()
    return list(observations(None, [events[0], events[-1]], events))[-1:]


def outcome(plan: TablePlan) -> str:
    if plan.refusal is not None:
        return f"pauses: {plan.refusal.why.reason}"
    before = {item.name: item.type for item in plan.versions[0].schema.columns}
    return " ".join(
        f"({item.name})" if item.retired else item.name + _other(before.get(item.name, before["a"]), item.type)
        for item in plan.versions[-1].schema.columns
    )


def _other(before: DataType, after: DataType) -> str:
    return "" if before == after else f":{type_text(after)}"


@pytest.mark.parametrize("mode", MODE_NAMES)
@pytest.mark.parametrize("change", SCRIPT, ids=lambda change: change.__name__)
def test_a_change_in_a_mode(change: Any, mode: str) -> None:
    table = Table()
    change(table)
    table.row()

    assert outcome(table.plan(route(mode))) == SCRIPT[change][MODE_NAMES.index(mode)]


def test_an_ignored_column_is_told_of_once_and_marked_if_it_is_wanted_later() -> None:
    table = Table()
    added(table)
    table.row(n=1).row(n=2)
    ignored = table.plan(route("ignore"))

    (_, version) = ignored.versions
    assert (version.changes, [item.kind for item in version.evidence]) == ((), ["ignored"])
    assert ignored.warnings == ("n: its values are left out: policy.add_column is ignore",)

    history = History(table=table.id, versions=ignored.versions)
    assert plan_table(history, _behind(table), route("ignore"), ICEBERG) == TablePlan(versions=())
    (wanted,) = plan_table(history, _behind(table), route("evolve"), ICEBERG).versions
    assert [item.kind for item in wanted.evidence] == ["position", NEEDS_RESYNC]
    assert wanted.schema.columns[-1].initial is None


def test_what_may_be_a_rename_is_not_ignored() -> None:
    table = Table()
    table.drop_column("z")
    table.add_column(column("y", INT32))
    table.row()

    plan = table.plan(route("ignore"))

    assert plan.refusal is not None
    assert plan.refusal.why.reason.startswith("column 'y' is new or another one's new name")


def test_a_declared_drop_is_wanted_whatever_the_mode() -> None:
    table = Table()
    dropped(table)
    table.row()

    assert outcome(table.plan(replace(route("lenient"), drops=frozenset({"a"})))) == "id z"


@pytest.mark.parametrize(
    ("for_all", "for_one", "expected"),
    [
        ("{}", "{}", ("apply", "apply", "rewrite")),
        ("{mode: lenient}", "{}", ("keep", "ignore", "side_column")),
        ("{mode: lenient, drop_column: apply}", "{}", ("apply", "ignore", "side_column")),
        ("{mode: lenient, drop_column: apply}", "{truncate: pause}", ("apply", "pause", "side_column")),
        ("{drop_column: apply}", "{mode: exception}", ("pause", "pause", "pause")),
        ("{mode: exception}", "{mode: evolve, drop_column: keep}", ("keep", "apply", "rewrite")),
    ],
)
def test_what_is_said_of_one_thing_wins_over_a_mode_and_a_table_over_all(
    for_all: str, for_one: str, expected: tuple[str, str, str]
) -> None:
    policy = route_of(for_all, for_one).policy

    assert (policy.drop_column, policy.truncate, policy.incompatible_types) == expected


def test_a_kept_column_stays_however_often_it_is_proven_to_be_gone() -> None:
    table = Table()
    dropped(table)
    table.row()
    history = History(table=table.id, versions=table.plan(route("lenient")).versions)
    kept = next(item for item in history.head.schema.columns if item.retired)
    table.add_column(column("n", INT32))
    table.row()

    shown = table.events()[-1].known.schema
    assert shown is not None
    seen, before = observed(shown), history.head.schema
    proof = Proof(kind="message", gone={kept.id: "alter table t drop column a"})
    alignment = align(before, seen, Facts(append_only=True, proofs=(proof,)))
    assert kept.id in alignment.dropped

    found = {mode: wanted(before, seen, alignment, route(mode).policy) for mode in ("lenient", "evolve")}

    left = {mode: item.alignment.dropped for mode, item in found.items() if isinstance(item, Wanted)}
    assert left == {"lenient": (), "evolve": (kept.id,)}
    said = wanted(before, seen, replace(alignment, evidence=_declared(alignment)), route("lenient").policy)
    assert isinstance(said, Wanted)
    assert said.alignment.dropped == (kept.id,)


def _declared(alignment: Alignment) -> tuple[Evidence, ...]:
    return (*alignment.evidence, Evidence(subject="a", kind="declared", text="drops: [a]"))
