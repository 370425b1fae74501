"""A Postgres source without Postgres: tables whose changes come out as Debezium's records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import SchemaError
from cdc_sync.testing.connect import encode, json_text
from cdc_sync.testing.connect import prefix as prefix_of
from cdc_sync.testing.envelope import Record, change_payload, envelope_schema, key_schema, source_block, transaction_end


class Wal:
    """The write-ahead log that the tables of one source share: places, commits, transactions, and time.

    Without `transaction` every statement is a transaction of its own.
    """

    def __init__(
        self, lsn: int = 23_000_000, *, later_than: Wal | None = None, provides_transactions: bool = False
    ) -> None:
        """Begin at a place.

        Args:
            lsn: the place.
            later_than: the log of another server that was in use until a minute ago.
            provides_transactions: the connector's `provide.transaction.metadata`.
        """
        self.provides_transactions = provides_transactions
        self.events: Counter[str] = Counter()
        """How many the last transaction has, by `schema.table`."""
        self.lsn = lsn
        self._epoch = 1_700_000_000_000_000
        if later_than is not None:
            self._epoch = later_than.now_us + 60_000_000 - lsn * 10
        self.last_commit: int | None = None
        self.tx_id = 700
        self._open = False

    def advance(self) -> int:
        """Return the next place."""
        self.lsn += 56
        return self.lsn

    @property
    def now_us(self) -> int:
        """A clock that follows the log, in microseconds."""
        return self._epoch + self.lsn * 10

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Put all statements inside into one transaction; statements inside another one join it."""
        if self._open:
            yield
            return
        self._open = True
        self.tx_id += 1
        self.events.clear()
        try:
            yield
        finally:
            self._open = False
            self.last_commit = self.advance()

    def block(self, table: TableId, lsn: int) -> Mapping[str, object] | None:
        """Count an event of the transaction, and return what it says of that; None where the connector says nothing."""
        name = f"{table.schema}.{table.table}"
        self.events[name] += 1
        if not self.provides_transactions:
            return None
        order = {"total_order": self.events.total(), "data_collection_order": self.events[name]}
        return {"id": f"{self.tx_id}:{lsn}", **order}

    @property
    def end(self) -> Record:
        """The record that says that the last transaction ended, of the topic `<prefix>.transaction`."""
        return transaction_end(f"{self.tx_id}:{self.lsn}", self.events)


Row = dict[str, object]


