"""What people ask of a pipeline's job: written down, and taken up between two batches, by this job or the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cdc_sync.api.results import RequestedOfTable, RequestedOfTables, Rewritten, RolledBack
from cdc_sync.api.stores import find_table, history_store, is_running, place_of, state_store, this_person, utc_now
from cdc_sync.config import Config, route
from cdc_sync.config.formats import format_of
from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.operator_requests import Hold, RegimeAsked, Rollback, Skip, rolled_back_text
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.planning import deciding
from cdc_sync.core.planning.deciding import Decided, Words
from cdc_sync.core.planning.resync import ResyncAsked
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.core.planning.stops import SKIPPABLE
from cdc_sync.errors import RefusedError
from cdc_sync.storage.state import StateStore


def pause(
    config: Config, tables: Sequence[str] = (), *, why: str | None = None, dry_run: bool = False
) -> RequestedOfTables:
    """Have the job leave tables as they are until they are resumed, however often it is started; all if none is named.

    Args:
        why: what `status` says of it.
        dry_run: only tell what would be done.

    Raises:
        HistoryError: if a table that was named is not known.
    """
    store = state_store(config)
    by, now = this_person(), utc_now()
    found = []
    for status in _named(store, tables):
        if status.state == "gone":
            found.append(_asked(status, "is gone at the source: nothing is read of it"))
        elif store.requests.get(Hold, status.table) is not None:
            found.append(_asked(status, "is paused by an operator already"))
        else:
            if not dry_run:
                store.requests.add(Hold(table=status.table, by=by, at=now, why=why))
            found.append(_asked(status, "is paused until `cdc-sync resume`", is_new=True))
    return _requested(config, "pause", found, dry_run)


def resume(config: Config, tables: Sequence[str] = (), *, dry_run: bool = False) -> RequestedOfTables:
    """Let tables go on that an operator paused, and have those try again that paused or failed by themselves.

    What made a table pause is looked at anew; while it is still there, the table pauses again.

    Args:
        tables: all if none is named.
        dry_run: only tell what would be done.

    Raises:
        HistoryError: if a table that was named is not known.
    """
    store = state_store(config)
    found = []
    for status in _named(store, tables):
        if store.requests.get(Hold, status.table) is None and status.state not in ("paused", "failing"):
            found.append(_asked(status, f"is {status.state}, not paused"))
        else:
            if not dry_run:
                store.requests.resume(status.table)
            found.append(_asked(status, "goes on, or says again why it cannot", is_new=True))
    return _requested(config, "resume", found, dry_run)


def skip(config: Config, table: str, *, at: str, why: str, dry_run: bool = False) -> RequestedOfTables:
    """Have a table that paused before a record go on without it; the record becomes a dead letter.

    Args:
        at: the record, as `topic[partition]@offset`: the one that the table stands before.
        why: kept beside its place.
        dry_run: only tell what would be done.

    Raises:
        HistoryError: if the table is not known.
        RefusedError: if the table does not stand before this record, or not for what is wrong with it alone.
    """
    store, place = state_store(config), place_of(at)
    (status,) = _named(store, (table,))
    if status.state != "paused" or status.paused_at is None:
        raise RefusedError(f"Cannot skip {place}: {status.table} is {status.state}, and stands before no record")
    if status.paused_at != str(place):
        raise RefusedError(f"Cannot skip {place}: {status.table} stands before {status.paused_at}")
    if status.code not in {code.value for code in SKIPPABLE}:
        raise RefusedError(
            f"Cannot skip {place}: what {status.table} stands before ({status.code}) changes the table, and is not of "
            f"this record alone; {status.remedy}"
        )
    if not dry_run:
        word = Skip(table=status.table, place=place, by=this_person(), at=utc_now(), why=why)
        store.requests.add(word)
    text = f"goes on without {place}, which becomes a dead letter"
    return _requested(config, "skip", [_asked(status, text, is_new=True)], dry_run)


def forget(config: Config, table: str, *, dry_run: bool = False) -> RequestedOfTables:
    """Delete what is written of a table that left the pipeline; its target, its history and its dead letters stay.

    Args:
        dry_run: only tell what would be done.

    Raises:
        HistoryError: if the table is not known.
        RefusedError: if the configuration follows it.
    """
    from cdc_sync.operations.overview import why_unfollowed

    store = state_store(config)
    (status,) = _named(store, (table,))
    if why_unfollowed(config, status) is None:
        raise RefusedError(
            f"Cannot forget {status.table}: the configuration follows it; leave it out of tables, or its topics out of "
            "kafka, first"
        )
    if not dry_run:
        store.forget(status.table)
    done = "would be" if dry_run else "is"
    text = f"{done} forgotten, and what was said of it; its target {status.target}, history and dead letters stay"
    return _requested(config, "forget", [_asked(status, text)], dry_run)


def _named(store: StateStore, tables: Sequence[str]) -> list[TableStatus]:
    known = {status.table: status for status in store.tables()}
    return [known[find_table(known, name)] for name in dict.fromkeys(tables)] if tables else list(known.values())


def _asked(status: TableStatus, text: str, *, is_new: bool = False) -> RequestedOfTable:
    return RequestedOfTable(table=status.table, state=status.state, reason=status.reason, is_new=is_new, text=text)


def _requested(
    config: Config, word: Literal["forget", "pause", "resume", "skip"], found: Sequence[RequestedOfTable], dry_run: bool
) -> RequestedOfTables:
    return RequestedOfTables(word=word, tables=tuple(found), is_running=is_running(config), dry_run=dry_run)


def decide(config: Config, table: str, words: Words) -> Decided:
    """Say what happened to columns; the job takes it up by itself, whether the table runs or not.

    Raises:
        RefusedError: if a name is none of the columns it could be about, or nothing is to be decided.
    """
    recorded = history_store(config)
    history = recorded.load(find_table(recorded.tables(), table))
    store = StateStore(config.pipeline.root)
    status = store.load(history.table)
    paused_at = status.paused_at if status is not None and status.state == "paused" else None
    capabilities = _capabilities(config, route(config, history.table))
    found = deciding.decide(history, words, paused_at, capabilities)
    for decision in found.with_late(history.head.number, store.requests.decisions(history.table)):
        store.requests.decide(decision)
    for join in found.joins:
        store.requests.add(join)
    return found


def rollback(config: Config, table: str, *, undo: bool = False) -> RolledBack:
    """Have the job bring back rows and columns of before the last rewrite and hold the table there, or let it go on.

    Raises:
        RefusedError: if no version of the table rewrote its rows, or with `undo`, if none is rolled back.
    """
    store = StateStore(config.pipeline.root)
    recorded = history_store(config)
    found = find_table(recorded.tables(), table)
    if undo:
        asked = store.requests.get(Rollback, found)
        if asked is None:
            raise RefusedError(f"Cannot let {found} go on: no rollback of it was asked for; look at `cdc-sync status`")
        is_back = _is_back(store, asked)
        store.requests.remove(asked)
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
    store.requests.add(asked)
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
    found = find_table(history_store(config).tables(), table)
    wanted = route(config, found)
    if wanted is None:
        raise RefusedError(f"Cannot rewrite {found}: no rule of the configuration matches it")
    if undo:
        asked = store.requests.get(RegimeAsked, found)
        if asked is None:
            raise RefusedError(f"Cannot leave {found} as it is: nothing is to be done to it; it may be done already")
        store.requests.remove(asked)
        return Rewritten(table=found, target=str(wanted.target), evolution=asked.evolution, undo=True)
    if len(format_of(config.target.format).kinds) == 1:
        raise RefusedError(
            f"Cannot rewrite {found}: of target.format {config.target.format} there is one kind of table, "
            "whose columns are always found in the same way"
        )
    evolution = wanted.capabilities.evolution
    store.requests.add(RegimeAsked(table=found, evolution=evolution))
    return Rewritten(table=found, target=str(wanted.target), evolution=evolution, undo=False)


def resync(config: Config, table: str, *, columns: tuple[str, ...] = (), done: bool = False) -> ResyncAsked:
    """Have the source send the rows of a table again, or take the word that it has.

    Raises:
        RefusedError: if there is nothing to do.
    """
    from cdc_sync.sources import snapshot_signals as resyncing
    from cdc_sync.sources.kafka import KafkaClient

    store, recorded = StateStore(config.pipeline.root), history_store(config)
    history, kafka = recorded.load(find_table(recorded.tables(), table)), KafkaClient(config.kafka)
    if done:
        return resyncing.declare_done(kafka, store, history)
    return resyncing.ask(config.connector, kafka, store, history, columns)


def _capabilities(config: Config, wanted: Route | None) -> Capabilities:
    """Return what a table's target is able to do; of one that no rule matches any more, as if none said of it."""
    return config.target.capabilities if wanted is None else wanted.capabilities
