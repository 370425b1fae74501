"""A source table that got another name: what is recorded under both, when, and which columns go on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.messages import MessageLog, logical_message
from cdc_sync.core.lineage.renames import renames
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.routes import Join
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.planning.merge_columns import find_join
from cdc_sync.core.planning.observation import Observation, TablePlan
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.planning.resync import marks
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.planning.table_renames import NameChanges, arrival_of
from cdc_sync.core.schema.alignment import NEEDS_RESYNC, Evidence
from cdc_sync.core.schema.policy import Policy
from cdc_sync.runtime.reports import table_history
from cdc_sync.storage.history import HistoryStore
from cdc_sync.testing import TEXT, column
from tests.faults.told import ToldTable
from tests.plan.model import ROUTE, Event, observations, topic

T = TableId(database="shop", schema="public", table="t")
U = replace(T, table="u")


class Course:
    """A table whose events and messages are planned for, under whatever name they have."""

    def __init__(self) -> None:
        self.table = ToldTable("shop")
        self.table.tell("create table t", tag="CREATE TABLE")
        self._rows = 0
        self.row()

    def row(self) -> Course:
        self._rows += 1
        self.table.insert(id=self._rows)
        return self

    def rename(self, name: str) -> Course:
        self.table.rename_to(name)
        return self

    @property
    def logs(self) -> tuple[ColumnLog, ...]:
        log = MessageLog()
        for offset, record in enumerate(self.table.messages):
            assert record.value is not None
            at = KafkaPosition(topic="shop.message", partition=0, offset=offset)
            log.add(logical_message(json.loads(record.value)["payload"], at))
        return (log.log(),)

    def names(self, table: TableId, history: History | None) -> NameChanges:
        told = [item for item in renames(self.logs) if history is None or item.position > history.head.position]
        here = tuple(item for item in told if item.new == table)
        return NameChanges(
            away=tuple(item for item in told if item.old == table),
            here=here,
        )

    def plan(self, table: TableId, answer: str = "follow", history: History | None = None, **options: Any) -> TablePlan:
        (events,) = topic(self.table.records)
        mine = [event for event in events if event.source.table == table]
        cuts = [item.position for log in self.logs for item in log.of(table)]
        firsts = [event for before, event in zip([None, *mine], mine, strict=False) if _is_first(before, event, cuts)]
        return plan_table(
            history,
            observations(history, firsts, mine),
            replace(ROUTE, table=table, policy=Policy(rename_table=cast(Any, answer))),
            ICEBERG,
            logs=self.logs,
            names=self.names(table, history),
            **{"to_the_end": True, **options},
        )

    def left(self, table: TableId = T, history: History | None = None) -> History:
        """Return the history of a table up to where it got another name."""
        versions = (*(() if history is None else history.versions), *self.plan(table, history=history).versions)
        return History(table=table, versions=versions)

    def arrived(self, left: History, own: History | None = None) -> History:
        """Return the history under the new name, as it begins."""
        found = arrival_of(left, left.head, own)
        assert isinstance(found, Version)
        return History(table=found.table, versions=(*(() if own is None else own.versions), found))


def _is_first(before: Event | None, event: Event, cuts: list[SourcePosition]) -> bool:
    if before is None or before.known.digest != event.known.digest:
        return True
    return any(before.source.position < cut <= event.source.position for cut in cuts)


def columns(history: History) -> dict[str, int]:
    return {column.name: column.id for column in history.head.schema.columns}


def test_it_is_recorded_under_both_names_with_the_statement_that_did_it() -> None:
    left = Course().rename("u").row().left()
    history = Course().rename("u").row().arrived(left)

    end, arrival = left.head, history.head
    assert (end.dropped, end.renamed_to, end.ends_target) == ("rename", U, True)
    assert (arrival.number, arrival.renamed_from and arrival.renamed_from.names) == (1, (T,))
    assert (arrival.position, arrival.kafka) == (end.position, end.kafka)
    assert arrival.schema == left.versions[0].schema
    assert arrival.evidence[0] == end.evidence[0]
    assert end.evidence[0].text.startswith("alter table t rename to u (postgresql:")
    assert [phrase.text for phrase in table_history(left).versions[-1].changes] == [
        "the source table was renamed to shop.public.u: the target is renamed with it"
    ]
    assert [phrase.text for phrase in table_history(history).versions[0].changes] == [
        "the table came under this name: it was shop.public.t, version 1"
    ]


def test_what_is_recorded_is_read_again_as_it_was(tmp_path: Path) -> None:
    left = Course().rename("u").left()
    store, history = HistoryStore(str(tmp_path)), Course().arrived(left)
    for version in (*left.versions, *history.versions):
        store.append(version)
    assert (store.load(T), store.load(U)) == (left, history)


def test_a_target_stays_unless_it_is_wanted_otherwise() -> None:
    course = Course().rename("u")
    no_names = plan_table(None, (), ROUTE, ICEBERG, logs=course.logs, to_the_end=True)
    assert no_names.versions == ()
    asked = course.plan(T, "pause")
    assert asked.refusal is not None
    assert asked.refusal.why.reason.endswith("and policy.rename_table is pause")
    assert [version.dropped for version in asked.versions] == [None]


def test_while_events_may_be_left_from_before_nothing_is_recorded() -> None:
    assert [version.dropped for version in Course().rename("u").plan(T, to_the_end=False).versions] == [None]


def test_a_change_of_columns_right_before_is_the_new_name_s() -> None:
    """No event of the old name shows it, and yet it is known which column is which."""
    course = Course()
    course.table.rename_column("a", "b")
    course.rename("u")
    course.table.drop_column("z")
    course.table.add_column(column("z", TEXT))
    history = course.arrived(course.left())

    (version,) = course.row().plan(U, history=history).versions

    after = history.extended(version)
    before = columns(history)
    assert columns(after) == {"id": before["id"], "b": before["a"], "z": 4}
    assert {item.kind for item in version.evidence if item.subject == "a"} == {"message"}


def test_a_name_that_was_dropped_and_added_right_before_is_another_column() -> None:
    course = Course()
    course.table.drop_column("a")
    course.table.add_column(column("a", TEXT))
    course.rename("u")
    history = course.arrived(course.left())

    (version,) = course.row().plan(U, history=history).versions

    assert columns(history.extended(version))["a"] == 4


def test_rows_of_the_new_name_wait_for_those_of_the_old_one() -> None:
    course = Course().rename("u").row()
    plan = course.plan(U, to_the_end=False)
    assert plan.versions == ()
    assert plan.waiting is not None
    assert plan.waiting.table == T
    assert "the table was shop.public.t before (alter table t rename to u)" in plan.waiting.reason


def test_a_chain_says_where_the_columns_were_shown_last() -> None:
    course = Course().rename("u").rename("v")
    at_u = course.arrived(course.left())
    left = course.left(U, at_u)
    history = course.arrived(left)

    former = history.head.renamed_from
    assert former is not None
    assert former.names == (T, U)
    assert (former.shown_as, former.shown_at) == (T, course.left().versions[0].position)
    assert history.table.table == "v"
    assert course.row().plan(history.table, history=history).versions == ()


def test_away_and_back_is_one_history_whose_ids_go_on() -> None:
    course = Course().rename("u")
    course.table.add_column(column("w", TEXT))
    course.row()
    first = course.left()
    at_u = course.arrived(first)
    at_u = History(table=U, versions=(*at_u.versions, *course.plan(U, history=at_u).versions))
    course.rename("t")
    left = course.left(U, at_u)

    history = course.arrived(left, first)

    assert [version.number for version in history.versions] == [1, 2, 3]
    assert columns(history) == columns(at_u)
    course.table.drop_column("w")
    (version,) = course.row().plan(T, history=history).versions
    assert [type(change).__name__ for change in version.changes] == ["DropColumn"]


def test_the_history_of_another_table_is_not_gone_on_with() -> None:
    other = Course().plan(T).versions
    foreign = History(table=U, versions=tuple(replace(version, table=U) for version in other))
    left = Course().rename("u").left()
    refused = arrival_of(left, left.head, foreign)
    assert isinstance(refused, Refused)
    assert "which was another table before" in refused.reason
    ended = foreign.extended(replace(left.head, table=U, renamed_to=T))
    assert isinstance(arrival_of(left, left.head, ended), Refused)


def test_marks_of_columns_stay() -> None:
    left = Course().rename("u").left()
    first = left.versions[0]
    mark = Evidence(subject="a", kind=NEEDS_RESYNC, text="a default that is a function")
    marked = History(table=T, versions=(replace(first, evidence=(*first.evidence, mark)), left.head))
    history = Course().arrived(marked)
    assert [(item.column, item.reason) for item in marks(history, (), (), None)] == [
        ("a", "a default that is a function")
    ]


@pytest.mark.parametrize("settled", [True, False])
def test_what_a_copy_may_yet_take_is_waited_for(settled: bool) -> None:
    course = Course().rename("u")
    names = course.names(T, None)
    names = replace(names, away=tuple(replace(item, settled=settled) for item in names.away))
    history = History(table=T, versions=course.plan(T, to_the_end=False).versions)
    route = replace(ROUTE, policy=Policy(rename_table="follow"))

    plan = plan_table(history, (), route, ICEBERG, logs=course.logs, names=names, patient=True, to_the_end=True)

    assert (plan.waiting is None, len(plan.versions)) == ((True, 1) if settled else (False, 0))


def test_columns_that_were_kept_under_the_old_name_are_not_joined_under_the_new_one() -> None:
    """Events of before are in the old name's topic, so what rows had in the newer column is not known."""
    course = Course()
    course.table.rename_column("a", "b")
    course.table.insert(id=9)
    left = History(table=T, versions=plan_table(None, _blind(course), ROUTE, ICEBERG).versions)
    assert isinstance(find_join(left, "a", "b"), Join)
    course.rename("u")
    (end,) = course.plan(T, history=left).versions

    refused = find_join(course.arrived(left.extended(end)), "a", "b")

    assert isinstance(refused, Refused)
    assert "another name" in refused.reason


def _blind(course: Course) -> list[Observation]:
    """What is seen where the source tells nothing."""
    (events,) = topic(course.table.records)
    firsts = [event for before, event in zip([None, *events], events, strict=False) if _is_first(before, event, [])]
    return [replace(item, append_only=False) for item in observations(None, firsts, events)]