class SourceTable:
    """A table that keeps its columns and rows, and writes a record for every change as Debezium's connector does.

    Rows hold Python values, see `testing.encode`. Changes of columns write nothing, as in Postgres; they show in the
    next record.

    Attributes:
        columns, key, rows: what the table is now.
        records: everything written so far, in order.
    """

    def __init__(
        self,
        name: str,
        columns: Sequence[ConnectSchema],
        *,
        key: Sequence[str] = ("id",),
        schema: str = "public",
        database: str = "shop",
        prefix: str = "shop",
        wal: Wal | None = None,
        full_identity: bool = False,
        null_is_default: bool = True,
    ) -> None:
        """Make an empty table.

        Args:
            name: the table's; with `schema` and `database` what the source block shows.
            columns: made by `testing.column`.
            key: the primary key's columns; empty for a table without one.
            schema: the table's, as the source block shows it.
            database: likewise.
            prefix: the connector's `topic.prefix`.
            wal: shared by the tables of one source.
            full_identity: REPLICA IDENTITY FULL, so that `before` holds the whole row.
            null_is_default: the converter's `replace.null.with.default`; true is Kafka Connect's default.
        """
        self.id = TableId(database=database, schema=schema, table=name)
        # Sanitised as the connector does it; two tables can share a topic.
        self.topic = re.sub(r"[^A-Za-z0-9._-]", "_", f"{prefix}.{schema}.{name}")
        self.columns = tuple(columns)
        self.key = tuple(key)
        self.rows: list[Row] = []
        self.records: list[Record] = []
        self.wal = wal or Wal()
        self._prefix = prefix
        self._full_identity = full_identity
        self._null_is_default = null_is_default
        self._written: tuple[bytes, bytes] = (b"", b"")
        self._written_for: tuple[tuple[ConnectSchema, ...], tuple[str, ...]] | None = None

    def insert(self, row: Mapping[str, object] | None = None, /, **values: object) -> tuple[Record, ...]:
        """Insert a row; a column that is not given holds its default as the schema shows it."""
        given = {**(row or {}), **values}
        self._check(given)
        with self.wal.transaction():
            new = {column.field or "": given.get(column.field or "", column.default) for column in self.columns}
            self.rows.append(new)
            return self._write("c", None, new)

    def update(
        self, where: Mapping[str, object], row: Mapping[str, object] | None = None, /, **values: object
    ) -> tuple[Record, ...]:
        """Change the rows that equal `where`; a changed key is written as delete, tombstone and insert."""
        given = {**(row or {}), **values}
        self._check({**where, **given})
        with self.wal.transaction():
            written: list[Record] = []
            for index, old in self._matching(where):
                self.rows[index] = {**old, **given}
                written += self._write("u", old, self.rows[index])
            return tuple(written)

    def delete(self, where: Mapping[str, object]) -> tuple[Record, ...]:
        """Delete the rows that equal `where`: a delete and a tombstone for each."""
        self._check(where)
        with self.wal.transaction():
            gone = [row for _, row in self._matching(where)]
            self.rows = [row for row in self.rows if not any(row is old for old in gone)]
            return tuple(record for row in gone for record in self._write("d", row, None))

    def truncate(self) -> tuple[Record, ...]:
        """Delete all rows with one record, which has no key (`skipped.operations=none`)."""
        with self.wal.transaction():
            self.rows = []
            return self._write("t", None, None)

    def snapshot(self, *, incremental: bool = False) -> tuple[Record, ...]:
        """Read all rows; they share one place in the log. An incremental one says so of each row."""
        lsn = self.wal.advance()
        last = len(self.rows) - 1
        marks = {} if incremental else {0: "first_in_data_collection", last: "last_in_data_collection"}
        between = "incremental" if incremental else "true"
        return tuple(
            record
            for index, row in enumerate(self.rows)
            for record in self._write("r", None, row, lsn=lsn, snapshot=marks.get(index, between))
        )

    def add_column(self, added: ConnectSchema, *, initial: object = None) -> None:
        """ADD COLUMN behind the others; existing rows read `initial`."""
        if any(existing.field == added.field for existing in self.columns):
            raise SchemaError(f"Cannot add column {added.field!r}: the table has one")
        self.wal.advance()
        self.columns = (*self.columns, added)
        self.rows = [{**row, added.field or "": initial} for row in self.rows]

    def drop_column(self, name: str) -> None:
        """DROP COLUMN; a key that holds it goes too."""
        self._check({name: None})
        self.wal.advance()
        self.columns = tuple(column for column in self.columns if column.field != name)
        self.rows = [{known: value for known, value in row.items() if known != name} for row in self.rows]
        if name in self.key:
            self.key = ()

    def rename_column(self, old: str, new: str) -> None:
        """RENAME COLUMN, in the key too."""
        self.alter_column(old, lambda column: replace(column, field=new))

    def alter_column(
        self,
        name: str,
        change: Callable[[ConnectSchema], ConnectSchema],
        *,
        convert: Callable[[object], object] | None = None,
    ) -> None:
        """Change a column's type, optionality, default or comment in place.

        Args:
            name: the column's.
            change: returns the new column, made by `testing.column` or `dataclasses.replace`.
            convert: what USING does to the value of each row; nothing is written for it.
        """
        self._check({name: None})
        self.wal.advance()
        changed = change(next(column for column in self.columns if column.field == name))
        new_name = changed.field or ""
        self.columns = tuple(changed if column.field == name else column for column in self.columns)
        self.key = tuple(new_name if part == name else part for part in self.key)
        keep: Callable[[object], object] = convert or (lambda value: value)
        self.rows = [
            {
                new_name if known == name else known: keep(value) if known == name else value
                for known, value in row.items()
            }
            for row in self.rows
        ]

    def _check(self, named: Mapping[str, object]) -> None:
        unknown = set(named) - {column.field for column in self.columns}
        if unknown:
            raise SchemaError(f"Cannot change {self.id}: it has no column {sorted(unknown)[0]!r}")

    def _matching(self, where: Mapping[str, object]) -> list[tuple[int, Row]]:
        return [
            (index, row)
            for index, row in enumerate(self.rows)
            if all(row[name] == value for name, value in where.items())
        ]

    def _write(
        self, op: str, before: Row | None, after: Row | None, *, lsn: int | None = None, snapshot: str | None = None
    ) -> tuple[Record, ...]:
        place = lsn or self.wal.advance()
        old_key, new_key = self._key_of(before), self._key_of(after)
        if op == "u" and old_key != new_key:
            records: tuple[Record, ...] = (
                self._record("d", before, None, place, snapshot),
                Record(key=old_key, value=None),
                self._record("c", None, after, place, snapshot),
            )
        elif op == "d":
            records = (self._record(op, before, None, place, snapshot), Record(key=old_key, value=None))
        else:
            shown = before if self._full_identity else None
            records = (self._record(op, shown, after, place, snapshot),)
        self.records += records
        return records

    def _record(self, op: str, before: Row | None, after: Row | None, lsn: int, snapshot: str | None) -> Record:
        unset = "false" if self._null_is_default else None
        source = source_block(
            self.id,
            prefix=self._prefix,
            lsn=lsn,
            last_commit=None if op == "r" else self.wal.last_commit,
            tx_id=self.wal.tx_id,
            ts_us=self.wal.now_us,
            snapshot=snapshot or unset,
        )
        payload = change_payload(
            before=self._wire(before, known_only=op == "d" and not self._full_identity),
            after=self._wire(after, known_only=False),
            source=source,
            op=op,
            ts_ns=(self.wal.now_us + 500) * 1000,
            transaction=None if op == "r" else self.wal.block(self.id, lsn),
        )
        key = self._key_of(before if after is None else after)
        return Record(key=key, value=self._heads()[1] + json_text(payload).encode() + b"}")

    def _wire(self, row: Row | None, *, known_only: bool) -> Row | None:
        """Encode a row; with `known_only` all but the key is unknown, as with the default replica identity."""
        if row is None:
            return None
        return {
            name: self._value(column, None if known_only and name not in self.key else row[name])
            for column in self.columns
            for name in (column.field or "",)
        }

    def _value(self, column: ConnectSchema, value: object) -> object:
        if value is not None:
            return encode(column, value)
        if column.optional:
            return column.default if self._null_is_default else None
        # The connector puts a default or an empty value where it knows none and NULL is not allowed.
        return _EMPTY[column.type] if column.default is None else column.default

    def _key_of(self, row: Row | None) -> bytes | None:
        if not self.key or row is None:
            return None
        payload = {part.field or "": self._value(part, row[part.field or ""]) for part in self._key_columns()}
        return self._heads()[0] + json_text(payload).encode() + b"}"

    def _key_columns(self) -> list[ConnectSchema]:
        return [next(column for column in self.columns if column.field == name) for name in self.key]

    def _heads(self) -> tuple[bytes, bytes]:
        """Return the schema part of keys and of values, written anew only when columns or key changed."""
        if self._written_for != (self.columns, self.key):
            key = key_schema(self.topic, self._key_columns())
            self._written = prefix_of(key), prefix_of(envelope_schema(self.topic, self.columns))
            self._written_for = (self.columns, self.key)
        return self._written


_EMPTY: dict[str, object] = {
    "boolean": False,
    "int8": 0,
    "int16": 0,
    "int32": 0,
    "int64": 0,
    "float": 0.0,
    "double": 0.0,
    "string": "",
    "bytes": "",
    "array": [],
}
