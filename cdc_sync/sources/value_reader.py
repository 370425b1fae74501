"""Rows around a change as the topic shows them: read for tables whose columns are in doubt, and kept where it decides.

What a topic holds changes with its retention, so what a version was made by is kept in the pipeline's files, and a
replay decides by that alone.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator, Mapping, Sequence

from cdc_sync.config.sources import SourceValues as Settings
from cdc_sync.core.debezium.schema_book import SchemaBook
from cdc_sync.core.lineage.continuity import Change, Compared, compare
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.planning.observation import Observation
from cdc_sync.errors import WireError
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.sources.samples import Sample, read_sample
from cdc_sync.storage.state import StateStore


class SourceValues:
    """What rows say about columns, for all tables of a pipeline. Thread-safe."""

    def __init__(
        self, settings: Settings | None, kafka: KafkaClient, book: SchemaBook, state: StateStore, *, placeholder: str
    ) -> None:
        """Prepare; nothing is read before the first `prepare`.

        Args:
            settings: how much is read; None reads nothing, and what was kept before still counts.
            kafka: reads the topics.
            book: knows how their records are to be read.
            state: where it is kept.
            placeholder: the connector's `unavailable.value.placeholder`.
        """
        self._settings = settings
        self._kafka = kafka
        self._book = book
        self._state = state
        self._unknown = (placeholder, base64.b64encode(placeholder.encode()).decode())
        self._lock = threading.Lock()
        self._kept: dict[TableId, dict[KafkaPosition, Compared]] = {}
        # What was compared last, and how far the topic went then: it says the same until there is more.
        self._last: dict[KafkaPosition, tuple[int, Compared]] = {}

    def kept_only(self) -> SourceValues:
        """Return one that never reads a topic, for a replay."""
        return SourceValues(None, self._kafka, self._book, self._state, placeholder=self._unknown[0])

    def prepare(
        self, table: TableId, columns: Sequence[str], observations: Sequence[Observation]
    ) -> Mapping[KafkaPosition, Compared]:
        """Return what is known by the places of these events.

        Args:
            table: whose events they are.
            columns: the names before the first of them, none if nothing is known of the table.
            observations: in order.

        Raises:
            KafkaUnavailable: if Kafka stays away through the bounded retries.
            RegistryUnavailable: if a record's schema is not known and the registry does not answer.
        """
        found = dict(self._of(table))
        old = columns
        for observation in observations:
            new = [column.name for column in observation.schema.columns]
            in_doubt = bool(set(old) - set(new)) and bool(set(new) - set(old)) and observation.schema.key
            if in_doubt and observation.kafka not in found and self._settings is not None:
                found[observation.kafka] = self._compared(self._settings, observation, old, new)
            old = new
        return found

    def keep(self, table: TableId, at: KafkaPosition, compared: Compared) -> None:
        """Keep what a version is made by, before it is recorded."""
        if at not in self._of(table):
            self._state.keep_compared(table, at, compared)
            with self._lock:
                self._kept[table][at] = compared
            self._last.pop(at, None)

    def _of(self, table: TableId) -> dict[KafkaPosition, Compared]:
        with self._lock:
            if table not in self._kept:
                self._kept[table] = dict(self._state.compared(table))
            return self._kept[table]

    def _compared(
        self, settings: Settings, observation: Observation, old: Sequence[str], new: Sequence[str]
    ) -> Compared:
        at = observation.kafka
        end = self._kafka.ends([at.topic]).get(at.topic, {}).get(at.partition, at.offset)
        last = self._last.get(at)
        if last is not None and last[0] == end:
            return last[1]
        first = self._kafka.beginnings([at.topic]).get(at.topic, {}).get(at.partition, 0)
        compared = compare(
            self._changes(observation.table, at, max(first, at.offset - settings.records), at.offset),
            self._changes(observation.table, at, at.offset, min(end, at.offset + settings.records)),
            old,
            new,
            least=settings.distinct,
            unknown=self._unknown,
        )
        self._last[at] = end, compared
        return compared

    def _changes(self, table: TableId, at: KafkaPosition, start: int, end: int) -> Iterator[Change]:
        for _, _, records in self._kafka.chunks(at.topic, at.partition, start, end):
            for record in records:
                if record.key is None or record.value is None:
                    continue
                try:
                    sample = read_sample(self._book, record)
                    if sample.known.schema is None or sample.source.table != table:
                        continue
                except WireError:
                    continue  # the row path sets it aside
                yield Change(key=record.key, before=_image(sample, "before"), after=_image(sample, "after"))


def _image(sample: Sample, name: str) -> Mapping[str, object] | None:
    """Return an image by column name; flattened events have none."""
    row = sample.payload.get(name) if sample.known.flattened is None else None
    if not isinstance(row, Mapping) or sample.known.schema is None:
        return None
    return {column.name: row.get(column.field) for column in sample.known.schema.columns}
