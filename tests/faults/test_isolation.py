"""What is wrong with one table, or one topic, is its own affair: nothing of it reaches the others. Without a JVM."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from cdc_sync.core.migration.operator_requests import Rollback
from cdc_sync.core.migration.routes import Decision
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.core.planning.stops import Pause
from cdc_sync.errors import HistoryError, KafkaUnavailable, TargetError
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.job import SyncJob
from cdc_sync.runtime.tables import Tables
from cdc_sync.runtime.topic import TopicSync
from cdc_sync.spark.observe import Survey
from cdc_sync.storage.state import StateStore
from tests.faults.edges import Kafka, Pipeline
from tests.history.versions import ORDERS, versions

GOOD, BAD = (TableId(database="shop", schema="public", table=name) for name in ("good", "bad"))
AWAY = TargetError("Cannot read public.bad: the metastore is away")
ODD = RuntimeError("nobody thought of this")


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setattr("cdc_sync.runtime.job.activate", lambda _: None)
    return Pipeline(tmp_path)


Surveys = Callable[[Survey | Exception], None]


@pytest.fixture
def survey(monkeypatch: pytest.MonkeyPatch) -> Surveys:
    """Say what is found in the topics, where Spark would look."""

    def finds(found: Survey | Exception) -> None:
        def look(*_: object) -> Survey:
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(TopicSync, "_survey", look)

    finds(Survey(stretches=(), others=()))
    return finds


def stands(table: TableActor) -> tuple[str | None, int | None]:
    """How it fails, and where it goes on in the topic."""
    failure = table.state.failure
    return None if failure is None else failure.text, table.state.next_offset("t", 0)


@pytest.mark.parametrize("error", [AWAY, ODD])
def test_a_target_that_cannot_be_read_again_after_a_failure_is_left_out(
    pipeline: Pipeline, survey: Surveys, error: Exception
) -> None:
    tables = Tables(pipeline.context)
    good, bad = (tables.add(table, topics=("t",)) for table in (GOOD, BAD))
    assert good is not None
    assert bad is not None
    bad.fail(RuntimeError("the write failed"))
    pipeline.target.broken["bad"] = error

    TopicSync(pipeline.context, tables, "t").advance({("t", 0): 5})

    assert stands(good) == (None, 5)
    assert str(error) in str(bad.state.failure)
    assert pipeline.status(BAD).state == "failing"

    pipeline.target.broken.clear()
    TopicSync(pipeline.context, tables, "t").advance({("t", 0): 5})
    assert stands(bad) == (None, 5)


@pytest.mark.parametrize("error", [AWAY, ODD])
def test_a_target_that_cannot_be_read_at_the_start_keeps_no_other_table_from_it(
    pipeline: Pipeline, error: Exception
) -> None:
    for table in (GOOD, BAD):
        known = Tables(pipeline.context).add(table, topics=("t",))
        assert known is not None
        known.report()
    pipeline.target.broken["bad"] = error

    tables = Tables(pipeline.context)
    tables.restore()

    assert [table.table for table in tables.all()] == [BAD, GOOD]
    assert str(error) in (pipeline.status(BAD).reason or "")


def test_what_goes_wrong_in_a_topic_stops_that_topic_until_it_goes_well(pipeline: Pipeline, survey: Surveys) -> None:
    tables = Tables(pipeline.context)
    table = tables.add(GOOD, topics=("t",))
    assert table is not None
    topic = TopicSync(pipeline.context, tables, "t")
    survey(ODD)

    topic.advance({("t", 0): 5})

    assert topic.waiting == str(ODD)
    assert stands(table) == (f"RuntimeError: {ODD}", None)
    survey(Survey(stretches=(), others=()))
    topic.advance({("t", 0): 5})
    assert topic.waiting is None
    assert stands(table) == (None, 5)


def test_kafka_being_away_is_no_fault_of_a_topic(pipeline: Pipeline, survey: Surveys) -> None:
    tables = Tables(pipeline.context)
    tables.add(GOOD, topics=("t",))
    survey(KafkaUnavailable("away"))
    with pytest.raises(KafkaUnavailable):
        TopicSync(pipeline.context, tables, "t").advance({("t", 0): 5})


def test_what_passes_is_tried_again_and_needs_no_restart(pipeline: Pipeline) -> None:
    store = StateStore(f"{pipeline.folder}/p", create=True)
    before = TableStatus(
        table=BAD, target="public.bad", state="running", offsets={"t": {0: 7}}, counts={"rows set aside": 3}
    )
    store.save(before)
    pipeline.target.states["bad"] = TargetState(version=1, progress=Progress(version=1, offsets={"u": {0: 9}}))
    pipeline.target.broken["bad"] = AWAY
    job = SyncJob(pipeline.context)

    job.tables.restore()

    since = pipeline.status(BAD).since
    failed = replace(before, state="failing", code="target-failed", reason=str(AWAY), since=since)
    assert (since is not None, pipeline.status(BAD)) == (True, failed), "what it was before stays told"
    job.catch_up()
    assert pipeline.status(BAD) == failed
    pipeline.target.broken.clear()
    job.catch_up()
    told = pipeline.status(BAD)
    assert told == replace(before, offsets={"u": {0: 9}}, since=told.since)
    assert [table.table for table in job.tables.of("u")] == [BAD], "its topics are known again"


def test_a_damaged_history_is_its_tables_affair(pipeline: Pipeline) -> None:
    for version in versions():
        pipeline.context.history.append(version)
    damaged = Path(pipeline.folder) / "p" / "history" / "shop.public.orders" / "000001.json"
    whole = damaged.read_bytes()
    damaged.write_text("{")
    job = SyncJob(pipeline.context)
    job.tables.add(GOOD, topics=("t",))

    job.tables.restore()

    assert pipeline.status(ORDERS).state == "failing"
    damaged.write_bytes(whole)
    job.catch_up()
    assert pipeline.status(ORDERS).state == "running"


@pytest.fixture
def paused(pipeline: Pipeline) -> SyncJob:
    """A job with a table that waits for a decision, which is then there."""
    job = SyncJob(pipeline.context)
    table = job.tables.add(BAD, topics=("t",))
    assert table is not None
    table.stop(Pause(code=Code.UNPROVEN, reason="two columns may be one", remedy="decide"))
    pipeline.context.state.requests.decide(Decision(table=BAD, at="t[0]@3", renames={"a": "b"}, not_same=()))
    return job


def test_a_decided_table_goes_on_only_once_it_was_read_while_nobody_works_on_it(
    pipeline: Pipeline, paused: SyncJob
) -> None:
    (table,) = paused.tables.all()
    seen = []
    pipeline.target.asked = lambda: seen.append(
        (paused.lock.locked(), table.lock.locked(), table.state.stop is not None)
    )

    paused.catch_up()

    assert seen == [(True, True, True)]
    assert table.state.stop is None
    assert [decision.renames for decision in table.route.decisions] == [{"a": "b"}]
    assert pipeline.status(BAD).state == "running"


@pytest.mark.parametrize("error", [AWAY, ODD])
def test_a_decided_table_that_cannot_be_read_stays_paused_and_is_tried_again(
    pipeline: Pipeline, paused: SyncJob, error: Exception
) -> None:
    pipeline.target.broken["bad"] = error

    paused.catch_up()

    assert pipeline.status(BAD).state == "paused"
    pipeline.target.broken.clear()
    paused.catch_up()
    assert pipeline.status(BAD).state == "running"


@pytest.mark.parametrize(
    "file", ["rollbacks/{}.json", "joins/{}/000001-000002.json", "resyncs/{}/a.json", "decisions/{}.json"]
)
def test_a_damaged_file_of_one_table_is_that_tables_affair(pipeline: Pipeline, file: str) -> None:
    job = SyncJob(pipeline.context)
    good, bad = (job.tables.add(table, topics=("t",)) for table in (GOOD, BAD))
    assert good is not None
    assert bad is not None
    damaged = pipeline.folder / "p" / file.format(BAD)
    damaged.parent.mkdir(parents=True, exist_ok=True)
    damaged.write_text("{")
    bad.fail(RuntimeError("it is read again"))
    pipeline.context.state.requests.add(Rollback(table=GOOD, version=2))

    job.catch_up()
    with pytest.raises(HistoryError):
        bad.reload_after_failure()
    good.load()

    assert str(good.state.stop and good.state.stop.reason).startswith("version 2")
    assert pipeline.status(BAD).state == "failing"
    damaged.unlink()
    job.catch_up()
    assert pipeline.status(BAD).state == "running"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Topic `t` takes until this is set."""
    free = threading.Event()

    def advance(self: TopicSync, ends: Mapping[tuple[str, int], int]) -> None:
        if self._topic == "t":
            assert free.wait(60)
        self._account([OffsetRange(topic=self._topic, partition=0, start=0, end=ends[self._topic, 0])])

    monkeypatch.setattr(TopicSync, "advance", advance)
    yield free
    free.set()


