"""Prints which files of the package a batch passes on the driver: one of a known schema, and one behind an ALTER.

    .venv/bin/python bench/walk.py

One local Kafka, one table, an Iceberg lake. The figures stand in docs/architecture.md.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from confluent_kafka import Producer

import cdc_sync
from cdc_sync.config import parse_config
from cdc_sync.local.kafka import running_kafka
from cdc_sync.runtime.context import open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.session import build_session
from cdc_sync.testing import INT32, TEXT, SourceTable, column

_ROOT = Path(cdc_sync.__file__).parent
_CONFIG = """
pipeline: {{name: walk, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'walk\\..*'}}
tables: [{{pattern: '.*'}}]
target: {{catalog: {{warehouse: '{folder}/warehouse'}}}}
spark: {{master: 'local[2]', conf: {{spark.driver.memory: 1g}}}}
"""


class Walk:
    """Notes each file of the package when it is entered first."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and _ROOT in path.parents:
            self.files.setdefault(str(path.relative_to(_ROOT)), frame.f_code.co_name)

    def of(self, work: Any) -> dict[str, str]:
        """Do something and return the files in order, with the function that was entered first."""
        self.files = {}
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return self.files


def main() -> None:
    """Print both walks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_kafka(folder / "kafka") as kafka:
            _walk(folder, kafka.bootstrap_servers)


def _walk(folder: Path, servers: str) -> None:
    config = parse_config(_CONFIG.format(folder=folder, servers=servers))
    table = SourceTable("orders", [column("id", INT32, optional=False), column("a", TEXT)], prefix="walk")
    producer = Producer({"bootstrap.servers": servers})
    sent = 0

    def send() -> dict[tuple[str, int], int]:
        nonlocal sent
        for record in table.records[sent:]:
            producer.produce(table.topic, key=record.key, value=record.value)
        producer.flush()
        sent = len(table.records)
        return {(table.topic, 0): sent}

    table.insert(id=1, a="one")
    ends = send()
    context = open_context(config, build_session(config), KafkaClient(config.kafka))
    job = SyncJob(context)
    job.process(ends)
    for id_ in (2, 3):
        table.insert(id=id_, a="more")
        known = Walk().of(partial(job.process, send()))
    table.add_column(column("b", TEXT))
    table.insert(id=4, a="more", b="new")
    altered = Walk().of(partial(job.process, send()))
    for title, files in (("a known schema", known), ("behind an ALTER", altered)):
        print(f"{title}: {len(files)} files")
        for path, function in files.items():
            print(f"  {path}: {function}")
    context.spark.stop()


if __name__ == "__main__":
    main()
