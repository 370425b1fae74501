"""How all tables of a pipeline stand, for `cdc-sync status`: what the job wrote down, and what the brokers say now."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from cdc_sync.config.models import Config
from cdc_sync.config.routes import is_routed
from cdc_sync.core.model.dead_letters import DeadLetterCount
from cdc_sync.core.model.lease import Doing, JobState, Lease, state_of
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.times import utc
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.errors import CdcSyncError
from cdc_sync.runtime.lease import is_gone, this_process
from cdc_sync.sources.connectors import SourceLine, of_connect, of_heartbeats
from cdc_sync.storage.leases import Leases
from cdc_sync.storage.state import StateStore

if TYPE_CHECKING:
    from cdc_sync.sources.kafka import KafkaClient
    from cdc_sync.sources.records import Offsets, Place

_PATIENCE = timedelta(seconds=3)
"""How long Kafka is waited for, once: the status must come when Kafka is the thing that is down.

Once it has answered it is known to be there, and a record is waited for as long as the configuration says.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine(TableStatus):
    """One table's status.

    Attributes:
        lag: in offsets; None if that is not known, or the table is not followed.
        behind_s: how many seconds at most the target is behind its source; None likewise.
        retention_left_s: in how many seconds the topic's retention takes a record that the table has not read, 0 if it
            has; None if there is none, or the topic keeps it, or that is not known. What `retention.bytes` takes
            before is not foreseen.
        unfollowed: why the configuration does not follow the table any more, None if it does.
    """

    lag: int | None
    behind_s: float | None
    retention_left_s: float | None
    unfollowed: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """What waits for a table: how many offsets, and how long the topic keeps the oldest of them."""

    lag: int
    retention_left: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """How a job is: the one that writes the tables, or did last, or one that waits to take its place.

    Attributes:
        state: `dead` if it ended without a word, or cannot reach the store.
        lease: counts the jobs that wrote; 0 of one that stands by.
        started: in ISO 8601; of the lease, or of the wait for it.
        heard: when it was heard of last, in ISO 8601.
        silent_s: how long ago that was.
        batch_s: how long the batch runs that it is in; None between two.
        refused: why the last edit of the configuration was not taken up; None if it was.
        doing: what is done of tables just now, while it runs, and since when, in seconds since the epoch.
        unread: topics that cannot be read and of which no table is known that could say so, and why not.
    """

    state: JobState | Literal["standby"]
    lease: int
    host: str
    pid: int
    version: str
    started: str
    heard: str
    silent_s: float
    batches: int
    batch_s: float | None
    refused: str | None = None
    doing: Mapping[str, Doing] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All tables of a pipeline.

    Attributes:
        job: that writes them, or did last; None if none ever did.
        standby: jobs that wait to take its place.
        kafka_problem: why lags are not known; None if Kafka answered.
        sources: the connectors and heartbeats that are configured.
    """

    pipeline: str
    tables: tuple[TableLine, ...]
    dead_letters: tuple[DeadLetterCount, ...]
    kafka_problem: str | None
    sources: tuple[SourceLine, ...] = ()
    job: JobLine | None = None
    standby: tuple[JobLine, ...] = ()


def overview(config: Config, store: StateStore) -> Status:
    """Tell how every table stands; works without Kafka, only the lag is missing then."""
    statuses, leases = store.tables(), Leases(config.pipeline.root)
    unfollowed = {status.table: why_unfollowed(config, status) for status in statuses}
    waiting, problem = _waiting(config, [status for status in statuses if unfollowed[status.table] is None])
    return Status(
        pipeline=config.pipeline.name,
        tables=tuple(_line(status, waiting.get(status.table), unfollowed[status.table]) for status in statuses),
        dead_letters=store.dead_letters.counts(),
        kafka_problem=problem,
        sources=_sources(config),
        job=job_line(leases),
        standby=_standing_by(leases),
    )


def job_line(leases: Leases) -> JobLine | None:
    """Tell of the job that ran last, or runs; None if there was none."""
    seen = leases.newest()
    age = None if seen is None else leases.age(seen)
    if seen is None or age is None:
        return None
    return _line_of(seen, age, state_of(seen, age, gone=is_gone(seen.process, this_process())))


def _standing_by(leases: Leases) -> tuple[JobLine, ...]:
    here, found = this_process(), []
    for seen in leases.standing_by():
        age = leases.age(seen)
        if age is not None and state_of(seen, age, gone=is_gone(seen.process, here)) == "running":
            found.append(_line_of(seen, age, "standby"))
    return tuple(found)


def _line_of(seen: Lease, age: float, state: JobState | Literal["standby"]) -> JobLine:
    now, began = time.time(), seen.pulse.batch_began
    return JobLine(
        state=state,
        lease=seen.number,
        host=seen.process.host,
        pid=seen.process.pid,
        version=seen.version,
        started=utc(seen.started),
        heard=utc(now - age),
        silent_s=round(max(age, 0.0), 1),
        batches=seen.pulse.batches,
        refused=seen.pulse.refused,
        doing=seen.pulse.doing if state == "running" else {},
        unread=seen.pulse.unread,
        batch_s=None if began is None or state != "running" else round(max(now - began, 0.0), 1),
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


def _line(status: TableStatus, waiting: _Waiting | None, unfollowed: str | None) -> TableLine:
    known = {item.name: getattr(status, item.name) for item in fields(status)}
    lag = None if waiting is None else waiting.lag
    left = None if waiting is None or waiting.retention_left is None else waiting.retention_left.total_seconds()
    return TableLine(
        **known, lag=lag, behind_s=status.behind(lag, time.time()), retention_left_s=left, unfollowed=unfollowed
    )


def _client(config: Config, patience: timedelta = timedelta.max) -> KafkaClient:
    from cdc_sync.sources.kafka import KafkaClient

    timeout = min(config.kafka.request_timeout, patience)
    return KafkaClient(config.kafka.model_copy(update={"request_timeout": timeout}), attempts=1)


def _waiting(config: Config, statuses: Sequence[TableStatus]) -> tuple[dict[TableId, _Waiting], str | None]:
    topics = {topic for status in statuses for topic in status.offsets}
    if not topics:
        return {}, None
    from cdc_sync.sources.records import lag, unread

    try:
        kafka = _client(config, _PATIENCE)
        ends, beginnings = kafka.ends(topics), kafka.beginnings(topics)
        # A topic that is gone has no end: nothing can be said about a table that reads it.
        offsets = {status.table: status.offsets for status in statuses if set(status.offsets) <= set(ends)}
        places = {table: unread(found, beginnings, ends) for table, found in offsets.items()}
    except CdcSyncError as error:
        return {}, str(error)
    left: dict[Place, timedelta] = {}
    with suppress(CdcSyncError):  # who may read a topic need not be allowed to ask for its settings
        left = retention_left(kafka, {place for found in places.values() for place in found}, beginnings)
    return {
        table: _Waiting(
            lag=lag(found, beginnings, ends),
            retention_left=min((left[place] for place in places[table] if place in left), default=None),
        )
        for table, found in offsets.items()
    }, None


def retention_left(kafka: KafkaClient, places: Collection[Place], beginnings: Offsets) -> dict[Place, timedelta]:
    """Return how long the brokers keep records yet; those that are not there, or are kept for ever, are left out."""
    kept = kafka.retention({topic for topic, _, _ in places}) if places else {}
    there = [place for place in places if place[2] >= beginnings.get(place[0], {}).get(place[1], 0)]
    kafka.fetch_ahead([place for place in there if kept[place[0]] is not None])
    now, left = time.time(), dict.fromkeys(set(places) - set(there), timedelta(0))
    for place in there:
        age = kept[place[0]]
        record = None if age is None else kafka.peek(*place)
        if age is not None and record is not None and record.timestamp is not None:
            left[place] = max(timedelta(0), timedelta(seconds=record.timestamp / 1000 - now) + age)
    return left
