"""The one table of conversions: Connect schema → wire type → tracked type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from typing_extensions import assert_never

from cdc_sync.debezium.connect import ConnectSchema, structure
from cdc_sync.debezium.literals import canonical_default
from cdc_sync.debezium.wire import (
    WireBoolean,
    WireBytes,
    WireDate,
    WireDateText,
    WireDecimal,
    WireFloat,
    WireInstant,
    WireInteger,
    WireList,
    WireText,
    WireTime,
    WireTimestamp,
    WireTimestampText,
    WireType,
    WireUnsupported,
)
from cdc_sync.errors import WireError
from cdc_sync.schema.internal import Default
from cdc_sync.schema.observed import ObservedColumn, ObservedSchema
from cdc_sync.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    FloatType,
    IntegerType,
    ListType,
)

__all__ = [
    "EventSchema",
    "WireBoolean",
    "WireBytes",
    "WireColumn",
    "WireDate",
    "WireDateText",
    "WireDecimal",
    "WireFloat",
    "WireInstant",
    "WireInteger",
    "WireList",
    "WireText",
    "WireTime",
    "WireTimestamp",
    "WireTimestampText",
    "WireType",
    "WireUnsupported",
    "canonical_default",
    "logical_type",
    "observed",
    "wire_column",
    "wire_type",
]

MAX_DIGITS = 38


@dataclass(frozen=True, slots=True, kw_only=True)
class WireColumn:
    """A column of an event's row struct.

    Attributes:
        optional: whether the source accepts NULL. Postgres reports what its catalogue says when the
            connector reads it, which may be later than the event.
        default: in canonical form, None if there is none or it could not be read.
        suspect_default: see `literals.canonical_default`.
        structure: the type as the structural fingerprint sees it, see `connect.structure`.
    """

    name: str
    wire: WireType
    optional: bool = True
    comment: str | None = None
    default: Default = None
    suspect_default: bool = False
    structure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSchema:
    """What the schema of a change event says about its table.

    Attributes:
        columns: in the source's order.
        key: names of the record key's fields in key order; empty if records have no key.
        envelope_name: such as `shop.public.orders.Envelope`; sanitised, so not a safe name of the table.
    """

    columns: tuple[WireColumn, ...]
    key: tuple[str, ...]
    envelope_name: str


_Rule = Callable[[ConnectSchema], WireType]


def _decimal(schema: ConnectSchema) -> WireType:
    name = "decimal"
    try:
        scale = int(schema.parameters["scale"])
        precision = int(schema.parameters.get("connect.decimal.precision", "0"))
    except (KeyError, ValueError):
        return WireUnsupported(name=name, reason="its scale or precision is not a number")
    if not 0 <= scale <= MAX_DIGITS:
        # A negative scale of Postgres arrives modulo 2048: numeric(5,-2) as 2046.
        return WireUnsupported(name=name, reason=f"scale {scale} is not in 0 to {MAX_DIGITS}")
    if precision > MAX_DIGITS:
        return WireUnsupported(name=name, reason=f"{precision} digits are more than {MAX_DIGITS}")
    # Postgres allows numeric(3,5); five digits hold such values.
    return WireDecimal(precision=max(precision, scale) if precision > 0 else None, scale=scale)


def _unsupported(reason: str) -> _Rule:
    return lambda schema: WireUnsupported(name=schema.name or schema.type, reason=reason)


_NOT_YET = "this version of cdc_sync does not read it"

_BASE: dict[str, _Rule] = {
    "boolean": lambda _: WireBoolean(),
    "int8": lambda _: WireInteger(bits=8),
    "int16": lambda _: WireInteger(bits=16),
    "int32": lambda _: WireInteger(bits=32),
    "int64": lambda _: WireInteger(bits=64),
    "float": lambda _: WireFloat(bits=32),
    "double": lambda _: WireFloat(bits=64),
    "string": lambda schema: WireText(semantic=schema.name),
    "bytes": lambda _: WireBytes(),
    "array": lambda schema: _array(schema),
    "map": _unsupported(_NOT_YET),
    "struct": _unsupported(_NOT_YET),
}

# Sources: Debezium, `io/debezium/time`, `io/debezium/data`, `JdbcValueConverters`, `TemporalPrecisionMode`;
# Apache Kafka, `org/apache/kafka/connect/data`. A name on another physical type than here is the work of a
# transform: the physical type is trusted, as for names that are not here.
_BY_NAME: dict[tuple[str, str], _Rule] = {
    ("bytes", "org.apache.kafka.connect.data.Decimal"): _decimal,
    ("int32", "org.apache.kafka.connect.data.Date"): lambda _: WireDate(),
    ("int32", "org.apache.kafka.connect.data.Time"): lambda _: WireTime(unit="milli"),
    ("int64", "org.apache.kafka.connect.data.Timestamp"): lambda _: WireTimestamp(unit="milli"),
    ("int32", "io.debezium.time.Date"): lambda _: WireDate(),
    ("int32", "io.debezium.time.Time"): lambda _: WireTime(unit="milli"),
    ("int64", "io.debezium.time.MicroTime"): lambda _: WireTime(unit="micro"),
    ("int64", "io.debezium.time.NanoTime"): lambda _: WireTime(unit="nano"),
    ("int64", "io.debezium.time.Timestamp"): lambda _: WireTimestamp(unit="milli"),
    ("int64", "io.debezium.time.MicroTimestamp"): lambda _: WireTimestamp(unit="micro"),
    ("int64", "io.debezium.time.NanoTimestamp"): lambda _: WireTimestamp(unit="nano"),
    ("string", "io.debezium.time.ZonedTimestamp"): lambda _: WireInstant(),
    ("string", "io.debezium.time.IsoDate"): lambda _: WireDateText(),
    ("string", "io.debezium.time.IsoTimestamp"): lambda _: WireTimestampText(),
    ("bytes", "io.debezium.data.Bits"): _unsupported(_NOT_YET),
    ("array", "io.debezium.data.DoubleVector"): _unsupported(_NOT_YET),
    ("array", "io.debezium.data.FloatVector"): _unsupported(_NOT_YET),
    ("struct", "io.debezium.data.VariableScaleDecimal"): _unsupported(
        "each value has its own scale; give the column a scale, or set decimal.handling.mode in the connector"
    ),
}


def _array(schema: ConnectSchema) -> WireType:
    if schema.items is None:
        return WireUnsupported(name="array", reason="its element has no type")
    element = wire_type(schema.items)
    if isinstance(element, WireUnsupported):
        return WireUnsupported(name=f"array of {element.name}", reason=element.reason)
    return WireList(element=element, element_optional=schema.items.optional)


def wire_type(schema: ConnectSchema) -> WireType:
    """Return what values of a Connect schema look like; never fails, see `WireUnsupported`."""
    rule = _BY_NAME.get((schema.type, schema.name or ""), _BASE[schema.type])
    return rule(schema)


def wire_column(schema: ConnectSchema) -> WireColumn:
    """Return the column a field of the row struct describes."""
    wire = wire_type(schema)
    default, suspect = canonical_default(wire, schema.default)
    return WireColumn(
        name=schema.field or "",
        wire=wire,
        optional=schema.optional,
        comment=_comment(schema),
        default=default,
        suspect_default=suspect,
        structure=structure(schema),
    )


def _comment(schema: ConnectSchema) -> str | None:
    # The `doc` of a semantic struct describes the type: "Variable scaled decimal", "Geometry (POINT)".
    doc = None if schema.type == "struct" else schema.doc
    return doc or schema.parameters.get("__debezium.source.column.comment") or None


def logical_type(wire: WireType) -> DataType:
    """Return the tracked type that holds every value of a wire type; all nested ids are 0.

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
        case WireText() | WireTime():
            return STRING
        case WireBytes():
            return BINARY
        case WireDecimal(precision=precision, scale=scale):
            return DecimalType(precision=precision or MAX_DIGITS, scale=scale)
        case WireDate() | WireDateText():
            return DATE
        case WireTimestamp() | WireTimestampText():
            return TIMESTAMP
        case WireInstant():
            return TIMESTAMP_TZ
        case WireList(element=element, element_optional=optional):
            return ListType(element_id=0, element=logical_type(element), element_optional=optional)
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
    )
