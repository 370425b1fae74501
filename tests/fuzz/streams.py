"""Topics of good records with damaged ones among them."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, partial

from cdc_sync.testing import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT32,
    TEXT,
    TIMESTAMP,
    Record,
    SourceTable,
    array,
    column,
    decimal,
    heartbeat,
)
from tests.corpus.reader import topics
from tests.fuzz.model import Entry, Reader, read_json
from tests.fuzz.mutations import Mutator
from tests.fuzz.octets import Corpus, Mutant
from tests.fuzz.twins import Twins, read_twin

_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The records of one topic, in offset order.

    Attributes:
        keeps_schema: damaged records of the table still have its schema text, so none of them can change the table.
        read: how a value is read.
        texts: registered schemas, for Avro.
    """

    topic: str
    table: tuple[str, str, str]
    entries: tuple[Entry, ...]
    keeps_schema: bool
    read: Reader = read_json
    texts: Mapping[int, str] = field(default_factory=dict)


def stream(name: str, size: int, *, seed: int, keeps_schema: bool, twins: Twins | None = None) -> Stream:
    """Make a topic of about `size` damaged records and as many good ones; Avro, if there are twins."""
    rng = random.Random(seed)
    table = SourceTable(name, _COLUMNS, schema="fuzz", prefix="fuzz", null_is_default=False)
    writer = _Writer(table, rng, Mutator(_captured(avro=twins is not None), seed=seed), twins, keeps_schema)
    entries = [*writer.good(table.insert(_row(0, rng)))]
    for number in range(1, size + 1):
        entries += writer.good(_lived(table, number, rng))
        entries.append(writer.damaged(1_000_000 + number))
    entries += writer.good(table.insert(_row(900_000, rng)))
    return Stream(
        topic=table.topic,
        table=(table.id.database, table.id.schema, table.id.table),
        entries=tuple(entries),
        keeps_schema=keeps_schema,
        read=read_json if twins is None else partial(read_twin, texts=twins.texts),
        texts={} if twins is None else twins.texts,
    )


_COLUMNS = (
    column("id", INT32, optional=False),
    column("note", TEXT),
    column("amount", decimal(10, 2)),
    column("day", DATE),
    column("moment", TIMESTAMP),
    column("flag", BOOLEAN),
    column("ratio", FLOAT64),
    column("tags", array(INT32)),
)


@cache
def _captured(*, avro: bool) -> Corpus:
    found = topics("postgres-avro" if avro else "postgres-json").values()
    return [(m.key, m.value) for messages in found for m in messages if len(m.value or b"") < 20_000]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the records of one topic."""

    table: SourceTable
    rng: random.Random
    mutator: Mutator
    twins: Twins | None
    keeps_schema: bool

    def good(self, records: Iterable[Record]) -> list[Entry]:
        return [Entry(key=key, value=value) for key, value in map(self._as_written, records)]

    def damaged(self, id_: int) -> Entry:
        """Damage a record of the table, or now and then one of another."""
        if self.rng.random() < 0.15 and self.twins is None:
            odd = self.mutator.mutant() if self.rng.random() < 0.9 else _as_mutant(heartbeat("fuzz", id_))
            return Entry(key=odd.key, value=odd.value, kind=odd.kind or "another table's")
        (record,) = self.table.insert(_row(id_, self.rng))
        self.table.rows.pop()
        key, value = self._as_written(record)
        assert value is not None
        schema_end = 5 if self.twins else value.index(b',"payload":{"before"') + len(b',"payload":')
        for _ in range(_TRIES):
            mutant = self.mutator.damaged(key, value)
            kept = mutant.key == key and (mutant.value or b"").startswith(value[:schema_end])
            if kept or not self.keeps_schema:
                return Entry(key=mutant.key, value=mutant.value, kind=mutant.kind, original=value)
        return Entry(key=key, value=value[:-10], kind="truncated", original=value)

    def _as_written(self, record: Record) -> tuple[bytes | None, bytes | None]:
        return (
            (record.key, record.value)
            if self.twins is None
            else (self.twins.of(record.key), self.twins.of(record.value))
        )


def _row(id_: int, rng: random.Random) -> dict[str, object]:
    row: dict[str, object] = {
        "note": rng.choice(("", "plain", 'é漢😀 "quoted" \\ \u202e', ',"payload":', "x" * 300)),
        "amount": Decimal(rng.randrange(-(10**9), 10**9)).scaleb(-2),
        "day": dt.date(1, 1, 1) + dt.timedelta(days=rng.randrange(3_652_000)),
        "moment": dt.datetime(1900, 1, 1) + dt.timedelta(microseconds=rng.randrange(10**16)),
        "flag": rng.random() < 0.5,
        "ratio": rng.choice((0.5, -1e300, 5e-324, float("inf"), 7.0)),
        "tags": [rng.randrange(100), None],
    }
    return {"id": id_, **{name: value if rng.random() < 0.8 else None for name, value in row.items()}}


def _lived(table: SourceTable, number: int, rng: random.Random) -> Iterator[Record]:
    """Insert a row, or change or delete one that a good record made."""
    if number % 3 == 0 and len(table.rows) > 2:
        id_ = rng.choice(table.rows)["id"]
        if rng.random() < 0.3:
            yield from table.delete({"id": id_})
        else:
            yield from table.update({"id": id_}, note=f"changed {number}", flag=None)
    else:
        yield from table.insert(_row(number, rng))


def _as_mutant(record: Record) -> Mutant:
    return Mutant(kind="heartbeat", key=record.key, value=record.value)
