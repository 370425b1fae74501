"""The history that every format and regime goes through: thirty-two steps of one table, and what it holds at the end.

The table is a model of a Postgres table (`cdc_sync.testing`): what it holds at the end is what its statements say, not
what any reader found. Every change of columns is told by a logical message, as DDL capture does, so that renames, swaps
and names used again are proven. Changes that rewrite all rows come first: the files that they leave stay to the end,
under columns that are added, renamed, swapped, dropped and widened.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.testing import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    JSON,
    TEXT,
    TIMESTAMP,
    TIMESTAMP_TZ,
    UUID,
    Record,
    SourceTable,
    array,
    column,
    decimal,
    source_block,
    struct,
)

_MESSAGE = {
    "type": "struct",
    "fields": [],
    "optional": False,
    "name": "io.debezium.connector.postgresql.MessageValue",
}
_POSTGRES = {
    TEXT.type: "text",
    BOOLEAN.type: "boolean",
    INT16.type: "smallint",
    INT32.type: "integer",
    INT64.type: "bigint",
    FLOAT32.type: "real",
    FLOAT64.type: "double precision",
    BYTES.type: "bytea",
}
_NAMED = {
    DATE.name: "date",
    TIMESTAMP.name: "timestamp without time zone",
    TIMESTAMP_TZ.name: "timestamp with time zone",
    UUID.name: "uuid",
    JSON.name: "jsonb",
}
_TEXTS = ConnectSchema(type="map", keys=TEXT, values=replace(TEXT, optional=True))
_POINT = struct("place", column("x", FLOAT64), column("y", INT32))
_WIDER_POINT = struct("place", column("x", FLOAT64), column("y", INT32), column("label", TEXT))
_BEGAN = datetime(2024, 2, 29, 23, 59, 59, 123456)


class ToldTable(SourceTable):
    """A table whose source tells of every change of its columns.

    Attributes:
        messages: everything told so far, in order; records of the topic `<prefix>.message`.
    """

    def __init__(self, name: str, columns: Sequence[ConnectSchema], *, prefix: str) -> None:
        super().__init__(name, columns, prefix=prefix, null_is_default=False)
        self.messages: list[Record] = []
        self._numbers = {item.field or "": number for number, item in enumerate(columns, 1)}
        self._next = len(columns) + 1
        self._quiet = False

    def rename_column(self, old: str, new: str) -> None:
        """RENAME COLUMN, and a message."""
        self._numbers = {new if name == old else name: number for name, number in self._numbers.items()}
        self._quiet = True
        super().rename_column(old, new)
        self._quiet = False
        self._tell(f"alter table {self.id.table} rename column {old} to {new}")

    def drop_column(self, name: str) -> None:
        """DROP COLUMN, and a message."""
        super().drop_column(name)
        del self._numbers[name]
        self._tell(f"alter table {self.id.table} drop column {name}")

    def add_column(self, added: ConnectSchema, *, initial: object = None) -> None:
        """ADD COLUMN, and a message."""
        super().add_column(added, initial=initial)
        self._numbers[added.field or ""] = self._next
        self._next += 1
        self._tell(f"alter table {self.id.table} add column {added.field} {_type_text(added)}")

    def alter_column(
        self,
        name: str,
        change: Callable[[ConnectSchema], ConnectSchema],
        *,
        convert: Callable[[object], object] | None = None,
    ) -> None:
        """ALTER COLUMN, and a message."""
        super().alter_column(name, change, convert=convert)
        if not self._quiet:
            changed = next(item for item in self.columns if item.field == name)
            self._tell(f"alter table {self.id.table} alter column {name} type {_type_text(changed)}")

    def _tell(self, query: str) -> None:
        types = {item.field: item for item in self.columns}
        content = {
            "tag": "ALTER TABLE",
            "object": f"{self.id.schema}.{self.id.table}",
            "relid": "16409",
            "cols": [
                {"attnum": number, "name": name, "type": _type_text(types[name]), "notnull": not types[name].optional}
                for name, number in sorted(self._numbers.items(), key=lambda item: item[1])
            ],
            "query": query,
        }
        with self.wal.transaction():
            source = source_block(
                self.id,
                prefix=self._prefix,
                lsn=self.wal.advance(),
                last_commit=self.wal.last_commit,
                tx_id=self.wal.tx_id,
                ts_us=self.wal.now_us,
                snapshot="false",
            )
        message = {"prefix": "ddl", "content": base64.b64encode(json.dumps(content).encode()).decode()}
        payload = {"op": "m", "ts_ms": 0, "source": source | {"schema": "", "table": ""}, "message": message}
        value = json.dumps({"schema": _MESSAGE, "payload": payload}, separators=(",", ":"))
        self.messages.append(Record(key=None, value=value.encode()))


def _type_text(schema: ConnectSchema) -> str:
    if schema.type == "array":
        return f"{_type_text(schema.items or TEXT)}[]"
    if schema.name == decimal(1, 0).name:
        return f"numeric({schema.parameters['connect.decimal.precision']},{schema.parameters['scale']})"
    if schema.type == "struct":
        return f"{schema.name}_of_{len(schema.members)}"  # a type of its own for each form
    return _NAMED.get(schema.name or "") or _POSTGRES.get(schema.type) or schema.type


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One batch: what is done to the table since the one before."""

    title: str
    do: Callable[[ToldTable], object]


