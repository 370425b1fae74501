"""Columns in which a NULL may stand for a value that was not sent, or whose values Debezium does not read.

Postgres leaves an unchanged value out of an update where it is stored out of line (TOAST). The connector shows a
placeholder in its place for texts, bytes, JSON, hstore, and arrays of `integer`, `bigint`, `date`, `uuid`, `bytea`,
`json`, and of `text` and `character varying` without a length; for any other type it shows NULL. Source: Debezium,
`UnchangedToastedReplicationMessageColumn`, up to 3.6; tried against Postgres 15.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cdc_sync.core.debezium.wire import (
    EventSchema,
    WireBytes,
    WireColumn,
    WireDate,
    WireInteger,
    WireList,
    WireStruct,
    WireText,
    WireType,
)

_NO_TYPES: Mapping[str, str] = MappingProxyType({})
_SEMANTICS = ("io.debezium.data.Json", "io.debezium.data.Uuid")
_TEXTS = ("_text", "_varchar", "text[]", "character varying[]")
"""Source types, in small letters, of arrays of texts that have a placeholder."""
_STRUCTS = tuple(
    f"io.debezium.data.{name}" for name in ("geometry.Geometry", "geometry.Geography", "SparseDoubleVector")
)
"""Structs of what may be stored out of line; points, circles and lines never are."""


def null_may_be_unsent(schema: EventSchema, column: WireColumn) -> bool:
    """Return whether a NULL in an update may stand for a value that did not change and was left out.

    Args:
        schema: of the event; a connector that is not known may be Postgres'.
        column: one of its columns.
    """
    if schema.connector not in (None, "postgresql") or not column.optional:
        return False
    return not _has_placeholder(column.wire, "" if column.sent is None else column.sent.source.lower())


def unsent_fields(schema: EventSchema) -> frozenset[str]:
    """Return the fields of an event's columns in which a NULL may be one that was left out."""
    return frozenset(column.field for column in schema.columns if null_may_be_unsent(schema, column))


def _has_placeholder(wire: WireType, source: str) -> bool:
    """Whether the connector shows a placeholder for a type, or its values are never left out."""
    match wire:
        case WireList(element=WireText(semantic=semantic)):
            return semantic in _SEMANTICS or source in _TEXTS
        case WireList(element=WireInteger(bits=bits)):
            return bits in (32, 64)
        case WireList(element=WireDate() | WireBytes()):
            return True
        case WireList():
            return False
        case WireStruct(semantic=semantic):
            return semantic not in _STRUCTS
        case _:
            return True


def may_lose_elements(schema: EventSchema, column: WireColumn) -> bool:
    """Return whether an array of NULLs may be one of several dimensions, whose elements Debezium does not read."""
    is_read = schema.connector not in (None, "postgresql")
    return not is_read and isinstance(column.wire, WireList) and column.wire.element_optional


def fields_that_lose_elements(schema: EventSchema) -> frozenset[str]:
    """Return the fields of an event's columns in which an array of NULLs may be one of several dimensions."""
    return frozenset(column.field for column in schema.columns if may_lose_elements(schema, column))


def unsigned_fields(schema: EventSchema, types: Mapping[str, str] = _NO_TYPES) -> frozenset[str]:
    """Return the fields of 64 bits whose column is unsigned at the source, where half of its numbers arrive negative.

    That is what `bigint.unsigned.handling.mode=long`, the default, makes of them (Debezium, MySQL and MariaDB).

    Args:
        types: the source's own types by column, where something but the event tells them.
    """
    return frozenset(
        column.field
        for column in schema.columns
        if column.wire == WireInteger(bits=64) and "UNSIGNED" in _source_type(column, types).upper()
    )


def unread_fields(schema: EventSchema, types: Mapping[str, str] = _NO_TYPES) -> frozenset[str]:
    """Return the fields that the stream always shows as NULL: those of Postgres' type `name`; snapshots have values.

    Args:
        types: as for `unsigned_fields`.
    """
    return frozenset(column.field for column in schema.columns if _source_type(column, types).lower() == "name")


def _source_type(column: WireColumn, types: Mapping[str, str]) -> str:
    told = "" if column.sent is None else column.sent.source
    return told or types.get(column.name, "")


def may_be_in_doubt(schema: EventSchema) -> bool:
    """Return whether an event's columns may hold what one of these functions is about."""
    return bool(unsent_fields(schema) or fields_that_lose_elements(schema))
