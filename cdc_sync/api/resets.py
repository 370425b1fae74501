"""Having a table read again from the start."""

from __future__ import annotations

import time
from collections.abc import Mapping

from cdc_sync.api.results import ResetAsked
from cdc_sync.api.stores import find_table, history_store, is_running, this_person, utc_now
from cdc_sync.config import Config, route
from cdc_sync.core.history.history import History
from cdc_sync.core.migration.names import held_target
from cdc_sync.core.migration.operator_requests import Reset, SnapshotReset
from cdc_sync.core.migration.removal import why_not_removed
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.planning.end_of_table import first_of_life
from cdc_sync.errors import RefusedError
from cdc_sync.storage.state import StateStore


def reset(config: Config, table: str, *, dry_run: bool = False) -> ResetAsked:
    """Have the job read a table again from the beginning of its topics, into a new target; the one of now is renamed.

    Its schema history stays. Where the topics do not hold their beginning any more this is refused, for what is left
    would not make the whole table.

    Args:
        dry_run: only tell what would be done.

    Raises:
        HistoryError: if the table is not known.
        RefusedError: if it cannot be.
        KafkaUnavailable: if nobody can tell what its topics hold.
    """
    recorded = history_store(config)
    history = recorded.load(find_table(recorded.tables(), table))
    wanted = route(config, history.table)
    why = "no rule under tables matches it" if wanted is None else _why_not(config, wanted)
    if wanted is None or why is not None:
        raise RefusedError(f"Cannot reset {history.table}: {why}")
    store = StateStore(config.pipeline.root)
    status = store.load(history.table)
    topics = tuple(sorted(status.offsets)) if status is not None else ()
    _check_beginnings(config, history, topics)
    stamp = time.strftime("%Y%m%d_%H%M%S", time.gmtime())
    renamed = TargetName(namespace=wanted.target.namespace, name=f"{wanted.target.name}__reset_{stamp}")
    into = held_target(renamed, wanted.capabilities.tables)
    if not dry_run:
        store.requests.add(Reset(table=history.table, into=into, by=this_person(), at=utc_now()))
    return ResetAsked(
        table=history.table, target=str(wanted.target), into=str(into), is_running=is_running(config), dry_run=dry_run
    )


def reset_from_snapshot(config: Config, table: str, *, dry_run: bool = False) -> ResetAsked:
    """Ask the connector for a snapshot of a table, and have it take the place of all that its target holds.

    The target stays as it is until the snapshot is whole; then it is emptied, and filled with the snapshot's rows and
    what came behind them. The connector's stream waits while it reads them (a blocking snapshot).

    Args:
        dry_run: only tell what would be done.

    Raises:
        HistoryError: if the table is not known.
        RefusedError: if it cannot be.
        KafkaUnavailable: if the connector cannot be asked.
    """
    from cdc_sync.sources.kafka import KafkaClient
    from cdc_sync.sources.snapshot_signals import Signal, send

    recorded = history_store(config)
    history = recorded.load(find_table(recorded.tables(), table))
    wanted = route(config, history.table)
    store = StateStore(config.pipeline.root)
    status = store.load(history.table)
    kafka = KafkaClient(config.kafka)
    try:
        since = {} if status is None else {topic: dict(ends) for topic, ends in kafka.ends(status.offsets).items()}
        why = _why_no_snapshot(wanted, since)
        if wanted is None or why is not None:
            raise RefusedError(f"Cannot reset {history.table} from a snapshot: {why}")
        signal = Signal(id="", topic=None, statement=None)
        if not dry_run:
            store.requests.add(SnapshotReset(table=history.table, since=since, by=this_person(), at=utc_now()))
            signal = send(config.connector, kafka, history, "blocking")
    finally:
        kafka.close()
    return ResetAsked(
        table=history.table,
        target=str(wanted.target),
        into=None,
        is_running=is_running(config),
        dry_run=dry_run,
        topic=signal.topic,
        statement=signal.statement,
    )


def _why_no_snapshot(wanted: Route | None, ends: Mapping[str, Mapping[int, int]]) -> str | None:
    """Return why a snapshot cannot take the place of what a target holds."""
    if wanted is None:
        return "no rule under tables matches it"
    if wanted.append:
        return "its target is a changelog, which keeps all that there ever was"
    if sum(map(len, ends.values())) != 1:
        return "its events are not in one partition, so nobody can tell what came before the snapshot's rows"
    if wanted.policy.second_snapshot == "pause":
        return "policy.second_snapshot is pause; set apply or mark"
    return None


def _why_not(config: Config, wanted: Route) -> str | None:
    """Return why a target cannot be renamed."""
    if wanted.merge is not None:
        return "other source tables share its target"
    catalog = config.target.catalog
    refused = why_not_removed(wanted.capabilities, "archive", catalog=catalog.type, warehouse=str(catalog.warehouse))
    return None if refused is None else f"its target would be renamed, and policy.drop_table {refused}"


def _check_beginnings(config: Config, history: History, topics: tuple[str, ...]) -> None:
    """Refuse if topics begin behind what the table began with.

    Raises:
        RefusedError: if they do.
    """
    from cdc_sync.sources.kafka import KafkaClient

    kafka = KafkaClient(config.kafka)
    try:
        beginnings = kafka.beginnings(topics)
    finally:
        kafka.close()
    first = first_of_life(history).kafka
    for topic, partitions in sorted(beginnings.items()):
        for partition, beginning in sorted(partitions.items()):
            begins = first.offset if (topic, partition) == (first.topic, first.partition) else 0
            if beginning > begins:
                raise RefusedError(
                    f"Cannot reset {history.table}: {topic}[{partition}] holds nothing before offset {beginning} any "
                    f"more; `cdc-sync reset CONFIG {history.table} --from-snapshot` has the connector read the rows"
                )
