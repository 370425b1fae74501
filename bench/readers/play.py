"""Plays the history into one regime, a batch for each step or for several, by the job's own way: `SyncJob.process`.

    python -m bench.readers.play REGIME FOLDER KAFKA METASTORE STEPS_IN_A_BATCH

A process of its own, because Spark is told of one table format when its JVM starts.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.readers.history import STEPS, new_table
from bench.readers.regimes import TABLE, Regime, configuration, regime, topic_prefix
from cdc_sync.config import Config
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.runtime.context import Context, open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.session import build_session
from cdc_sync.targets.parquet.target import ParquetTarget
from cdc_sync.testing import Record


def play(kind: Regime, config: Config, together: int) -> str:
    """Make the table live through every step, and return where it lies.

    Raises:
        RuntimeError: the job did not follow a step: the table stands still, or a record was set aside.
    """
    servers = config.kafka.bootstrap_servers
    prefix = topic_prefix(kind)
    table = new_table(prefix, TABLE)
    told = f"{prefix}.message"
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in (table.topic, told)]).values():
        made.result()
    producer = Producer({"bootstrap.servers": servers})
    kafka = KafkaClient(config.kafka)
    context = open_context(config, build_session(config), kafka)
    job = SyncJob(context)
    job.tables.restore()
    sent = said = 0
    for number, step in enumerate(STEPS, 1):
        step.do(table)
        _send(producer, told, table.messages[said:])
        _send(producer, table.topic, table.records[sent:])
        sent, said = len(table.records), len(table.messages)
        if number % together and number < len(STEPS):
            continue
        job.process({(table.topic, 0): kafka.ends([table.topic])[table.topic][0]})
        _check(job, context, step.title)
    return _place(config, context, kind)


def _place(config: Config, context: Context, kind: Regime) -> str:
    """Return where readers find the table: an Iceberg table's newest metadata file, the folder of any other."""
    catalog = config.target.catalog
    match config.target.format:
        case "iceberg":
            with sqlite3.connect(f"{catalog.warehouse}/catalog.db") as entries:
                ((place,),) = entries.execute("SELECT metadata_location FROM iceberg_tables")
            return str(place)
        case "parquet":
            assert isinstance(context.target, ParquetTarget)
            return _folders(context.target, kind)
    return f"{catalog.warehouse}/{kind.namespace}/{TABLE}"


def _folders(target: ParquetTarget, kind: Regime) -> str:
    """Return the folder that the metastore names, or those of all partitions that have rows."""
    now = target.table(TargetName(namespace=kind.namespace, name=TABLE)).snapshot()
    assert now is not None
    if not now.is_partitioned:
        return now.location
    return ",".join(f"{now.folder}/{it.folder}" for it in now.stamp.partitions)


def _send(producer: Producer, topic: str, records: Sequence[Record]) -> None:
    for record in records:
        producer.produce(topic, key=record.key, value=record.value)
    producer.flush()


def _check(job: SyncJob, context: Context, title: str) -> None:
    for table in job.tables.all():
        if table.state.stop is not None:
            raise RuntimeError(f"{title}: {table.state.stop}")
    for status in context.state.tables():
        if status.state != "running" or status.counts:
            raise RuntimeError(f"{title}: {status}")


if __name__ == "__main__":
    asked, folder = regime(sys.argv[1]), Path(sys.argv[2])
    found = play(asked, configuration(asked, folder, sys.argv[3], sys.argv[4]), int(sys.argv[5]))
    (folder / "place").write_text(found)
