"""What no sane source sends is refused before anything is built from it.

The parser has hard stops of its own (`debezium.connect`, `debezium.avro`); these are the operator's, in the `limits`
section of the configuration.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.policy import Policy


class Limits(Protocol):
    """The limits of the configuration; see its reference for what each counts."""

    @property
    def max_message_bytes(self) -> int:
        """Of a record's value."""
        ...

    @property
    def max_columns(self) -> int:
        """Of a table, and fields of a struct inside a column."""
        ...

    @property
    def max_depth(self) -> int:
        """How deep a column's type may be nested; 1 is a column without parts."""
        ...

    @property
    def max_name_length(self) -> int:
        """Characters of the name of a column, a nested field, a table, a schema or a database."""
        ...

    @property
    def max_versions_per_hour(self) -> int:
        """New versions of one table's schema."""
        ...

    @property
    def max_new_tables_per_hour(self) -> int:
        """Tables that were never seen before."""
        ...

    @property
    def max_dead_letters_per_hour(self) -> int:
        """Records of one table that cannot be applied."""
        ...


def too_much(schema: ConnectSchema, limits: Limits) -> Refused | None:
    """Refuse a value's schema by its row: the struct `after` of an envelope, or the value itself if it has none.

    Takes time in proportion to the schema's size, and no more stack for a deep one.
    """
    row = schema.member("after") or schema
    found = [(row, 0)]
    while found:
        node, depth = found.pop()
        if depth > limits.max_depth:
            return _exceeded("a column is nested deeper than", "max_depth", limits.max_depth)
        if len(node.members) > limits.max_columns:
            what = "columns" if not depth else "fields in a column"
            return _exceeded(f"there are more {what} than", "max_columns", limits.max_columns)
        if any(len(member.field or "") > limits.max_name_length for member in node.members):
            return _exceeded("a column's name is longer than", "max_name_length", limits.max_name_length)
        children = (*node.members, node.items, node.keys, node.values)
        found += [(child, depth + 1) for child in children if child is not None]
    return None


def too_long(table: TableId, limits: Limits) -> Refused | None:
    """Refuse a table by the length of its name's parts."""
    if max(len(part) for part in (table.database, table.schema, table.table)) <= limits.max_name_length:
        return None
    return _exceeded("a part of the table's name is longer than", "max_name_length", limits.max_name_length)


def too_many_versions(limits: Limits) -> Refused:
    """Say why a table stops before a new version of its schema."""
    return Refused(
        code=Code.MANY_VERSIONS,
        reason="the table's schema changed more often than limits.max_versions_per_hour = "
        f"{limits.max_versions_per_hour}",
        remedy="find out what keeps changing it (two connectors on one topic?), then `cdc-sync resume` it, or raise "
        "the limit; nothing is lost",
    )


def too_many_tables(limits: Limits) -> Refused:
    """Say why a table that was never seen before is not begun."""
    return Refused(
        code=Code.MANY_TABLES,
        reason="more tables came up for the first time than limits.max_new_tables_per_hour = "
        f"{limits.max_new_tables_per_hour}",
        remedy="check that the topics are those you want (kafka.topics, tables), then `cdc-sync resume` it, or raise "
        "the limit; nothing is lost",
    )


_REWRITE_RATE = 20 * 1024**2
"""Bytes of data files that two cores rewrite in a second, roughly; only for the estimate."""


def too_large_to_rewrite(policy: Policy, *, rows: int | None, size: int) -> Refused | None:
    """Ask before a large target is rewritten because a column's type changed.

    Args:
        rows: of the target, None if nobody knows how many.
        size: bytes of its data files.
    """
    if size <= policy.rewrite_limit:
        return None
    return Refused(
        code=Code.REWRITE,
        reason=f"a column's type changed, for which {_to_be_rewritten(policy, rows, size)}",
        remedy=f"set policy.rewrite_limit: {size} or more for the table, or "
        "policy.incompatible_types: side_column, which rewrites nothing",
    )


def too_large_to_divide(policy: Policy, *, rows: int | None, size: int) -> Refused | None:
    """Ask before a large target is rewritten because it is to be partitioned in another way; as above."""
    if size <= policy.rewrite_limit:
        return None
    return Refused(
        code=Code.REWRITE,
        reason=f"partition_by says something else, for which {_to_be_rewritten(policy, rows, size)}",
        remedy=f"set policy.rewrite_limit: {size} or more for the table, or let partition_by say what it said",
    )


def _to_be_rewritten(policy: Policy, rows: int | None, size: int) -> str:
    counted = "" if rows is None else f"{rows} rows, "
    minutes = math.ceil(size / _REWRITE_RATE / 60)
    return (
        f"the target has to be rewritten: {counted}{size} bytes, which may take about {minutes} minutes; "
        f"policy.rewrite_limit is {policy.rewrite_limit}"
    )


def _exceeded(what: str, name: str, value: int) -> Refused:
    return Refused(
        code=Code.SCHEMA_SIZE,
        reason=f"{what} limits.{name} = {value}",
        remedy=f"raise limits.{name} if it is meant to be",
    )


class Window:
    """Counts what happened within the last hour, and says how much more may. Thread-safe.

    Attributes:
        limit: how much may happen within the time.

    Args:
        seconds: the time.
        clock: seconds that only ever rise.
    """

    def __init__(self, limit: int, *, seconds: float = 3600.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._seconds = seconds
        self._clock = clock
        self._taken: deque[float] = deque()
        self._lock = threading.Lock()

    def take(self, wanted: int = 1) -> int:
        """Count up to `wanted` and return how many there was room for."""
        with self._lock:
            now = self._clock()
            self._forget(now)
            granted = max(0, min(wanted, self.limit - len(self._taken)))
            self._taken.extend([now] * granted)
            return granted

    def room(self) -> int:
        """Return how much more may happen now."""
        with self._lock:
            self._forget(self._clock())
            return max(0, self.limit - len(self._taken))

    def _forget(self, now: float) -> None:
        while self._taken and self._taken[0] + self._seconds <= now:
            self._taken.popleft()
