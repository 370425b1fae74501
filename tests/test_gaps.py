"""What is gone from a topic before a table has read it is told, whichever way the table goes on; no Kafka, no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.model.offsets import Ends, OffsetRange
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.job import SyncJob
from cdc_sync.runtime.other_records import OtherRecords
from cdc_sync.runtime.topic import TopicSync
from cdc_sync.spark.observe import Survey
from tests.faults.actors import context_of
from tests.history.versions import versions
from tests.plan.model import ROUTE

AT_100 = Progress(version=1, offsets={"t": {0: 100}}, topic_ids={"t": "T"})


class Broker:
    """One topic `t`: where its partitions begin and end, and its id."""

    def __init__(self, begins: Mapping[int, int], ends: Mapping[int, int], *, topic_id: str = "T") -> None:
        self.begins, self.now, self.topic_id = dict(begins), dict(ends), topic_id

    def beginnings(self, _: object) -> Mapping[str, Mapping[int, int]]:
        return {"t": dict(self.begins)}

    def record_bytes(self, *_: object) -> float:
        return 100.0

    def ends(self, _: object) -> Mapping[str, Mapping[int, int]]:
        return {"t": dict(self.now)}

    def topic_ids(self, _: object) -> Mapping[str, str]:
        return {"t": self.topic_id}

    def peek(self, *_: object) -> None:
        return None


class Reader(TableActor):
    """A table whose newest records always look familiar, so that its ranges are written without a look at them."""

    may_take_known = True
    must_rebuild_history = False

    def __init__(
        self,
        broker: Broker,
        progress: Progress | None,
        *,
        name: str = "a",
        size: int = 1000,
        first_step: int | None = None,
    ) -> None:
        self.statuses: list[TableStatus] = []
        self.steps: list[tuple[OffsetRange, ...]] = []
        self.remembered: dict[str, dict[tuple[str, int], int]] = {}
        store: Any = SimpleNamespace(
            save=self.statuses.append,
            save_passed=lambda _, marker, places: self.remembered.update({marker: dict(places)}),
            passed=lambda _, marker: self.remembered.get(marker, {}),
        )
        table = TableId(database="d", schema="s", table=name)
        super().__init__(
            context_of(kafka=broker, state=store, size=size, first_step=first_step or size), replace(ROUTE, table=table)
        )
        self.state = replace(self.state, progress=progress)

    def knowing(self, **known: Any) -> Reader:
        self.state = replace(self.state, **known)
        return self

    def passing(self, places: Mapping[tuple[str, int], int]) -> Reader:
        return self.knowing(cursor=self.state.cursor.passing(places))

    def advance_known(self, step: tuple[OffsetRange, ...]) -> bool:
        progress = self.state.progress
        assert progress is not None
        self.steps.append(step)
        read = {**progress.offsets["t"], **{item.partition: item.end for item in step}}
        self.knowing(progress=replace(progress, offsets={"t": read}))
        return True

    @property
    def reason(self) -> str | None:
        return None if self.state.stop is None else self.state.stop.reason


class Topic(TopicSync):
    """A topic whose survey finds events of the tables that are known, and of no other."""

    def _advance_surveyed(self, step: tuple[OffsetRange, ...], active: Sequence[Any]) -> None:
        for table in active:
            ranges = table.ranges(self._topic, {(item.topic, item.partition): item.end for item in step})
            if ranges:
                table.advance_known(ranges)
        self._account(step)


def sync_of(*tables: Reader) -> TopicSync:
    found: Any = SimpleNamespace(of=lambda _: tables)
    return Topic(tables[0].context, found, "t")


def advance(sync: TopicSync, ends: Mapping[int, int]) -> None:
    sync.advance({("t", partition): end for partition, end in ends.items()})


def test_a_table_that_lags_behind_retention_pauses_though_its_records_look_familiar() -> None:
    broker = Broker({0: 0}, {0: 100})
    table = Reader(broker, AT_100)
    sync = sync_of(table)
    advance(sync, {0: 100})
    broker.begins = {0: 150}

    advance(sync, {0: 200})

    assert table.reason == "offsets 100 to 149 of t[0] were deleted from the topic before they were read"
    assert table.steps == []
    assert table.statuses[-1].state == "paused"


@pytest.mark.parametrize(
    ("first_step", "sizes"), [(1000, [1000, 900]), (100, [100, 400, 1000, 400]), (600, [600, 1000, 300])]
)
def test_where_the_first_step_is_short_each_is_longer_than_the_one_before(first_step: int, sizes: list[int]) -> None:
    table = Reader(Broker({0: 0}, {0: 2000}), AT_100, first_step=first_step)
    sync = sync_of(table)

    advance(sync, {0: 2000})

    assert [step.size for (step,) in table.steps] == sizes
    advance(sync, {0: 3500})
    assert [step.size for (step,) in table.steps[len(sizes) :]] == [1000, 500]


def test_the_other_tables_of_the_topic_go_on() -> None:
    broker = Broker({0: 150}, {0: 200})
    late, ready = Reader(broker, AT_100, name="a"), Reader(broker, replace(AT_100, offsets={"t": {0: 160}}), name="b")

    advance(sync_of(late, ready), {0: 200})

    assert late.state.stop is not None
    assert ready.state.stop is None
    assert ready.state.next_offset("t", 0) == 200


def test_a_table_pauses_though_all_it_has_not_read_is_gone() -> None:
    table = Reader(Broker({0: 200}, {0: 200}), AT_100)

    advance(sync_of(table), {0: 200})

    assert table.reason == "offsets 100 to 199 of t[0] were deleted from the topic before they were read"


def test_what_compaction_took_out_of_the_middle_is_no_gap() -> None:
    table = Reader(Broker({0: 0}, {0: 200}), AT_100)

    advance(sync_of(table), {0: 200})

    assert table.state.stop is None
    assert table.state.next_offset("t", 0) == 200


def test_a_beginning_that_the_table_has_passed_is_no_gap() -> None:
    table = Reader(Broker({0: 100}, {0: 200}), AT_100)

    advance(sync_of(table), {0: 200})

    assert table.state.stop is None
    assert table.state.next_offset("t", 0) == 200


def _restarted(table: Reader, progress: Progress) -> Reader:
    """Return the table as another process has it, which finds the topic without what was looked through."""
    again = Reader(Broker({0: 180}, {0: 200}), progress)
    again.remembered = table.remembered
    return again


def test_what_an_earlier_process_looked_through_may_be_gone() -> None:
    table = Reader(Broker({0: 0}, {0: 180}), AT_100)
    table.passing({("t", 0): 180})
    table.remember_passed()
    again = _restarted(table, AT_100)

    advance(sync_of(again), {0: 200})

    assert again.state.stop is None
    assert again.steps == [(OffsetRange(topic="t", partition=0, start=180, end=200),)]


@pytest.mark.parametrize(
    ("passed", "progress"),
    [(179, AT_100), (180, replace(AT_100, offsets={"t": {0: 90}})), (180, replace(AT_100, version=2))],
    ids=["not all of it", "of a target that was set back", "of another version"],
)
def test_what_was_not_looked_through_with_the_same_rows_is_a_gap(passed: int, progress: Progress) -> None:
    table = Reader(Broker({0: 0}, {0: 180}), AT_100)
    table.passing({("t", 0): passed})
    table.remember_passed()
    again = _restarted(table, progress)

    advance(sync_of(again), {0: 200})

    assert "were deleted from the topic before they were read" in (again.reason or "")
    assert again.steps == []


def test_a_table_that_committed_all_it_read_keeps_nothing_beside() -> None:
    table = Reader(Broker({0: 0}, {0: 100}), AT_100)
    table.passing({("t", 0): 100, ("other", 0): 7})

    table.remember_passed()

    assert table.remembered == {}


def test_a_topic_that_is_another_one_now_is_told_before_it_is_as_long() -> None:
    broker = Broker({0: 0}, {0: 100})
    table = Reader(broker, AT_100)
    sync = sync_of(table)
    advance(sync, {0: 100})
    broker.topic_id, broker.now = "another", {0: 50}

    advance(sync, {0: 50})

    assert table.reason == "topic t was deleted and made again, so its offsets no longer mean what they did"


def test_ends_of_before_are_no_reason_to_stop() -> None:
    table = Reader(Broker({0: 0}, {0: 200}), AT_100)

    advance(sync_of(table), {0: 90})

    assert table.state.stop is None
    assert table.steps == []


def test_a_partition_that_the_topic_was_given_since_must_have_all_its_records() -> None:
    table = Reader(Broker({0: 0, 1: 50}, {0: 100, 1: 80}), replace(AT_100, whole=frozenset({"t"})))

    advance(sync_of(table), {0: 100, 1: 80})

    assert table.reason == "offsets 0 to 49 of t[1] were deleted from the topic before they were read"
    assert table.steps == []


def test_of_a_marker_of_an_earlier_version_it_is_said_what_it_does_not_tell() -> None:
    table = Reader(Broker({0: 0, 1: 50}, {0: 100, 1: 80}), AT_100)
    sync = sync_of(table)

    advance(sync, {0: 100, 1: 80})
    advance(sync, {0: 100, 1: 80})

    assert table.state.stop is None
    assert table.state.next_offset("t", 1) == 80
    (warning,) = table.state.warnings
    assert warning.startswith("t[1] begins at offset 50, and the table, written by an earlier version")
    assert len(table.statuses) == 1
    assert table.statuses[0].warnings == (warning,)


def test_what_was_looked_through_is_in_the_next_marker_of_the_topic() -> None:
    table = Reader(Broker({0: 0}, {0: 100}), AT_100)
    table.passing({("t", 0): 150, ("u", 0): 7})

    assert table.state.reached is not None
    assert table.state.reached.offsets == {"t": {0: 150}}


@pytest.mark.parametrize("policy", ["pause", "insert"])
@pytest.mark.parametrize(("begins", "is_lost"), [(7, False), (8, True)])
def test_a_target_that_is_not_there_is_not_begun_where_its_first_event_is_gone(
    begins: int, is_lost: bool, policy: Literal["pause", "insert"]
) -> None:
    table = Reader(Broker({0: begins}, {0: 9}), None)
    first = versions()[0]
    at_7 = replace(first, kafka=KafkaPosition(topic="t", partition=0, offset=7))
    route = replace(ROUTE, policy=replace(ROUTE.policy, missing_rows=policy))
    table.knowing(route=route, history=History(table=first.table, versions=(at_7,)))

    assert table.has_all("t", {0: begins}) is not (is_lost and policy == "pause")

    told = table.reason if policy == "pause" else "".join(table.state.journal.warnings)
    assert (told or "").startswith("offsets 7 to 7 of t[0] were deleted from the topic") is is_lost


WHOLE_AT_100 = replace(AT_100, whole=frozenset({"t"}))


def _read(table: Reader) -> list[list[tuple[int, int, int]]]:
    return [[(item.partition, item.start, item.end) for item in step] for step in table.steps]


def test_a_new_partition_is_begun_once_the_others_are_read_to_where_they_were() -> None:
    table = Reader(Broker({0: 0, 1: 0}, {0: 350, 1: 12}), WHOLE_AT_100, size=200)

    advance(sync_of(table), {0: 250, 1: 10})

    assert _read(table) == [[(0, 100, 300)], [(0, 300, 350)], [(1, 0, 10)]], "the broker has more than the batch knows"


def _read_twice(first: dict[int, int], now: dict[int, int], second: dict[int, int]) -> list[list[tuple[int, int, int]]]:
    """The steps of a table that is advanced to some ends, and once more when the broker has more."""
    broker = Broker({0: 0, 1: 0}, first)
    table = Reader(broker, WHOLE_AT_100)
    sync = sync_of(table)
    advance(sync, first)
    broker.now = now
    advance(sync, second)
    return _read(table)


def test_a_new_partition_that_was_begun_is_read_with_the_others() -> None:
    steps = _read_twice({0: 200, 1: 10}, now={0: 300, 1: 20}, second={0: 300, 1: 20})

    assert steps[2:] == [[(0, 200, 300), (1, 10, 20)]]


def test_a_new_partition_is_noticed_when_it_has_its_first_record() -> None:
    steps = _read_twice({0: 200, 1: 0}, now={0: 400, 1: 1}, second={0: 300, 1: 1})

    assert steps == [[(0, 100, 200)], [(0, 200, 400)], [(1, 0, 1)]], "keys moved after offset 200"


def test_each_table_of_a_topic_begins_a_new_partition_in_its_own_time() -> None:
    broker = Broker({0: 0, 1: 0}, {0: 200, 1: 10})
    begun = replace(WHOLE_AT_100, offsets={"t": {0: 200, 1: 4}})
    lagging, ahead = Reader(broker, WHOLE_AT_100, name="a"), Reader(broker, begun, name="b")

    advance(sync_of(lagging, ahead), {0: 200, 1: 10})

    assert _read(lagging) == [[(0, 100, 200)], [(1, 0, 10)]]
    assert _read(ahead) == [[(1, 4, 10)]]


def test_what_keeps_a_new_partition_waiting_and_is_gone_pauses_the_table() -> None:
    table = Reader(Broker({0: 120, 1: 0}, {0: 200, 1: 10}), WHOLE_AT_100)

    advance(sync_of(table), {0: 200, 1: 10})

    assert table.reason is not None
    assert table.steps == []


def _odd(monkeypatch: pytest.MonkeyPatch, broker: Broker, *tables: Reader) -> list[Ends]:
    """What a start looks at before any batch comes."""
    found: list[Ends] = []
    job = SyncJob.__new__(SyncJob)
    job._context = tables[0].context
    job.tables = cast("Any", SimpleNamespace(of=lambda _: tables))
    monkeypatch.setattr(job, "process", found.append)
    job.check_topics(broker.ends(["t"]))
    return found


@pytest.mark.parametrize(
    ("begins", "end", "looks"),
    [(0, 100, False), (100, 100, False), (0, 300, False), (200, 200, True), (150, 300, True), (0, 50, True)],
    ids=["all read", "all read and gone", "more to read", "all gone", "some gone", "fewer than were read"],
)
def test_a_start_looks_where_a_table_cannot_go_on(
    begins: int, end: int, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker({0: begins}, {0: end})
    assert _odd(monkeypatch, broker, Reader(broker, AT_100)) == ([{("t", 0): end}] if looks else [])
    assert _odd(monkeypatch, broker, Reader(broker, None)) == [], "it holds nothing yet"


def test_a_stranger_in_a_bound_topic_is_not_looked_for_again_where_all_was_looked_at() -> None:
    table = Reader(Broker({0: 0}, {0: 200}), AT_100)
    config = cast("Any", table.context.config)
    config.kafka = SimpleNamespace(bound_topics=True)
    stranger = Stretch(
        table=TableId(database="d", schema="s", table="stranger"),
        position=SourcePosition(kind="postgresql", parts=(1,)),
        kafka=KafkaPosition(topic="t", partition=0, offset=150),
        digest="",
    )

    found = OtherRecords(table.context, "t").without_strangers((), Survey(stretches=(stranger,), others=()))

    assert found.stretches == ()
