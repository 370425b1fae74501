"""Columns that were there before events showed them, by their numbers; `test_plan` has those that their place tells."""

from __future__ import annotations

import json

from cdc_sync.core.lineage.messages import MessageLog, logical_message
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.core.planning.observation import TablePlan
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.schema.alignment import NEEDS_RESYNC, UNSHOWN
from cdc_sync.testing import TEXT, column
from tests.faults.told import ToldTable
from tests.plan.model import ROUTE, observations, topic

LATE = (
    "existing rows read NULL; what they hold is not known: it was there before events showed it, for the source tells "
    "it"
)


class Hiding(ToldTable):
    """A table whose column `c` has a type at first that the connector does not send."""

    def add_hidden(self) -> None:
        self.numbers["c"], self._types["c"], self._next = self._next, "addr", self._next + 1
        self.tell("alter table t add c addr")

    def show(self) -> None:
        del self._types["c"]
        self.columns = (*self.columns, column("c", TEXT))
        self.tell("alter table t alter c type text using (c).street")

    def plan(self) -> TablePlan:
        log = MessageLog()
        for offset, record in enumerate(self.messages):
            at = KafkaPosition(topic="shop.message", partition=0, offset=offset)
            log.add(logical_message(json.loads(record.value or b"")["payload"], at))
        (events,) = topic(self.records)
        return plan_table(None, observations(None, events, events), ROUTE, ICEBERG, logs=(log.log(),))


def marks(plan: TablePlan) -> list[tuple[int, str, str]]:
    return [
        (version.number, item.subject, item.text)
        for version in plan.versions
        for item in version.evidence
        if item.kind == NEEDS_RESYNC
    ]


def begun() -> Hiding:
    t = Hiding("shop")
    t.tell("comment on table t is 'x'", tag="COMMENT")
    return t


def test_a_column_that_the_first_event_did_not_show_is_marked_when_one_shows_it() -> None:
    t = begun()
    t.add_hidden()
    t.insert(id=1, z="p", a="q")
    t.show()
    t.insert(id=2, c="x")
    assert marks(t.plan()) == [(2, "c", LATE)]


def test_so_is_one_that_was_added_behind_the_newest_version_and_had_rows_before_it_was_shown() -> None:
    t = begun()
    t.insert(id=1)
    t.add_hidden()
    t.insert(id=2)
    t.insert(id=3)
    t.show()
    t.insert(id=4, c="x")
    plan = t.plan()
    said = [
        (version.number, item.subject) for version in plan.versions for item in version.evidence if item.kind == UNSHOWN
    ]
    assert said == [(2, "c")], "once"
    assert marks(plan) == [(3, "c", LATE)]


def test_one_that_was_shown_from_its_first_row_on_reads_null_without_a_mark() -> None:
    t = begun()
    t.insert(id=1)
    t.add_column(column("c", TEXT))
    t.insert(id=2, c="x")
    plan = t.plan()
    assert marks(plan) == []
    assert plan.versions[1].schema.columns[-1].initial is None
