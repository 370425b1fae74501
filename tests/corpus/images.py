"""A table as an image, columns with their types and rows of plain values: of the lake, of memory, of the truth."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import assert_never

from cdc_sync.core.schema import types as tracked
from cdc_sync.core.schema.internal import InternalSchema
from tests.corpus.truth import OutOfRange, kind
from tests.lakes.table import Table

UNREPRESENTABLE = "no value of the target's type"
"""Stands where the truth holds a date or time that no target holds."""


def adjusted(name: str) -> str:
    """Return a name as `field.name.adjustment.mode=avro` writes it: Java sees an emoji as two characters."""
    found = re.sub(r"[^A-Za-z0-9_]", lambda match: "_" if match[0] <= "\uffff" else "__", name)
    return f"_{found}" if found[:1].isdigit() else found


def names_adjusted_in(text: str) -> str:
    """Return a text with every name between quotes adjusted."""
    return re.sub(r"'([^']*)'", lambda match: f"'{adjusted(match[1])}'", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Columns as (name, type in Iceberg's words) in order, and the rows."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def without_sides_of(self, columns: Iterable[str]) -> Image:
        """Return the image without old columns that stand beside those that took their names with another type."""
        side = re.compile(f"(?:{'|'.join(map(re.escape, columns))})__retired_\\d+")
        kept = [place for place, name in enumerate(self.names) if not side.fullmatch(name)]
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return Image(columns=tuple(self.columns[place] for place in kept), rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A table as the source says it is, in the source's own types and text.

    Attributes:
        columns: (name, source type) in order.
        defaults: each column's default in the source's words, None if it has none.
        key: names of the key's columns, empty if there is none.
    """

    database: str
    columns: tuple[tuple[str, str], ...]
    defaults: tuple[str | None, ...]
    key: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]

    @staticmethod
    def of(database: str, table: Mapping[str, Any]) -> Truth:
        """Read a table of `expected/*.json` or a line of `history.jsonl`."""
        columns = [
            (column["name"], column["type"], column["default"])
            if isinstance(column, dict)
            else (column[0], column[1], column[3])
            for column in table["columns"]
        ]
        return Truth(
            database=database,
            columns=tuple((name, type_) for name, type_, _ in columns),
            defaults=tuple(default for _, _, default in columns),
            key=tuple(table["primary_key"] or ()),
            rows=tuple(tuple(row) for row in table["rows"]),
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def only(self, names: Iterable[str]) -> Truth:
        """Return the table without its other columns."""
        kept = [index for index, name in enumerate(self.names) if name in set(names)]
        return Truth(
            database=self.database,
            columns=tuple(self.columns[index] for index in kept),
            defaults=tuple(self.defaults[index] for index in kept),
            key=self.key,
            rows=tuple(tuple(row[index] for index in kept) for row in self.rows),
        )

    def with_adjusted_names(self) -> Truth:
        """Return the table as a connector that writes Avro names its columns."""
        columns = tuple((adjusted(name), type_) for name, type_ in self.columns)
        return replace(self, columns=columns, key=tuple(map(adjusted, self.key)))

    def value(self, type_: str, text: str | None) -> Any:
        """Return one cell as a value to compare."""
        try:
            return None if text is None else kind(self.database, type_).of_text(text)
        except OutOfRange:
            return UNREPRESENTABLE

    def values(self) -> tuple[tuple[Any, ...], ...]:
        """Return the rows as values to compare."""
        types = [type_ for _, type_ in self.columns]
        return tuple(tuple(self.value(*cell) for cell in zip(types, row, strict=True)) for row in self.rows)

    def of_target(self, image: Image) -> tuple[tuple[Any, ...], ...]:
        """Return a target's rows in the same form; its columns are the table's."""
        kinds = [kind(self.database, type_) for _, type_ in self.columns]
        return tuple(
            tuple(found.of_target(value) for found, value in zip(kinds, row, strict=True)) for row in image.rows
        )

    def structure_differences(self, image: Image) -> list[str]:
        """Say how an image's columns differ in name, order or type; empty if they do not."""
        if self.names != image.names:
            return [f"columns: expected {', '.join(self.names)}; found {', '.join(image.names)}"]
        return [
            f"column {name}: a {source} must be {' or '.join(types)}, found {found}"
            for (name, source), (_, found) in zip(self.columns, image.columns, strict=True)
            if found not in (types := kind(self.database, source).types)
        ]


def lake_image(table: Table) -> Image:
    """Turn what a reader of a format shows into an image."""
    return Image(columns=table.columns, rows=_plain_rows(table.columns, table.rows))


def memory_image(schema: InternalSchema, rows: Sequence[Mapping[str, Any]]) -> Image:
    """Turn a table of the memory target into an image."""
    columns = tuple((column.name, _tracked_text(column.type)) for column in schema.columns)
    return Image(columns=columns, rows=_plain_rows(columns, rows))


def _plain_rows(columns: Sequence[tuple[str, str]], rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[Any, ...], ...]:
    plain = [tuple(_plain(row[name], zoned="timestamptz" in type_) for name, type_ in columns) for row in rows]
    return tuple(sorted(plain, key=repr))


def _plain(value: Any, *, zoned: bool) -> Any:
    """Bring what PyArrow and PySpark return into one form; an instant that does not say its zone is in UTC."""
    match value:
        case bytearray():
            return bytes(value)
        case list():
            return [_plain(item, zoned=zoned) for item in value]
        case dict():
            return {name: _plain(item, zoned=zoned) for name, item in value.items()}
        case dt.datetime() if zoned:
            return value.replace(tzinfo=dt.timezone.utc) if value.tzinfo is None else value.astimezone(dt.timezone.utc)
        case _:
            return value


def _tracked_text(type_: tracked.DataType) -> str:
    """Return a tracked type in Iceberg's words."""
    match type_:
        case tracked.BooleanType():
            return "boolean"
        case tracked.IntegerType(bits=bits):
            return "long" if bits == 64 else "int"
        case tracked.FloatType(bits=bits):
            return "double" if bits == 64 else "float"
        case tracked.DecimalType(precision=precision, scale=scale):
            return f"decimal({precision}, {scale})"
        case tracked.StringType():
            return "string"
        case tracked.BinaryType():
            return "binary"
        case tracked.DateType():
            return "date"
        case tracked.TimestampType(zoned=zoned):
            return "timestamptz" if zoned else "timestamp"
        case tracked.StructType(fields=fields):
            return f"struct<{', '.join(f'{field.name}: {_tracked_text(field.type)}' for field in fields)}>"
        case tracked.ListType(element=element):
            return f"list<{_tracked_text(element)}>"
        case tracked.MapType(key=key, value=value):
            return f"map<{_tracked_text(key)}, {_tracked_text(value)}>"
        case _:
            assert_never(type_)
