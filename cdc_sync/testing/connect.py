"""Messages byte for byte as Kafka Connect's JSON converter writes them.

Source of the form: Apache Kafka, `JsonConverter`; Jackson, `UTF8JsonGenerator`; checked against captures.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Context, Decimal
from functools import lru_cache

from cdc_sync.core.debezium.connect import ConnectSchema

BOOLEAN = ConnectSchema(type="boolean")
INT8 = ConnectSchema(type="int8")
INT16 = ConnectSchema(type="int16")
INT32 = ConnectSchema(type="int32")
INT64 = ConnectSchema(type="int64")
FLOAT32 = ConnectSchema(type="float")
FLOAT64 = ConnectSchema(type="double")
TEXT = ConnectSchema(type="string")
BYTES = ConnectSchema(type="bytes")
JSON = ConnectSchema(type="string", name="io.debezium.data.Json", version=1)
UUID = ConnectSchema(type="string", name="io.debezium.data.Uuid", version=1)
DATE = ConnectSchema(type="int32", name="io.debezium.time.Date", version=1)
TIME = ConnectSchema(type="int64", name="io.debezium.time.MicroTime", version=1)
TIMESTAMP = ConnectSchema(type="int64", name="io.debezium.time.MicroTimestamp", version=1)
TIMESTAMP_MILLIS = ConnectSchema(type="int64", name="io.debezium.time.Timestamp", version=1)
TIMESTAMP_TZ = ConnectSchema(type="string", name="io.debezium.time.ZonedTimestamp", version=1)

_EPOCH = datetime(1970, 1, 1)
# The default context rounds to 28 digits.
_EXACT = Context(prec=100)


def decimal(precision: int, scale: int) -> ConnectSchema:
    """Return the type of `numeric(precision, scale)` with `decimal.handling.mode=precise`."""
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return ConnectSchema(type="bytes", name="org.apache.kafka.connect.data.Decimal", version=1, parameters=parameters)


def enum(*labels: str) -> ConnectSchema:
    """Return the type of an enum with these labels."""
    parameters = {"allowed": ",".join(labels)}
    return ConnectSchema(type="string", name="io.debezium.data.Enum", version=1, parameters=parameters)


def array(element: ConnectSchema) -> ConnectSchema:
    """Return the type of an array; its elements may be NULL, as in Postgres."""
    return ConnectSchema(type="array", items=replace(element, optional=True))


def struct(name: str, *members: ConnectSchema) -> ConnectSchema:
    """Return a struct with these fields, made by `column`."""
    return ConnectSchema(type="struct", name=name, members=members)


def column(
    name: str,
    type_: ConnectSchema,
    *,
    optional: bool = True,
    default: object = None,
    comment: str | None = None,
) -> ConnectSchema:
    """Return a field of a struct.

    Args:
        name: the column's.
        type_: one of this module's types.
        optional: False for NOT NULL.
        default: a Python value, see `encode`; None is no default. For a function default give what the connector
            shows in its place, such as 0.
        comment: shown as `doc`.
    """
    shown = None if default is None else encode(type_, default)
    return replace(type_, field=name, optional=optional, default=shown, doc=comment)


def encode(schema: ConnectSchema, value: object) -> object:
    """Return a Python value as the JSON value the converter writes.

    Takes `Decimal` for decimals, `bytes`, `date`, `datetime` (with a zone for instants) and `time`; every other value
    is taken to be in its wire form already.
    """
    match value:
        case list():
            return [encode(schema.items or TEXT, item) for item in value]
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal() if schema.type == "bytes":
            return base64.b64encode(_unscaled(value, int(schema.parameters["scale"]))).decode()
        case datetime() if value.tzinfo is not None:
            local = value.astimezone(timezone.utc).replace(tzinfo=None)
            return local.isoformat(timespec="microseconds") + "Z"
        case datetime():
            unit = timedelta(milliseconds=1) if schema.name == TIMESTAMP_MILLIS.name else timedelta(microseconds=1)
            return (value - _EPOCH) // unit
        case date():
            return (value - _EPOCH.date()).days
        case time():
            return (datetime.combine(_EPOCH, value) - _EPOCH) // timedelta(microseconds=1)
        case _:
            return value


def _unscaled(value: Decimal, scale: int) -> bytes:
    """Return Java's `BigInteger.toByteArray` of the unscaled value: the shortest two's complement form."""
    number = int(_EXACT.scaleb(value, scale))
    bits = number.bit_length() if number >= 0 else (number + 1).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def schema_json(schema: ConnectSchema) -> dict[str, object]:
    """Return a schema as JSON, its members in the converter's order."""
    node: dict[str, object] = {"type": schema.type}
    if schema.type == "struct":
        node["fields"] = [schema_json(member) for member in schema.members]
    for name, child in (("items", schema.items), ("keys", schema.keys), ("values", schema.values)):
        if child is not None:
            node[name] = schema_json(child)
    node["optional"] = schema.optional
    rest = {
        "name": schema.name,
        "version": schema.version,
        "doc": schema.doc,
        "parameters": schema.parameters or None,
        "default": schema.default,
        "field": schema.field,
    }
    return node | {name: value for name, value in rest.items() if value is not None}


def message(schema: ConnectSchema, payload: object) -> bytes:
    """Return a record's key or value; `payload` is in wire form, its members in the order of the schema."""
    return prefix(schema) + json_text(payload).encode() + b"}"


def prefix(schema: ConnectSchema) -> bytes:
    """Return what all messages of a schema begin with, up to the payload."""
    return f'{{"schema":{json_text(schema_json(schema))},"payload":'.encode()


def json_text(value: object) -> str:
    """Write JSON as Jackson does: no white space, the order of members as given."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            return _java_double(float(value))
        case float():
            return _java_double(value)
        case str():
            return _quoted(value)
        case Mapping():
            return "{" + ",".join(f"{_quoted(str(name))}:{json_text(item)}" for name, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(json_text, value)) + "]"
        case _:
            raise TypeError(f"Cannot write {type(value).__name__} as JSON: encode it first")


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    # Jackson escapes what is beyond the basic plane as a surrogate pair, and writes hexadecimal digits in capitals.
    plain = json.dumps(text, ensure_ascii=False)
    plain = re.sub(r"\\u[0-9a-f]{4}", lambda found: "\\u" + found[0][2:].upper(), plain)
    return re.sub("[\U00010000-\U0010ffff]", lambda found: _surrogates(found[0]), plain)


def _surrogates(character: str) -> str:
    units = character.encode("utf-16-be").hex().upper()
    return f"\\u{units[:4]}\\u{units[4:]}"


def _java_double(value: float) -> str:
    """Write a double as Java's `Double.toString`: at least one digit after the point, `E` from 1e7 and below 1e-3."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return f"{Decimal(repr(value)):f}" if "e" in repr(value) else repr(value)
    mantissa, exponent = format(Decimal(repr(value)).normalize(), "e").split("e")
    if "." not in mantissa:
        # Java wants two digits and then takes the nearest: 4.9E-324, where one digit, 5e-324, would do.
        mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}E{int(exponent)}"
