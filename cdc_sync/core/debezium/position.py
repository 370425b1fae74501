"""Where in its source's log an event stands, and what else its source block says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cdc_sync.core.model.positions import NO_POSITION, Commit, SourcePosition, TableId

FIRST = ("first", "first_in_data_collection")
LAST = ("last", "last_in_data_collection")
READING = (*FIRST, "true", *LAST)
"""What `source.snapshot` says of rows that a snapshot of the whole table read, and no incremental one.

Source: Debezium, `SnapshotRecord`; a table's only row may be its first or its last one.
"""
_APPEND_ONLY = frozenset(("postgresql", "sqlserver", "oracle"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What an event says about where it comes from.

    Attributes:
        snapshot: the row was read, not taken from the log (op `r`).
        incremental: it was read by an incremental snapshot, while the log went on.
        null_is_default: whether the converter writes a NULL as the column's default
            (`replace.null.with.default=true`); None where this event does not show it.
        op: `c r u d t m`, or empty if the record has none.
        last_commit, lsn: Postgres only: the last commit seen before the event, and the event's own place.
        commit: of its transaction; Postgres only.
        marker: what `snapshot` says, empty if nothing.
        at: when the source wrote it, or a snapshot read it, in milliseconds since the epoch; None if it does not say.
    """

    table: TableId
    position: SourcePosition
    connector: str
    snapshot: bool
    incremental: bool
    null_is_default: bool | None
    op: str
    last_commit: int | None = None
    lsn: int | None = None
    commit: Commit | None = None
    marker: str = ""
    at: int | None = None

    @property
    def reading(self) -> bool:
        """Whether a snapshot of the whole table read the row, and no incremental one."""
        return self.marker in READING

    @property
    def append_only(self) -> bool:
        """Whether the database only ever adds columns behind the others."""
        return is_append_only(self.connector)


def is_append_only(connector: str) -> bool:
    """Tell whether the database only ever adds columns behind the others, so that drops shift the rest to the left."""
    return connector in _APPEND_ONLY


def position_of(source: Mapping[str, object]) -> SourcePosition:
    """Return the position a `source` block names, `NO_POSITION` if it names none that is understood.

    The Spark form of the same rule is `spark.position.position_of`.

    Source: Debezium, `PostgresSourceInfoStructMaker`, `SourceInfo` of the binlog connectors. Postgres: the LSN alone is
    not monotonic, because transactions overlap in the log and are sent in the order of their commits; the last commit
    before the event orders transactions.
    """
    match source.get("connector"):
        case "postgresql":
            lsn = last_lsn(source)
            if lsn is None:
                return NO_POSITION
            commit = last_commit(source)
            return SourcePosition(kind="postgresql", parts=(lsn if commit is None else commit, lsn))
        case "mysql" | "mariadb":
            file = source.get("file")
            digits = re.search(r"(?<!\d)\d{1,19}$", file, re.ASCII) if isinstance(file, str) else None
            number = None if digits is None else _number(int(digits[0]))
            pos, row = _number(source.get("pos")), _number(source.get("row"))
            if number is None or pos is None:
                return NO_POSITION
            return SourcePosition(kind="binlog", parts=(number, pos, row or 0))
        case _:
            return NO_POSITION


def marker_of(source: Mapping[str, object]) -> str:
    """Return what a `source` block says of the snapshot that read the row, empty if nothing."""
    marker = source.get("snapshot")
    return marker if isinstance(marker, str) else ""


def time_of(source: Mapping[str, object]) -> int | None:
    """Return when the source says that it wrote an event, in milliseconds since the epoch; None if it does not."""
    return _number(source.get("ts_ms"))


def last_commit(source: Mapping[str, object]) -> int | None:
    """Return the LSN of the last commit Postgres' connector saw before this event, None if it knows none."""
    return _of_sequence(source, 0)


def last_lsn(source: Mapping[str, object]) -> int | None:
    """Return the event's LSN; incremental snapshots show it in `sequence` only."""
    lsn = _of_sequence(source, 1)
    return _number(source.get("lsn")) if lsn is None else lsn


def commit_of(source: Mapping[str, object], *, snapshot: bool) -> Commit | None:
    """Return the commit of the transaction that wrote an event, None if it does not tell.

    Source: Debezium, `SourceInfo` of the Postgres connector: `ts_ms`, `ts_us` (since 2.6) and `txId` are those of the
    transaction's commit; of a snapshot's event, the time is the connector's.
    """
    if source.get("connector") != "postgresql":
        return None
    micros, millis, xid = _number(source.get("ts_us")), _number(source.get("ts_ms")), _number(source.get("txId"))
    at = micros if micros is not None else None if millis is None else millis * 1000
    return None if not at else Commit(at=at, xid=None if snapshot or xid is None else xid % 2**32)


def _of_sequence(source: Mapping[str, object], index: int) -> int | None:
    """Read one part of `sequence`, a JSON text such as `["23714512","23731552"]` or `[null,"23731552"]`."""
    text = source.get("sequence")
    if not isinstance(text, str):
        return None
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return None
    part = parts[index] if isinstance(parts, list) and len(parts) > index else None
    return _number(int(part)) if isinstance(part, str) and re.fullmatch(r"\d{1,20}", part, re.ASCII) else None


_LARGEST = 2**63 - 1
"""What Spark's and the history's numbers hold; no log of a source comes there."""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST else None
