"""Rows that the source is asked to send again: the asking, and what the connector answers."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from structlog import get_logger

from cdc_sync.config.sources import Connector
from cdc_sync.core.debezium.notification import (
    SnapshotNotification,
    collection,
    kafka_signal,
    signal_data,
    snapshot_notification,
    sql_signal,
)
from cdc_sync.core.debezium.schema_book import SchemaBook
from cdc_sync.core.history.history import History
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.planning.resync import Resync, ResyncAsked
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.errors import RefusedError, WireError
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.sources.records import Record, Sent
from cdc_sync.sources.samples import read_sample
from cdc_sync.storage.state import StateStore

_SUCCEEDED = (None, "SUCCEEDED", "EMPTY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Where a connector says that it has read a whole table again."""

    topic: str
    partition: int
    offset: int
    told: SnapshotNotification


def scan_of(resync: Resync, scans: Iterable[Scan], topics: Collection[str]) -> Scan | None:
    """Return the first scan that may be the one that was asked for, None if there is none yet.

    Args:
        topics: of the table; their names begin with the `topic.prefix` of the connector, unless they are routed.
    """
    return next((scan for scan in scans if _may_be(scan, resync, topics)), None)


def _may_be(scan: Scan, resync: Resync, topics: Collection[str]) -> bool:
    told, begins = scan.told, resync.since.get(scan.topic)
    if begins is None or scan.offset < begins.get(scan.partition, 0) or told.collection != resync.collection:
        return False
    return told.signal == resync.signal or any(topic.startswith(f"{told.connector}.") for topic in topics)


def after(resync: Resync, scan: Scan) -> Resync:
    """Return what was asked with no regard to a scan, for that was somebody else's, and to all before it."""
    begins = resync.since.get(scan.topic, {})
    moved = {**begins, scan.partition: max(begins.get(scan.partition, 0), scan.offset + 1)}
    return replace(resync, since={**resync.since, scan.topic: moved})


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """What a connector is asked by.

    Attributes:
        topic: where it was written; None if it is the reader's to write, then `statement` says how.
        statement: SQL for the source's signalling table.
    """

    id: str
    topic: str | None
    statement: str | None


def send(
    config: Connector, kafka: KafkaClient, history: History, how: Literal["incremental", "blocking"] = "incremental"
) -> Signal:
    """Ask the connector for a snapshot of a table, or say how to.

    Raises:
        KafkaUnavailable: if the signal cannot be written.
    """
    id_, kind = str(uuid.uuid4()), history.head.position.kind
    data = signal_data(history.table, kind, how)
    if config.signals is None:
        return Signal(id=id_, topic=None, statement=sql_signal(id_, data, kind, config.signal_table))
    kafka.send(config.signals.topic, [Sent(key=config.signals.prefix.encode(), value=kafka_signal(id_, data))])
    return Signal(id=id_, topic=config.signals.topic, statement=None)


def ask(
    config: Connector, kafka: KafkaClient, store: StateStore, history: History, columns: Sequence[str]
) -> ResyncAsked:
    """Ask the connector to read a table again, or say how to.

    Args:
        columns: whose marks are to go; those of all columns if there are none.

    Raises:
        RefusedError: if a name is no column.
        KafkaUnavailable: if the signal cannot be written.
    """
    table, head = history.table, history.head.schema
    status = store.load(table)
    marked = tuple(dict.fromkeys(mark.column for mark in status.needs_resync)) if status else ()
    live = {column.name: column.id for column in head.live}
    names = tuple(dict.fromkeys(columns)) or tuple(live)
    unknown = [name for name in names if name not in live]
    if unknown:
        raise RefusedError(f"Cannot resync {table}: {unknown[0]!r} is none of its columns ({', '.join(live)})")
    kind, told = history.head.position.kind, config.notifications
    since = {} if told is None else {told: kafka.ends([told]).get(told, {})}
    signal = send(config, kafka, history)
    ids = tuple(live[name] for name in names)
    written = {} if status is None else status.offsets
    asked = Resync(table=table, signal=signal.id, version=history.head.number, columns=ids, asked=written)
    store.requests.add(replace(asked, collection=collection(table, kind), since=since))
    return ResyncAsked(
        table=table,
        columns=names if columns else tuple(name for name in marked if name in live),
        signal=signal.id,
        topic=signal.topic,
        statement=signal.statement,
        followed=config.notifications is not None,
    )


