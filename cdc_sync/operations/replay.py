"""Rebuild the schema history of every table from the topics, into a folder of its own. Touches no target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from structlog import get_logger

from cdc_sync.config.models import Config
from cdc_sync.core.migration.routes import Join
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.errors import ConfigError
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.between_batches import go_on_without
from cdc_sync.runtime.context import Context, open_context
from cdc_sync.runtime.observe import reached_before, survey_with
from cdc_sync.runtime.tables import Tables
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.session import build_session
from cdc_sync.storage.history import HistoryStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTable:
    """What the topics say about one table's schema.

    Attributes:
        versions: how many versions were found.
        refused: why the history stops before the end of the topic; None if it does not.
    """

    table: TableId
    versions: int
    refused: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """How a replay ended; `into` holds the history files."""

    into: str
    tables: tuple[ReplayedTable, ...]


def replay(config: Config, *, into: str, batch_size: int | None) -> ReplayReport:
    """Read all topics from their beginning and record the versions found in `into`.

    Args:
        batch_size: offsets of a topic looked at in one step; the result does not depend on it.

    Raises:
        ConfigError: if there is no topic to read.
        HistoryError: if `into` holds a different history.
        KafkaUnavailable: if Kafka stays away through the bounded retries.
    """
    kafka = KafkaClient(config.kafka)
    problem = config.kafka.why_nothing_is_read(kafka.topics())
    if problem is not None:
        raise ConfigError(f"Cannot replay: {problem}")
    topics = kafka.matching_topics(config.kafka)
    spark = build_session(config)
    try:
        opened = open_context(config, spark, kafka)
        context = replace(
            opened,
            history=HistoryStore(into),
            catalogue=opened.catalogue.kept_only(),
            values=opened.values.kept_only(),
        )
        context.evidence.refresh()
        tables: dict[TableId, TableActor] = {}
        while True:
            for topic in topics:
                _replay_topic(context, topic, tables, batch_size or config.job.max_offsets_per_batch)
            while _has_ended_some(context, tables):
                pass
            if not _is_some_freed(context, tables):
                break  # nobody waits any more for a table that became another
        replayed = (
            ReplayedTable(
                table=table,
                versions=len(sync.state.history.versions) if sync.state.history else 0,
                refused=sync.state.stop.reason if sync.state.stop else None,
            )
            for table, sync in sorted(tables.items())
        )
        return ReplayReport(into=into, tables=tuple(replayed))
    finally:
        spark.stop()
        kafka.close()


def _replay_topic(context: Context, topic: str, tables: dict[TableId, TableActor], size: int) -> None:
    beginnings = context.kafka.beginnings([topic]).get(topic, {})
    ends = context.kafka.ends([topic]).get(topic, {})
    at = dict(beginnings)
    while any(at[partition] < ends[partition] for partition in ends):
        step = tuple(
            OffsetRange(topic=topic, partition=partition, start=at[partition], end=min(end, at[partition] + size))
            for partition, end in sorted(ends.items())
            if at[partition] < end
        )
        # Other partitions may hold older schemas: look ahead there, as the job does.
        ahead = step if len(ends) == 1 else tuple(replace(item, end=ends[item.partition]) for item in step)
        records = context.read(ahead)
        cuts = {table: sync.cuts for table, sync in tables.items()}
        ends_of_step = {(item.topic, item.partition): item.end for item in step}
        before = reached_before(context, {(item.topic, item.partition): item.start for item in ahead}, cuts)
        found = survey_with(context, records, ends_of_step, cuts, before)
        by_table: dict[TableId, list[Stretch]] = {}
        for stretch in found.stretches:
            by_table.setdefault(stretch.table, []).append(stretch)
        for table, stretches in sorted(by_table.items()):
            _plan(context, table, stretches, tables)
        at |= {item.partition: item.end for item in step}
        get_logger().info("topic replayed", topic=topic, offsets=sum(at.values()), of=sum(ends.values()))


def _plan(context: Context, table: TableId, stretches: Sequence[Stretch], tables: dict[TableId, TableActor]) -> None:
    sync = _sync_of(context, table, tables)
    if sync is not None and sync.state.stop is None:
        sync.plan_only(stretches)


def _sync_of(context: Context, table: TableId, tables: dict[TableId, TableActor]) -> TableActor | None:
    if table not in tables:
        route = Tables(context).route_of(table)
        if route is None:
            return None
        # What the operator decided is as much part of the history as what the topics hold.
        decided = replace(
            route, decisions=context.state.requests.decisions(table), joins=context.state.requests.all(Join, table)
        )
        tables[table] = TableActor(context, decided)
    return tables[table]


def _has_ended_some(context: Context, tables: dict[TableId, TableActor]) -> bool:
    """Take up which tables were dropped or renamed behind their last event; return whether any was."""
    found = False
    for sync in list(tables.values()):
        if sync.state.stop is None and sync.state.waits_for is None:
            before = sync.state.history
            sync.plan_only((), to_the_end=True)
            found |= sync.state.history is not before
        end = sync.state.renamed_to
        if end is not None and end.renamed_to is not None and end.renamed_to not in tables:
            found |= _sync_of(context, end.renamed_to, tables) is not None
    return found


def _is_some_freed(context: Context, tables: dict[TableId, TableActor]) -> bool:
    """Whether a table that waits for another one can go on: that one became it, or else there never was one."""
    waiting = [sync for sync in tables.values() if sync.state.waits_for is not None and sync.state.stop is None]
    if any(context.history.find(sync.table) not in (None, sync.state.history) for sync in waiting):
        return True
    former = [(sync, sync.state.waits_for) for sync in waiting]
    strangers = [(sync, name) for sync, name in former if name is not None and context.history.find(name) is None]
    for sync, name in strangers:
        go_on_without(sync, name)
    return bool(strangers)
