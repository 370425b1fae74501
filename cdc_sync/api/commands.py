"""What the command line can do, as plain functions that return values.

Only `run`, `plan`, `verify`, `maintain`, `replay` and `demo` start a JVM; everything they need is imported inside them.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_sync.api.results import Pages, Rewritten, RolledBack, SchemaDifference, Validation
from cdc_sync.config import Config, installed, route
from cdc_sync.config.advice import advice
from cdc_sync.config.formats import format_of
from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.operator_requests import RegimeAsked, Rollback, rolled_back_text
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.migration.wording import phrases
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning import deciding
from cdc_sync.core.planning.deciding import Decided, Words
from cdc_sync.core.planning.resync import ResyncAsked
from cdc_sync.errors import ConfigError, HistoryError, RefusedError
from cdc_sync.operations.overview import Status, overview
from cdc_sync.runtime.reports import Plan, TableHistory, table_history
from cdc_sync.storage.state import StateStore

if TYPE_CHECKING:
    from cdc_sync.core.planning.maintenance_report import PipelineMaintained
    from cdc_sync.demo import DemoReport, DemoSource
    from cdc_sync.operations.replay import ReplayReport
    from cdc_sync.operations.verify.report import Verified
    from cdc_sync.runtime.reports import RunReport
    from cdc_sync.sources.databases.postgres import CaptureResult
    from cdc_sync.storage.history import HistoryStore


def validate(config: Config, *, check: bool = False) -> Validation:
    """Look a loaded configuration over.

    Args:
        config: as loaded; loading has refused everything that cannot work.
        check: also ask Kafka which topics match, and the source's database, if one is named, what is wrong there.

    Raises:
        ConfigError: if a client refuses a setting; with `check`, if the brokers refuse the log-in.
        KafkaUnavailable: with `check`, if Kafka does not answer.
    """
    from cdc_sync.sources.databases.advice import advice_on_source
    from cdc_sync.sources.kafka import KafkaClient
    from cdc_sync.sources.registry import check_properties

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
        nothing = config.kafka.why_nothing_is_read(there)
        if config.kafka.topic_pattern is not None and nothing is not None:
            warnings += (nothing,)
        warnings += advice_on_source(config)
    return Validation(config=config, warnings=warnings, topics=topics)


def run(config: Config, *, once: bool = False, standby: bool = False, stop: threading.Event | None = None) -> RunReport:
    """Keep the targets equal to their sources until `stop` is set, or, with `once`, until all is read.

    Args:
        standby: where another job of the pipeline runs, wait until it has ended and take its place.

    Raises:
        LeaseHeld: if another job of the pipeline runs, and this one is not to stand by.
        CdcSyncError: if it cannot begin, or not go on; what stops a table alone is in the report.
    """
    from cdc_sync.runtime import job

    return job.run(config, once=once, standby=standby, stop=threading.Event() if stop is None else stop)


def replay(config: Config, *, into: str, batch_size: int | None = None) -> ReplayReport:
    """Read the topics from their beginning into a folder of its own, to compare or to rebuild."""
    from cdc_sync.operations import replay as replay_

    return replay_.replay(config, into=into, batch_size=batch_size)


def plan(config: Config) -> Plan:
    """Tell what `run` would do with everything that is in the topics now; nothing is changed anywhere."""
    from cdc_sync.operations.plan import preview

    return preview(config)


def verify(config: Config, table: str | None = None, *, limit: int = 20) -> Verified:
    """Compare source tables with their targets, one or all; nothing is written anywhere.

    Args:
        limit: how many rows that differ are listed of each table.

    Raises:
        ConfigError: if the configuration names no source database.
        SetupError: if it cannot be read.
    """
    from cdc_sync.operations.verify.tables import verify as verify_

    store = _history_store(config)
    tables = tuple(sorted(store.tables())) if table is None else (_find_table(store, table),)
    return verify_(config, tables, limit=limit, named=table is not None)


def maintain(config: Config, tables: Sequence[str] = (), *, dry_run: bool = False) -> PipelineMaintained:
    """Compact tables and let old states of them go, or tell what is due; of all that are recorded, if none is named.

    Raises:
        RefusedError: if only a running job may do that.
        HistoryError: if a table that was named is not recorded.
    """
    from cdc_sync.runtime.maintenance import maintain as maintain_

    store = _history_store(config)
    named = tuple(dict.fromkeys(_find_table(store, table) for table in tables))
    return maintain_(config, named or tuple(sorted(store.tables())), dry_run=dry_run)


def demo(*, source: DemoSource, folder: str | None, keep: bool, stop: threading.Event) -> DemoReport:
    """Show the whole way from a database to a lake table on this machine."""
    from cdc_sync import demo as demo_

    return demo_.run(source=source, folder=folder, keep=keep, stop=stop)


def status(config: Config) -> Status:
    """Tell how every table stands; works without Kafka, only the lag is missing then."""
    return overview(config, _state_store(config))


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


def install_ddl_capture(
    connector: str, *, dsn: str | None, uninstall: bool, revoke_emit: bool = False, password_file: Path | None = None
) -> CaptureResult:
    """Make a Postgres source tell of its DDL, or return the script that does; see `sources.databases.postgres`.

    Raises:
        ConfigError: if the file of the password cannot be read.
        SetupError: as `sources.databases.postgres` does.
    """
    from cdc_sync.config.secrets import UnresolvedError, secret_in
    from cdc_sync.sources.databases import postgres

    try:
        password = None if password_file is None else secret_in(password_file)
    except UnresolvedError as error:
        raise ConfigError(f"Cannot install DDL capture: {error}") from None
    return postgres.install_ddl_capture(
        connector, dsn=dsn, uninstall=uninstall, revoke_emit=revoke_emit, password=password
    )


def decide(config: Config, table: str, words: Words) -> Decided:
    """Say what happened to columns; the job takes it up by itself, whether the table runs or not.

    Raises:
        RefusedError: if a name is none of the columns it could be about, or nothing is to be decided.
    """
    recorded = _history_store(config)
    history = recorded.load(_find_table(recorded, table))
    store = StateStore(config.pipeline.root)
    status = store.load(history.table)
    paused_at = status.paused_at if status is not None and status.state == "paused" else None
    capabilities = _capabilities(config, route(config, history.table))
    found = deciding.decide(history, words, paused_at, capabilities)
    for decision in found.with_late(history.head.number, store.decisions(history.table)):
        store.decide(decision)
    for join in found.joins:
        store.declare(join)
    return found


def rollback(config: Config, table: str, *, undo: bool = False) -> RolledBack:
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
        is_back = _is_back(store, asked)
        store.withdraw_rollback(found)
        return RolledBack(table=found, version=asked.version, undo=True, is_back=is_back)
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
    asked = Rollback(table=found, version=rewritten[-1])
    is_back = _is_back(store, asked)
    store.ask_rollback(asked)
    return RolledBack(table=found, version=asked.version, undo=False, is_back=is_back)


def _is_back(store: StateStore, asked: Rollback) -> bool:
    status = store.load(asked.table)
    return status is not None and status.reason == rolled_back_text(asked.version)


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
    if len(format_of(config.target.format).kinds) == 1:
        raise RefusedError(
            f"Cannot rewrite {found}: of target.format {config.target.format} there is one kind of table, "
            "whose columns are always found in the same way"
        )
    evolution = wanted.capabilities.evolution
    store.ask_regime(RegimeAsked(table=found, evolution=evolution))
    return Rewritten(table=found, target=str(wanted.target), evolution=evolution, undo=False)


def resync(config: Config, table: str, *, columns: tuple[str, ...] = (), done: bool = False) -> ResyncAsked:
    """Have the source send the rows of a table again, or take the word that it has.

    Raises:
        RefusedError: if there is nothing to do.
    """
    from cdc_sync.sources import snapshot_signals as resyncing
    from cdc_sync.sources.kafka import KafkaClient

    store, recorded = StateStore(config.pipeline.root), _history_store(config)
    history, kafka = recorded.load(_find_table(recorded, table)), KafkaClient(config.kafka)
    if done:
        return resyncing.declare_done(kafka, store, history)
    return resyncing.ask(config.connector, kafka, store, history, columns)


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
    from cdc_sync.core.schema.diff import diff as schema_diff

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
    from cdc_sync.storage.history import HistoryStore

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
