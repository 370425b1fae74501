"""A configuration that changes while the job runs, through the whole job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from cdc_sync.api import commands
from cdc_sync.config import load_config
from cdc_sync.runtime.reports import RunReport
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


def table(name: str) -> SourceTable:
    columns = [column("id", INT32, optional=False), column("note", TEXT)]
    return SourceTable(name, columns, prefix="reload", null_is_default=False)


def wait_until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_tables_and_policies_change_while_the_job_runs_and_a_bad_edit_changes_nothing(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None]
) -> None:
    orders, items = table("orders"), table("items")
    lake = pipeline("reload", rules="[{pattern: 'shop.public.orders'}]", settings="job: {trigger_interval: 200ms}")
    path = lake.folder / "pipeline.yaml"
    path.write_text(lake.text)
    stop, now = threading.Event(), threading.Event()

    def edited(text: str) -> None:
        path.write_text(text)
        now.set()

    for source in (orders, items):
        produce(source.topic, source.insert(id=1, note="before"))
    spark()
    with ThreadPoolExecutor(1) as pool:
        config = load_config(path)
        run = partial(commands.run, stop=stop, reload_from=path, reload_now=now)
        running = pool.submit(run, config)
        try:
            wait_until(lambda: _is_read(lake, orders))
            edited(lake.text.replace("pattern: 'shop", "patern: 'shop"))
            wait_until(lambda: commands.status(config).job.refused is not None)  # type: ignore[union-attr]
            produce(orders.topic, orders.insert(id=2, note="the old one goes on"))
            wait_until(lambda: _is_read(lake, orders))
            assert "items" not in lake.statuses()

            edited(lake.text.replace("shop.public.orders", ".*"))

            wait_until(lambda: _is_read(lake, items))
            wait_until(lambda: commands.status(config).job.refused is None)  # type: ignore[union-attr]
            for source in (orders, items):
                produce(source.topic, source.insert(id=3, note="behind it"))
            wait_until(lambda: _is_read(lake, orders) and _is_read(lake, items))
        finally:
            stop.set()
            report: RunReport = running.result(timeout=180)

    assert [status.state for status in report.tables] == ["running", "running"]
    assert report.batches > 2, "the batches of both configurations"
    for source in (orders, items):
        assert_equal(lake, source)


def _is_read(lake: Pipeline, source: SourceTable) -> bool:
    found = lake.statuses().get(source.id.table)
    return found is not None and found.offsets.get(source.topic) == {0: len(source.records)}
