"""What is dear to start and therefore shared by all tests: one broker, one JVM."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from hypothesis import HealthCheck, settings

from cdc_sync.config import Config, parse_config
from cdc_sync.local.kafka import KafkaServer, running_kafka
from cdc_sync.testing import Record
from tests.thorough import is_thorough

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cdc_sync.runtime.reports import RunReport

# How long an example takes is the machine's affair: where others work on it too, a law fails by the clock alone.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

MAX_MESSAGE_BYTES = 20 * 1024 * 1024

# Most of what tests run is planned once and never again. A heap that begins at 1 GB is collected a third as often.
_JAVA = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=256m", "-Xms1g"]
if sys.platform == "linux":
    # Hadoop runs `chmod` for each file it writes; without this Java starts two processes for each.
    _JAVA.append("-Djdk.lang.Process.launchMechanism=VFORK")

_NEED_PYSPARK = (
    "spark",
    "targets",
    "faults",
    "corpus/test_corpus.py",
    "corpus/test_formats.py",
    "cli/test_command_line.py",
    "cli/test_rollback.py",
    "lease/test_guard.py",
    "test_bounds.py",
    "test_gaps.py",
    "verify/test_captures.py",
    "verify/test_types.py",
    "verify/test_verify.py",
)
"""Folders and files that import PySpark, whether they start a JVM or not."""
_STAGES = frozenset(("spark", "kafka", "iceberg", "delta", "hudi", "parquet", "docker"))
"""Marks by which `scripts/test` chooses what runs where there is PySpark."""

if os.environ.get("CDC_SYNC_WITHOUT_PYSPARK"):
    # Proves that everything that is not marked runs where there is no Spark: importing it fails.
    collect_ignore = list(_NEED_PYSPARK)

    class _Refuses:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name.partition(".")[0] in ("pyspark", "py4j"):
                raise ImportError(f"{name} is not to be imported here")

    sys.meta_path.insert(0, _Refuses())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs PySpark and says nothing itself, so that no test is left out of every stage; and the thorough."""
    folder = Path(__file__).parent
    needed = [folder / name for name in _NEED_PYSPARK]
    for item in items:
        if _STAGES.isdisjoint(mark.name for mark in item.iter_markers()) and (
            item.path in needed or not set(needed).isdisjoint(item.path.parents)
        ):
            item.add_marker(pytest.mark.spark)
        if is_thorough(item.nodeid):
            item.add_marker(pytest.mark.thorough)


class Produce(Protocol):
    """Writes records to a topic, which is made if need be, and returns their offsets."""

    def __call__(
        self, topic: str, records: Iterable[Record], *, partition: int = 0, partitions: int = 1
    ) -> tuple[int, ...]: ...


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A real broker; whoever stops it starts it again."""
    with running_kafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def produce(kafka: KafkaServer) -> Produce:
    settings: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
    admin = AdminClient(settings)
    # Idempotent, for a batch that is sent again must not come behind the next one.
    producer = Producer(
        {**settings, "message.max.bytes": MAX_MESSAGE_BYTES, "linger.ms": 0, "enable.idempotence": True}
    )
    known: set[str] = set()

    def write(topic: str, records: Iterable[Record], *, partition: int = 0, partitions: int = 1) -> tuple[int, ...]:
        if topic not in known:
            admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
            known.add(topic)
        offsets: list[int] = []
        for record in records:
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                partition=partition,
                on_delivery=lambda error, message: offsets.append(-1 if error else message.offset() or 0),
            )
        assert producer.flush(60) == 0
        assert -1 not in offsets, f"{topic}: the broker refused a record"
        return tuple(offsets)

    return write


@pytest.fixture(scope="session")
def _spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from cdc_sync.config import Target
    from cdc_sync.local.jars import spark_jars
    from cdc_sync.spark.formats import format_settings
    from cdc_sync.spark.session import build_session

    # One JVM for all formats that the tests of this run are about: what Spark is told about each, and all their jars.
    # Delta's extension comes first, for Iceberg's fails at statements that change Delta's tables.
    asked = {mark.name for item in request.session.items for mark in item.iter_markers()} | {"iceberg"}
    names: list[Literal["delta", "iceberg", "hudi", "parquet"]] = ["delta", "iceberg", "hudi", "parquet"]
    formats = [format_settings(Target(format=name)) for name in names if name in asked]
    together = {key: value for found in formats for key, value in found.items() if ".lake" not in key}
    together["spark.sql.extensions"] = ",".join(
        found["spark.sql.extensions"] for found in formats if "spark.sql.extensions" in found
    )
    together["spark.jars"] = ",".join(str(path) for path in spark_jars(*(name for name in names if name in asked)))
    config = parse_config(
        f"""
pipeline: {{name: tests, state: '{tmp_path_factory.mktemp("state")}'}}
kafka: {{bootstrap_servers: 'none:9', topics: [none]}}
tables: [{{pattern: '.*'}}]
target: {{catalog: {{warehouse: '{tmp_path_factory.mktemp("warehouse")}'}}}}
spark:
  master: local[2]
  conf:
    spark.driver.memory: 1g
    spark.hadoop.fs.s3a.secret.key: planted-credential
    spark.driver.extraJavaOptions: '{" ".join(_JAVA)}'
"""
    )
    conf = {**config.spark.conf, **together}
    session = build_session(config.model_copy(update={"spark": config.spark.model_copy(update={"conf": conf})}))
    yield session
    session.stop()


@pytest.fixture
def spark(_spark: SparkSession) -> Iterator[Callable[[], None]]:
    """Call it before anything that starts a session: it finds a new one prepared, as under spark-submit."""
    from pyspark.sql import SparkSession

    class Prepared(SparkSession):
        """A session of its own in the shared JVM, which outlives the job that stops it."""

        def stop(self) -> None:
            """Leave the JVM to the next test."""

    def prepare() -> None:
        SparkSession._instantiatedSession = Prepared(_spark.sparkContext, _spark._jsparkSession.newSession())

    yield prepare
    SparkSession._instantiatedSession = _spark


_STREAMED = (
    "test_broker.py",
    "test_restart.py",
    "test_tables.py",
    "test_corpus.py",
    "test_retention.py",
    "test_reload.py",
)
"""Files whose tests are about the streaming query, or go the whole way; all others need only what it leads to."""


@pytest.fixture
def run_once(
    spark: Callable[[], None], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Config], RunReport]:
    """Runs the real job until it has read everything there is."""

    from cdc_sync.runtime import service

    def run(config: Config) -> RunReport:
        spark()
        return service.run(config, once=True, stop=threading.Event())

    if request.path.name not in _STREAMED:
        monkeypatch.setattr(service, "stream", _step)
    return run


def _step(job: Any, context: Any, *, once: bool, stop: threading.Event) -> None:
    """Do what the query does once, without one: it says how far the topics go, and what waits is tried again."""
    assert once
    ends = context.kafka.ends(context.kafka.matching_topics(context.config.kafka))
    job.check_topics(ends)
    if ends:
        job.process({(topic, number): end for topic, found in ends.items() for number, end in found.items()})
    job.catch_up()
    while job.waits and not stop.wait(0.1):
        job.catch_up()
