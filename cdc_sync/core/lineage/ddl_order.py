"""Where the records of a schema-change topic stand in the source's log, and which of them were taken already."""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal, TypeAlias

from cdc_sync.core.lineage.records import SchemaChangeRecord
from cdc_sync.core.model.positions import SourcePosition, TableId

Standing: TypeAlias = Literal["next", "repeated", "restarted", "overlapping"]
"""How a record follows on those before it: in order; taken before; lower than the last one, so that the source's
positions must have begun again; or still within positions that were used before that."""


class Order:
    """Remembers every record it was shown.

    Attributes:
        last: the newest record's position.
        touched: tables changed by records that stand where the newest one does; its owner adds to it.
    """

    def __init__(self) -> None:
        self.last: SourcePosition | None = None
        self.touched: set[TableId] = set()
        self._taken: set[bytes] = set()
        self._last_mark = b""
        self._first_snapshot: SourcePosition | None = None
        self._unclear_upto: SourcePosition | None = None
        self._streamed = False

    @property
    def in_first_snapshot(self) -> bool:
        """Whether all records so far are from one snapshot."""
        return not self._streamed and self.last == self._first_snapshot

    def take(self, record: SchemaChangeRecord) -> Standing:
        """Remember a record, and tell how it follows on those before it."""
        mark = _mark(record)
        if mark in self._taken:
            return "repeated"
        self._taken.add(mark)
        self._last_mark = mark
        position = record.position
        last = self.last
        if self._first_snapshot is None and record.snapshot:
            self._first_snapshot = position
        self._streamed |= not record.snapshot
        if last is None or _place(position) != _place(last):
            self.touched = set()
        self.last = position
        if last is not None and (position.kind != last.kind or _place(position) < _place(last)):
            highest = max(last, self._unclear_upto or last)
            self._unclear_upto = highest if position.kind == last.kind else None
            return "restarted"
        if self._unclear_upto is not None:
            if _place(position) <= _place(self._unclear_upto):
                return "overlapping"
            self._unclear_upto = None
        return "next"

    def is_at_last_place(self, record: SchemaChangeRecord) -> bool:
        """Whether a record stands where the newest one stands."""
        return self.last is not None and _place(record.position) == _place(self.last)

    def is_newest(self, record: SchemaChangeRecord) -> bool:
        """Whether a record is the newest one, sent again."""
        return _mark(record) == self._last_mark


def _place(position: SourcePosition) -> tuple[int, ...]:
    # A binlog statement has a place of its own; its row number is left over from the event before it.
    return position.parts[:2] if position.kind == "binlog" else position.parts


def _mark(record: SchemaChangeRecord) -> bytes:
    """Return what a record is recognised by when it is sent again."""
    text = f"{record.position.kind} {_place(record.position)} {record.database!r} {record.ddl}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
