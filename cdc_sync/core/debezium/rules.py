"""How Connect schemas become wire types; `debezium.type_table` says which rule is whose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.wire import (
    MAX_DIGITS,
    WireBigDecimal,
    WireBits,
    WireBytes,
    WireDate,
    WireDecimal,
    WireField,
    WireFloat,
    WireInteger,
    WireList,
    WireMap,
    WireStruct,
    WireText,
    WireTime,
    WireTimestamp,
    WireType,
    WireUnsupported,
    WireVariableDecimal,
)

Nested: TypeAlias = Callable[[ConnectSchema], WireType]
Rule: TypeAlias = Callable[[ConnectSchema, Nested], WireType]
"""From a schema, and the function for the schemas inside it, to what its values look like."""
MAX_SCALE = 16_383
"""Digits after the point that Postgres, the most generous of the sources, can send."""
# Postgres keeps the scale of a column in 11 bits and allows -1000 to 1000.
_POSTGRES_SCALES, _POSTGRES_MAX_SCALE = 2048, 1000


def always(wire: WireType) -> Rule:
    """Return the rule of a type that is the same whatever else the schema says."""
    return lambda _schema, _nested: wire


def text(schema: ConnectSchema, _: Nested) -> WireType:
    """Keep text, and remember what it is."""
    return WireText(semantic=schema.name)


def decimal(schema: ConnectSchema, _: Nested) -> WireType:
    """Read `scale` and `connect.decimal.precision`."""
    name = "decimal"
    try:
        scale = int(schema.parameters["scale"])
        precision = int(schema.parameters.get("connect.decimal.precision", "0"))
    except (KeyError, ValueError):
        return WireUnsupported(name=name, reason="its scale or precision is not a number")
    if abs(scale) > MAX_SCALE:
        return WireUnsupported(name=name, reason=f"scale {scale} is not in -{MAX_SCALE} to {MAX_SCALE}")
    meant = scale - _POSTGRES_SCALES if _POSTGRES_MAX_SCALE < scale < _POSTGRES_SCALES else scale
    if meant >= 0:
        if precision <= MAX_DIGITS and meant <= MAX_DIGITS:
            # Postgres allows numeric(3,5); five digits hold such values.
            return WireDecimal(precision=max(precision, meant) if precision > 0 else None, scale=meant)
        return WireBigDecimal(scale=scale, shown=meant)
    digits = precision - meant
    return WireBigDecimal(scale=scale, shown=0, precision=digits if precision > 0 and digits <= MAX_DIGITS else None)


def variable_decimal(schema: ConnectSchema, nested: Nested) -> WireType:
    """Recognise the struct by its members too."""
    members = [(member.field, member.type) for member in schema.members]
    return WireVariableDecimal() if members == [("scale", "int32"), ("value", "bytes")] else struct(schema, nested)


def array(schema: ConnectSchema, nested: Nested) -> WireType:
    """Read arrays of anything that is read."""
    if schema.items is None:
        return WireUnsupported(name="array", reason="its element has no type")
    element = nested(schema.items)
    if isinstance(element, WireUnsupported):
        return WireUnsupported(name=f"array of {element.name}", reason=element.reason)
    return WireList(element=element, element_optional=schema.items.optional)


def struct(schema: ConnectSchema, nested: Nested) -> WireType:
    """Read structs of anything that is read."""
    name = schema.name or "struct"
    if not schema.members:
        return WireUnsupported(name=name, reason="it has no members")
    fields = []
    for member in schema.members:
        inner = nested(member)
        if isinstance(inner, WireUnsupported):
            return WireUnsupported(name=f"{name} with a member that is a {inner.name}", reason=inner.reason)
        fields.append(WireField(name=member.field or "", type=inner, optional=member.optional))
    return WireStruct(fields=tuple(fields), semantic=schema.name)


def map_(schema: ConnectSchema, nested: Nested) -> WireType:
    """Read maps of anything whose keys are texts, integers or points in time."""
    if schema.keys is None or schema.values is None:
        return WireUnsupported(name="map", reason="its keys or values have no type")
    key, value = nested(schema.keys), nested(schema.values)
    for part in (key, value):
        if isinstance(part, WireUnsupported):
            return WireUnsupported(name=f"map with {part.name}", reason=part.reason)
    text_keys = schema.keys.type == "string"
    if not text_keys and not isinstance(key, (WireInteger, WireDate, WireTime, WireTimestamp)):
        reason = "its keys are not texts, integers or points in time"
        return WireUnsupported(name=f"map with keys of type {schema.keys.name or schema.keys.type}", reason=reason)
    if not text_keys and _holds_pairs(value):
        return WireUnsupported(name="map of maps", reason="the keys of both are not texts")
    return WireMap(
        key=key,
        value=value,
        value_optional=schema.values.optional,
        text_keys=text_keys,
        key_optional=schema.keys.optional,
    )


def _holds_pairs(wire: WireType) -> bool:
    """Whether there is a map inside whose keys are not texts; each such level costs a parser of its own."""
    match wire:
        case WireMap(text_keys=text_keys, value=value):
            return not text_keys or _holds_pairs(value)
        case WireList(element=element):
            return _holds_pairs(element)
        case WireStruct(fields=fields):
            return any(_holds_pairs(field.type) for field in fields)
        case _:
            return False


BYTES = always(WireBytes())
BITS = always(WireBits())
FLOAT32, FLOAT64 = always(WireFloat(bits=32)), always(WireFloat(bits=64))
INT8, INT16, INT32, INT64 = (always(WireInteger(bits=bits)) for bits in (8, 16, 32, 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A row of the table of conversions.

    Attributes:
        rule: of all rows for one type and name it is the same; which of them applies is in the schema's parameters.
        example: a schema the row is for; its wire and tracked type are those that documentation and tests show.
        origin: the source types that arrive like this.
        unit: what a value is.
        values: which values there are.
        otherwise: what becomes of a value that has no place in the tracked type.
        source: where the form is laid down.
    """

    rule: Rule
    example: ConnectSchema
    origin: str
    unit: str
    values: str
    otherwise: str
    source: str

    @property
    def key(self) -> tuple[str, str]:
        """Return the Connect type and the schema name, '' for schemas without one and for unknown names."""
        return self.example.type, self.example.name or ""

    @property
    def title(self) -> str:
        """Return what tells the row from all others: the name, or the type where there is none, and the parameters."""
        given = [f"{name}={value}" for name, value in self.example.parameters.items()]
        return " ".join([self.example.name or self.example.type, *given])
