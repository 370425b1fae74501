"""The one table of conversions: Connect schema → wire type → tracked type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import assert_never

from cdc_sync.core.debezium.connect import ConnectSchema, structure
from cdc_sync.core.debezium.literals import canonical_default
from cdc_sync.core.debezium.rules import Rule
from cdc_sync.core.debezium.type_table import CONVERSIONS
from cdc_sync.core.debezium.wire import (
    MAX_DIGITS,
    EventSchema,
    WireBigDecimal,
    WireBits,
    WireBoolean,
    WireBytes,
    WireColumn,
    WireDate,
    WireDateText,
    WireDecimal,
    WireFloat,
    WireInstant,
    WireInteger,
    WireList,
    WireMap,
    WireStruct,
    WireText,
    WireTime,
    WireTimestamp,
    WireTimestampText,
    WireType,
    WireUnsupported,
    WireVariableDecimal,
)
from cdc_sync.core.schema.observed import ObservedColumn, ObservedSchema
from cdc_sync.core.schema.sent import Sent
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    Field,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    StructType,
)
from cdc_sync.errors import WireError

ROUTER_FIELD = "__dbz__physicalTableIdentifier"
"""What ByLogicalTableRouter adds to record keys, which is no column (`key.field.name`)."""

_RULES: dict[tuple[str, str], Rule] = {}
for _row in CONVERSIONS:
    if _RULES.setdefault(_row.key, _row.rule) is not _row.rule:
        raise AssertionError(f"two rules for {_row.key}")


_OF_THE_TYPE = ("allowed", "connect.decimal.precision", "length", "scale")
_NO_LIMIT = 2**31 - 1


def wire_type(schema: ConnectSchema) -> WireType:
    """Return what values of a Connect schema look like; never fails, see `WireUnsupported`.

    A name on another Connect type than the table's is the work of a transform: the Connect type is trusted, as for
    names that are not in the table.
    """
    rule = _RULES.get((schema.type, schema.name or "")) or _RULES[schema.type, ""]
    return rule(schema, wire_type)


def wire_column(schema: ConnectSchema) -> WireColumn:
    """Return the column a field of the row struct describes."""
    wire = wire_type(schema)
    default, suspect = canonical_default(wire, schema.default)
    return WireColumn(
        name=schema.parameters.get("__debezium.source.column.name") or schema.field or "",
        field=schema.field or "",
        wire=wire,
        optional=schema.optional,
        comment=_comment(schema),
        default=default,
        suspect_default=suspect,
        structure=structure(schema),
        sent=_sent(schema),
    )


def _sent(schema: ConnectSchema) -> Sent:
    given, inner = schema.parameters, schema
    depth = 0
    while inner.type == "array" and inner.items is not None:
        inner, depth = inner.items, depth + 1
    return Sent(
        type="array<" * depth + inner.type + ">" * depth,
        name=inner.name or "",
        parameters=tuple((name, inner.parameters[name]) for name in _OF_THE_TYPE if name in inner.parameters),
        source=_propagated(given),
    )


def _propagated(given: Mapping[str, str]) -> str:
    """Return the source's type as the connector propagates it (`column.propagate.source.type`), empty if it does not.

    A size that no type has stands for none.
    """
    type_, *sizes = (given.get(f"__debezium.source.column.{part}", "") for part in ("type", "length", "scale"))
    told = ",".join(size for size in sizes if size.isdecimal() and int(size) < _NO_LIMIT)
    return f"{type_}({told})" if type_ and told else type_


def _comment(schema: ConnectSchema) -> str | None:
    # The `doc` of a semantic struct describes the type: "Variable scaled decimal", "Geometry (POINT)".
    doc = None if schema.type == "struct" else schema.doc
    return doc or schema.parameters.get("__debezium.source.column.comment") or None


def logical_type(wire: WireType) -> DataType:
    """Return the tracked type that holds every value of a wire type.

    All nested ids are 0, and every member is optional whatever the connector says: as with columns, targets never
    enforce NOT NULL.

    Raises:
        WireError: for `WireUnsupported`.
    """
    match wire:
        case WireBoolean():
            return BOOLEAN
        case WireInteger(bits=bits):
            return IntegerType(bits=bits)
        case WireFloat(bits=bits):
            return FloatType(bits=bits)
        case WireText() | WireTime() | WireVariableDecimal():
            return STRING
        case WireBytes() | WireBits():
            return BINARY
        case WireDecimal(precision=precision, scale=scale):
            return DecimalType(precision=precision or MAX_DIGITS, scale=scale)
        case WireBigDecimal(precision=precision):
            return STRING if precision is None else DecimalType(precision=precision, scale=0)
        case WireDate() | WireDateText():
            return DATE
        case WireTimestamp() | WireTimestampText():
            return TIMESTAMP
        case WireInstant():
            return TIMESTAMP_TZ
        case WireList(element=element):
            return ListType(element_id=0, element=logical_type(element))
        case WireMap(key=key, value=value):
            return MapType(key_id=0, key=logical_type(key), value_id=0, value=logical_type(value))
        case WireStruct(fields=fields):
            return StructType(fields=tuple(Field(id=0, name=f.name, type=logical_type(f.type)) for f in fields))
        case WireUnsupported(name=name, reason=reason):
            raise WireError(f"Cannot read a {name}: {reason}")
        case _:
            assert_never(wire)


def observed(schema: EventSchema) -> ObservedSchema:
    """Return the columns and the key as the schema comparison sees them.

    An unsupported column stands there as text: the plan refuses its table before the type matters.
    """
    return ObservedSchema(columns=tuple(_observed(column) for column in schema.columns), key=schema.key)


def _observed(column: WireColumn) -> ObservedColumn:
    unsupported = isinstance(column.wire, WireUnsupported)
    return ObservedColumn(
        name=column.name,
        type=STRING if unsupported else logical_type(column.wire),
        optional=column.optional,
        comment=column.comment,
        default=column.default,
        suspect_default=column.suspect_default,
        sent=column.sent,
    )


def key_columns(key: ConnectSchema | None, columns: Sequence[WireColumn]) -> tuple[str, ...]:
    """Return the names of the columns that a record key's fields stand for; empty if there is no key.

    Raises:
        WireError: if the key is not a struct.
    """
    if key is None:
        return ()
    if key.type != "struct":
        raise WireError(f"Cannot read key: it is a {key.type}, not a struct")
    names = {column.field: column.name for column in columns}
    fields = (member.field or "" for member in key.members)
    return tuple(names.get(field, field) for field in fields if field != ROUTER_FIELD)


def key_fields(key: ConnectSchema | None) -> tuple[str, ...]:
    """Return the names of a record key's fields that stand for columns; empty if there is no key.

    Raises:
        WireError: if the key is not a struct.
    """
    if key is None:
        return ()
    if key.type != "struct":
        raise WireError(f"Cannot read key: it is a {key.type}, not a struct")
    return tuple(member.field or "" for member in key.members if member.field != ROUTER_FIELD)
