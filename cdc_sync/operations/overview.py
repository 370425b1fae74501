"""How all tables of a pipeline stand, for `cdc-sync status`: what the job wrote down, and what the brokers say now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING

from cdc_sync.config.models import Config
from cdc_sync.config.routes import is_routed
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.errors import CdcSyncError
from cdc_sync.sources.connectors import SourceLine, of_connect, of_heartbeats
from cdc_sync.storage.quarantine import QuarantineCount
from cdc_sync.storage.state import StateStore

if TYPE_CHECKING:
    from cdc_sync.sources.kafka import KafkaClient

_PATIENCE = timedelta(seconds=3)
"""How long Kafka is waited for, once: the status must come when Kafka is the thing that is down.

Once it has answered it is known to be there, and a record is waited for as long as the configuration says.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine(TableStatus):
    """One table's status.

    Attributes:
        lag: in offsets; None if that is not known, or the table is not followed.
        unfollowed: why the configuration does not follow the table any more, None if it does.
    """

    lag: int | None
    unfollowed: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All tables of a pipeline.

    Attributes:
        kafka_problem: why lags are not known; None if Kafka answered.
        sources: the connectors and heartbeats that are configured.
    """

    pipeline: str
    tables: tuple[TableLine, ...]
    quarantine: tuple[QuarantineCount, ...]
    kafka_problem: str | None
    sources: tuple[SourceLine, ...] = ()


def overview(config: Config, store: StateStore) -> Status:
    """Tell how every table stands; works without Kafka, only the lag is missing then."""
    statuses = store.tables()
    unfollowed = {status.table: why_unfollowed(config, status) for status in statuses}
    lags, problem = _lags(config, [status for status in statuses if unfollowed[status.table] is None])
    return Status(
        pipeline=config.pipeline.name,
        tables=tuple(_line(status, lags.get(status.table), unfollowed[status.table]) for status in statuses),
        quarantine=store.quarantine.counts(),
        kafka_problem=problem,
        sources=_sources(config),
    )


def _sources(config: Config) -> tuple[SourceLine, ...]:
    """Ask after the connectors that are configured, which takes no longer than the patience of each."""
    connect, heartbeats = config.connector.connect, config.connector.heartbeats
    lines = () if connect is None else of_connect(connect)
    if heartbeats is None:
        return lines
    try:
        ends = _client(config, _PATIENCE).ends(heartbeats.topics)
        return (*lines, *of_heartbeats(heartbeats, ends, _client(config)))
    except CdcSyncError as error:
        return (*lines, *(SourceLine(name=topic, well=False, text=str(error)) for topic in heartbeats.topics))


def why_unfollowed(config: Config, status: TableStatus) -> str | None:
    """Say why the job leaves alone a table that it once followed; None if it follows it."""
    if not is_routed(config, status.table):
        return "no rule under tables matches it"
    if status.offsets and not config.kafka.matching(status.offsets):
        return f"its topics are not read ({', '.join(sorted(status.offsets))})"
    return None


def _line(status: TableStatus, lag: int | None, unfollowed: str | None) -> TableLine:
    known = {item.name: getattr(status, item.name) for item in fields(status)}
    return TableLine(**known, lag=lag, unfollowed=unfollowed)


def _client(config: Config, patience: timedelta = timedelta.max) -> KafkaClient:
    from cdc_sync.sources.kafka import KafkaClient

    timeout = min(config.kafka.request_timeout, patience)
    return KafkaClient(config.kafka.model_copy(update={"request_timeout": timeout}), attempts=1)


def _lags(config: Config, statuses: Iterable[TableStatus]) -> tuple[dict[TableId, int], str | None]:
    topics = {topic for status in statuses for topic in status.offsets}
    if not topics:
        return {}, None
    from cdc_sync.sources.records import lag

    try:
        kafka = _client(config, _PATIENCE)
        ends, beginnings = kafka.ends(topics), kafka.beginnings(topics)
    except CdcSyncError as error:
        return {}, str(error)
    return {
        status.table: lag(status.offsets, beginnings, ends)
        for status in statuses
        # A topic that is gone has no end: nothing can be said about a table that reads it.
        if set(status.offsets) <= set(ends)
    }, None
