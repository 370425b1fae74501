"""The edges a pipeline works through, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from cdc_sync.config import Config
from cdc_sync.history.store import HistoryStore
from cdc_sync.kafka import KafkaClient
from cdc_sync.schemabook import SchemaBook
from cdc_sync.state import StateStore
from cdc_sync.targets.base import Target, open_target


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every table of one pipeline shares."""

    config: Config
    spark: SparkSession
    kafka: KafkaClient
    book: SchemaBook
    history: HistoryStore
    state: StateStore
    target: Target


def open_context(config: Config, spark: SparkSession, kafka: KafkaClient) -> Context:
    """Open the edges of a pipeline."""
    return Context(
        config=config,
        spark=spark,
        kafka=kafka,
        book=SchemaBook(),
        history=HistoryStore(f"{config.pipeline.root}/history"),
        state=StateStore(config.pipeline.root, create=True),
        target=open_target(config.target, spark),
    )
