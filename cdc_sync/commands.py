"""What the command line can do, as plain functions that return values.

Only `run`, `plan`, `verify`, `maintain`, `replay` and `demo` start a JVM; everything they need is imported inside them.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING

from cdc_sync import installed
from cdc_sync.config import Config, route
from cdc_sync.config.advice import advice
from cdc_sync.errors import CdcSyncError, ConfigError, HistoryError, RefusedError
from cdc_sync.events import TableId
from cdc_sync.joins import find_join, join_version
from cdc_sync.migrate.capabilities import KINDS, Capabilities, SchemaEvolution
from cdc_sync.migrate.typechange import rewrites
from cdc_sync.naming import Decision, Join, Route
from cdc_sync.refused import Refused
from cdc_sync.reports import Plan, TableHistory, table_history
from cdc_sync.resync import ResyncAsked
from cdc_sync.rewritestate import RegimeAsked, Rollback
from cdc_sync.state import QuarantineCount, StateStore, TableStatus
from cdc_sync.wording import Phrase, phrases

if TYPE_CHECKING:
    from cdc_sync.capture.postgres import CaptureResult
    from cdc_sync.demo import DemoReport, DemoSource
    from cdc_sync.history.history import History
    from cdc_sync.history.store import HistoryStore
    from cdc_sync.maintained import PipelineMaintained
    from cdc_sync.replay import ReplayReport
    from cdc_sync.reports import RunReport
    from cdc_sync.verify.report import Verified

_STATUS_PATIENCE = timedelta(seconds=3)
"""How long `status` waits for Kafka, once: it must answer when Kafka is the thing that is down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """A configuration that can be used.

    Attributes:
        topics: the topics that match now; None if Kafka was not asked.
    """

    config: Config
    warnings: tuple[str, ...]
    topics: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine(TableStatus):
    """One table's status with its lag in offsets; None if that is not known."""

    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All tables of a pipeline.

    Attributes:
        kafka_problem: why lags are not known; None if Kafka answered.
    """

    pipeline: str
    tables: tuple[TableLine, ...]
    quarantine: tuple[QuarantineCount, ...]
    kafka_problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDifference:
    """What leads from one version of a table to another."""

    table: TableId
    before: int
    after: int
    changes: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What was kept of the operator's words.

    Attributes:
        at: the record before which the table is paused; None if nothing was said of that change.
        renames, not_same: what was said of it.
        joins: renames of earlier changes, whose columns will be joined.
    """

    table: TableId
    at: str | None
    renames: Mapping[str, str]
    not_same: tuple[str, ...]
    joins: tuple[Join, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """What the job is to do about a rewrite of a table.

    Attributes:
        version: the version that rewrote the rows.
        undo: it is to be carried out again; else rows and columns go back to those before.
    """

    table: TableId
    version: int
    undo: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What the job is to do about how a table's columns are found.

    Attributes:
        evolution: the regime that all its rows are rewritten in.
        undo: they are not, though that was asked before.
    """

    table: TableId
    target: str
    evolution: SchemaEvolution
    undo: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Which pages of documentation there are."""

    pages: tuple[str, ...]


def validate(config: Config, *, check: bool = False) -> Validation:
    """Look a loaded configuration over.

    Args:
        config: as loaded; loading has refused everything that cannot work.
        check: also ask Kafka which topics match.

    Raises:
        ConfigError: if a client refuses a setting; with `check`, if the brokers refuse the log-in.
        KafkaUnavailable: with `check`, if Kafka does not answer.
    """
    from cdc_sync.kafka import KafkaClient
    from cdc_sync.registry import check_properties

    warnings = advice(config)
    topics = None
    kafka = KafkaClient(config.kafka)  # it sends nothing, but knows which settings there are
    if config.registry is not None:
        check_properties(config.registry)
    if check:
        topics = kafka.matching_topics(config.kafka)
        missing = sorted(set(config.kafka.topics or ()) - set(topics))
        warnings += tuple(f"topic {name} does not exist yet" for name in missing)
        there = set(kafka.topics())
        told = {*config.evidence.schema_changes, *config.evidence.messages}
        warnings += tuple(
            f"evidence topic {name} does not exist yet: tables wait for it at every change of their columns"
            for name in sorted(told - there)
        )
        answers = config.connector.notifications
        if answers is not None and answers not in there:
            warnings += (f"topic {answers} of connector.notifications does not exist yet: until it does, marks stay",)
        if config.kafka.topic_pattern is not None and not topics:
            warnings += ("no topic matches kafka.topic_pattern yet",)
    return Validation(config=config, warnings=warnings, topics=topics)


def run(config: Config, *, once: bool, stop: threading.Event) -> RunReport:
    """Keep the targets equal to their sources until `stop` is set, or, with `once`, until all is read."""
    from cdc_sync import job

    return job.run(config, once=once, stop=stop)


def replay(config: Config, *, into: str, batch_size: int | None) -> ReplayReport:
    """Read the topics from their beginning into a folder of its own, to compare or to rebuild."""
    from cdc_sync import replay as replay_

    return replay_.replay(config, into=into, batch_size=batch_size)


def plan(config: Config) -> Plan:
    """Tell what `run` would do with everything that is in the topics now; nothing is changed anywhere."""
    from cdc_sync.preview import preview

    return preview(config)


def verify(config: Config, table: str | None = None, *, limit: int) -> Verified:
    """Compare source tables with their targets, one or all; nothing is written anywhere.

    Args:
        limit: how many rows that differ are listed of each table.

    Raises:
        ConfigError: if the configuration names no source database.
        SetupError: if it cannot be read.
    """
    from cdc_sync.verify.tables import verify as verify_

    store = _history_store(config)
    tables = tuple(sorted(store.tables())) if table is None else (_find_table(store, table),)
    return verify_(config, tables, limit=limit, named=table is not None)


def maintain(config: Config, tables: Sequence[str] = (), *, dry_run: bool) -> PipelineMaintained:
    """Compact tables and let old states of them go, or tell what is due; of all that are recorded, if none is named.

    Raises:
        RefusedError: if only a running job may do that.
        HistoryError: if a table that was named is not recorded.
    """
    from cdc_sync.maintenance import maintain as maintain_

    store = _history_store(config)
    named = tuple(dict.fromkeys(_find_table(store, table) for table in tables))
    return maintain_(config, named or tuple(sorted(store.tables())), dry_run=dry_run)


def demo(*, source: DemoSource, folder: str | None, keep: bool, stop: threading.Event) -> DemoReport:
    """Show the whole way from a database to a lake table on this machine."""
    from cdc_sync import demo as demo_

    return demo_.run(source=source, folder=folder, keep=keep, stop=stop)


def status(config: Config) -> Status:
    """Tell how every table stands; works without Kafka, only the lag is missing then."""
    store = _state_store(config)
    statuses = store.tables()
    lags, problem = _lags(config, statuses)
    return Status(
        pipeline=config.pipeline.name,
        tables=tuple(_line(status, lags.get(status.table)) for status in statuses),
        quarantine=store.quarantine_counts(),
        kafka_problem=problem,
    )


def _line(status: TableStatus, lag: int | None) -> TableLine:
    return TableLine(**{item.name: getattr(status, item.name) for item in fields(status)}, lag=lag)


def _lags(config: Config, statuses: Iterable[TableStatus]) -> tuple[dict[TableId, int], str | None]:
    from cdc_sync.kafka import KafkaClient, lag

    topics = {topic for status in statuses for topic in status.offsets}
    if not topics:
        return {}, None
    patience = min(config.kafka.request_timeout, _STATUS_PATIENCE)
    try:
        kafka = KafkaClient(config.kafka.model_copy(update={"request_timeout": patience}), attempts=1)
        ends, beginnings = kafka.ends(topics), kafka.beginnings(topics)
    except CdcSyncError as error:
        return {}, str(error)
    return {
        status.table: lag(status.offsets, beginnings, ends)
        for status in statuses
        # A topic that is gone has no end: nothing can be said about a table that reads it.
        if set(status.offsets) <= set(ends)
    }, None


def docs(page: str | None) -> Pages | str:
    """Return a page of the documentation, or which there are.

    Raises:
        ConfigError: if there is no such page.
    """
    known = installed.pages()
    if page is None:
        return Pages(pages=known)
    if page not in known:
        raise ConfigError(f"Cannot show page {page!r}: there are {', '.join(known)}")
    return installed.page(page)


def install_ddl_capture(connector: str, *, dsn: str | None, uninstall: bool) -> CaptureResult:
    """Make a Postgres source tell of its DDL, or return the script that does; see `capture.postgres`."""
    from cdc_sync.capture import postgres

    return postgres.install_ddl_capture(connector, dsn=dsn, uninstall=uninstall)


def decide(config: Config, table: str, *, renames: Mapping[str, str], not_same: tuple[str, ...]) -> Decided:
    """Say what happened to columns; the job takes it up by itself.

    A rename is either part of the change before which the table is paused, or was made long ago and its two columns
    have been kept apart since: then they are joined, whether the table runs or not.

    Raises:
        RefusedError: if a name is none of the columns it could be about, or nothing is to be decided.
    """
    store = StateStore(config.pipeline.root)
    recorded = _history_store(config)
    found = _find_table(recorded, table)
    if not renames and not not_same:
        raise RefusedError(f"Cannot decide about {found}: nothing was said; use --rename OLD=NEW or --not-same NAME")
    for new in renames.values():
        if new in not_same or list(renames.values()).count(new) > 1:
            raise RefusedError(f"Cannot decide about {found}: {new!r} is named twice; keep one of the two")
    history = recorded.load(found)
    late = {old: find_join(history, old, new) for old, new in renames.items()}
    capabilities = _capabilities(config, route(config, found))
    for item in late.values():
        version = join_version(history, item, capabilities) if isinstance(item, Join) else None
        if isinstance(version, Refused):
            raise RefusedError(f"Cannot join columns of {found}: {version.reason}; {version.remedy}")
    joins = tuple(item for item in late.values() if isinstance(item, Join))
    others = {old: new for old, new in renames.items() if isinstance(late[old], Refused)}
    at = _decide_at_pause(store, history, others, not_same, late) if others or not_same else None
    for join in joins:
        store.declare(join)
    return Decided(table=found, at=at, renames=others, not_same=not_same, joins=joins)


def rollback(config: Config, table: str, *, undo: bool) -> RolledBack:
    """Have the job bring back rows and columns of before the last rewrite and hold the table there, or let it go on.

    Raises:
        RefusedError: if no version of the table rewrote its rows, or with `undo`, if none is rolled back.
    """
    store = StateStore(config.pipeline.root)
    recorded = _history_store(config)
    found = _find_table(recorded, table)
    if undo:
        asked = store.rollback(found)
        if asked is None:
            raise RefusedError(f"Cannot let {found} go on: no rollback of it was asked for; look at `cdc-sync status`")
        store.withdraw_rollback(found)
        return RolledBack(table=found, version=asked.version, undo=True)
    wanted = route(config, found)
    if wanted is not None and wanted.merge is not None:
        raise RefusedError(
            f"Cannot roll back {found}: rows of other tables are in {wanted.target} and would go back too; nothing "
            "rewrites them, so there is nothing to bring back"
        )
    capabilities = _capabilities(config, wanted)
    history = recorded.load(found)
    begins = 0 if history.arrival is None else history.arrival.number  # what was kept before has another name's numbers
    rewritten = [item.number for item in history.versions[begins:] if rewrites(item.changes, capabilities, item.schema)]
    if not rewritten:
        raise RefusedError(
            f"Cannot roll back {found}: no version of it rewrote the rows; look at `cdc-sync history {found}`"
        )
    store.ask_rollback(Rollback(table=found, version=rewritten[-1]))
    return RolledBack(table=found, version=rewritten[-1], undo=False)


def regime(config: Config, table: str, *, undo: bool) -> Rewritten:
    """Have the job rewrite a table whose columns are found in another way than is configured, or no longer.

    Raises:
        RefusedError: if tables of the format are kept in one way only, or the table has no target; with `undo`, if
            nothing is left to be done.
    """
    store = StateStore(config.pipeline.root)
    found = _find_table(_history_store(config), table)
    wanted = route(config, found)
    if wanted is None:
        raise RefusedError(f"Cannot rewrite {found}: no rule of the configuration matches it")
    if undo:
        asked = store.regime(found)
        if asked is None:
            raise RefusedError(f"Cannot leave {found} as it is: nothing is to be done to it; it may be done already")
        store.withdraw_regime(found)
        return Rewritten(table=found, target=str(wanted.target), evolution=asked.evolution, undo=True)
    if len([kind for kind in KINDS if kind.format == config.target.format]) == 1:
        raise RefusedError(
            f"Cannot rewrite {found}: of target.format {config.target.format} there is one kind of table, "
            "whose columns are always found in the same way"
        )
    evolution = wanted.capabilities.evolution
    store.ask_regime(RegimeAsked(table=found, evolution=evolution))
    return Rewritten(table=found, target=str(wanted.target), evolution=evolution, undo=False)


def resync(config: Config, table: str, *, columns: tuple[str, ...], done: bool) -> ResyncAsked:
    """Have the source send the rows of a table again, or take the word that it has.

    Raises:
        RefusedError: if there is nothing to do.
    """
    from cdc_sync import resyncing
    from cdc_sync.kafka import KafkaClient

    store, recorded = StateStore(config.pipeline.root), _history_store(config)
    history, kafka = recorded.load(_find_table(recorded, table)), KafkaClient(config.kafka)
    if done:
        return resyncing.declare_done(kafka, store, history)
    return resyncing.ask(config.connector, kafka, store, history, columns)


def _decide_at_pause(
    store: StateStore,
    history: History,
    renames: Mapping[str, str],
    not_same: tuple[str, ...],
    late: Mapping[str, Join | Refused],
) -> str:
    """Keep what was said of the change before which a table is paused; return the record it stands before."""
    table, status = history.table, store.load(history.table)
    if status is None or status.state != "paused" or status.paused_at is None:
        why = next((item for old in renames if isinstance(item := late[old], Refused)), _TOO_LATE)
        raise RefusedError(
            f"Cannot decide about {table}: it is not paused before a change, and of an earlier one: {why.reason}; "
            f"{why.remedy}"
        )
    known = [column.name for column in history.head.schema.columns]
    for old in renames:
        if old not in known:
            raise RefusedError(f"Cannot decide about {table}: {old!r} is none of its columns ({', '.join(known)})")
    store.decide(Decision(table=table, at=status.paused_at, renames=dict(renames), not_same=not_same))
    return status.paused_at


_TOO_LATE = Refused(
    reason="columns that were taken for one cannot be taken apart afterwards, for the values of the first were "
    "overwritten by those of the second",
    remedy="snapshot the table again into a new target, with the older column declared under `drops` of the table",
)


def history(config: Config, table: str | None = None) -> tuple[TableHistory, ...]:
    """Return the recorded versions of one table, or of all.

    Raises:
        HistoryError: if no history of this table is recorded.
    """
    store = _history_store(config)
    tables = store.tables() if table is None else (_find_table(store, table),)
    return tuple(table_history(store.load(item)) for item in sorted(tables))


def diff(config: Config, table: str, before: int, after: int) -> SchemaDifference:
    """Return what leads from version `before` to version `after`; `before` may be the later one.

    Raises:
        HistoryError: if the table or a version is not recorded.
    """
    from cdc_sync.schema.diff import diff as schema_diff

    store = _history_store(config)
    recorded = store.load(_find_table(store, table))
    first, last = recorded.version(before).schema, recorded.version(after).schema
    return SchemaDifference(
        table=recorded.table,
        before=before,
        after=after,
        changes=phrases(schema_diff(first, last), first, last),
    )


def _state_store(config: Config) -> StateStore:
    """Open what a job wrote down of a pipeline.

    Raises:
        ConfigError: if no job ever wrote there.
    """
    store = StateStore(config.pipeline.root)
    if not store.holds_any():
        raise ConfigError(
            f"Cannot find pipeline {config.pipeline.name!r}: nothing is written at {config.pipeline.root}; start it "
            "with `cdc-sync run`; where it has run, check pipeline.state and pipeline.name"
        )
    return store


def _history_store(config: Config) -> HistoryStore:
    from cdc_sync.history.store import HistoryStore

    _state_store(config)
    return HistoryStore(f"{config.pipeline.root}/history")


def _capabilities(config: Config, wanted: Route | None) -> Capabilities:
    """Return what a table's target is able to do; of one that no rule matches any more, as if none said of it."""
    return config.target.capabilities if wanted is None else wanted.capabilities


def _find_table(store: HistoryStore, wanted: str) -> TableId:
    """Find a table by its dotted name, or by as much of its end as no other table shares."""
    tables = sorted(store.tables())
    exact = [table for table in tables if str(table) == wanted]
    found = exact or [table for table in tables if str(table).endswith(f".{wanted}")]
    match found:
        case [table]:
            return table
        case []:
            near = difflib.get_close_matches(wanted, [str(table) for table in tables], n=3, cutoff=0.4)
            hint = f"did you mean {' or '.join(near)}?" if near else f"{len(tables)} tables are recorded"
            raise HistoryError(f"Cannot find table {wanted!r}: no schema version of it is recorded; {hint}")
        case _:
            names = " and ".join(str(table) for table in found)
            raise HistoryError(f"Cannot choose table {wanted!r}: {names} both end so; write the whole name")
