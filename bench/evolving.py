"""A table of any width that had ten schemas, and its change events in JSON and in Avro."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from confluent import Framer, avro_schema

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.model.positions import TableId
from cdc_sync.testing import (
    BOOLEAN,
    BYTES,
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

VERSIONS = 10
POOL = 2_000
"""How many different events a table has; topics repeat them."""
_KEY = column("id", INT64, optional=False)
_NULLS = 0.1
_START_US = 1_700_000_000_000_000
Row = Mapping[str, object]
Value = Callable[[int], object]

_KINDS: tuple[tuple[str, ConnectSchema, Value], ...] = (
    ("quantity", INT64, lambda number: number % 10_000),
    ("status", TEXT, lambda number: ("new", "paid", "packed", "shipped", "returned by the customer")[number % 5]),
    ("amount", decimal(12, 2), lambda number: (number - 2**30).to_bytes(5, "big", signed=True)),
    ("created_at", TIMESTAMP, lambda number: _START_US + number),
    ("updated_at", TIMESTAMP_TZ, lambda number: f"2024-01-02T03:04:05.{number % 1_000_000:06d}Z"),
    ("active", BOOLEAN, lambda number: number % 2 == 0),
    ("day", DATE, lambda number: 19_700 + number % 300),
    ("uid", UUID, lambda number: f"{number:08x}-1111-4222-8333-{number:012x}"),
    ("doc", JSON, lambda number: json.dumps({"a": number, "tags": ["x", "y"]})),
    ("score", FLOAT64, lambda number: number % 1000 * 0.5),
    ("raw", BYTES, lambda number: number.to_bytes(16, "little")),
)
_VALUES = {name: value for name, _, value in _KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The table as one of its schemas shows it; `names` are the head's names of the columns."""

    table: str
    number: int
    columns: tuple[ConnectSchema, ...]
    names: tuple[str, ...]

    @property
    def key(self) -> ConnectSchema:
        return key_schema(f"shop.inv.{self.table}", [_KEY])

    @property
    def envelope(self) -> ConnectSchema:
        return envelope_schema(f"shop.inv.{self.table}", self.columns)


def generations(width: int, table: str) -> tuple[Generation, ...]:
    """Return a table's ten schemas, the last of them with `width` columns.

    Seven columns are added over time, `quantity` widens from int32 to int64 and `state` becomes `status`.
    """
    head = _head(width)
    names = tuple(column.field or "" for column in head)
    found = []
    shown = width - 7
    for number in range(1, VERSIONS + 1):
        shown += number in _ADDS
        columns = [_formerly(column, number) for column in head[:shown]]
        found.append(Generation(table=table, number=number, columns=tuple(columns), names=names[:shown]))
    return tuple(found)


_ADDS, _WIDENED, _RENAMED = (2, 3, 5, 6, 7, 8, 10), 4, 9


def _head(width: int) -> tuple[ConnectSchema, ...]:
    others = []
    for place in range(width - 1):
        name, type_, _ = _KINDS[place % len(_KINDS)]
        round_ = place // len(_KINDS)
        others.append(column(f"{name}_{round_}" if round_ else name, type_))
    return (_KEY, *others)


def _formerly(shown: ConnectSchema, number: int) -> ConnectSchema:
    if shown.field == "quantity" and number < _WIDENED:
        return replace(shown, type=INT32.type)
    if shown.field == "status" and number < _RENAMED:
        return replace(shown, field="state")
    return shown


class Events:
    """Inserts (half), updates and deletes (one in twenty) of random rows, the same events for every way of writing."""

    def __init__(self, width: int, *, table: str = "wide", only_inserts: bool = False, size: int = POOL) -> None:
        self.table = TableId(database="inv", schema="inv", table=table)
        self.generations = generations(width, table)
        self._names = self.generations[-1].names
        generator = random.Random(table)
        self._rows = [self._row(generator.getrandbits(30), generator) for _ in range(size)]
        self._ops = ["c"] * size if only_inserts else generator.choices("cud", weights=(50, 45, 5), k=size)

    def json(self, shown: Sequence[Generation]) -> Iterator[Record]:
        """Write each event in JSON, with these schemas by turns."""
        heads = [(prefix(each.key).decode(), prefix(each.envelope).decode()) for each in shown]
        for place, row in enumerate(self._rows):
            each, (key, value) = shown[place % len(shown)], heads[place % len(shown)]
            payload = json.dumps(self._event(place, row, each), separators=(",", ":"), default=_base64)
            yield Record(key=f'{key}{{"id":{row["id"]}}}}}'.encode(), value=f"{value}{payload}}}".encode())

    def avro(self, shown: Sequence[Generation], known: Sequence[Generation] | None = None) -> Iterator[Record]:
        """Write each event in Avro, with these schemas by turns.

        Args:
            shown: the schemas to write with.
            known: the schemas that say which columns have values, by turns; what they do not have is NULL.
        """
        framers = [tuple(Framer(s, id_) for s, id_ in zip((e.key, e.envelope), ids(e), strict=True)) for e in shown]
        for place, row in enumerate(self._rows):
            each, (key, value) = shown[place % len(shown)], framers[place % len(shown)]
            if known is not None:
                visible = known[place % len(known)].names
                row = {name: row[name] if name in visible else None for name in self._names}
            yield Record(key=key.frame({"id": row["id"]}), value=value.frame(self._event(place, row, each)))

    def _row(self, number: int, generator: random.Random) -> Row:
        row: dict[str, object] = {"id": number}
        for name in self._names[1:]:
            number = generator.getrandbits(30)
            kind = name.rstrip("0123456789").rstrip("_")
            row[name] = None if generator.random() < _NULLS else _VALUES[kind](number)
        return row

    def _event(self, place: int, row: Row, shown: Generation) -> dict[str, object]:
        op = self._ops[place]
        names = [column.field or "" for column in shown.columns]
        after = {name: row[known] for name, known in zip(names, shown.names, strict=True)}
        identity = dict.fromkeys(names) | {"id": row["id"]}
        lsn = 23_000_000 + 56 * place
        now = _START_US + lsn
        return {
            "before": identity if op == "d" else None,
            "after": None if op == "d" else after,
            "source": _source(self.table, lsn, now),
            "transaction": None,
            "op": op,
            "ts_ms": now // 1000,
            "ts_us": now,
            "ts_ns": now * 1000,
        }


def ids(shown: Generation) -> tuple[int, int]:
    """Return what the registry calls the schemas of key and value."""
    return 1, 1 + shown.number


def registered(shown: Generation) -> dict[int, str]:
    """Return the schemas of key and value as the registry holds them."""
    schemas = (shown.key, shown.envelope)
    return {id_: json.dumps(avro_schema(schema)) for id_, schema in zip(ids(shown), schemas, strict=True)}


def _source(table: TableId, lsn: int, now: int) -> dict[str, object]:
    return {
        "version": "3.6.1.Final",
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": now // 1000,
        "snapshot": "false",
        "db": table.database,
        "sequence": f'["{lsn - 28}","{lsn}"]',
        "ts_us": now,
        "ts_ns": now * 1000,
        "schema": table.schema,
        "table": table.table,
        "txId": lsn // 56,
        "lsn": lsn,
        "xmin": None,
        "origin": None,
        "origin_lsn": None,
    }


def _base64(value: object) -> str:
    assert isinstance(value, bytes)
    return base64.b64encode(value).decode()
