"""A source table that was dropped: what is recorded, when, and what may come under its name afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, cast

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.column_log import ColumnLog, LoggedColumn, Structure, Token
from cdc_sync.core.lineage.drops import first_drop
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.routes import Decision, Route, TargetName
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition
from cdc_sync.core.model.progress import Progress, Truncated
from cdc_sync.core.planning.end_of_table import archive_name, begun_behind, last_end
from cdc_sync.core.planning.observation import Observation, TablePlan
from cdc_sync.core.planning.plan import in_time, plan_table
from cdc_sync.core.schema.policy import Policy
from cdc_sync.runtime.reports import table_history
from cdc_sync.testing import INT32, TEXT, column
from tests.plan.model import ROUTE, observations
from tests.plan.tables import Table

Follower = Literal["created", "renamed"]
_TOLD = KafkaPosition(topic="shop.message", partition=0, offset=7)


def route(answer: str, recreate: Literal["apply", "pause"] = "apply") -> Route:
    return replace(ROUTE, policy=Policy(drop_table=cast(Any, answer), recreate=recreate))


class Course:
    """A table, its drop, and what came under its name; every place is one further in the source's log."""

    def __init__(self) -> None:
        self.table = Table()
        self._structures: list[Structure] = []

    def _now(self) -> SourcePosition:
        with self.table.wal.transaction():
            lsn = self.table.wal.advance()
            return SourcePosition(kind="postgresql", parts=(self.table.wal.last_commit or lsn, lsn))

    def drop(self) -> Course:
        self._tell(dropped=True, kafka=_TOLD, columns=(), statement="drop table t")
        return self

    def take_name(self, how: Follower) -> Course:
        names = [column.field or "" for column in self.table.columns]
        columns = tuple(LoggedColumn(name=name, token=Token(era="e", number=f"new {name}")) for name in names)
        self._tell(columns=columns, statement=f"{how} t", created=how == "created")
        return self

    def row(self) -> Course:
        self.table.row()
        return self

    def _tell(self, **said: Any) -> None:
        self._structures.append(Structure(table=self.table.id, position=self._now(), **said))

    @property
    def logs(self) -> tuple[ColumnLog, ...]:
        return (ColumnLog("message", self._structures),)

    @property
    def dropped_at(self) -> SourcePosition:
        return self._structures[0].position

    def observations(self) -> list[Observation]:
        """The first event, and the first one behind each thing told."""
        events = self.table.events()
        cuts = [structure.position for structure in self._structures]
        firsts = [
            event
            for before, event in zip([None, *events], events, strict=False)
            if before is None or any(before.source.position < cut <= event.source.position for cut in cuts)
        ]
        return list(observations(None, firsts, events))

    def plan(self, answer: str = "keep", *, patient: bool = False, to_the_end: bool = True) -> TablePlan:
        wanted, seen = route(answer), self.observations()
        return plan_table(None, seen, wanted, ICEBERG, logs=self.logs, patient=patient, to_the_end=to_the_end)


def numbers(plan: TablePlan) -> list[str]:
    return [version.dropped or ("new" if version.made_anew else "seen") for version in plan.versions]


@pytest.mark.parametrize("answer", ["keep", "drop", "archive"])
def test_it_is_recorded_with_what_becomes_of_the_target_and_why(answer: str) -> None:
    course = Course().drop()

    _, end = course.plan(answer).versions

    assert (end.dropped, end.position, end.kafka, end.changes) == (answer, course.dropped_at, _TOLD, ())
    assert [(item.kind, item.subject) for item in end.evidence] == [("message", "t"), ("policy", "t")]
    assert end.evidence[0].text == f"drop table t ({course.dropped_at})"
    assert end.ends_target == (answer != "keep")
    history = History(table=course.table.id, versions=course.plan(answer).versions)
    (phrase,) = table_history(history).versions[-1].changes
    assert (phrase.kind, phrase.column) == ("DropTable", None)
    assert phrase.text.startswith("the source table was dropped: the target ")


def test_while_events_may_be_left_from_before_nothing_is_recorded() -> None:
    assert numbers(Course().drop().plan(to_the_end=False)) == ["seen"]


