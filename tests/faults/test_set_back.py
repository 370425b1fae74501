"""A target that somebody sets back while the job runs is read on from what it holds; nothing is missing at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

if TYPE_CHECKING:
    from cdc_sync.runtime.job import SyncJob

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

_BACK = {
    "iceberg": "CALL lake.system.rollback_to_snapshot('{namespace}.orders', {commit})",
    "delta": "RESTORE delta.`{path}` TO VERSION AS OF {commit}",
}


class Running:
    """A job whose batches the test drives."""

    def __init__(self, lake: Pipeline, job: SyncJob, session: SparkSession, produce: Produce) -> None:
        self.lake, self._job, self.session, self._produce = lake, job, session, produce
        self.orders = SourceTable(
            "orders", [column("id", INT32, optional=False), column("note", TEXT)], prefix=lake.prefix
        )
        self._sent = 0

    def process(self) -> str:
        """Read what is new; return the table's state."""
        self._produce(self.orders.topic, self.orders.records[self._sent :])
        self._sent = len(self.orders.records)
        self._job.process({(self.orders.topic, 0): self._sent})
        return self.lake.statuses()["orders"].state

    def commit(self) -> str:
        """What the target calls its newest commit."""
        if self.lake.format == "iceberg":
            return str(self.lake.table(self.orders.id).metadata.current_snapshot_id)
        history = self.session.sql(f"DESCRIBE HISTORY delta.`{self._path}` LIMIT 1")
        return str(history.collect()[0].version)

    def set_back(self, commit: str) -> None:
        self.session.sql(
            _BACK[self.lake.format].format(namespace=self.orders.id.schema, path=self._path, commit=commit)
        ).collect()

    @property
    def _path(self) -> str:
        return f"{self.lake.config.target.catalog.warehouse}/{self.orders.id.schema}/orders"


@pytest.fixture(params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in _BACK])
def running(
    request: pytest.FixtureRequest, pipeline: NewPipeline, produce: Produce, spark: Callable[[], None]
) -> Iterator[Running]:
    from cdc_sync.spark.session import build_session
    from tests.corpus.runs import memory_job

    lake = pipeline(f"set-back-{request.param}", format=request.param)
    spark()
    with ExitStack() as stack:
        job, context = stack.enter_context(memory_job(lake.config, build_session(lake.config)))
        yield Running(lake, job, context.spark, produce)


def test_rows_that_were_undone_are_read_again(running: Running) -> None:
    orders = running.orders
    for number in range(4):
        orders.insert(id=number, note="first")
    running.process()
    then = running.commit()
    orders.update({"id": 1}, note="second")
    orders.delete({"id": 2})
    orders.insert(id=10, note="second")
    running.process()

    running.set_back(then)
    orders.insert(id=11, note="third")
    assert running.process() == "failing"
    assert running.process() == "running"

    assert_equal(running.lake, orders)
