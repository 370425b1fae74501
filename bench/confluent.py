"""Connect schemas as Avro schemas, and records in Confluent's layout.

Source of the form: Confluent, `AvroData`; checked against captures.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

from fastavro import parse_schema, schemaless_writer

from cdc_sync.core.debezium.connect import ConnectSchema

_TYPES = {"int8": "int", "int16": "int", "int32": "int", "int64": "long"}


def avro_schema(schema: ConnectSchema) -> dict[str, object]:
    """Return a struct's schema as the converter registers it; a struct's second use is a bare name."""
    node = _node(schema, "", set())
    assert isinstance(node, dict)
    return node


class Framer:
    """Writes values of one schema: magic byte, id, body."""

    def __init__(self, schema: ConnectSchema, id_: int) -> None:
        self._schema = parse_schema(avro_schema(schema))
        self._head = b"\x00" + id_.to_bytes(4, "big")

    def frame(self, value: Mapping[str, object]) -> bytes:
        """Encode a struct; decimals are given as bytes."""
        body = io.BytesIO(self._head)
        body.seek(len(self._head))
        schemaless_writer(body, self._schema, value)
        return body.getvalue()


def _node(schema: ConnectSchema, namespace: str, written: set[str]) -> object:
    """Return a type as it stands inside `namespace`, without the union that makes it optional."""
    if schema.type == "struct":
        return _record(schema, namespace, written)
    node: dict[str, object] = {"type": _TYPES.get(schema.type, schema.type)}
    if schema.type in ("int8", "int16"):
        node["connect.type"] = schema.type
    precision = schema.parameters.get("connect.decimal.precision")
    if precision is not None:
        node |= {"scale": int(schema.parameters["scale"]), "precision": int(precision)}
    node |= _connect_properties(schema)
    if precision is not None:
        node["logicalType"] = "decimal"
    return node if len(node) > 1 else node["type"]


def _record(schema: ConnectSchema, namespace: str, written: set[str]) -> object:
    full_name = schema.name or "ConnectDefault"
    own, _, name = full_name.rpartition(".")
    if full_name in written:
        return name if own == namespace else full_name
    written.add(full_name)
    node: dict[str, object] = {"type": "record", "name": name}
    if own != namespace:
        node["namespace"] = own
    node["fields"] = [_field(member, own, written) for member in schema.members]
    return node | _connect_properties(schema)


def _field(schema: ConnectSchema, namespace: str, written: set[str]) -> dict[str, object]:
    node = _node(schema, namespace, written)
    if not schema.optional and schema.default is None:
        return {"name": schema.field, "type": node}
    if schema.default is None:
        return {"name": schema.field, "type": ["null", node], "default": None}
    return {"name": schema.field, "type": [node, "null"], "default": schema.default}


def _connect_properties(schema: ConnectSchema) -> dict[str, object]:
    properties = {
        "connect.version": schema.version,
        "connect.parameters": schema.parameters or None,
        "connect.default": schema.default,
        "connect.name": schema.name,
    }
    return {name: value for name, value in properties.items() if value is not None}