def new_table(prefix: str, name: str = "items") -> ToldTable:
    """Return the table as it is created, empty."""
    return ToldTable(
        name,
        [
            column("id", INT32, optional=False),
            column("a", TEXT),
            column("b", TEXT),
            column("qty", INT32),
            column("price", decimal(10, 2)),
            column("flag", BOOLEAN),
            column("small", INT16),
            column("big", INT64),
            column("ratio", FLOAT32),
            column("real4", FLOAT32),
            column("amount", FLOAT64),
            column("born", DATE),
            column("at", TIMESTAMP),
            column("seen", TIMESTAMP_TZ),
            column("data", BYTES),
            column("ref", UUID),
            column("doc", JSON),
            column("code", TEXT),
            column("tags", array(TEXT)),
            column("nums", array(INT32)),
            column("attrs", _TEXTS),
            column("place", _POINT),
            column("huge", decimal(38, 10)),
            column("due", DATE),
        ],
        prefix=prefix,
    )


def _fill(first: int, last: int) -> Callable[[ToldTable], None]:
    """Insert rows; every value another way round of the number, and in each row another column is NULL."""

    def do(table: ToldTable) -> None:
        for number in range(first, last):
            row = {item.field or "": _value(item, number) for item in table.columns if item.field != "id"}
            names = [name for name in row if name != "level"]
            row[names[number % len(names)]] = None
            table.insert({"id": number, **row})

    return do


def _value(item: ConnectSchema, number: int) -> object:
    """Return a value of a column's type that the column beside it does not have too."""
    match item.name or item.type:
        case "string":
            return str(number * 7) if item.field == "code" else f"{item.field} {number} é𝄞"
        case "boolean":
            return number % 3 == 0
        case "int16" | "int32":
            return number * 3 - 40
        case "int64":
            return number * 1_000_000_007 - 2**40
        case "float" if item.field == "real4":
            return number + 0.1
        case "float":
            return number + 0.25
        case "double":
            return number * 1e-3
        case "bytes":
            return bytes([0, number % 256, 255])
        case "array":
            return ["t", None, f"{number}"] if item.items and item.items.type == "string" else [number, None, -number]
        case "map":
            return {"k": f"v{number}", "none": None}
        case "place":
            point: dict[str, object] = {"x": number / 4, "y": number}
            return point if len(item.members) == 2 else {**point, "label": f"l{number}"}
        case DATE.name:
            return date(1970, 1, 1) + timedelta(days=number * 100 - 300)
        case TIMESTAMP.name:
            return _BEGAN + timedelta(hours=number, microseconds=number)
        case TIMESTAMP_TZ.name:
            return (_BEGAN - timedelta(days=number, microseconds=number)).replace(tzinfo=timezone.utc)
        case UUID.name:
            return f"00000000-0000-4000-8000-{number:012d}"
        case JSON.name:
            return f'{{"n": {number}}}'
        case "org.apache.kafka.connect.data.Decimal":
            return Decimal(number * 12_345 - 100_000).scaleb(-int(item.parameters["scale"]))
    raise ValueError(f"no value for {item}")


def _swap(table: ToldTable) -> None:
    for old, new in (("a", "swapping"), ("b", "a"), ("swapping", "b")):
        table.rename_column(old, new)
    _fill(200, 203)(table)


def _empty(table: ToldTable) -> None:
    table.truncate()
    _fill(0, 24)(table)


def _alter(name: str, type_: ConnectSchema, convert: Callable[[object], object] | None = None) -> Callable[..., None]:
    def do(table: ToldTable) -> None:
        table.alter_column(name, lambda known: column(name, type_, optional=known.optional), convert=convert)
        table.update({"id": 8}, **{name: _value(column(name, type_), 8)})

    return do


def _unless_null(convert: Callable[[object], object]) -> Callable[[object], object]:
    return lambda value: None if value is None else convert(value)


def _readd(name: str, type_: ConnectSchema) -> Callable[[ToldTable], None]:
    """Add a column under a name that a dropped one had."""

    def do(table: ToldTable) -> None:
        table.add_column(column(name, type_))
        table.update({"id": 9}, **{name: _value(column(name, type_), 9)})

    return do


def _drop(name: str) -> Callable[[ToldTable], None]:
    def do(table: ToldTable) -> None:
        table.drop_column(name)
        table.delete({"id": 10 + len(table.columns) % 4})
        table.update({"id": 4}, qty=len(table.columns))

    return do


