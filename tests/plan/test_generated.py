"""Generated columns of a Postgres that does not publish them: its snapshot shows them, and no event behind it does."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.messages import MessageLog, logical_message
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.core.planning.observation import TablePlan
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.planning.resync import ALL_ROWS
from cdc_sync.core.schema.alignment import NEEDS_RESYNC
from cdc_sync.testing import INT32, column
from tests.faults.told import ToldTable
from tests.plan.model import ROUTE, observations, topic

_B = column("b", INT32)


class Generated:
    """A table with `b`, generated from `a`: as Postgres 15 and Debezium 3 showed it (docs/modes.md)."""

    def __init__(self) -> None:
        self.table = ToldTable("shop")
        self.table.add_column(_B)
        self._told = self.table.messages.copy()
        self.table.insert(id=1, a="10", b=20)
        self.table.records.clear()
        self.table.wal.last_commit = None
        self.table.snapshot()
        self.hide()
        self.table.insert(id=2, a="20")

    def hide(self) -> None:
        self.table.columns = tuple(item for item in self.table.columns if item.field != "b")

    def show(self) -> None:
        self.table.columns = (*self.table.columns, _B)

    def logs(self) -> tuple[ColumnLog, ...]:
        log = MessageLog()
        for offset, record in enumerate(self._told):
            at = KafkaPosition(topic="shop.message", partition=0, offset=offset)
            log.add(logical_message(json.loads(record.value or b"")["payload"], at))
        return (log.log(),)

    def plan(self, *, told: bool, route: Route = ROUTE) -> TablePlan:
        (events,) = topic(self.table.records)
        firsts = [
            event
            for before, event in zip([None, *events], events, strict=False)
            if before is None or before.known.digest != event.known.digest
        ]
        return plan_table(None, observations(None, firsts, events), route, ICEBERG, logs=self.logs() if told else ())


@pytest.mark.parametrize("told", [True, False])
def test_what_the_snapshot_showed_stays_and_is_told_of(told: bool) -> None:
    plan = Generated().plan(told=told)
    kept = plan.versions[-1].schema
    assert [(item.name, item.retired) for item in kept.columns if item.retired] == [(kept.columns[-1].name, True)]
    assert any("'b'" in text or text.startswith("b: ") for text in plan.warnings), plan.warnings


@pytest.mark.parametrize("told", [True, False])
def test_it_goes_where_the_operator_says_so(told: bool) -> None:
    route = replace(ROUTE, drops=frozenset({"b"}))
    plan = Generated().plan(told=told, route=route)
    assert [item.name for item in plan.versions[-1].schema.columns] == ["id", "z", "a"]
    assert plan.refusal is None


def test_made_a_plain_column_later_it_is_the_same_one() -> None:
    source = Generated()
    source.show()
    source.table.insert(id=4, a="40", b=44)
    plan = source.plan(told=True)
    history = History(table=source.table.id, versions=plan.versions)
    assert [item.id for item in history.head.schema.live if item.name == "b"] == [4]
    asked = source.plan(told=False).refusal
    marks = [item.subject for version in plan.versions for item in version.evidence if item.kind == NEEDS_RESYNC]
    assert marks == ["b"], "nobody told of the values that it had meanwhile"
    assert asked is not None, "without evidence it may be another one of that name"
    assert "'b'" in asked.why.reason


def test_a_snapshot_that_shows_it_again_brings_its_values() -> None:
    source = Generated()
    source.show()
    source.table.rows = [{**row, "b": 2 * int(str(row["a"]))} for row in source.table.rows]
    source.table.snapshot()
    plan = source.plan(told=True)
    history = History(table=source.table.id, versions=plan.versions)
    assert [item.id for item in history.head.schema.live if item.name == "b"] == [4]
    marks = [item.subject for version in plan.versions for item in version.evidence if item.kind == NEEDS_RESYNC]
    assert marks == [ALL_ROWS], "rows may be gone at the source; no column lacks values"


def test_one_that_is_added_later_shows_in_no_event_and_is_none() -> None:
    source = Generated()
    source.table.tell("alter table t add column e int generated always as (id * 3) stored")
    source.table.insert(id=3, a="30")
    assert all(item.name != "e" for version in source.plan(told=True).versions for item in version.schema.columns)
