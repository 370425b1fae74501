"""A table of all kinds of columns, at the source and as events of it."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import psycopg

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
    SourceTable,
    array,
    column,
    decimal,
)

COLUMNS = (
    ("id", "integer primary key", column("id", INT32, optional=False)),
    ("note", "text", column("note", TEXT)),
    ("code", "varchar(20)", column("code", TEXT)),
    ("amount", "numeric(12,2)", column("amount", decimal(12, 2))),
    ("big", "bigint", column("big", INT64)),
    ("ratio", "double precision", column("ratio", FLOAT64)),
    ("flag", "boolean", column("flag", BOOLEAN)),
    ("day", "date", column("day", DATE)),
    ("at", "timestamp", column("at", TIMESTAMP)),
    ("seen", "timestamptz", column("seen", TIMESTAMP_TZ)),
    ("data", "bytea", column("data", BYTES)),
    ("ref", "uuid", column("ref", UUID)),
    ("doc", "json", column("doc", JSON)),
    ("tags", "text[]", column("tags", array(TEXT))),
)
"""Name, type at the source, type in events."""
NAMES = tuple(name for name, _, _ in COLUMNS)
_FIRST = datetime(2001, 2, 3, 4, 5, 6)


def rows(count: int, seed: int = 7) -> Iterator[tuple[Any, ...]]:
    """Yield rows with ids from 1 on; every seventh value of each column is NULL."""
    chance = random.Random(seed)
    for number in range(1, count + 1):
        at = _FIRST + timedelta(microseconds=chance.randrange(10**15))
        row: list[Any] = [
            number,
            chance.choice(("", "a", "Ü ☀", "x" * 40)) + str(chance.randrange(1000)),
            f"c{chance.randrange(10**6)}",
            Decimal(chance.randrange(-(10**11), 10**11)) / 100,
            chance.randrange(-(2**63), 2**63),
            chance.random() * 10 ** chance.randrange(-5, 9),
            chance.random() < 0.5,
            at.date(),
            at,
            at.replace(tzinfo=timezone.utc),
            chance.randbytes(12),
            str(uuid.UUID(int=chance.getrandbits(128))),
            f'{{"n": {number}}}',
            ["t", None, str(number)],
        ]
        for place in range(1, len(row)):
            if (number + place) % 7 == 0:
                row[place] = None
        yield tuple(row)


def create(connection: psycopg.Connection[Any], table: str, data: Sequence[tuple[Any, ...]]) -> None:
    """Make a table of these columns and fill it."""
    types = ", ".join(f"{name} {type_}" for name, type_, _ in COLUMNS)
    connection.execute(f"create table {table} ({types})".encode())
    with connection.cursor() as cursor, cursor.copy(f"copy {table} from stdin".encode()) as copy:
        for row in data:
            copy.write_row(row)


def events(table: str, data: Sequence[tuple[Any, ...]], *, prefix: str) -> SourceTable:
    """Return the same rows as a connector's events."""
    found = SourceTable(
        table, [shape for _, _, shape in COLUMNS], database="postgres", prefix=prefix, null_is_default=False
    )
    for row in data:
        found.insert(dict(zip(NAMES, row, strict=True)))
    return found


@dataclass(frozen=True, slots=True)
class Planted:
    """One difference: what is done to the source, and where it has to be found.

    Attributes:
        found: id of the row and name of the column; the column None where one side has no such row.
    """

    statement: str
    found: tuple[tuple[int, str | None], ...]

    def on(self, table: str) -> str:
        return self.statement.replace("{t}", table)


def planted(last: int) -> tuple[Planted, ...]:
    """Return twenty differences of all kinds; `last` is the highest id. The rows are those of `fixed_rows`."""

    def change(id_: int, name: str, value: str) -> Planted:
        return Planted(f"update {{t}} set {name} = {value} where id = {id_}", ((id_, name),))

    return (
        Planted("delete from {t} where id = 10", ((10, None),)),
        Planted(f"insert into {{t}} (id) values ({last + 1})", ((last + 1, None),)),
        Planted(f"update {{t}} set id = {last + 2} where id = 11", ((11, None), (last + 2, None))),
        change(20, "note", "''"),
        change(21, "note", "null"),
        change(22, "note", "note || ' '"),
        change(23, "code", "upper(code)"),
        change(24, "code", "'e' || U&'\\0301'"),
        change(25, "amount", "amount + 0.01"),
        change(26, "big", "big + 1"),
        change(27, "ratio", "0.3"),
        change(28, "ratio", "'-0'"),
        change(29, "flag", "not flag"),
        change(30, "day", "day + 1"),
        change(31, "at", "at + interval '1 microsecond'"),
        change(32, "seen", "seen - interval '1 microsecond'"),
        change(33, "data", r"data || '\x00'"),
        change(34, "ref", "'00000000-0000-0000-0000-000000000001'"),
        change(35, "doc", """'{"n":  35}'"""),
        change(36, "tags", "array['t', '', '36']"),
    )


def fixed_rows(count: int) -> list[tuple[Any, ...]]:
    """Return rows of which those that `planted` changes hold the value that is nearest to the change."""
    found = list(rows(count))
    at = datetime(2024, 2, 29, 12, 34, 56, 123456)
    nearest: dict[int, dict[str, Any]] = {
        20: {"note": None},
        21: {"note": ""},
        22: {"note": "n"},
        23: {"code": "a"},
        24: {"code": "é"},
        25: {"amount": Decimal("9999999999.98")},
        26: {"big": 2**53},
        27: {"ratio": 0.1 + 0.2},
        28: {"ratio": 0.0},
        29: {"flag": True},
        30: {"day": date(2024, 2, 28)},
        31: {"at": at},
        32: {"seen": at.replace(tzinfo=timezone.utc)},
        33: {"data": b"\x00"},
        34: {"ref": "00000000-0000-0000-0000-000000000000"},
        35: {"doc": '{"n": 35}'},
        36: {"tags": ["t", None, "36"]},
    }
    for number, values in nearest.items():
        row = dict(zip(NAMES, found[number - 1], strict=True)) | values
        found[number - 1] = tuple(row[name] for name in NAMES)
    return found
