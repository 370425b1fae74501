"""Connect values written and read without any of our code: by what the Connect schema says, and the standard library.

A Connect value is given as Connect has it: bytes for bytes and for decimals (the unscaled value), a list of pairs for a
map, a dictionary for a struct.
"""

from __future__ import annotations

import base64
import io
import json
import math
import re
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import fastavro

from cdc_sync.core.debezium.connect import ConnectSchema

LOST = object()
"""What becomes of a value that has no place in its type."""

_ZONED = re.compile(r"([+-]?\d{4,})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_EPOCH = datetime(1970, 1, 1)
_EXACT = Context(prec=10_000)
_PER_SECOND = {"Time": 10**3, "MicroTime": 10**6, "NanoTime": 10**9}


def json_value(schema: ConnectSchema, value: Any) -> Any:
    """Return what Kafka's JSON converter writes."""
    if value is None:
        return None
    if schema.type == "bytes":
        return base64.b64encode(value).decode()
    if schema.type == "array":
        return [json_value(_items(schema), item) for item in value]
    if schema.type == "map":
        keys, values = _map(schema)
        pairs = [[json_value(keys, key), json_value(values, item)] for key, item in value]
        return dict(pairs) if keys.type == "string" else pairs
    if schema.type == "struct":
        return {member.field: json_value(member, value[member.field]) for member in schema.members}
    if schema.type in ("float", "double") and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    return value


def avro_schema(schema: ConnectSchema, name: str) -> Any:
    """Return what Confluent's Avro converter makes of a schema, without the Connect names that no reader looks at."""
    plain = _avro(schema, name)
    return ["null", plain] if schema.optional else plain


def _avro(schema: ConnectSchema, name: str) -> Any:
    if schema.type == "array":
        return {"type": "array", "items": avro_schema(_items(schema), f"{name}_item")}
    if schema.type == "map":
        keys, values = _map(schema)
        if keys.type == "string" and not keys.optional:
            return {"type": "map", "values": avro_schema(values, f"{name}_value")}
        fields = [("key", keys), ("value", values)]
        return {"type": "array", "items": _record(f"{name}_MapEntry", fields)}
    if schema.type == "struct":
        return _record(name, [(member.field or "", member) for member in schema.members])
    if schema.name == "org.apache.kafka.connect.data.Decimal":
        precision = int(schema.parameters.get("connect.decimal.precision", "64"))
        scale = int(schema.parameters["scale"])
        valid = 0 <= scale <= precision
        return {
            "type": "bytes",
            **({"logicalType": "decimal", "precision": precision, "scale": scale} if valid else {}),
        }
    logical = {"Date": "date", "Time": "time-millis", "Timestamp": "timestamp-millis"}
    kafka, _, last = (schema.name or "").rpartition(".")
    type_ = {"int8": "int", "int16": "int", "int32": "int", "int64": "long"}.get(schema.type, schema.type)
    return {"type": type_, "logicalType": logical[last]} if kafka == "org.apache.kafka.connect.data" else type_


def _record(name: str, fields: list[tuple[str, ConnectSchema]]) -> Any:
    members = [{"name": field, "type": avro_schema(type_, f"{name}_{field}")} for field, type_ in fields]
    return {"type": "record", "name": name, "fields": members}


def avro_body(writer: Any, schemas: dict[str, ConnectSchema], row: dict[str, Any]) -> bytes:
    """Write a record; logical types are left out for the writer, so that numbers go in as they are."""
    body = io.BytesIO()
    values = {name: _avro_value(schemas[name], value) for name, value in row.items()}
    fastavro.schemaless_writer(body, fastavro.parse_schema(without_logical_types(writer)), values)
    return body.getvalue()


def without_logical_types(node: Any) -> Any:
    """Return an Avro schema by which numbers and bytes are written and read as they are."""
    if isinstance(node, list):
        return [without_logical_types(item) for item in node]
    if isinstance(node, dict):
        return {key: without_logical_types(value) for key, value in node.items() if key != "logicalType"}
    return node


def _avro_value(schema: ConnectSchema, value: Any) -> Any:
    if value is None:
        return None
    if schema.type == "array":
        return [_avro_value(_items(schema), item) for item in value]
    if schema.type == "map":
        keys, values = _map(schema)
        if keys.type == "string" and not keys.optional:
            return {key: _avro_value(values, item) for key, item in value}
        return [{"key": _avro_value(keys, key), "value": _avro_value(values, item)} for key, item in value]
    if schema.type == "struct":
        return {member.field: _avro_value(member, value[member.field]) for member in schema.members}
    return value


def decode(schema: ConnectSchema, value: Any) -> Any:
    """Return what the target is to hold: instants as local times of UTC, maps as dictionaries."""
    if value is None:
        return None
    space, _, name = (schema.name or "").rpartition(".")
    if name == "VariableScaleDecimal":
        return _plain(value["value"], value["scale"]) if value["value"] else LOST
    if schema.type == "array":
        return _whole([decode(_items(schema), item) for item in value])
    if schema.type == "map":
        keys, values = ([decode(part, item) for item in side] for part, side in _sides(schema, value))
        bad = None in keys or len(set(map(repr, keys))) < len(keys) or LOST in (*keys, *values)
        return LOST if bad else dict(zip(keys, values, strict=True))
    if schema.type == "struct":
        members = {member.field: decode(member, value[member.field]) for member in schema.members}
        return LOST if LOST in members.values() else members
    if name == "Decimal":
        return _decimal(schema, value)
    if space in ("io.debezium.time", "org.apache.kafka.connect.data"):
        return _temporal(schema.type, name, value)
    if schema.type in ("int8", "int16", "int32", "int64"):
        bits = int(schema.type[3:])
        return value if -(1 << bits - 1) <= value < 1 << bits - 1 else LOST
    return value


def _temporal(type_: str, name: str, value: Any) -> Any:
    if name in _PER_SECOND:
        return _clock(value, _PER_SECOND[name])
    try:
        if name == "Date":
            return date(1970, 1, 1) + timedelta(days=value)
        if name in ("Timestamp", "MicroTimestamp"):
            return _EPOCH + timedelta(microseconds=value * (1000 if name == "Timestamp" else 1))
        if name == "NanoTimestamp":
            return LOST if value in (2**63 - 1, -(2**63)) else _EPOCH + timedelta(microseconds=value // 1000)
        if name == "IsoDate":
            return date(*map(int, value.removesuffix("Z").split("-")))
        if name in ("IsoTimestamp", "ZonedTimestamp"):
            return _zoned(value)
    except (OverflowError, ValueError):
        return LOST
    return value


def _zoned(text: str) -> Any:
    found = _ZONED.fullmatch(text)
    if found is None:
        return LOST
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    moment = datetime(year, month, day, hour, minute, second, int((found[7] or "").ljust(6, "0")[:6]))
    if found[8] == "Z":
        return moment
    hours, minutes = found[8][1:].split(":")
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return moment + offset if found[8].startswith("-") else moment - offset


def beyond(schema: ConnectSchema, value: Any) -> int:
    """Return -1 or 1 for a point in time before the year 1 or after the year 9999, 0 for all else."""
    if decode(schema, value) is not LOST or value in (-2147472692, -2147472691):
        return 0
    if isinstance(value, int):
        return 1 if value > 0 else -1
    if re.fullmatch(r"-infinity|(-\d{4,}|0000)-\d\d-\d\d.*", value):
        return -1
    if re.fullmatch(r"infinity|[+]\d{5,}-\d\d-\d\d.*", value):
        return 1
    found = _ZONED.fullmatch(value)
    return {"0001": -1, "9999": 1}.get(found[1], 0) if found else 0  # its offset leads out of range


def _clock(value: int, per_second: int) -> Any:
    if value == -(2**63):
        return LOST
    text = f"{Decimal(abs(value) % (60 * per_second)).scaleb(-len(str(per_second)) + 1):f}"
    second, point, fraction = text.partition(".")
    minutes = abs(value) // (60 * per_second)
    shown = f"{minutes // 60:02d}:{minutes % 60:02d}:{second.zfill(2)}{point}{fraction}"
    return ("-" if value < 0 else "") + (shown.rstrip("0").rstrip(".") if point else shown)


def _decimal(schema: ConnectSchema, value: bytes) -> Any:
    if not value:
        return LOST
    sent = int(schema.parameters["scale"])
    scale = sent - 2048 if 1000 < sent < 2048 else sent  # the 11 bits of Postgres
    precision = int(schema.parameters.get("connect.decimal.precision", "0"))
    exact = Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-sent, _EXACT)
    if scale < 0:
        whole = int(exact)
        digits = precision - scale
        if whole != exact or (precision and digits <= 38 and abs(whole) >= 10**digits):
            return LOST
        return Decimal(whole) if precision and digits <= 38 else str(whole)
    if precision <= 38 and scale <= 38:
        fits = abs(int.from_bytes(value, "big", signed=True)) < 10 ** max(precision or 38, scale)
        return exact if fits else LOST
    return _plain(value, scale)


def _plain(value: bytes, scale: int) -> str:
    number = int.from_bytes(value, "big", signed=True)
    return f"{Decimal(number).scaleb(-scale, _EXACT):f}" if number or scale >= 0 else "0"


def _whole(values: list[Any]) -> Any:
    return LOST if any(value is LOST for value in values) else values


def _items(schema: ConnectSchema) -> ConnectSchema:
    assert schema.items is not None
    return schema.items


def _map(schema: ConnectSchema) -> tuple[ConnectSchema, ConnectSchema]:
    assert schema.keys is not None
    assert schema.values is not None
    return schema.keys, schema.values


def _sides(schema: ConnectSchema, pairs: Any) -> list[tuple[ConnectSchema, list[Any]]]:
    keys, values = _map(schema)
    return [(keys, [key for key, _ in pairs]), (values, [value for _, value in pairs])]


def as_json(value: Any) -> str:
    """Write JSON as Kafka's converter does."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