def _rename(*names: tuple[str, str]) -> Callable[[ToldTable], None]:
    def do(table: ToldTable) -> None:
        for old, new in names:
            table.rename_column(old, new)
        table.update({"id": 5}, **{names[0][1]: "behind a rename"})

    return do


def _add_level(table: ToldTable) -> None:
    table.add_column(column("level", INT32, optional=False, default=7), initial=7)
    table.update({"id": 6}, level=8)


def _add_note(table: ToldTable) -> None:
    table.add_column(column("note", TEXT))
    table.update({"id": 7}, note="noted")


def _move_keys(table: ToldTable) -> None:
    table.update({"id": 1}, id=1001, a="moved")
    table.update({"id": 2}, id=1002)
    table.update({"id": 1002}, id=2)


def _grow_place(table: ToldTable) -> None:
    """Give a struct one more field; no event tells what older rows hold in it, so the source sends them again."""
    table.alter_column("place", lambda _: column("place", _WIDER_POINT))
    for row in table.rows:
        place = None if row["place"] is None else _value(column("place", _WIDER_POINT), int(str(row["id"])))
        table.update({"id": row["id"]}, place=place)


def _trade(table: ToldTable) -> None:
    for number in (3, 14, 15):
        table.update({"id": number}, qty=number, real4=None)
    table.delete({"id": 16})
    table.insert(id=16, a="back")
    table.delete({"id": 17})
    table.update({"id": 18}, tags=[], nums=[1], attrs={}, data=b"", a="")


def _extremes(table: ToldTable) -> None:
    table.insert(
        id=2**31 - 1,
        qty=-(2**31),
        big=2**63 - 1,
        price=Decimal("-99999999.99"),
        huge=Decimal("9999999999999999999999999999.9999999999"),
        amount=1.7976931348623157e308,
        real4=1.17549435e-38,
        born=date(1, 1, 1),
        due=date(9999, 12, 31),
        at=datetime(1, 1, 1),
        seen=datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
    )
    table.insert(id=-1, amount=float("nan"), real4=float("inf"), ratio=float("-inf"), at=datetime(1582, 10, 4, 1, 2, 3))
    table.insert(id=-2)


STEPS = (
    Step(title="rows", do=_fill(0, 24)),
    Step(title="changed and deleted rows", do=_trade),
    Step(title="emptied, and filled again", do=_empty),
    Step(title="the least and the greatest values, and only NULLs", do=_extremes),
    Step(title="bigint becomes text", do=_alter("big", TEXT, _unless_null(str))),
    Step(title="text becomes integer", do=_alter("code", INT32, _unless_null(lambda value: int(str(value))))),
    Step(
        title="date becomes timestamp",
        do=_alter("due", TIMESTAMP, _unless_null(lambda day: datetime(day.year, day.month, day.day))),  # type: ignore[attr-defined]
    ),
    Step(title="numeric(10,2) becomes numeric(16,4)", do=_alter("price", decimal(16, 4))),
    Step(title="a field added to a struct, all rows sent again", do=_grow_place),
    Step(title="rows behind the rewrites", do=_fill(30, 54)),
    Step(title="a column added", do=_add_note),
    Step(title="a column with a default added", do=_add_level),
    Step(title="a column renamed", do=_rename(("note", "remark"))),
    Step(title="keys changed, one there and back", do=_move_keys),
    Step(title="a column dropped", do=_drop("flag")),
    Step(title="rows changed in between", do=_trade),
    Step(title="its name used again, by its type", do=_readd("flag", BOOLEAN)),
    Step(title="two names swapped", do=_swap),
    Step(title="int widened", do=_alter("qty", INT64)),
    Step(title="smallint widened", do=_alter("small", INT32)),
    Step(title="float widened", do=_alter("ratio", FLOAT64)),
    Step(title="numeric widened", do=_alter("price", decimal(20, 4))),
    Step(title="rows behind the widenings", do=_fill(60, 70)),
    Step(title="another column dropped", do=_drop("ref")),
    Step(title="its name used again, by another type", do=_readd("ref", INT32)),
    Step(title="a chain of renames", do=_rename(("b", "c"), ("a", "b"))),
    Step(title="elements of a list widened", do=_alter("nums", array(INT64))),
    Step(title="a name of before taken by a new column", do=_readd("a", TEXT)),
    Step(title="a column dropped that was renamed", do=_drop("remark")),
    Step(title="and its first name used again", do=_readd("note", TEXT)),
    Step(title="rows behind all changes", do=_fill(80, 90)),
    Step(title="changed and deleted rows at the end", do=lambda table: table.update({"id": 8}, b=None)),
)


def played(prefix: str) -> ToldTable:
    """Return the table as it is at the end."""
    table = new_table(prefix)
    for step in STEPS:
        step.do(table)
    return table
