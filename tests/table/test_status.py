"""What `status` and the log say of a table, from its state alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.lineage.coverage import Coverage
from cdc_sync.core.migration.operator_requests import SnapshotReset
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.doubts import Doubt
from cdc_sync.core.planning.replaced_nulls import ONGOING
from cdc_sync.core.planning.stops import Pause
from cdc_sync.core.table.state import Cursor, Failure, Journal, Requests, Wait
from cdc_sync.core.table.status import status, told, with_replaced_nulls
from tests.table.model import RENAMED, TOPIC, end, history, state

STOP = Pause(code=Code.UNPROVEN, reason="r", remedy="m", at="t[0]@3")


@pytest.mark.parametrize(
    ("changes", "name", "reason"),
    [
        ({}, "running", None),
        ({"wait": Wait(text="evidence")}, "waiting", "evidence"),
        ({"wait": Wait(text="evidence"), "failure": Failure(text="disk")}, "failing", "disk"),
        ({"failure": Failure(text="disk"), "stop": STOP}, "paused", "r"),
    ],
)
def test_a_table_has_one_state_the_gravest(changes: Any, name: str, reason: str | None) -> None:
    said = status(state(**changes), Coverage())
    assert (said.state, said.reason, said.version) == (name, reason, 3)
    assert (said.remedy, said.paused_at) == (("m", "t[0]@3") if name == "paused" else (None, None))


@pytest.mark.parametrize(
    ("dropped", "renamed_to", "said"),
    [
        ("drop", None, "the source table was dropped, by DROP TABLE orders (50) (postgresql)"),
        ("archive", None, "as public.orders__dropped_4"),
        ("rename", RENAMED, f"the source table is {RENAMED} now"),
    ],
)
def test_a_table_that_is_gone_says_who_told_and_what_became_of_its_target(
    dropped: Any, renamed_to: Any, said: str
) -> None:
    known = replace(state(3, stamped=0), history=history(3).extended(end(history(3), dropped, renamed_to)))
    found = status(known, Coverage())
    assert found.state == "gone"
    assert said in (found.reason or "")


def test_a_table_without_a_marker_keeps_its_topics_by_what_is_known_of_them() -> None:
    assert status(state(offset=7), Coverage()).offsets == {TOPIC: {0: 7}}
    unread = Cursor(unread={TOPIC: {1: 4}}, known_before={TOPIC: {2: 8}})
    assert status(state(3, stamped=0, cursor=unread), Coverage()).offsets == {TOPIC: {1: 4}}
    assert status(state(3, stamped=0, cursor=replace(unread, unread={})), Coverage()).offsets == {TOPIC: {2: 8}}
    assert status(state(0, stamped=0), Coverage()).version is None


def test_evidence_and_its_gaps_are_said_beside() -> None:
    said = status(state(), Coverage(since={"ddl_topics": "1"}, gaps=("a gap",), unseen="no statement"))
    assert (said.evidence, said.evidence_gaps) == ({"ddl_topics": "1"}, ("a gap", "no statement"))


def test_a_snapshot_that_was_asked_for_is_told_of_until_it_has_come() -> None:
    asked = SnapshotReset(table=state().table, since={}, by="ann@web-1", at="2026-11-28T20:00:00Z")
    waiting = state(requests=Requests(snapshot=asked))
    (said,) = status(waiting, Coverage()).warnings
    assert said.startswith("a snapshot that ann@web-1 asked for at 2026-11-28T20:00:00Z takes the place")
    assert status(state(), Coverage()).warnings == ()


def test_the_log_tells_each_step_of_a_table_once() -> None:
    doubt = Doubt(kind="rows", id=0, version=3, ends={})
    before = state(failure=Failure(text="disk"))
    after = replace(state(wait=Wait(text="evidence")).warned("look"), journal=Journal(doubts=(doubt,), warnings=("w",)))
    after = replace(after, journal=after.journal.counted("poison", 2))
    assert [(level, event) for level, event, _ in told(before, after)] == [
        ("info", "table goes on"),
        ("warning", "table waits for evidence"),
        ("warning", "warning"),
        ("warning", "values in doubt"),
        ("warning", "poison"),
    ]
    assert list(told(after, after)) == []
    assert [event for _, event, _ in told(before, before.stopped(STOP))] == ["table paused"]


def test_a_null_that_arrives_as_the_default_is_warned_of_as_long_as_it_does() -> None:
    known = state(journal=Journal(replaced_nulls={5: ONGOING}, warnings=("else",)))
    (other, warning) = with_replaced_nulls(known).journal.warnings
    assert other == "else"
    assert warning.startswith("a NULL in price arrives as the column's default")
    twice = with_replaced_nulls(with_replaced_nulls(known))
    assert twice.journal.warnings == (other, warning)
    over = replace(twice, journal=replace(twice.journal, replaced_nulls={5: 3}))
    assert with_replaced_nulls(over).journal.warnings == ("else",)
    assert with_replaced_nulls(state(0, stamped=0)).warnings == ()
