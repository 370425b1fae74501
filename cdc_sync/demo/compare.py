"""Compares two images of one table, and says in words where they differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from decimal import Decimal

from cdc_sync.errors import SchemaError

NAN = "NaN"
"""Stands for a float that is no number, which equals nothing, not even itself."""

_ICEBERG = {
    "smallint": "int",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "double precision": "double",
    "boolean": "boolean",
    "text": "string",
    "character varying": "string",
    "uuid": "string",
    "json": "string",
    "jsonb": "string",
    "time without time zone": "string",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "bytea": "binary",
    # MariaDB; its boolean is a tinyint(1), its json a longtext.
    "tinyint": "int",
    "mediumint": "int",
    "int": "int",
    "int unsigned": "long",
    "year": "int",
    "float": "float",
    "double": "double",
    "varchar": "string",
    "char": "string",
    "longtext": "string",
    "enum": "string",
    "set": "string",
    "time": "string",
    "datetime": "timestamp",
    "timestamp": "timestamptz",
    "blob": "binary",
    "varbinary": "binary",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnImage:
    """A column's name and its type as the system it was read from writes it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableImage:
    """A whole table at one moment.

    Attributes:
        name: `schema.table`.
        columns: in their order.
        rows: in any order; values in the columns' order, see `plain`.
    """

    name: str
    columns: tuple[ColumnImage, ...]
    rows: tuple[tuple[object, ...], ...]

    def records(self) -> tuple[dict[str, object], ...]:
        """Return the rows as column name -> value."""
        names = [column.name for column in self.columns]
        return tuple(dict(zip(names, row, strict=True)) for row in self.rows)


def plain(value: object) -> object:
    """Give equal values of two readers one form: instants in UTC, tuples for lists, a word for NaN."""
    match value:
        case float() if value != value:
            return NAN
        case datetime() if value.tzinfo is not None:
            return value.astimezone(timezone.utc)
        case list() | tuple():
            return tuple(plain(item) for item in value)
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            return value


def iceberg_type(source: str) -> str:
    """Return the Iceberg type that a type of Postgres or MariaDB becomes; all as their systems write them.

    Raises:
        SchemaError: for a type that the demo does not use.
    """
    if source.endswith("[]"):
        return f"list<{iceberg_type(source[:-2])}>"
    if match := re.fullmatch(r"(?:numeric|decimal)\((\d+),(\d+)\)", source):
        return f"decimal({match[1]}, {match[2]})"
    # The length of varchar(n) and the labels of an enum stand behind the name, the precision of timestamp(n) inside it.
    name = re.sub(r"\((?:\d+|'.*')\)", "", source)
    if name not in _ICEBERG:
        raise SchemaError(f"Cannot compare a column of type {source!r}: no Iceberg type is known for it")
    return _ICEBERG[name]


def in_iceberg_types(source: TableImage) -> TableImage:
    """Return what the lake has to look like for this source."""
    return replace(source, columns=tuple(replace(column, type=iceberg_type(column.type)) for column in source.columns))


def differences(source: TableImage, lake: TableImage | None, key: tuple[str, ...]) -> tuple[str, ...]:
    """Compare columns, order, types and rows.

    Args:
        source: with the database's types.
        lake: with Iceberg types; None if there is no such table.
        key: names of the columns that tell rows apart.

    Returns:
        One sentence for each difference; empty means equal.
    """
    if lake is None:
        return (f"table {source.name} is not in the lake",)
    return (*column_differences(source, lake), *_row_differences(source, lake, key))


def column_differences(source: TableImage, lake: TableImage) -> tuple[str, ...]:
    """Compare names, order and types of the columns; one sentence for each difference."""
    return tuple(_column_differences(source, lake))


def _column_differences(source: TableImage, lake: TableImage) -> Iterator[str]:
    ours = {column.name: column for column in source.columns}
    theirs = {column.name: column for column in lake.columns}
    for name in ours.keys() - theirs.keys():
        yield f"column {name} is missing in the lake"
    for name in theirs.keys() - ours.keys():
        yield f"column {name} is in the lake only"
    shared = [name for name in ours if name in theirs]
    if shared != (other := [name for name in theirs if name in ours]):
        yield f"the order of columns is {', '.join(shared)} in the source, {', '.join(other)} in the lake"
    for name in shared:
        wanted, actual = iceberg_type(ours[name].type), theirs[name].type
        if wanted != actual:
            yield f"column {name} is {ours[name].type} in the source, which is {wanted}; in the lake it is {actual}"


def _row_differences(source: TableImage, lake: TableImage, key: tuple[str, ...]) -> Iterator[str]:
    if missing := [name for name in key if name not in {column.name for column in lake.columns}]:
        yield f"rows cannot be matched: key column {', '.join(missing)} is missing in the lake"
        return
    ours = {_key(record, key): record for record in source.records()}
    theirs = {_key(record, key): record for record in lake.records()}
    counts = Counter(_key(record, key) for record in lake.records())
    for identity, record in ours.items():
        if identity not in theirs:
            yield f"row {_identity(identity, key)} is missing in the lake"
        else:
            yield from _value_differences(record, theirs[identity], _identity(identity, key))
    for identity, count in counts.items():
        if identity not in ours:
            yield f"row {_identity(identity, key)} is in the lake only"
        if count > 1:
            yield f"row {_identity(identity, key)} is in the lake {count} times"


def _value_differences(ours: Mapping[str, object], theirs: Mapping[str, object], identity: str) -> Iterator[str]:
    for name, value in ours.items():
        if name in theirs and not same(value, theirs[name]):
            yield f"row {identity}: {name} is {shown(value)} in the source, {shown(theirs[name])} in the lake"


def same(ours: object, theirs: object) -> bool:
    """Whether two values are equal and of one kind: true is not 1, and 1.5 is not Decimal 1.5."""
    return type(ours) is type(theirs) and ours == theirs


def _key(record: Mapping[str, object], key: tuple[str, ...]) -> tuple[object, ...]:
    return tuple(record[name] for name in key)


def _identity(values: tuple[object, ...], key: tuple[str, ...]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in zip(key, values, strict=True))


def shown(value: object) -> str:
    """Write a value for people; values that differ look different."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case bytes():
            return f"\\x{value.hex()}"
        case datetime() | date():
            return value.isoformat(*([" "] if isinstance(value, datetime) else []))
        case Decimal():
            return format(value, "f")
        case tuple():
            return "{" + ", ".join(shown(item) for item in value) + "}"
        case str():
            return f"'{value}'"
        case _:
            return str(value)
