"""A broker that goes away and comes back, or is not there at all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from pathlib import Path

import pytest

from cdc_sync.cli.app import main
from cdc_sync.config import Config
from cdc_sync.errors import KafkaUnavailable
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.runtime import service
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

_PATIENCE = 240.0
_SECONDS_AWAY = 20.0


def test_a_broker_that_is_down_at_the_start_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "conf.yaml").write_text(
        """
pipeline: {name: alone, state: '${config_dir}/state'}
kafka: {bootstrap_servers: '127.0.0.1:9', topics: [shop.inv.orders], request_timeout: 100ms, attempts: 3}
tables: [{pattern: '.*'}]
"""
    )

    exit_code = main(["run", str(tmp_path / "conf.yaml")])

    lines = capsys.readouterr().err.splitlines()
    assert exit_code == 4
    assert [line for line in lines if "will try again" in line] == lines[:-1]
    assert len(lines) == 3, "two retries and the error"
    assert lines[-1].startswith("cdc-sync: Cannot list topics: no usable answer from Kafka at '127.0.0.1:9'")


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.iceberg
def test_the_job_goes_on_when_the_broker_comes_back(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None], kafka: KafkaServer
) -> None:
    table = SourceTable(
        "orders",
        [column("id", INT32, optional=False), column("note", TEXT)],
        prefix="outage",
        null_is_default=False,
    )
    late = SourceTable("late", [column("id", INT32, optional=False)], prefix="outage", null_is_default=False)
    lake = pipeline("away", settings="job: {trigger_interval: 200ms}")
    # A Python expression that Java does not know, and that an internal topic matches too.
    config = _with_kafka(lake, topic_pattern=r"(?P<topic>.*outage\..*)")
    stop = threading.Event()
    produce(table.topic, table.insert(id=1, note="before"))
    other = SourceTable("other", [column("id", INT32, optional=False)], prefix="outage", null_is_default=False)
    produce("__debezium-heartbeat.outage.shop", other.insert(id=7))
    spark()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(service.run, config, once=False, stop=stop)
        try:
            _wait_until_equal(lake, table)
            kafka.stop()
            try:
                assert not wait([running], _SECONDS_AWAY).done, "the job waits longer than one question's attempts"
            finally:
                kafka.start()
            table.add_column(column("more", INT32))
            produce(table.topic, [*table.insert(id=2, note="after", more=2), *table.update({"id": 1}, more=1)])
            _wait_until_equal(lake, table)
            produce(late.topic, late.insert(id=3))
            _wait_until_equal(lake, late)
        finally:
            stop.set()
        report = running.result(timeout=180)

    assert [status.state for status in report.tables] == ["running", "running"]
    assert "change of a table that no rule matches" not in report.other_records


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.iceberg
def test_a_broker_that_stays_away_is_one_clear_error(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None], kafka: KafkaServer
) -> None:
    table = SourceTable("orders", [column("id", INT32, optional=False)], prefix="gone", null_is_default=False)
    lake = pipeline("gone", settings="job: {trigger_interval: 200ms}")
    config = _with_kafka(
        lake,
        attempts=2,
        outage_timeout=timedelta(seconds=3),
        request_timeout=timedelta(seconds=2),
        spark_properties={"default.api.timeout.ms": "3000", "request.timeout.ms": "2000"},
    )
    produce(table.topic, table.insert(id=1))
    spark()
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(service.run, config, once=False, stop=stop)
        _wait_until_equal(lake, table)
        kafka.stop()
        try:
            with pytest.raises(KafkaUnavailable, match=r"no usable answer from Kafka at .* in 2 attempts"):
                running.result(timeout=180)
        finally:
            stop.set()
            kafka.start()


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.iceberg
def test_a_job_ends_soon_also_while_the_broker_is_away(
    pipeline: NewPipeline, produce: Produce, spark: Callable[[], None], kafka: KafkaServer
) -> None:
    table = SourceTable("orders", [column("id", INT32, optional=False)], prefix="ends", null_is_default=False)
    lake = pipeline("ends", settings="job: {trigger_interval: 200ms}")
    produce(table.topic, table.insert(id=1))
    spark()
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(service.run, _with_kafka(lake), once=False, stop=stop)
        _wait_until_equal(lake, table)
        kafka.stop()
        try:
            time.sleep(3)
            stop.set()
            running.result(timeout=20)
        finally:
            stop.set()
            kafka.start()


def _with_kafka(lake: Pipeline, **settings: object) -> Config:
    return lake.config.model_copy(update={"kafka": lake.config.kafka.model_copy(update=settings)})


def _wait_until_equal(lake: Pipeline, table: SourceTable) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            assert_equal(lake, table)
            return
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)
