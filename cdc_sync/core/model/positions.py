"""What every change event says about itself: its table, its place in source and topic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TableId:
    """A source table as the event's `source` block names it.

    `schema` is empty for databases without schemas (MySQL, MariaDB).
    """

    database: str
    schema: str
    table: str

    def __str__(self) -> str:
        return ".".join(part for part in (self.database, self.schema, self.table) if part)


@total_ordering
@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePosition:
    """A place in the source's log, totally ordered inside one source.

    Attributes:
        incarnation: how many times the log had begun anew by then, as far as the table's events prove it (a failover,
            a restored server); compared first, see `incarnations`.
        kind: the coordinate system; positions of different kinds are compared by kind next, which only
            happens when a connector was replaced.
        parts: big-endian coordinates. `postgresql`: (last commit LSN before the event, the event's LSN); the first
            is the event's own LSN when the connector does not know it (first transaction, snapshot). `binlog`:
            (file number, position, row). `none`: empty, for connectors whose position is not understood; all such
            positions are equal and the Kafka offset decides.
    """

    kind: str
    parts: tuple[int, ...]
    incarnation: int = 0

    def __lt__(self, other: SourcePosition) -> bool:
        return (self.incarnation, self.kind, self.parts) < (other.incarnation, other.kind, other.parts)

    def __str__(self) -> str:
        incarnation = f".{self.incarnation}" if self.incarnation else ""
        return f"{self.kind}{incarnation}:{'/'.join(str(part) for part in self.parts)}"

    @staticmethod
    def parse(text: str) -> SourcePosition:
        """Read what `str` wrote.

        Raises:
            ValueError: if the text is not a position.
        """
        match = re.fullmatch(r"([a-z]+)(?:\.(\d+))?:((?:\d+(?:/\d+)*)?)", text)
        if match is None:
            raise ValueError(f"Cannot read source position {text!r}: expected kind:number/number")
        parts = tuple(int(part) for part in match[3].split("/")) if match[3] else ()
        return SourcePosition(kind=match[1], parts=parts, incarnation=int(match[2] or 0))


NO_POSITION = SourcePosition(kind="none", parts=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The commit of the transaction that wrote an event.

    Attributes:
        at: microseconds since the epoch by the source's clock, rounded down. Of a snapshot's event: when the connector
            sent it, by the connector's clock.
        xid: the transaction's number modulo 2^32, None if the event does not tell it.
    """

    at: int
    xid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class KafkaPosition:
    """One record of one topic."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"
