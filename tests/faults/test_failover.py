"""A failover to a server whose log is behind, through a broker and the real job: its changes are followed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc_sync.api import requests
from cdc_sync.config import parse_config
from cdc_sync.core.planning.resync import ALL_ROWS
from cdc_sync.spark.session import build_session
from cdc_sync.storage.state import StateStore
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.testing import Record, json_text
from tests.conftest import Produce
from tests.corpus.runs import memory_job, session_of_its_own
from tests.faults.conftest import NewPipeline

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
_CAPTURED = Path(__file__).parents[1] / "plan" / "data" / "failover-lower-lsn.jsonl"


@pytest.fixture
def sessions(_spark: SparkSession) -> Iterator[None]:
    with session_of_its_own(_spark):
        yield


@pytest.mark.usefixtures("sessions")
def test_a_failover_is_followed_and_marked(produce: Produce, pipeline: NewPipeline) -> None:
    topic = "fo.fo.acc"
    lines = [json.loads(line) for line in _CAPTURED.read_text().splitlines()]
    produce(topic, [Record(key=_side(line["key"]), value=_side(line["value"])) for line in lines])
    config = parse_config(pipeline("fo", format="memory").text)
    with memory_job(config, build_session(config)) as (job, context):
        # The failover lies within a batch of a schema that is known; the changes come one by one.
        for end in (4, 8, 9, 10, 11):
            job.process({(topic, 0): end})
        (sync,) = job.tables.all()
        assert (sync.state.stop, sync.state.failure) == (None, None)
        assert sync.state.history is not None
        assert [version.position.incarnation for version in sync.state.history.versions] == [0, 1, 1, 1]
        assert isinstance(context.target, MemoryTarget)
        rows = context.target.rows(sync.route.target)
        (status,) = StateStore(config.pipeline.root).tables()
        assert [mark.column for mark in status.needs_resync] == [ALL_ROWS, "num", "x"]
        assert requests.resync(config, "acc", columns=(), done=True).columns == (ALL_ROWS, "num", "x")
        job.catch_up()
        job.finish()
        sync.become(sync.state.with_resyncs(context.notifications.follow(context.state, sync.table)))
        sync.report()
        (status,) = StateStore(config.pipeline.root).tables()
        assert status.needs_resync == ()
    shown = sorted((row["id"], row["v"], row["n"], row["num"], row["x"]) for row in rows)
    assert shown == [
        (1, "a2", 1, None, 4),
        (3, "c", 3, 33, 4),
        (4, "d", 4, None, 4),
        (5, "e", 5, None, 4),
        (6, "f", None, 6, 6),
    ]


def _side(value: object) -> bytes | None:
    return None if value is None else json_text(value).encode()
