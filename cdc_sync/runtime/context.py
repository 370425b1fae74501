"""The edges a pipeline works through, in one frozen value."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from cdc_sync.config.models import Config
from cdc_sync.config.routes import is_routed
from cdc_sync.core.debezium.flattened import FlattenedSettings
from cdc_sync.core.debezium.schema_book import SchemaBook
from cdc_sync.core.history.history import History
from cdc_sync.core.lineage.column_log import structures_behind
from cdc_sync.core.lineage.coverage import Configured, Coverage, coverage
from cdc_sync.core.lineage.kept import NOTHING_KEPT
from cdc_sync.core.model.incarnations import Began
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.sources.catalog_reader import SourceCatalogue
from cdc_sync.sources.evidence_topics import EvidenceTopics
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.sources.registry import SchemaRegistry
from cdc_sync.sources.snapshot_signals import Notifications
from cdc_sync.sources.value_reader import SourceValues
from cdc_sync.spark.codegen import Codegen
from cdc_sync.spark.eventreader import EventReader
from cdc_sync.spark.source import read_ranges
from cdc_sync.storage.history import HistoryStore
from cdc_sync.storage.state import StateStore
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.protocol import Target

_CAUTIOUS = 2_000
"""Offsets: a job that is killed again and again before it has come through all that waits gets further all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every table of one pipeline shares.

    Attributes:
        first_step: offsets of a partition that the first step of a topic reads at most; each further one reads more.
        began: when the source's log began anew under a table, as far as its history or a survey since tells.
        stop: set when the job is to end: what is not begun yet is left to the next start.
        guard: called before anything is changed; raises `TransientError` if another job may do it now.
    """

    config: Config
    spark: SparkSession
    codegen: Codegen
    kafka: KafkaClient
    book: SchemaBook
    history: HistoryStore
    state: StateStore
    target: Target
    evidence: EvidenceTopics
    catalogue: SourceCatalogue
    values: SourceValues
    notifications: Notifications
    first_step: int
    began: dict[TableId, Began] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    guard: Callable[[], None] = lambda: None

    def told_behind(self, table: TableId, position: SourcePosition | None) -> tuple[SourcePosition, ...]:
        """Return the positions behind one at which the source tells of a table's columns, in order; None is before all.

        What topics tell, and what readings of the catalogue do.
        """
        read = self.catalogue.kept(table).cuts
        found = {at for at in read if position is None or (at.kind == position.kind and at > position)}
        return tuple(sorted({*structures_behind(self.evidence.logs, table, position), *found}))

    def coverage(self, table: TableId, history: History | None) -> Coverage:
        """Return since when the evidence tells of a table, empty where nothing is known of the table."""
        if history is None:
            return Coverage()
        said = self.config.evidence
        configured = Configured(
            messages=said.messages,
            schema_changes=said.schema_changes,
            catalogue=said.catalogue is not None,
            values=said.values is not None,
        )
        kept = self.catalogue.kept(table) if configured.catalogue else NOTHING_KEPT
        position, asked = history.head.position, self.catalogue
        return coverage(
            table, position, configured, self.evidence.logs, kept, problem=asked.problem, untold=asked.untold
        )

    @property
    def headers(self) -> bool:
        """Whether record headers are read, because registry ids may be there."""
        return self.config.registry is not None and self.config.registry.headers

    def read(self, ranges: tuple[OffsetRange, ...], *, headers: bool = False) -> DataFrame:
        """Return the records of ranges, with their headers if those are asked for or may hold schema ids."""
        group = self.kafka.reader_group
        return read_ranges(self.spark, self.config.kafka, ranges, group=group, headers=headers or self.headers)

    @property
    def must_learn_first(self) -> bool:
        """Whether there may be records whose place and operation cannot be read before their schema is known."""
        return self.config.registry is not None or self.config.connector.flattened is not None

    def events(self, digests: Iterable[str] = ()) -> EventReader:
        """Return how to read the events of a range in which these schemas are."""
        known = (self.book.get(digest) for digest in digests)
        return EventReader.of((item for item in known if item is not None), headers=self.headers, began=self.began)


def open_context(
    config: Config,
    spark: SparkSession,
    kafka: KafkaClient,
    *,
    target: Target | None = None,
    stop: threading.Event | None = None,
    guard: Callable[[], None] = lambda: None,
    cautious: bool = False,
) -> Context:
    """Open the edges of a pipeline; the target is the configured one where none is given.

    Args:
        cautious: the job before was killed; perhaps it was for what it had begun, and this one may be too.
    """
    book, most = _book(config), config.job.max_offsets_per_batch
    state = StateStore(config.pipeline.root, create=True)
    return Context(
        config=config,
        spark=spark,
        codegen=Codegen(spark, config.job.compile_from_rows),
        kafka=kafka,
        book=book,
        history=HistoryStore(f"{config.pipeline.root}/history"),
        state=state,
        target=target or open_target(config.target, spark),
        evidence=EvidenceTopics(config.evidence, kafka, book),
        catalogue=SourceCatalogue(
            config.evidence.catalogue, state, partial(is_routed, config), captured=bool(config.evidence.messages)
        ),
        values=SourceValues(
            config.evidence.values, kafka, book, state, placeholder=config.connector.unavailable_value_placeholder
        ),
        notifications=Notifications(config.connector, kafka, book),
        first_step=min(most, _CAUTIOUS) if cautious else most,
        stop=stop or threading.Event(),
        guard=guard,
    )


def _book(config: Config) -> SchemaBook:
    flat = config.connector.flattened
    settings = FlattenedSettings(add_fields=flat.add_fields, prefix=flat.add_fields_prefix) if flat else None
    registry = SchemaRegistry(config.registry, config.pipeline.root) if config.registry else None
    use_headers = config.registry is not None and config.registry.headers
    return SchemaBook(registry, use_headers=use_headers, flattened=settings)
