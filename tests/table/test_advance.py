"""What comes next of a table whose events were seen: limits, keys, what is halted at, and what each effect leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.capabilities import HUDI, PARQUET
from cdc_sync.core.migration.operator_requests import Unconverted
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.observation import Refusal, TablePlan, Waiting
from cdc_sync.core.planning.resync import Resync
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.changes import AddColumn, ChangePrimaryKey, UpdateColumnType
from cdc_sync.core.schema.evolve import apply_all
from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.types import INT64, STRING
from cdc_sync.core.table import fold
from cdc_sync.core.table.advance import decide
from cdc_sync.core.table.migrating import columns_since
from cdc_sync.core.table.questions import Cuts, Fingerprints, HasAllEvents, KeyClash, PlanOf, RoomFor, TargetNow
from cdc_sync.core.table.seen import Facts, Seen
from cdc_sync.core.table.state import Cursor, Failure, Wait
from cdc_sync.core.table.transitions import Fail, Migrate, Record, Settled, WriteRange
from cdc_sync.errors import HistoryBehind
from tests.history.versions import at, versions
from tests.table.model import RENAMED, ROUTE, TOPIC, decided, end, history, ranges, state, stretch

AT = KafkaPosition(topic=TOPIC, partition=0, offset=7)
ROOM: dict[type[Any], Any] = {RoomFor: lambda question: (question.versions, None), Cuts: {}, Fingerprints: {}}


def following(known: History, *changes: Any, offset: int = 7) -> Version:
    """Return a version behind a history."""
    number = known.head.number + 1
    return replace(
        known.head,
        number=number,
        fingerprint=f"{number}",
        changes=changes,
        schema=apply_all(known.head.schema, changes),
        position=at(number * 10),
        kafka=replace(AT, offset=offset),
    )


NEW_KEY = ChangePrimaryKey(old=(1,), new=(2,))
TO_TEXT = UpdateColumnType(id=1, old=INT64, new=STRING)


class TestRecording:
    def test_there_is_room_for_so_many_versions_an_hour(self) -> None:
        first, second, third = versions()
        plan = TablePlan(versions=(second, third))
        said = Refused(code=Code.UNPROVEN, reason="too often", remedy="look")
        step = decided(decide, state(1), Seen(), {PlanOf: plan, RoomFor: (1, said)})
        assert step.versions == (second,)
        assert (step.stop.why.reason, step.stop.kafka) == ("too often", third.kafka)
        assert first.number == 1

    def test_a_large_target_is_not_rewritten_without_asking(self) -> None:
        version = following(history(3), TO_TEXT)
        route = replace(ROUTE, capabilities=PARQUET, policy=replace(ROUTE.policy, rewrite_limit=10))
        answers = {**ROOM, PlanOf: TablePlan(versions=(version,))}
        found = TargetState(version=3, progress=None, rows=4, size=11)
        step = decided(decide, state(3, route=route), Seen(), {**answers, TargetNow: found})
        assert step.versions == ()
        assert "policy.rewrite_limit is 10" in step.stop.why.reason
        for small in (replace(found, size=10), None):
            assert decided(decide, state(3, route=route), Seen(), {**answers, TargetNow: small}).versions == (version,)
        nothing_there = state(3, stamped=0, route=route)
        assert decided(decide, nothing_there, Seen(), answers).versions == (version,)

    def test_a_replay_records_all_that_is_planned_and_touches_no_target(self) -> None:
        ends = end(history(3), "drop")
        refusal = Refusal(why=Refused(code=Code.UNPROVEN, reason="r", remedy="m"), position=at(60), kafka=AT)
        plan = TablePlan(versions=(ends,), refusal=refusal, warnings=("w",))
        seen = Seen(replaying=True)
        step = decided(decide, state(3), seen, {PlanOf: plan})
        assert step == Record(versions=(ends,), warnings=("w",), stop=refusal)
        behind = decided(decide, fold.recorded(state(3), step), replace(seen, recorded=True, stop=refusal), {})
        assert behind.state.stop is not None
        assert behind.state.stop.at == f"{TOPIC}[0]@7"

    def test_versions_that_are_recorded_are_known(self) -> None:
        assert fold.recorded(state(0, stamped=0), Record(versions=versions(), warnings=("w",), stop=None)).history == (
            history(3)
        )
        assert fold.recorded(state(3), Record(versions=(), warnings=(), stop=None)) == state(3)

    def test_another_writer_makes_it_plan_again(self) -> None:
        seen = Seen(facts=Facts({PlanOf(): TablePlan(versions=()), RoomFor(1): (1, None), HasAllEvents(): True}))
        raced = fold.raced(seen)
        assert raced.races == 1
        assert set(raced.facts.known) == {HasAllEvents()}


class TestHalts:
    def test_a_change_that_is_not_explained_yet_is_waited_for(self) -> None:
        waiting = Waiting(reason="why", position=at(40), kafka=AT)
        step = decided(decide, state(3), Seen(recorded=True, stop=waiting), ROOM)
        assert step.state.wait == Wait(text=f"the change at {TOPIC}[0]@7 is not explained yet; why")
        other = replace(waiting, table=RENAMED)
        step = decided(decide, state(3), Seen(recorded=True, stop=other), ROOM)
        assert step.state.waits_for == RENAMED
        assert step.state.wait.text == f"{TOPIC}[0]@7: why"

    def test_only_rows_from_before_a_halt_are_written(self) -> None:
        stop = Waiting(reason="why", position=at(40), kafka=AT)
        seen = replace(Seen.of(ranges(5, 9), [stretch(30, 5)]), recorded=True, stop=stop)
        step = decided(decide, state(3), seen, ROOM)
        assert step == WriteRange(ranges=ranges(5, 7), history=history(3))

    def test_nothing_is_passed_that_lies_behind_a_halt(self) -> None:
        stop = Waiting(reason="why", position=at(40), kafka=AT)
        seen = replace(Seen(ranges=(), all_ranges=ranges(5, 9)), recorded=True, stop=stop)
        assert decided(decide, state(3), seen, ROOM).state.next_offset(TOPIC, 0) == 5

    def test_schemas_of_the_head_are_those_of_events_since_it_began(self) -> None:
        known = state(3)
        assert known.history is not None
        heads = known.history.head.fingerprint
        seen = [stretch(20, 2, digest="before"), stretch(30, 3, digest="since"), stretch(31, 4, digest="other")]
        told = {"before": heads, "since": heads, "other": "another"}
        answers = {**ROOM, Fingerprints: lambda question: {item: told[item] for item in question.digests}}
        found = decided(decide, known, replace(Seen(stretches=tuple(seen)), recorded=True), answers)
        assert found.state.hints.current == {"since"}

    def test_ranges_without_a_row_of_the_table_are_passed(self) -> None:
        seen = replace(Seen(ranges=(), all_ranges=ranges(5, 9)), recorded=True)
        known = decided(decide, state(3), seen, ROOM).state
        assert known.next_offset(TOPIC, 0) == 9
        assert known.reached.next_offset(TOPIC, 0) == 9
        assert known.progress.next_offset(TOPIC, 0) == 5

    @pytest.mark.parametrize("known", [state(3), state(0, stamped=0)], ids=["known", "never seen"])
    def test_nothing_seen_changes_nothing(self, known: Any) -> None:
        assert decided(decide, known, Seen(recorded=True), ROOM) == Settled(state=known)

    def test_a_target_is_not_made_for_a_table_whose_events_are_over(self) -> None:
        known = state(3, stamped=0)
        assert decided(decide, known, Seen(recorded=True, to_the_end=True), ROOM) == Settled(state=known)


class TestAhead:
    def test_a_history_that_lacks_what_the_target_has_is_made_again_from_whole_topics(self) -> None:
        known = state(2, stamped=3, offset=5)
        step = decided(decide, known, Seen(), {**ROOM, HasAllEvents: True, PlanOf: TablePlan(versions=versions()[2:])})
        assert isinstance(step, Record)

    def test_where_events_are_gone_it_has_to_be_brought_back(self) -> None:
        step = decided(decide, state(2, stamped=3), Seen(), {HasAllEvents: False})
        assert isinstance(step, Fail)
        assert isinstance(step.error, HistoryBehind)
        assert "stamped with version 3, the history ends at 2" in str(step.error)

    def test_a_target_that_never_got_a_row_cannot_be_read_again(self) -> None:
        assert isinstance(decided(decide, state(2, stamped=3, offset=None), Seen(), {}), Fail)

    def test_as_long_as_it_is_behind_nothing_is_passed(self) -> None:
        known = state(2, stamped=3)
        step = decided(decide, known, Seen(recorded=True), {HasAllEvents: True})
        assert step == Settled(state=known)


class TestKeys:
    def known(self, *changes: Any) -> Any:
        version = following(history(3), *changes)
        return replace(state(3), history=history(3).extended(version)), version

    def test_rows_are_told_apart_by_a_new_key_or_the_table_stops(self) -> None:
        known, version = self.known(NEW_KEY)
        seen = replace(Seen.of(ranges(7, 9), [stretch(40, 7)]), recorded=True)
        asked: list[KeyClash] = []
        step = decided(decide, known, seen, {**ROOM, KeyClash: lambda q: asked.append(q)})
        assert isinstance(step, Migrate)
        assert asked == [KeyClash(3, (2,))]
        stopped = decided(decide, known, seen, {**ROOM, KeyClash: "two rows have remark x"})
        assert "the key is (remark) from here on, and two rows have remark x" in stopped.state.stop.reason
        assert stopped.state.stop.at == str(version.kafka)

    def test_a_new_column_tells_rows_apart_only_where_they_have_a_value_of_it(self) -> None:
        column = Column(id=9, name="number", type=INT64, initial=7)
        for initial, held in ((7, (1,)), (None, ())):
            added = AddColumn(column=replace(column, initial=initial), after=5)
            known, _ = self.known(added, ChangePrimaryKey(old=(1,), new=(1, 9)))
            asked: list[KeyClash] = []
            seen = replace(Seen.of(ranges(7, 9), [stretch(40, 7)]), recorded=True)
            decided(decide, known, seen, {**ROOM, KeyClash: lambda q, asked=asked: asked.append(q)})
            assert asked == [KeyClash(3, held)]

    def test_rows_from_before_a_new_key_are_written_under_the_old_one(self) -> None:
        known, _ = self.known(NEW_KEY)
        seen = replace(Seen.of(ranges(5, 9), [stretch(30, 5), stretch(40, 7)]), recorded=True)
        assert decided(decide, known, seen, ROOM) == WriteRange(ranges=ranges(5, 7), history=history(3))

    def test_a_changelog_has_none(self) -> None:
        known, _ = self.known(NEW_KEY)
        known = replace(known, route=replace(ROUTE, append=True))
        seen = replace(Seen.of(ranges(5, 9), [stretch(30, 5)]), recorded=True)
        step = decided(decide, known, seen, ROOM)
        assert step.history.head.number == 4


class TestPartitioning:
    def made(self, wanted: str, **route: Any) -> Any:
        changed = replace(ROUTE, partition_by=Partitioning.parse((wanted,)), **route)
        seen = replace(Seen.of(ranges(1, 9), [stretch(10, 1)]), recorded=True)
        return decided(decide, state(3, stamped=0, route=changed), seen, ROOM)

    def test_a_target_is_made_as_configured_and_seen_so(self) -> None:
        step = self.made("bucket(4, id)")
        assert isinstance(step, Migrate)
        wanted = Partitioning.parse(("bucket(4, id)",))
        route = replace(ROUTE, partition_by=wanted)
        made = TargetState(version=3, progress=None, partitioning=wanted, partition_by="bucket(4, id)")
        view = fold.migrated(state(3, stamped=0, route=route), step, made).target
        assert (view.stamped, view.partition_by) == (3, "bucket(4, id)")
        assert fold.migrated(state(3, stamped=0, route=route), step, None).target.partition_by is None

    def test_a_target_whose_columns_do_not_fit_is_not_made(self) -> None:
        stop = self.made("nothing").state.stop
        assert "no column 'nothing', so its target is not made" in stop.reason
        for_good = self.made("nothing", capabilities=HUDI).state.stop
        assert "a hudi table is partitioned as it was made" in for_good.remedy

    def test_a_column_that_comes_later_in_the_batch_is_divided_by_later(self) -> None:
        # Rows of before the key changed are written first, to a target that has no `price` yet.
        first, *_ = versions()
        key = following(history(1), ChangePrimaryKey(old=(1,), new=(2,)), offset=4)
        price = replace(versions()[1], number=3, kafka=replace(AT, offset=5), position=at(35))
        price = replace(price, schema=apply_all(key.schema, price.changes))
        known = History(table=first.table, versions=(first, key, price))
        route = replace(ROUTE, partition_by=Partitioning.parse(("price",)))
        seen = replace(Seen.of(ranges(1, 9), [stretch(10, 1)]), recorded=True)
        table = replace(state(3, stamped=0, route=route), history=known)
        step = decided(decide, table, seen, ROOM)
        assert isinstance(step, Migrate)
        assert step.history.head.number == 1


class TestState:
    def test_the_last_version_whose_rows_were_joined_or_rewritten(self) -> None:
        known = history(3).extended(following(history(3), TO_TEXT))
        assert columns_since(state(3), known) == 4
        assert columns_since(state(3), history(3)) == 0

    def test_what_could_not_be_read_is_told_from_what_failed_later(self) -> None:
        failing = state(3, failure=Failure(text="f"))
        assert not failing.is_unread
        assert replace(failing, is_read=False).is_unread
        assert failing.recovered().failure is None

    def test_what_the_operator_asked_to_be_read_again_and_failed_is_said(self) -> None:
        asked = Resync(table=ROUTE.table, signal="1", version=3, columns=(), failed="no such table")
        (warning,) = state(3).with_resyncs((asked,)).warnings
        assert "no such table" in warning
        assert state(3).with_resyncs((replace(asked, failed=None),)).warnings == ()

    def test_rewrites_count_what_had_no_place_once(self) -> None:
        found = Unconverted(version=2, counts={"a": 3}, values=())
        journal = state(3).journal.with_unconverted(found).with_unconverted(found)
        assert journal.counts == {"values of 'a' that version 2 has no place for": 3}
        assert journal.counted("other", 0) == journal

    def test_a_name_is_lacked_until_the_table_has_come_under_it(self) -> None:
        version = end(history(3), "rename", RENAMED)
        assert state(3).lacks(version)
        assert state(3).renamed_to is None
        assert fold.ended(state(3), version).renamed_to == version
        assert state(3).has_key

    def test_a_table_without_a_history_has_nothing_to_read_again(self) -> None:
        assert state(0, stamped=0).marks == ()
        assert state(3, cursor=Cursor(passed={("other", 0): 3})).passed_of_topics == {}
        assert state(3).reached == Progress(version=3, offsets={TOPIC: {0: 5}})
