"""What operators ask of a table's job is done between two batches, or before the table's next step. Without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cdc_sync.core.migration.operator_requests import Hold, Skip
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.core.planning.stops import Pause
from cdc_sync.core.table.questions import RoomFor
from cdc_sync.core.table.seen import Seen
from cdc_sync.errors import TargetError
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.job import SyncJob
from cdc_sync.storage.state import StateStore
from tests.faults.edges import Pipeline

GOOD, BAD = (TableId(database="shop", schema="public", table=name) for name in ("good", "bad"))
HOLD = Hold(table=BAD, by="ann@web-1", at="2026-01-02T03:04:05Z", why="the disk is full")
UNSURE = Pause(code=Code.UNPROVEN, reason="two columns may be one", remedy="decide")


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setattr("cdc_sync.runtime.job.activate", lambda _: None)
    return Pipeline(tmp_path)


@pytest.fixture
def job(pipeline: Pipeline) -> SyncJob:
    made = SyncJob(pipeline.context)
    for table in (GOOD, BAD):
        found = made.tables.add(table, topics=("t",))
        assert found is not None
        found.report()
    return made


@pytest.fixture
def store(pipeline: Pipeline) -> StateStore:
    return pipeline.context.state


def states(pipeline: Pipeline) -> Mapping[str, str]:
    return {status.table.table: status.state for status in pipeline.context.state.tables()}


def of(job: SyncJob, table: TableId) -> TableActor:
    return next(it for it in job.tables.all() if it.table == table)


def test_a_table_is_paused_until_it_is_resumed_and_the_others_are_not(
    pipeline: Pipeline, job: SyncJob, store: StateStore
) -> None:
    store.requests.add(HOLD)
    assert states(pipeline) == {"good": "running", "bad": "running"}

    job.catch_up()

    told = pipeline.status(BAD)
    assert states(pipeline) == {"good": "running", "bad": "paused"}
    assert told.reason == "paused by ann@web-1: the disk is full"
    assert told.remedy == "`cdc-sync resume CONFIG shop.public.bad` lets it go on"
    store.requests.resume(BAD)
    job.catch_up()
    assert states(pipeline) == {"good": "running", "bad": "running"}
    assert BAD not in store.requests.tables_with("resumes"), "it is not resumed again by every look"


def test_it_stays_paused_when_the_job_is_started_again(pipeline: Pipeline, job: SyncJob, store: StateStore) -> None:
    store.requests.add(HOLD)
    job.catch_up()

    again = SyncJob(pipeline.context)
    again.tables.restore()

    assert of(again, BAD).state.stop is not None
    store.requests.resume(BAD)
    again.catch_up()
    assert of(again, BAD).state.stop is None


def test_of_a_table_that_had_paused_by_itself_the_operators_word_counts_first(
    pipeline: Pipeline, job: SyncJob, store: StateStore
) -> None:
    of(job, BAD).stop(UNSURE)
    store.requests.add(HOLD)
    job.catch_up()
    assert pipeline.status(BAD).reason == "paused by ann@web-1: the disk is full"

    store.requests.resume(BAD)
    job.catch_up()

    assert states(pipeline)["bad"] == "running", "the next batch comes to the same change, and pauses before it"


def test_a_table_that_paused_by_itself_is_tried_again(pipeline: Pipeline, job: SyncJob, store: StateStore) -> None:
    of(job, BAD).stop(UNSURE)
    job.catch_up()
    assert states(pipeline)["bad"] == "paused"

    store.requests.resume(BAD)
    job.catch_up()

    assert states(pipeline)["bad"] == "running"


def test_one_that_cannot_be_read_yet_is_tried_until_it_can(pipeline: Pipeline, job: SyncJob, store: StateStore) -> None:
    of(job, BAD).stop(UNSURE)
    pipeline.target.broken["bad"] = TargetError("the metastore is away")
    store.requests.resume(BAD)

    job.catch_up()

    assert (states(pipeline)["bad"], BAD in store.requests.tables_with("resumes")) == ("paused", True)
    pipeline.target.broken.clear()
    job.catch_up()
    assert (states(pipeline)["bad"], BAD in store.requests.tables_with("resumes")) == ("running", False)


def test_a_table_whose_target_is_another_ones_is_not_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_sync.runtime.job.activate", lambda _: None)
    pipeline = Pipeline(tmp_path, tables="[{pattern: '.*', target: lake.one}]")
    job = SyncJob(pipeline.context)
    for table in (GOOD, BAD):
        assert job.tables.add(table, topics=("t",)) is not None
    assert {table.table: table.state.stop is None for table in job.tables.all()} == {GOOD: True, BAD: False}

    for table in (GOOD, BAD):
        pipeline.context.state.requests.resume(table)
    job.catch_up()

    assert {table.table: table.state.stop is None for table in job.tables.all()} == {GOOD: True, BAD: False}


def test_who_resumes_a_table_lets_it_change_as_often_again(job: SyncJob, store: StateStore) -> None:
    table = of(job, BAD)

    def asked(versions: int) -> str:
        return str(table.observer.answer(table.state, Seen(), RoomFor(versions=versions)))

    assert asked(1000) == "(1000, None)"
    assert "cdc-sync resume" in asked(1)

    store.requests.resume(BAD)
    job.catch_up()

    assert asked(1000) == "(1000, None)"


def test_a_table_in_the_middle_of_much_is_paused_before_its_next_step(
    pipeline: Pipeline, job: SyncJob, store: StateStore
) -> None:
    table = of(job, BAD)
    job._running["t"] = None  # type: ignore[assignment]
    store.requests.add(HOLD)
    assert table.is_ready("t")

    job._asked.follow_while_running()

    assert not table.is_ready("t")
    assert states(pipeline) == {"good": "running", "bad": "paused"}


def test_a_record_that_is_skipped_is_known_to_a_table_that_goes_on_and_once_only(
    pipeline: Pipeline, job: SyncJob, store: StateStore
) -> None:
    bad = of(job, BAD)
    bad.stop(Pause(code=Code.ROW_MISSING, reason="no such row", remedy="skip it", at="t[0]@41"))
    place = KafkaPosition(topic="t", partition=0, offset=41)
    store.requests.add(Skip(table=BAD, place=place, by="ann@web-1", at="2026-01-02T03:04:05Z", why="deleted by hand"))

    job.catch_up()

    assert states(pipeline) == {"good": "running", "bad": "running"}
    assert bad.state.requests.skips == {place}
    bad.stop(UNSURE)
    job.catch_up()
    assert states(pipeline)["bad"] == "paused", "the word was heard"


@pytest.mark.parametrize("state", ["running", "paused"])
def test_a_status_of_before_the_last_commit_tells_of_it_when_the_job_starts_again(
    pipeline: Pipeline, state: Any
) -> None:
    store = pipeline.context.state
    store.save(TableStatus(table=GOOD, target="public.good", state=state, version=1, offsets={"t": {0: 5}}))
    pipeline.target.states["good"] = TargetState(version=1, progress=Progress(version=1, offsets={"t": {0: 9}}))

    SyncJob(pipeline.context).tables.restore()

    told = pipeline.status(GOOD)
    assert (told.state, told.offsets) == ("running", {"t": {0: 9}})
