"""Debezium's records for one table `orders`: 12 columns of mixed types, about 4 KB each, 3.5 KB of it schema."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.testing import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    JSON,
    TEXT,
    TIMESTAMP,
    TIMESTAMP_TZ,
    UUID,
    Record,
    column,
    decimal,
    envelope_schema,
    key_schema,
    prefix,
)

TOPIC = "shop.inv.orders"
_NAME = "shop.inv.orders"
_KEY = column("id", INT64, optional=False)
_COLUMNS: tuple[ConnectSchema, ...] = (
    _KEY,
    column("customer_id", INT32),
    column("status", TEXT),
    column("amount", decimal(12, 2)),
    column("created_at", TIMESTAMP),
    column("updated_at", TIMESTAMP_TZ),
    column("day", DATE),
    column("note", TEXT),
    column("score", FLOAT64),
    column("active", BOOLEAN),
    column("uid", UUID),
    column("doc", JSON),
)
_STATES = ("new", "paid", "packed", "shipped", "returned")
_DELETED = 0.05
_START_US = 1_700_000_000_000_000


class Orders:
    """The table's history as records; text templates, because half a million events have to be made in seconds."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._key_prefix = prefix(key_schema(_NAME, [_KEY])).decode()
        self._value_prefix = prefix(envelope_schema(_NAME, _COLUMNS)).decode()
        self._added: tuple[str, ...] = ()
        self._keys = 0
        self._gone: set[int] = set()
        self._lsn = 23_000_000

    def creates(self, count: int) -> Iterator[Record]:
        """Create rows with new keys."""
        for _ in range(count):
            self._keys += 1
            yield self._record("c", self._keys)

    def changes(self, count: int) -> Iterator[Record]:
        """Update 95 % and delete 5 % of random keys; a key that is gone is created again."""
        for _ in range(count):
            key = self._random.randrange(1, self._keys + 1)
            if key in self._gone:
                self._gone.discard(key)
                yield self._record("c", key)
            elif self._random.random() < _DELETED:
                self._gone.add(key)
                yield self._record("d", key)
            else:
                yield self._record("u", key)

    def add_column(self, name: str) -> None:
        """Have all later records show one more column, with values."""
        self._show(*self._added, name)

    def rename_column(self, old: str, new: str) -> None:
        """Have all later records show a column that was added under another name."""
        self._show(*(new if name == old else name for name in self._added))

    def _show(self, *added: str) -> None:
        self._added = added
        columns = (*_COLUMNS, *(column(added, TEXT) for added in self._added))
        self._value_prefix = prefix(envelope_schema(_NAME, columns)).decode()

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return self._keys - len(self._gone)

    def _record(self, op: str, key: int) -> Record:
        # Each change is a transaction of its own: the last commit is 28 bytes before the change.
        self._lsn += 56
        lsn = self._lsn
        now = _START_US + lsn
        before = self._identity(key) if op == "d" else "null"
        after = "null" if op == "d" else self._row(key, now)
        payload = (
            f'{{"before":{before},"after":{after},"source":{{"version":"3.6.1.Final","connector":"postgresql",'
            f'"name":"shop","ts_ms":{now // 1000},"snapshot":"false","db":"inv",'
            f'"sequence":"[\\"{lsn - 28}\\",\\"{lsn}\\"]","ts_us":{now},"ts_ns":{now}000,"schema":"inv",'
            f'"table":"orders","txId":{lsn // 56},"lsn":{lsn},"xmin":null,"origin":null,"origin_lsn":null}},'
            f'"transaction":null,"op":"{op}","ts_ms":{now // 1000},"ts_us":{now},"ts_ns":{now}000}}'
        )
        return Record(
            key=f'{self._key_prefix}{{"id":{key}}}}}'.encode(),
            value=f"{self._value_prefix}{payload}}}".encode(),
        )

    def _row(self, key: int, now: int) -> str:
        number = self._random.getrandbits(31)
        more = "".join(f',"{name}":"added"' for name in self._added)
        amount = base64.b64encode((number - 2**30).to_bytes(5, "big", signed=True)).decode()
        return (
            f'{{"id":{key},"customer_id":{number % 10_000},"status":"{_STATES[number % 5]}","amount":"{amount}",'
            f'"created_at":{_START_US + key},"updated_at":"2024-01-02T03:04:05.{number % 1_000_000:06d}Z",'
            f'"day":{19_700 + number % 300},"note":"some note, number {number}","score":{number % 1000 * 0.5},'
            f'"active":{"true" if number % 2 else "false"},"uid":"{number:08x}-1111-4222-8333-{key:012x}",'
            f'"doc":"{{\\"a\\":{number}}}"{more}}}'
        )

    @staticmethod
    def _identity(key: int) -> str:
        """What a delete shows under the default replica identity."""
        names = [column.field for column in _COLUMNS[1:]]
        return f'{{"id":{key},' + ",".join(f'"{name}":null' for name in names) + "}"