def test_the_operator_may_want_to_be_asked() -> None:
    course = Course().drop().take_name("created").row()

    plan = course.plan("pause")

    assert numbers(plan) == ["seen"]
    assert plan.refusal is not None
    assert (plan.refusal.position, plan.refusal.kafka) == (course.dropped_at, _TOLD)
    assert plan.refusal.why.reason == "the source table was dropped (drop table t), and policy.drop_table is pause"


@pytest.mark.parametrize("answer", ["keep", "drop", "archive"])
def test_a_table_created_again_has_columns_of_its_own(answer: str) -> None:
    course = Course().drop().take_name("created").row()

    plan = course.plan(answer)

    assert numbers(plan) == ["seen", answer, "new"]
    first, _, last = (version.schema for version in plan.versions)
    assert [column.name for column in last.columns] == ["id", "a", "z"]
    assert not {column.id for column in first.columns} & {column.id for column in last.columns}
    assert plan.versions[-1].evidence[0].kind == "made anew"


@pytest.mark.parametrize("answer", ["keep", "drop", "archive"])
def test_any_split_of_the_events_gives_the_same_versions(answer: str) -> None:
    course = Course().row().drop().take_name("created").row().drop().take_name("created").row().drop()
    whole, wanted = course.plan(answer), route(answer)
    assert numbers(whole) == ["seen", answer, "new", answer, "new", answer]
    history: History | None = None
    found: list[Version] = []
    for observation in course.observations():
        for seen in ([observation], []):
            plan = plan_table(history, seen, wanted, ICEBERG, logs=course.logs)
            found += plan.versions
            history = History(table=course.table.id, versions=tuple(found))
    found += plan_table(history, [], wanted, ICEBERG, logs=course.logs, to_the_end=True).versions
    assert tuple(found) == whole.versions


def test_a_table_that_was_made_and_dropped_without_a_row_is_none() -> None:
    course = Course().drop().take_name("created").drop().take_name("created").row()
    assert numbers(course.plan("drop")) == ["seen", "drop", "new"]


def test_names_decide_where_a_kept_table_is_there_again_and_nothing_says_how() -> None:
    plan = Course().drop().row().plan("keep")

    assert numbers(plan) == ["seen", "keep", "seen"]
    assert plan.versions[0].schema == plan.versions[2].schema
    assert plan.versions[2].evidence[0].text.startswith("the same as before the source table was dropped")
    assert Course().drop().take_name("renamed").row().plan("keep").versions[2].made_anew is None


@pytest.mark.parametrize("answer", ["drop", "archive"])
def test_a_name_that_another_table_took_does_not_cost_the_target(answer: str) -> None:
    for course in (Course().drop().take_name("renamed"), Course().drop().take_name("renamed").row()):
        plan = course.plan(answer)
        assert numbers(plan) == ["seen"]
        assert plan.refusal is not None
        assert "was not created under it" in plan.refusal.why.reason


@pytest.mark.parametrize("answer", ["drop", "archive"])
def test_a_copy_that_may_yet_take_the_name_is_waited_for(answer: str) -> None:
    plan = Course().drop().plan(answer, patient=True)
    assert (numbers(plan), plan.refusal) == (["seen"], None)
    assert plan.waiting is not None
    assert plan.waiting.kafka == _TOLD
    assert numbers(Course().drop().plan("keep", patient=True)) == ["seen", "keep"]
    assert numbers(Course().drop().take_name("created").plan(answer, patient=True)) == ["seen", answer]


@pytest.mark.parametrize("answer", ["drop", "archive"])
def test_rows_of_a_table_that_nothing_says_was_created_stop_it(answer: str) -> None:
    course = Course().drop().row()
    waits = course.plan(answer, patient=True)
    assert waits.waiting is not None
    assert "no CREATE TABLE is told yet" in waits.waiting.reason
    assert course.plan(answer).refusal is not None
    gone = Course().drop()
    history = History(table=gone.table.id, versions=gone.plan(answer).versions)
    gone.row()
    for patient in (True, False):
        plan = plan_table(history, gone.observations(), route(answer), ICEBERG, logs=gone.logs, patient=patient)
        assert (plan.waiting is not None, plan.refusal is not None) == (patient, not patient)


