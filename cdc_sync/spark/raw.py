"""What wire values are parsed into before they are decoded, from JSON and from Avro."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from pyspark.sql import types as T
from typing_extensions import assert_never

from cdc_sync.core.debezium.forms import DecimalFormat
from cdc_sync.core.debezium.wire import (
    MAX_DIGITS,
    WireBigDecimal,
    WireBits,
    WireBoolean,
    WireBytes,
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
from cdc_sync.errors import SchemaError

Format: TypeAlias = Literal["json", "avro"]
OutOfRange: TypeAlias = Literal["quarantine", "null", "clamp"]


class Settings(Protocol):
    """How values are read."""

    @property
    def decimal_format(self) -> DecimalFormat:
        """Return the JSON converter's `decimal.format`."""

    @property
    def out_of_range(self) -> OutOfRange:
        """Return what becomes of dates and timestamps outside the years 1 to 9999."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAs:
    """Settings by themselves, the default ones where nothing is said."""

    decimal_format: DecimalFormat = "base64"
    out_of_range: OutOfRange = "quarantine"


DEFAULTS = ReadAs()


def raw_type(wire: WireType, form: Format = "json", settings: Settings = DEFAULTS) -> T.DataType:
    """Return the type that `from_json` or `from_avro` reads the wire value as.

    Raises:
        SchemaError: for `WireUnsupported`.
    """
    match wire:
        case WireBoolean():
            return T.BooleanType()
        case WireInteger(bits=bits):
            return _integer(bits, form)
        case WireFloat(bits=bits):
            return T.FloatType() if bits == 32 else T.DoubleType()
        case WireText() | WireInstant() | WireDateText() | WireTimestampText():
            return T.StringType()
        case WireBytes() | WireBits():
            return T.BinaryType()
        case WireDecimal() | WireBigDecimal():
            return _decimal(wire, form, settings)
        case WireVariableDecimal():
            return T.StructType([T.StructField("scale", T.IntegerType()), T.StructField("value", T.BinaryType())])
        case WireDate():
            return T.IntegerType()
        case WireTimestamp() | WireTime():
            return T.LongType()
        case WireList(element=element):
            return T.ArrayType(raw_type(element, form, settings))
        case WireMap():
            return _map(wire, form, settings)
        case WireStruct(fields=fields):
            return T.StructType([T.StructField(field.name, raw_type(field.type, form, settings)) for field in fields])
        case WireUnsupported(name=name):
            raise SchemaError(f"Cannot read {name}: the plan must refuse a table with such a column")
        case _:
            assert_never(wire)


def _integer(bits: int, form: Format) -> T.DataType:
    # Avro has no smaller integers, and `from_json` reads 128 to 255 as negative bytes.
    if bits == 16 and form == "json":
        return T.ShortType()
    return T.LongType() if bits == 64 else T.IntegerType()


def _decimal(wire: WireDecimal | WireBigDecimal, form: Format, settings: Settings) -> T.DataType:
    match wire:
        case WireDecimal(precision=precision, scale=scale):
            native = form == "avro" or settings.decimal_format == "numeric"
            return T.DecimalType(precision or MAX_DIGITS, scale) if native else T.BinaryType()
        case WireBigDecimal():
            if form == "avro" or settings.decimal_format == "base64":
                return T.BinaryType()
            digits = exact_digits(wire)
            return T.StringType() if digits is None else T.DecimalType(*digits)


def exact_digits(wire: WireBigDecimal) -> tuple[int, int] | None:
    """Return precision and scale that read a JSON number exactly or refuse it; None if Spark would round it."""
    if wire.precision is not None:
        return wire.precision, 0
    return (MAX_DIGITS, wire.scale) if 0 <= wire.scale == wire.shown <= MAX_DIGITS else None


def _map(wire: WireMap, form: Format, settings: Settings) -> T.DataType:
    if is_object(wire, form):
        return T.MapType(T.StringType(), raw_type(wire.value, form, settings))
    if form == "json":
        # A pair is an array of two unlike values; as texts they are what JSON shows.
        return T.ArrayType(T.ArrayType(T.StringType()))
    key, value = raw_type(wire.key, form, settings), raw_type(wire.value, form, settings)
    return T.ArrayType(T.StructType([T.StructField("key", key), T.StructField("value", value)]))


def is_object(wire: WireMap, form: Format) -> bool:
    """Return whether the map is one on the wire too, and not an array of its entries."""
    return wire.text_keys and not (form == "avro" and wire.key_optional)


def avro_reader_type(wire: WireType, name_prefix: str) -> object:
    """Return the Avro type to read a value as: plain and nullable at every level, so that it fits every writer's.

    Only a decimal that Spark holds keeps its logical type; Spark would turn the others into its own types by rules of
    its own.

    Args:
        wire: what is read.
        name_prefix: begins the names of all records, which must differ within a schema.
    """
    return ["null", _avro(wire, name_prefix)]


def _avro(wire: WireType, name: str) -> object:
    match wire:
        case WireDecimal(precision=precision, scale=scale):
            digits = precision or MAX_DIGITS
            return {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": scale}
        case WireVariableDecimal():
            return _record(name, {"scale": ["null", "int"], "value": ["null", "bytes"]})
        case WireList(element=element):
            return {"type": "array", "items": avro_reader_type(element, f"{name}_e")}
        case WireMap(key=key, value=value):
            if is_object(wire, "avro"):
                return {"type": "map", "values": avro_reader_type(value, f"{name}_v")}
            entry = {"key": avro_reader_type(key, f"{name}_k"), "value": avro_reader_type(value, f"{name}_v")}
            return {"type": "array", "items": ["null", _record(f"{name}_e", entry)]}
        case WireStruct(fields=fields):
            members = {field.name: avro_reader_type(field.type, f"{name}_{i}") for i, field in enumerate(fields)}
            return _record(name, members)
        case _:
            return _AVRO[type(raw_type(wire, "avro"))]


def _record(name: str, members: dict[str, object]) -> object:
    fields = [{"name": member, "type": type_, "default": None} for member, type_ in members.items()]
    return {"type": "record", "name": name, "fields": fields}


_AVRO: dict[type[T.DataType], str] = {
    T.BooleanType: "boolean",
    T.IntegerType: "int",
    T.LongType: "long",
    T.FloatType: "float",
    T.DoubleType: "double",
    T.StringType: "string",
    T.BinaryType: "bytes",
}
