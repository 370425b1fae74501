"""Emptying a target: which TRUNCATE is followed, what comes too late for it, and a snapshot that shows all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.migration.operator_requests import SnapshotReset
from cdc_sync.core.model.progress import Progress, Truncated
from cdc_sync.core.planning.truncation import PAUSED, Reach
from cdc_sync.core.table import fold
from cdc_sync.core.table.advance import decide
from cdc_sync.core.table.questions import CanReadFrom, Cuts, Fingerprints, IsWhole, Reaches
from cdc_sync.core.table.seen import Seen
from cdc_sync.core.table.state import Cursor, TableState
from cdc_sync.core.table.transitions import Settled, TruncateTarget, WriteRange
from cdc_sync.core.table.truncating import follow_snapshot, has_come
from tests.history.versions import at, versions
from tests.table.model import TOPIC, decided, end, history, policy, ranges, state, stretch

EMPTY = stretch(32, 7, truncate=True)
ALONE: dict[type[Any], Any] = {Reaches: {}, Cuts: {}, Fingerprints: {}}


def behind(known: TableState, truncated: Truncated) -> Progress:
    """Return the marker of a table that was emptied."""
    assert known.progress is not None
    return replace(known.progress, truncated=truncated)


def step(known: TableState, seen: Seen, **answers: Any) -> Any:
    kinds = {kind: answers.get(kind.__name__, answer) for kind, answer in ALONE.items()}
    return decided(decide, known, replace(seen, recorded=True), kinds)


def test_rows_from_before_are_written_then_the_target_is_emptied() -> None:
    seen = Seen.of(ranges(5, 9), [stretch(31, 5), EMPTY, stretch(33, 8)])
    before = step(state(), seen)
    assert before == WriteRange(ranges=ranges(5, 7), history=history(3))
    emptying = step(state(offset=7), replace(seen, ranges=ranges(7, 9)))
    assert isinstance(emptying, TruncateTarget)
    assert emptying.truncated.offsets == {TOPIC: {0: 8}}
    assert (emptying.version, emptying.why) == (3, "truncated")


def test_an_emptied_table_reads_again_what_it_had_only_looked_through() -> None:
    known = state(offset=7, cursor=Cursor(passed={(TOPIC, 1): 20}))
    back = Progress(version=3, offsets={TOPIC: {0: 8, 1: 4}})
    assert fold.emptied(known, back).next_offset(TOPIC, 1) == 4


def test_the_policy_may_keep_the_rows_or_stop() -> None:
    seen = Seen.of(ranges(7, 9), [EMPTY])
    assert step(state(offset=7, route=policy(truncate="ignore")), seen) == WriteRange(
        ranges=ranges(7, 9), history=history(3)
    )
    stop = step(state(offset=7, route=policy(truncate="pause")), seen).state.stop
    assert (stop.reason, stop.remedy, stop.at) == (PAUSED.reason, PAUSED.remedy, f"{TOPIC}[0]@7")
    changelog = replace(policy(), append=True)
    assert isinstance(step(state(offset=7, route=changelog), seen), WriteRange)


def test_partitions_whose_rows_cannot_be_read_again_stop_it() -> None:
    gone = {(TOPIC, 1): Reach(next_offset=20, first_behind=3, end=30, whole=False)}
    stop = step(state(offset=7), Seen.of(ranges(7, 9), [EMPTY]), Reaches=gone).state.stop
    assert "events before offset 3 are gone from the topic" in stop.reason


@pytest.mark.parametrize("lsn", [32, 31])
def test_what_a_connector_repeats_empties_nothing_twice(lsn: int) -> None:
    done = Truncated(position=at(32), offsets={TOPIC: {0: 8, 1: 0}})
    known = state(offset=8)
    known = replace(known, progress=behind(known, done))
    seen = Seen.of(ranges(8, 20), [stretch(lsn, 12, truncate=True)])
    assert isinstance(step(known, seen), WriteRange)


def test_a_truncate_behind_the_end_of_the_table_is_of_nothing() -> None:
    ended = history(3).extended(end(history(3), "drop"))
    known = replace(state(3, stamped=0), history=ended)
    late = stretch(45, 12, truncate=True)
    assert isinstance(step(known, Seen.of(ranges(8, 20), [late])), Settled)


def test_a_table_made_anew_is_emptied_before_its_first_row_whatever_the_policy() -> None:
    anew = replace(versions()[2], number=4, position=at(40), made_anew=at(39), changes=())
    anew = replace(anew, kafka=replace(anew.kafka, offset=7))
    known = replace(state(3, offset=7, route=policy(truncate="pause")), history=history(3).extended(anew))
    found = step(known, Seen.of(ranges(7, 9), [stretch(40, 7)]))
    assert isinstance(found, TruncateTarget)
    assert (found.why, found.truncated.made_anew) == ("dropped and created again", True)
    assert found.truncated.offsets == {TOPIC: {0: 7}}, "its first row is read"
    emptied = fold.emptied(known, behind(known, found.truncated))
    assert not isinstance(step(emptied, Seen.of(ranges(7, 9), [stretch(40, 7)])), TruncateTarget)


def test_events_from_before_that_come_late_are_passed_over_and_said() -> None:
    known = state(offset=8)
    done = Truncated(position=at(32), offsets={TOPIC: {0: 8, 1: 0}})
    known = replace(known, progress=behind(known, done))
    seen = replace(Seen.of((), [stretch(31, 9)]), all_ranges=ranges(8, 9))
    (warning,) = step(known, seen).state.warnings
    assert "wrote them before the TRUNCATE" in warning
    for harmless in (stretch(33, 9), stretch(31, 7)):
        seen = replace(Seen.of((), [harmless]), all_ranges=ranges(8, 9))
        assert step(known, seen).state.warnings == ()


class TestSnapshots:
    """A snapshot of the whole table, where `policy.second_snapshot` is `apply`."""

    def known(self, **changes: Any) -> TableState:
        again = replace(versions()[2], read_again=True)
        known = state(3, offset=50, route=policy(second_snapshot="apply"))
        known = replace(known, history=replace(history(3), versions=(*versions()[:2], again)))
        return replace(known, **changes)

    def step(self, known: TableState, *, can: bool = True, whole: bool = True, seen: Seen | None = None) -> Any:
        return decided(follow_snapshot, known, seen or Seen(), {CanReadFrom: can, IsWhole: whole})

    def test_once_it_is_whole_the_target_is_emptied_and_read_from_its_first_row(self) -> None:
        found = self.step(self.known())
        assert isinstance(found, TruncateTarget)
        assert found.truncated == Truncated(position=at(30), offsets={TOPIC: {0: 3}})
        known = self.known()
        done = replace(known, progress=behind(known, found.truncated))
        assert self.step(done) == Settled(state=done)
        assert self.step(known, seen=Seen(over=True)) == Settled(state=known)

    def test_until_then_it_is_looked_for_only_in_what_is_new(self) -> None:
        waiting = self.step(self.known(), whole=False).state
        assert waiting.hints.looked_for_end == {3: 50}
        assert self.step(waiting) == Settled(state=waiting), "nothing is new, and nothing is asked"

    def test_rows_that_are_gone_or_come_in_several_partitions_are_said_once(self) -> None:
        known = self.step(self.known(), can=False).state
        assert "is not applied (policy.second_snapshot)" in known.warnings[-1]
        assert self.step(known) == Settled(state=known)

    def test_it_is_enough_that_the_operator_wants_this_one(self) -> None:
        known = self.known(route=policy())
        place = known.history.versions[-1].kafka if known.history else None
        assert place is not None
        for begins, wanted in ((place.offset, True), (place.offset + 1, False)):
            asked = SnapshotReset(table=known.table, since={TOPIC: {place.partition: begins}}, by="ann", at="now")
            heard = replace(known, requests=replace(known.requests, snapshot=asked))
            found = self.step(heard)
            assert isinstance(found, TruncateTarget) is wanted
            assert not has_come(heard)
            if isinstance(found, TruncateTarget):
                done = replace(heard, progress=behind(heard, found.truncated))
                assert self.step(done) == Settled(state=done)
                assert has_come(done)

    def test_a_table_that_was_emptied_before_waits_for_the_snapshot(self) -> None:
        known = self.known(route=policy())
        asked = SnapshotReset(table=known.table, since={TOPIC: {0: 60}}, by="ann", at="now")
        emptied = Truncated(position=at(30), offsets={TOPIC: {0: 3}})
        known = replace(known, requests=replace(known.requests, snapshot=asked), progress=behind(known, emptied))
        assert not has_come(known)

    @pytest.mark.parametrize("changes", [{"route": policy()}, {"history": None}, {"history": history(3)}])
    def test_nothing_is_done_unless_it_is_asked_for_and_there_is_one(self, changes: Any) -> None:
        known = self.known(**changes)
        assert self.step(known) == Settled(state=known)