def test_a_new_table_that_is_to_be_asked_about_stops_there() -> None:
    course = Course().drop().take_name("created").row()
    plan = plan_table(None, course.observations(), route("drop", recreate="pause"), ICEBERG, logs=course.logs)

    assert numbers(plan) == ["seen", "drop"]
    assert plan.refusal is not None
    assert plan.refusal.why.reason.startswith("the source table was dropped and created again")


def test_a_changelog_gets_a_new_table_too() -> None:
    course = Course().drop().take_name("created").row()
    changelog = replace(route("archive"), append=True)
    assert numbers(plan_table(None, course.observations(), changelog, ICEBERG, logs=course.logs)) == [
        "seen",
        "archive",
        "new",
    ]
    kept = plan_table(None, course.observations(), replace(changelog, policy=ROUTE.policy), ICEBERG, logs=course.logs)
    assert kept.refusal is not None


def test_what_the_operator_decided_of_columns_stands_above_it() -> None:
    course = Course().drop().take_name("created").row()
    at = str(course.observations()[-1].kafka)
    decided = replace(ROUTE, decisions=(Decision(table=ROUTE.table, at=at, renames={"id": "id", "a": "a", "z": "z"}),))

    plan = plan_table(None, course.observations(), decided, ICEBERG, logs=course.logs)

    assert numbers(plan) == ["seen", "keep", "seen"]


def test_it_comes_too_late_where_rows_of_the_new_table_are_written() -> None:
    course = Course().drop()
    behind = replace(course.dropped_at, parts=tuple(part + 1 for part in course.dropped_at.parts))
    for answer in ("drop", "archive"):
        stopped = in_time(course.plan(answer), behind)
        assert numbers(stopped) == ["seen"]
        assert stopped.refusal is not None
    assert in_time(course.plan("keep"), behind) == replace(course.plan("keep"), versions=course.plan().versions[:1])
    for answer in ("keep", "drop"):
        assert numbers(in_time(course.plan(answer), course.table.events()[0].source.position)) == ["seen", answer]


def test_what_events_showed_is_the_history_without_the_end() -> None:
    course = Course()
    course.table.drop_column("a")
    course.table.add_column(column("b", INT32))
    course.row().drop()
    history = History(table=course.table.id, versions=course.plan().versions)
    assert history.shown.versions == history.versions[:-1]
    assert history.shown.shown == history.shown


def test_positions_of_another_kind_tell_nothing() -> None:
    course = Course().drop()
    assert first_drop(course.logs, course.table.id, SourcePosition(kind="binlog", parts=(1,))) is None
    assert first_drop(course.logs, course.table.id, course.dropped_at) is None


def test_the_archive_has_one_name_however_often_it_is_asked_for() -> None:
    end = Course().drop().plan("archive").versions[-1]
    assert archive_name(TargetName(namespace="shop", name="t"), end) == TargetName(
        namespace="shop", name="t__dropped_2"
    )


def test_the_next_target_begins_behind_the_end() -> None:
    plan = Course().drop().take_name("created").row().plan("drop")
    history = History(table=ROUTE.table, versions=plan.versions)
    end = last_end(history)
    assert end is not None
    assert (end.number, last_end(history, 1)) == (2, None)
    assert begun_behind(end, 3) == Progress(
        version=3, truncated=Truncated(position=end.position, offsets={}, made_anew=True)
    )
    former = Progress(version=1, offsets={"t": {0: 5}}, topic_ids={"t": "T"}, high_water={"t": {0: 9}})
    begun = begun_behind(end, 2, former)
    assert (begun.offsets, begun.topic_ids) == ({}, {"t": "T"})
    assert begun.truncated is not None
    assert (begun.truncated.bound, begun.truncated.offsets) == (end.position, {"t": {0: 5}})


def test_a_text_column_more_is_the_new_table_s() -> None:
    course = Course().drop()
    course.table.add_column(column("w", TEXT))
    plan = course.take_name("created").row().plan("drop", patient=True)
    assert numbers(plan) == ["seen", "drop", "new"]
    assert [item.name for item in plan.versions[-1].schema.columns] == ["id", "a", "z", "w"]
