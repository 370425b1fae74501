"""Where ranges of a topic end so that no transaction of the source is taken apart.

Source: Debezium, "Transaction metadata" of each connector: with `provide.transaction.metadata` each event names its
transaction and its place among those of its table; an END, in a topic of its own, names how many each table has. In one
partition the events of a transaction follow one another, for a connector sends transaction behind transaction. Postgres
names a transaction by its number and the place in the log, which differs from event to event. Events of snapshots name
none: each is one by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from cdc_sync.core.debezium.position import Source
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import WireError


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An event as a part of a transaction.

    Attributes:
        offset: of the event.
        transaction: its name; None for an event that is one by itself.
        number: which of its table's events in the transaction this is, from 1.
    """

    offset: int
    transaction: str | None
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionEnd:
    """What an END says: how many events of each table a transaction has, by the name Debezium gives the table there."""

    transaction: str
    events: Mapping[str, int]

    def events_of(self, table: TableId) -> int:
        """Return how many events a table has; names are `schema.table`, or have the database before or in its place."""
        names = (
            f"{table.schema}.{table.table}",
            f"{table.database}.{table.table}",
            f"{table.database}.{table.schema}.{table.table}",
        )
        return next((self.events[name] for name in names if name in self.events), 0)


Next: TypeAlias = Callable[[int], Part | None]
"""Returns the first event at or behind an offset, None if there is none."""


def part_of(offset: int, source: Source, payload: Mapping[str, object]) -> Part:
    """Return what an event says of its transaction.

    Raises:
        WireError: if it is no event of a snapshot and names none.
    """
    found = payload.get("transaction")
    if isinstance(found, Mapping):
        name, number = found.get("id"), found.get("data_collection_order")
        if isinstance(name, str) and isinstance(number, int):
            return Part(offset=offset, transaction=transaction_name(source.connector, name), number=number)
    if source.snapshot:
        return Part(offset=offset, transaction=None)
    raise WireError("Cannot read the event's transaction: it names none")


def end_of(connector: str, payload: Mapping[str, object]) -> TransactionEnd | None:
    """Return what a record of the topic of transactions says if it is an END, else None."""
    name, tables = payload.get("id"), payload.get("data_collections")
    if payload.get("status") != "END" or not isinstance(name, str):
        return None
    events = {}
    for item in tables if isinstance(tables, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("event_count"), int):
            events[str(item.get("data_collection"))] = int(item["event_count"])
    return TransactionEnd(transaction=transaction_name(connector, name), events=events)


def transaction_name(connector: str, id_: str) -> str:
    """Return what all events of a transaction have in common of its id."""
    return id_.partition(":")[0] if connector == "postgresql" else id_


def whole(item: OffsetRange, upto: int, next_at: Next, is_last: Callable[[Part], bool]) -> OffsetRange | None:
    """Return the range, shorter or longer, so that it ends where a transaction does; None if none ends there yet.

    It is longer only where it would hold nothing but a part of one transaction.

    Args:
        item: not empty.
        upto: where the partition ends.
        next_at: asked for offsets before `upto`.
        is_last: whether an event, behind which there is none in the partition, is the last of its transaction here.
    """
    behind = _next_in(next_at, item.end, upto)
    last = behind if behind is not None else _last_of(item, next_at)
    if last is None or last.transaction is None or (behind is None and is_last(last)):
        return item

    def is_of_it(part: Part | None) -> bool:
        return part is not None and part.transaction == last.transaction

    # Events of one transaction follow one another, so what is no event of it lies before all or behind all of them.
    begin = _first(item.start, min(item.end, last.offset), lambda offset: is_of_it(next_at(offset)))
    if begin > item.start:
        return replace(item, end=begin)
    if behind is None:
        return None
    end = _first(behind.offset + 1, upto, lambda offset: not is_of_it(next_at(offset)))
    item = replace(item, end=end)
    if _next_in(next_at, end, upto) is None and not is_last(_last_of(item, next_at) or behind):
        return None
    return item


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the first offset from which on something holds, `high` if for none before that."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _next_in(next_at: Next, offset: int, upto: int) -> Part | None:
    return next_at(offset) if offset < upto else None


def _last_of(item: OffsetRange, next_at: Next) -> Part | None:
    """Return the last event of a range behind which there is none, None if it has none."""
    behind = _first(item.start, item.end, lambda offset: next_at(offset) is None)
    return next_at(behind - 1) if behind > item.start else None
