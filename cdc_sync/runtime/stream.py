"""The Structured Streaming query: it says how far the topics go, and is made again when it fails or topics come.

Which topics there are is decided by the driver alone (`Kafka.matching`), and Spark is told their names: by a pattern it
would find others, for it reads a Java expression and leaves out other internal topics.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from structlog import get_logger

from cdc_sync.core.model.offsets import Ends
from cdc_sync.core.planning.deadline import Failures
from cdc_sync.errors import CdcSyncError, KafkaUnavailable, LeaseLost, TransientError
from cdc_sync.runtime.context import Context
from cdc_sync.sources.records import Offsets
from cdc_sync.spark.source import spark_kafka_options
from cdc_sync.targets.common.java import first_line

_IDLE_SECONDS = 0.2
_RETRY_FAILED_SECONDS = 5.0
_WAITING_SECONDS = 1.0
_STOP_SECONDS = 5.0
TURN_SECONDS = 5.0
"""How long the other topics wait for one in a batch."""
_TOPICS_SECONDS = 1.0


class Work(Protocol):
    """What is done in a batch, and between two."""

    lock: threading.Lock
    """Held while a batch runs."""
    batches: int
    """How many were processed."""

    def process(self, ends: Ends, *, turn: float | None = None) -> None:
        """Bring all tables to the given ends, or begin to, where one topic takes longer than its turn."""

    def finish(self) -> None:
        """Wait for topics that took longer than their turn."""

    def catch_up(self) -> None:
        """Give tables that lag behind what was processed another try."""

    def maintain(self) -> None:
        """Maintain the table whose turn it is."""

    def check_topics(self, ends: Offsets) -> None:
        """Pause tables that cannot go on where they stand in their topics."""

    def start_offsets(self, beginnings: Offsets) -> Mapping[str, Mapping[str, int]]:
        """Return the first offset of each partition that some table has not read."""

    @property
    def waits(self) -> bool:
        """Whether a table waits for what will be there later."""


def stream(job: Work, context: Context, *, once: bool, stop: threading.Event) -> None:
    """Run the query, and start it again when it fails for a reason that may pass.

    What is away (Kafka, the pipeline's store, a catalog) is waited for as long as `kafka.outage_timeout` says; of other
    failures so many in a row are one too many as `kafka.attempts` says.

    Raises:
        LeaseLost: if another job has taken this one's place.
        TransientError: if too much failed.
    """
    kafka = context.config.kafka
    none = Failures(attempts=kafka.attempts, seconds=kafka.outage_timeout.total_seconds())
    failures = none
    while not stop.is_set():
        batches = job.batches
        try:
            if not _follow(job, context, once=once, stop=stop):
                return
            failures = none
            continue
        except LeaseLost:
            raise
        except (PySparkException, Py4JJavaError, CdcSyncError) as error:
            if stop.is_set():
                get_logger().info("stopped in the middle of a batch", error=first_line(error))
                return
            now = time.monotonic()
            failures = (none if job.batches > batches else failures).with_another(now)
            get_logger().warning(
                "stream failed", attempt=failures.count, wait_s=failures.pause, error=first_line(error)
            )
            if failures.are_enough(now, is_away=isinstance(error, TransientError)):
                raise TransientError(
                    f"Cannot go on: the stream failed {failures.count} times in a row, at last: {first_line(error)}"
                ) from error
        stop.wait(failures.pause)
        _wait_for_kafka(context, stop, time.monotonic())


def _wait_for_kafka(context: Context, stop: threading.Event, now: float) -> None:
    """Return when every partition has a leader, or the job is to stop.

    Raises:
        KafkaUnavailable: if one has none for `kafka.outage_timeout`, which began when the client met it first.
    """
    config = context.config.kafka
    began = context.kafka.away_since or now
    while not stop.is_set():
        try:
            context.kafka.beginnings(context.kafka.matching_topics(config))
            return
        except KafkaUnavailable:
            if time.monotonic() - began > config.outage_timeout.total_seconds():
                raise
            stop.wait(_WAITING_SECONDS)


def _follow(job: Work, context: Context, *, once: bool, stop: threading.Event) -> bool:
    """Run one query; return whether another one has to follow it, for there are topics that it does not read.

    Its checkpoint says nothing that is not in the targets, so it is this process's own, and goes with the query.
    """
    with TemporaryDirectory(prefix="cdc_sync_checkpoint_", ignore_cleanup_errors=True) as checkpoint:
        return _follow_with(job, context, checkpoint, once=once, stop=stop)


def _follow_with(job: Work, context: Context, checkpoint: str, *, once: bool, stop: threading.Event) -> bool:
    failure: list[Exception] = []
    topics = context.kafka.matching_topics(context.config.kafka)
    query = _start(job, context, topics, f"file:{checkpoint}", failure, once=once)
    has_more = False
    tried = looked = time.monotonic()
    try:
        while query.isActive and not stop.is_set() and not has_more:
            stop.wait(_IDLE_SECONDS)
            if not once and time.monotonic() - looked > _TOPICS_SECONDS and not failure:
                has_more = not set(context.kafka.matching_topics(context.config.kafka)) <= set(topics)
                looked = time.monotonic()
            if time.monotonic() - tried > _RETRY_FAILED_SECONDS and not failure:
                job.catch_up()
                job.maintain()
                context.catalogue.refresh()
                tried = time.monotonic()
        job.finish()
    finally:
        _stop(query, job, context, stop)
    if failure:
        raise failure[0]
    if query.exception() is not None:
        raise query.exception()  # type: ignore[misc]
    if once and not stop.is_set():
        job.catch_up()
        while job.waits and not stop.wait(_WAITING_SECONDS):
            job.catch_up()
    return has_more


def _stop(query: StreamingQuery, job: Work, context: Context, stop: threading.Event) -> None:
    """Stop the query behind its current batch; where Kafka is away and the job is to stop, in the midst of it."""
    while not (is_mine := job.lock.acquire(timeout=_IDLE_SECONDS)):
        if stop.is_set() and context.kafka.away_since is not None:
            break
    context.spark.conf.set("spark.sql.streaming.stopTimeout", f"{_STOP_SECONDS:.0f}s")
    try:
        query.stop()
    except Py4JJavaError as error:
        # It asks Kafka how far the topics go, and nothing interrupts that. It begins no batch behind it any more.
        if error.java_exception.getClass().getSimpleName() != "TimeoutException":
            raise
    finally:
        if is_mine:
            job.lock.release()


def _start(
    job: Work, context: Context, topics: Sequence[str], checkpoint: str, failure: list[Exception], *, once: bool
) -> StreamingQuery:
    config = context.config
    job.check_topics(context.kafka.ends(topics))
    starts = job.start_offsets(context.kafka.beginnings(topics))
    stream = (
        context.spark.readStream.format("kafka")
        .options(**spark_kafka_options(config.kafka))
        .option("subscribePattern", _pattern(topics))
        .option("startingOffsets", json.dumps(starts) if starts else "earliest")
        .option("maxOffsetsPerTrigger", config.job.max_offsets_per_batch)
        .option("failOnDataLoss", "false")
        .load()
    )

    def batch(_: DataFrame, batch_id: int) -> None:
        try:
            job.process(_ends_of(context.spark, checkpoint, batch_id), turn=None if once else TURN_SECONDS)
        except Exception as error:
            failure.append(error)
            raise

    writer = stream.select("offset").writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint)
    if once:
        return writer.trigger(availableNow=True).start()
    seconds = config.job.trigger_interval.total_seconds()
    return writer.trigger(processingTime=f"{int(seconds * 1000)} milliseconds").start()


def _pattern(topics: Sequence[str]) -> str:
    """Return a Java expression that matches just these names: a list would fail where one of them is deleted.

    Spark looks for it anywhere in a name, so it is bound to the whole name here.
    """
    return f"^(?:{'|'.join(map(re.escape, topics))})$"


def _ends_of(spark: SparkSession, checkpoint: str, batch_id: int) -> dict[tuple[str, int], int]:
    """Read where a micro-batch ends from the log that Structured Streaming writes before it runs the batch."""
    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.execution.streaming.OffsetSeqLog(spark._jsparkSession, f"{checkpoint}/offsets")
    offsets = log.get(batch_id).get().offsets().apply(0).get().json()
    return {
        (topic, int(partition)): offset
        for topic, partitions in json.loads(offsets).items()
        for partition, offset in partitions.items()
    }
