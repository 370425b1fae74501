"""What the command line can do, as plain functions that return values.

Only `run`, `plan`, `verify`, `maintain`, `replay` and `demo` start a JVM; everything they need is imported inside them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_sync.api.results import Pages, SchemaDifference, Validation
from cdc_sync.api.stores import find_table, history_store, state_store
from cdc_sync.config import Config, installed, load_config
from cdc_sync.config.advice import advice
from cdc_sync.core.migration.wording import phrases
from cdc_sync.errors import ConfigError
from cdc_sync.operations.overview import Status, overview
from cdc_sync.runtime.reports import Plan, TableHistory, table_history

if TYPE_CHECKING:
    from cdc_sync.core.planning.maintenance_report import PipelineMaintained
    from cdc_sync.demo import DemoReport, DemoSource
    from cdc_sync.operations.replay import ReplayReport
    from cdc_sync.operations.verify.report import Verified
    from cdc_sync.runtime.reports import RunReport
    from cdc_sync.sources.databases.postgres import CaptureResult


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


def run(
    config: Config,
    *,
    once: bool = False,
    standby: bool = False,
    stop: threading.Event | None = None,
    reload_from: str | Path | None = None,
    reload_now: threading.Event | None = None,
    load: Callable[[], Config] | None = None,
) -> RunReport:
    """Keep the targets equal to their sources until `stop` is set, or, with `once`, until all is read.

    Args:
        standby: where another job of the pipeline runs, wait until it has ended and take its place.
        reload_from: the configuration's file: what changes in it is taken up while the job runs.
        reload_now: set it to have the file read at once, and not within seconds.
        load: reads the file, if not `load_config`.

    Raises:
        LeaseHeld: if another job of the pipeline runs, and this one is not to stand by.
        CdcSyncError: if it cannot begin, or not go on; what stops a table alone is in the report.
    """
    from cdc_sync.runtime.reload import Followed
    from cdc_sync.runtime.service import run as run_

    followed = None
    if reload_from is not None and not once:
        load = load or partial(load_config, reload_from)
        followed = Followed(reload_from, config, load, now=reload_now or threading.Event())
    return run_(config, once=once, standby=standby, stop=threading.Event() if stop is None else stop, followed=followed)


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

    store = history_store(config)
    tables = tuple(sorted(store.tables())) if table is None else (find_table(store.tables(), table),)
    return verify_(config, tables, limit=limit, named=table is not None)


def maintain(config: Config, tables: Sequence[str] = (), *, dry_run: bool = False) -> PipelineMaintained:
    """Compact tables and let old states of them go, or tell what is due; of all that are recorded, if none is named.

    Raises:
        RefusedError: if only a running job may do that.
        HistoryError: if a table that was named is not recorded.
    """
    from cdc_sync.runtime.maintenance import maintain as maintain_

    store = history_store(config)
    named = tuple(dict.fromkeys(find_table(store.tables(), table) for table in tables))
    return maintain_(config, named or tuple(sorted(store.tables())), dry_run=dry_run)


def demo(*, source: DemoSource, folder: str | None, keep: bool, stop: threading.Event) -> DemoReport:
    """Show the whole way from a database to a lake table on this machine."""
    from cdc_sync import demo as demo_

    return demo_.run(source=source, folder=folder, keep=keep, stop=stop)


def status(config: Config) -> Status:
    """Tell how every table stands; works without Kafka, only the lag is missing then."""
    return overview(config, state_store(config))


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


def history(config: Config, table: str | None = None) -> tuple[TableHistory, ...]:
    """Return the recorded versions of one table, or of all.

    Raises:
        HistoryError: if no history of this table is recorded.
    """
    store = history_store(config)
    tables = store.tables() if table is None else (find_table(store.tables(), table),)
    return tuple(table_history(store.load(item)) for item in sorted(tables))


def diff(config: Config, table: str, before: int, after: int) -> SchemaDifference:
    """Return what leads from version `before` to version `after`; `before` may be the later one.

    Raises:
        HistoryError: if the table or a version is not recorded.
    """
    from cdc_sync.core.schema.diff import diff as schema_diff

    store = history_store(config)
    recorded = store.load(find_table(store.tables(), table))
    first, last = recorded.version(before).schema, recorded.version(after).schema
    return SchemaDifference(
        table=recorded.table,
        before=before,
        after=after,
        changes=phrases(schema_diff(first, last), first, last),
    )