def declare_done(kafka: KafkaClient, store: StateStore, history: History) -> ResyncAsked:
    """Take the operator's word that the values are right, or that the connector has read all rows again.

    Raises:
        RefusedError: if nothing was asked of the table and no column of it is marked.
    """
    table = history.table
    open_ = [item for item in store.requests.all(Resync, table) if not item.ends]
    status = store.load(table)
    if status is not None and status.needs_resync and not open_:
        ids = tuple(dict.fromkeys(mark.id for mark in status.needs_resync))
        signal = str(uuid.uuid4())
        written = status.offsets
        open_ = [Resync(table=table, signal=signal, version=history.head.number, columns=ids, asked=written)]
    if status is None or not open_:
        raise RefusedError(f"Cannot end the resync of {table}: none was asked for, and no column of it is marked")
    ends = _ends(kafka, status)
    for item in open_:
        store.requests.add(replace(item, ends=ends, failed=None))
    ended = {id_ for item in open_ for id_ in item.columns}
    names = tuple(dict.fromkeys(mark.column for mark in status.needs_resync if mark.id in ended))
    signal = open_[-1].signal
    return ResyncAsked(table=table, columns=names, signal=signal, topic=None, statement=None, followed=False, done=True)


def _ends(kafka: KafkaClient, status: TableStatus) -> Mapping[str, Mapping[int, int]]:
    return {topic: dict(ends) for topic, ends in kafka.ends(status.offsets).items()}


class Notifications:
    """The topic in which connectors tell of their snapshots, read by the driver itself. Thread-safe.

    A connector that is asked for a table while it reads another one goes on under the last signal's id alone, so an end
    is known by the id or by the table whose scan has ended.
    """

    def __init__(self, config: Connector, kafka: KafkaClient, book: SchemaBook) -> None:
        """Prepare; nothing is read before the first `follow`."""
        self._topic = config.notifications
        self._kafka = kafka
        self._book = book
        self._lock = threading.Lock()
        self._next: dict[int, int] = {}
        self._told: dict[str, SnapshotNotification] = {}
        self._scans: list[Scan] = []

    def follow(self, store: StateStore, table: TableId) -> tuple[Resync, ...]:
        """Return everything that was asked of a table, after writing down what the connector has said of it since.

        Raises:
            TransientError: if Kafka or the store is away.
        """
        asked, told = store.requests.all(Resync, table), self._topic
        if told is None or all(item.ends or item.failed for item in asked):
            return asked
        with self._lock:
            self._read(told)
        found = {item.signal: item for item in asked}
        for item in sorted(asked, key=lambda item: sum(item.since.get(told, {}).values())):
            if not item.ends and not item.failed:
                found |= self._updated(found[item.signal], found, store)
        return tuple(found.values())

    def _updated(self, resync: Resync, asked: Mapping[str, Resync], store: StateStore) -> dict[str, Resync]:
        """Return what has changed, written down."""
        status = store.load(resync.table)
        scan = scan_of(resync, self._scans, status.offsets if status is not None else ())
        if scan is None:
            told = self._told.get(resync.signal)
            return {} if told is None else {resync.signal: self._answered(resync, told, status, store)}
        others = [item for item in asked.values() if item is not resync]
        waiting = {item.signal: after(item, scan) for item in others if not item.ends and not item.failed}
        # Before this one has its end: repeated after a crash, it comes to the same.
        for item in waiting.values():
            store.requests.add(item)
        return {**waiting, resync.signal: self._answered(resync, scan.told, status, store)}

    def _answered(
        self, resync: Resync, told: SnapshotNotification, status: TableStatus | None, store: StateStore
    ) -> Resync:
        if told.type == "STOPPED" or told.status not in _SUCCEEDED:
            resync = replace(resync, failed=told.status or "the snapshot was stopped")
            get_logger().warning("resync failed", table=str(resync.table), reason=resync.failed)
        elif (told.type == "COMPLETED" or told.collection is not None) and status is not None:
            # The rows were written to their topics before this was said.
            resync = replace(resync, ends=_ends(self._kafka, status))
            get_logger().info("resync read", table=str(resync.table))
        else:
            return resync
        store.requests.add(resync)
        return resync

    def _read(self, topic: str) -> None:
        ends = self._kafka.ends([topic]).get(topic, {})
        beginnings = self._kafka.beginnings([topic]).get(topic, {})
        for partition, end in sorted(ends.items()):
            start = max(beginnings.get(partition, 0), self._next.get(partition, 0))
            for _, _, records in self._kafka.chunks(topic, partition, start, end):
                for record in records:
                    self._take(record)
            self._next[partition] = end

    def _take(self, record: Record) -> None:
        """Keep the last word on each signal; that a table's scan failed is not taken back by the end of the whole."""
        if record.value is None:
            return
        try:
            told = snapshot_notification(read_sample(self._book, record).payload)
        except WireError as error:
            at = KafkaPosition(topic=record.topic, partition=record.partition, offset=record.offset)
            get_logger().warning("notification cannot be read", at=str(at), error=str(error))
            return
        if told is None:
            return
        if told.collection is not None:
            self._scans.append(Scan(topic=record.topic, partition=record.partition, offset=record.offset, told=told))
            return
        before = self._told.get(told.signal)
        if before is None or before.status in _SUCCEEDED:
            self._told[told.signal] = told
