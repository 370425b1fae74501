"""A whole run: takes the lease, starts Spark, and works by the configuration, and by the next one when that changes."""

from __future__ import annotations

import threading
from dataclasses import replace

from pyspark.sql import SparkSession
from structlog import get_logger

from cdc_sync.config.models import Config
from cdc_sync.config.sources import Evidence
from cdc_sync.core.model.lease import End, Pulse
from cdc_sync.runtime.context import open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.runtime.lease import JobLease, since_boot, this_process
from cdc_sync.runtime.reload import Followed
from cdc_sync.runtime.reports import RunReport
from cdc_sync.runtime.stream import stream
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.session import build_session
from cdc_sync.storage.leases import Leases


def run(
    config: Config,
    *,
    once: bool,
    stop: threading.Event,
    standby: bool = False,
    followed: Followed | None = None,
) -> RunReport:
    """Keep the targets equal to their sources.

    Args:
        once: end when everything that was in the topics at the start is read.
        stop: set it to end after the current batch.
        standby: where another job of the pipeline runs, wait until it has ended and take its place.
        followed: the file of the configuration, whose changes are taken up; None if it is not followed.

    Raises:
        LeaseHeld: if another job of the pipeline runs, and this one is not to stand by.
        LeaseLost: if another job has taken this one's place.
        KafkaUnavailable: if Kafka is not there at the start, or stays away for `kafka.outage_timeout`.
        TransientError: if the stream fails again and again, whether Kafka, Spark or the disk is why.
        SetupError: if Spark cannot start.
    """
    kafka = KafkaClient(config.kafka, stop=stop)
    try:
        problem = config.kafka.why_nothing_is_read(kafka.topics())
    finally:
        kafka.close()
    if problem is not None:
        get_logger().warning(problem, hint=None if once else "it is looked for again")
    lease = JobLease(Leases(config.pipeline.root, create=True), stop, process=this_process(), clock=since_boot)
    report = RunReport(batches=0, tables=(), other_records={}, problem=None)
    end: End = "failed"
    try:
        if standby or lease.take():
            report = _run(config, lease, once=once, stop=stop, followed=followed) or report
        end = "stopped"
    finally:
        lease.give_back(end)
    lease.check()
    return report


def _run(
    config: Config, lease: JobLease, *, once: bool, stop: threading.Event, followed: Followed | None
) -> RunReport | None:
    """Run with the lease; None if the job was stopped while it waited for that, with Spark up, to go on at once."""
    spark = build_session(config)
    try:
        if not (lease.is_taken or lease.take(wait=True)):
            return None
        ends, configurations = stop, iter((config,))
        if followed is not None:
            ends, configurations = followed.ends, followed.configurations(stop)
        report = None
        for newest in configurations:
            report = _run_by(newest, spark, lease, once=once, stop=ends, followed=followed, before=report)
        return report
    finally:
        spark.stop()


def _run_by(
    config: Config,
    spark: SparkSession,
    lease: JobLease,
    *,
    once: bool,
    stop: threading.Event,
    followed: Followed | None,
    before: RunReport | None,
) -> RunReport:
    """Run by one configuration, until the job is to stop or has another one; everything is opened anew but Spark."""
    kafka = KafkaClient(config.kafka, stop=stop)
    try:
        if lease.follows_a_kill:
            get_logger().info("the job before was killed: this one begins with short steps")
        context = open_context(config, spark, kafka, stop=stop, guard=lease.guard, cautious=lease.follows_a_kill)
        job = SyncJob(context)
        job.batches = 0 if before is None else before.batches

        def pulse() -> Pulse:
            return replace(job.pulse(), refused=None if followed is None else followed.refused)

        lease.pulse = pulse
        _say_which_evidence(config)
        job.tables.restore()
        job.follow_partitionings()
        try:
            stream(job, context, once=once, stop=stop)
            job.tidy()
        finally:
            context.catalogue.close()
        known = {table.table for table in job.tables.all()}
        return RunReport(
            batches=job.batches,
            tables=tuple(status for status in context.state.tables() if status.table in known),
            other_records=job.other_records(),
            unread=job.unread(),
            problem=config.kafka.why_nothing_is_read(kafka.topics()) if once else None,
        )
    finally:
        kafka.close()


def _say_which_evidence(config: Config) -> None:
    """Say at the start what tells of changes that rows do not prove; `status` says since when, of each table."""
    said = config.evidence
    get_logger().info(
        "evidence is configured" if said != Evidence() else "no evidence is configured",
        messages=said.messages,
        schema_changes=said.schema_changes,
        catalogue=said.catalogue is not None,
        values=said.values is not None,
    )