def test_no_topic_waits_for_another_one_that_takes_long(pipeline: Pipeline, held: threading.Event) -> None:
    job = SyncJob(pipeline.context)

    def accounted() -> dict[str, int]:
        return {name: topic._accounted.get(0, 0) for name, topic in job._topics.items()}

    job.process({("t", 0): 5, ("u", 0): 5}, turn=0.05)
    assert accounted() == {"t": 0, "u": 5}
    job.process({("t", 0): 8, ("u", 0): 9}, turn=0.05)
    assert accounted() == {"t": 0, "u": 9}
    assert job.waits, "a run that drains the topics is not done yet"

    held.set()
    job.finish()
    assert accounted() == {"t": 5, "u": 9}
    job.catch_up()
    job.finish()
    assert accounted() == {"t": 8, "u": 9}, "what it was passed over for is read by itself"
    assert not job.waits


def test_what_goes_wrong_beside_the_batches_is_told_by_the_next(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = threading.Event()

    def advance(*_: object) -> None:
        assert free.wait(60)
        raise KafkaUnavailable("away")

    monkeypatch.setattr(TopicSync, "advance", advance)
    job = SyncJob(pipeline.context)
    job.process({("t", 0): 5}, turn=0.05)
    free.set()

    with pytest.raises(KafkaUnavailable):
        job.finish()


def test_a_job_that_is_to_stop_begins_no_other_table_and_no_other_step(pipeline: Pipeline, survey: Surveys) -> None:
    tables = Tables(pipeline.context)
    table = tables.add(GOOD, topics=("t",))
    assert table is not None
    context = pipeline.context
    context.stop.set()

    TopicSync(context, tables, "t").advance({("t", 0): 5})

    assert stands(table) == (None, None), "it is as far as it was"


def test_a_backlog_of_large_records_is_read_in_parts(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    asked: list[int] = []

    class Large(Kafka):
        def record_bytes(self, item: OffsetRange, samples: int) -> float:
            asked.append(samples)
            return 4 * 1024 * 1024

    def look(_: object, step: Sequence[OffsetRange], *__: object) -> Survey:
        steps.append(sum(item.size for item in step))
        return Survey(stretches=(), others=())

    monkeypatch.setattr(TopicSync, "_survey", look)
    context = replace(pipeline.context, kafka=cast(Any, Large()))
    tables = Tables(context)
    tables.add(GOOD, topics=("t",))

    TopicSync(context, tables, "t").advance({("t", 0): 5_000})

    # max_bytes_per_batch is 2 GiB. Of what is long some records tell, once; of the rest the last.
    assert steps == [512] * 9 + [392]
    assert asked == [5, 1, 1, 1, 1]
