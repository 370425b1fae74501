"""What is planned for changes inside a column, in every mode, and how it is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import DELTA, HUDI, ICEBERG, PARQUET, Capabilities
from cdc_sync.core.migration.migration import AlterTable, RewriteTable, migration
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.migration.wording import phrases, type_text
from cdc_sync.core.planning.explain import explain
from cdc_sync.core.planning.observation import TablePlan
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.schema.alignment import NEEDS_RESYNC, SIDE_COLUMN
from cdc_sync.core.schema.policy import Policy
from cdc_sync.testing import FLOAT64, INT32, INT64, TEXT, array, column, struct
from tests.plan.model import ROUTE, observations
from tests.plan.tables import Table
from tests.plan.test_modes import MODE_NAMES, route

SKU, QTY = column("sku", TEXT), column("qty", INT32)


def lines(*members: ConnectSchema) -> ConnectSchema:
    return column("lines", array(struct("shop.Line", *members)))


def changed(*members: ConnectSchema, before: tuple[ConnectSchema, ...] = (SKU, QTY)) -> Table:
    table = Table(column("id", INT32, optional=False), lines(*before))
    table.alter_column("lines", lambda _: lines(*members))
    table.row()
    return table


def outcome(plan: TablePlan) -> str:
    if plan.refusal is not None:
        return f"pauses: {plan.refusal.why.reason}"
    return ", ".join(
        f"({item.name})" if item.retired else type_text(item.type).removeprefix("ARRAY<STRUCT<").removesuffix(">>")
        for item in plan.versions[-1].schema.columns[1:]
    )


_ASKED = "pauses: member 'lines.element.{}' was {}, and policy.{} is pause"
_TYPE = "pauses: part 'lines.element.qty' has another type, and policy.change_type is pause"
_BOTH = "sku: STRING, qty: INT"
_SPLIT = "pauses: member 'lines.element.note' is new or another one's new name, so it cannot be ignored without losing "
SCRIPT = {
    "added": (
        (SKU, column("note", TEXT), QTY),
        *("sku: STRING, note: STRING, qty: INT",) * 3,
        _ASKED.format("note", "added", "add_column"),
        _BOTH,
    ),
    "dropped": (
        (SKU,),
        *("sku: STRING",) * 2,
        _BOTH,
        _ASKED.format("qty", "dropped", "drop_column"),
        _BOTH,
    ),
    "renamed or replaced": (
        (SKU, column("note", INT32)),
        *("sku: STRING, note: INT",) * 2,
        "sku: STRING, qty: INT, note: INT",
        _ASKED.format("qty", "dropped", "drop_column"),
        _SPLIT + "values, perhaps of a member that is wanted",
    ),
    "moved": ((QTY, SKU), *("qty: INT, sku: STRING",) * 5),
    "wider": ((SKU, column("qty", INT64)), *("sku: STRING, qty: BIGINT",) * 3, *(_TYPE,) * 2),
    "cast": (
        (SKU, column("qty", TEXT)),
        "sku: STRING, qty: STRING",
        *("(lines__retired_2), sku: STRING, qty: STRING",) * 2,
        *(_TYPE,) * 2,
    ),
    "of no cast": (
        (SKU, column("qty", array(INT32))),
        *("(lines__retired_2), sku: STRING, qty: ARRAY<INT>",) * 3,
        *(_TYPE,) * 2,
    ),
}
"""Change -> the members then, and what becomes of `lines` in each mode: its members, or a pause. (Kept columns.)"""


@pytest.mark.parametrize("mode", MODE_NAMES)
@pytest.mark.parametrize("change", SCRIPT)
def test_a_change_of_members_in_a_mode(change: str, mode: str) -> None:
    members, *expected = SCRIPT[change]
    assert outcome(changed(*members).plan(route(mode))) == expected[MODE_NAMES.index(mode)]


def test_members_keep_their_ids_and_a_name_that_comes_again_is_another_member() -> None:
    table = changed(QTY)
    table.alter_column("lines", lambda _: lines(QTY, SKU))
    table.row()
    ids = [
        {field.name: field.id for field in version.schema.columns[1].type.element.fields}  # type: ignore[union-attr]
        for version in table.plan(ROUTE).versions
    ]
    assert ids == [{"sku": 4, "qty": 5}, {"qty": 5}, {"qty": 5, "sku": 6}]


def test_each_change_is_told_by_its_path() -> None:
    table = changed(column("qty", INT64), column("note", TEXT))
    before, after = (version.schema for version in table.plan(ROUTE).versions)
    (version,) = table.plan(ROUTE).versions[1:]
    (phrase,) = phrases(version.changes, before, after)
    assert phrase.text == (
        "change column lines: drop lines.element.sku STRING, change type of lines.element.qty from INT to BIGINT, "
        "add lines.element.note STRING after qty"
    )
    (step,) = migration(table.plan(ROUTE).versions[0], table.plan(ROUTE).versions[0], version).steps
    assert explain(step, TargetName(namespace="db", name="t")).statements == (
        "ALTER TABLE db.t DROP COLUMN lines.element.sku",
        "ALTER TABLE db.t ALTER COLUMN lines.element.qty TYPE BIGINT",
        "ALTER TABLE db.t ADD COLUMN lines.element.note STRING AFTER qty",
    )


@pytest.mark.parametrize("capabilities", [ICEBERG, DELTA, HUDI, PARQUET], ids=lambda it: it.format)
def test_members_come_and_go_in_place_where_readers_know_them_by_more_than_their_names(
    capabilities: Capabilities,
) -> None:
    by_id = capabilities in (ICEBERG, DELTA)
    added = capabilities is ICEBERG
    for members, in_place in (((SKU, QTY, column("note", TEXT)), added), ((SKU,), by_id), ((QTY,), False)):
        first, second = changed(*members).plan(ROUTE).versions
        (step,) = migration(first, first, second, capabilities=capabilities).steps
        assert isinstance(step, AlterTable if in_place else RewriteTable)


def test_what_may_be_a_rename_is_told_or_asked_about() -> None:
    table = changed(SKU, column("quantity", INT32))
    plan = table.plan(ROUTE)
    assert [item.subject for item in plan.versions[1].evidence if item.kind == "unproven"] == ["lines.element.qty"]
    assert plan.warnings == (
        "lines.element.qty: dropped with its data; another one came in the same struct, and nothing proves a rename "
        "inside of one",
    )
    asked = table.plan(replace(ROUTE, policy=Policy(unproven_rename="pause"))).refusal
    assert asked is not None
    assert asked.why.reason == (
        "it cannot be proven what happened to members: 'lines.element.qty' is gone and 'lines.element.quantity' is new"
    )


def test_a_kept_member_is_told_of_once_and_comes_back_as_itself() -> None:
    table = changed(SKU)
    kept = table.plan(route("lenient"))
    assert [(item.changes, [found.kind for found in item.evidence]) for item in kept.versions[1:]] == [((), ["kept"])]
    history = History(table=table.id, versions=kept.versions)
    table.add_column(column("n", INT32))
    table.row()
    later = _next(history, table, route("lenient"))
    assert "kept" not in {item.kind for item in later.versions[-1].evidence}
    table.alter_column("lines", lambda _: lines(QTY, SKU))
    table.row()
    history = History(table=table.id, versions=(*history.versions, *later.versions))
    (back,) = _next(history, table, route("lenient")).versions
    assert type_text(back.schema.columns[1].type) == "ARRAY<STRUCT<qty: INT, sku: STRING>>"
    assert {field.id for field in back.schema.columns[1].type.element.fields} == {4, 5}  # type: ignore[union-attr]


def _next(history: History, table: Table, wanted: Route) -> TablePlan:
    """Plan with the last event, as the first of a stretch."""
    events = table.events()
    found = observations(None, [events[0], events[-1]], events)[-1:]
    return plan_table(history, found, wanted, ICEBERG)


def test_a_member_that_was_left_out_marks_its_column_when_it_is_wanted() -> None:
    table = changed(SKU, QTY, column("note", TEXT))
    table.row()
    ignored = table.plan(route("ignore"))
    assert [item.kind for item in ignored.versions[1].evidence] == ["ignored"]
    history = History(table=table.id, versions=ignored.versions)
    assert _next(history, table, route("ignore")) == TablePlan(versions=())
    (wanted,) = _next(history, table, route("evolve")).versions
    marks = [(item.subject, item.text) for item in wanted.evidence if item.kind == NEEDS_RESYNC]
    assert [subject for subject, _ in marks] == ["lines"]
    assert "lines.element.note" in marks[0][1]


def test_the_rules_of_casts_inside_a_column_are_told_with_their_paths() -> None:
    plan = changed(SKU, column("qty", TEXT)).plan(ROUTE)
    (item,) = (item for item in plan.versions[1].evidence if item.kind == "rewrite")
    assert item.text.endswith("lines.element.qty: its decimal digits")
    sides = changed(SKU, column("qty", FLOAT64)).plan(replace(ROUTE, policy=Policy(incompatible_types="side_column")))
    assert SIDE_COLUMN in {item.kind for item in sides.versions[1].evidence}
