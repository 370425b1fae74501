"""Captured values of every column, JSON and Avro, against a decoder that shares nothing with ours."""

from __future__ import annotations

import base64
import io
import json
from collections import defaultdict
from struct import pack, unpack
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from cdc_sync.core.debezium.avro import connect_schema
from cdc_sync.core.debezium.connect import ConnectSchema, parse
from cdc_sync.core.debezium.conversions import wire_type
from cdc_sync.core.debezium.wire import WireUnsupported
from cdc_sync.spark.raw import Format
from tests.corpus.reader import PREFIXES, schemas, topics
from tests.spark.independent import decode, without_logical_types
from tests.spark.reading import differences, found

pytestmark = pytest.mark.spark

TABLES = ("inv.types_all", "inv.casts", "inv.toast")
CAPTURES = ("postgres-json", "mariadb-json", "postgres-avro", "mariadb-avro")


def connect_value(schema: ConnectSchema, value: Any) -> Any:
    """Return a JSON value as Connect had it."""
    if value is None:
        return None
    if schema.type == "bytes":
        return base64.b64decode(value)
    if schema.type == "array" and schema.items is not None:
        return [connect_value(schema.items, item) for item in value]
    if schema.type == "struct":
        return {member.field: connect_value(member, value[member.field]) for member in schema.members}
    if schema.type == "float":
        return unpack("f", pack("f", float(value)))[0]  # JSON shows the shortest text that comes back as the same float
    return float(value) if schema.type == "double" else value


def row_of(message: bytes, capture: str) -> tuple[ConnectSchema, dict[str, Any]]:
    """Return the row struct's schema and the row after the change, {} if there is none."""
    if capture.endswith("json"):
        document = json.loads(message)
        after = parse(json.dumps(document["schema"]).encode()).member("after")
        assert after is not None
        row = document["payload"]["after"] or {}
        return after, {m.field or "": connect_value(m, row[m.field]) for m in after.members if row}
    writer = schemas(capture)[int.from_bytes(message[1:5], "big")]
    after = connect_schema(writer).member("after")
    assert after is not None
    plain = fastavro.parse_schema(without_logical_types(json.loads(writer)))
    event: Any = fastavro.schemaless_reader(io.BytesIO(message[5:]), plain, None)
    return after, event["after"] or {}


def captured(capture: str) -> tuple[dict[str, ConnectSchema], dict[str, list[Any]]]:
    """Return schema and values of every column in each of its types, by a title that says where it is from."""
    types: dict[str, ConnectSchema] = {}
    values: dict[str, list[Any]] = defaultdict(list)
    for table in TABLES:
        for message in topics(capture).get(f"{PREFIXES[capture]}.{table}", []):
            if message.value is None:
                continue
            after, row = row_of(message.value, capture)
            for member in after.members if row else ():
                title = f"{table}.{member.field} as {member.name or member.type} {member.parameters.get('scale', '')}"
                types[title] = member
                if row[member.field or ""] is not None:
                    values[title].append(row[member.field or ""])
    return types, dict(values)


@pytest.mark.parametrize("capture", CAPTURES)
def test_captured_values_are_read_as_they_were_meant(session: SparkSession, capture: str) -> None:
    types, values = captured(capture)
    assert len(values) > 45
    assert not any(isinstance(wire_type(schema), WireUnsupported) for schema in types.values())
    wanted = {title: [decode(types[title], value) for value in column] for title, column in values.items()}
    form: Format = "json" if capture.endswith("json") else "avro"
    assert differences(found(session, types, values, form), wanted, values) == []


@pytest.mark.parametrize("database", ["postgres", "mariadb"])
def test_both_formats_say_the_same(database: str) -> None:
    both = []
    for form in ("json", "avro"):
        types, values = captured(f"{database}-{form}")
        both.append({title: [repr(decode(types[title], value)) for value in values[title]] for title in values})
    assert both[0] == both[1]
