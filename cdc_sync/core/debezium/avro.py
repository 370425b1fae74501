"""Avro schemas, as Kafka Connect's Avro converters register them, turned into the Connect schemas they stand for.

Source of the form: Confluent schema-registry, `avro-data`, `AvroData`; Apicurio's converter is a fork of it with the
same property names. The result is what the JSON converter would have written for the same table, so that everything
behind it knows one form only.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import TypeVar

from cdc_sync.core.debezium.avro_names import PRIMITIVES, full_name, is_name, namespace_of, without_logical_types
from cdc_sync.core.debezium.avro_references import inline
from cdc_sync.core.debezium.connect import MAX_DEPTH, MAX_FIELDS, ConnectSchema, load_json
from cdc_sync.core.debezium.wireids import WireId, find_id
from cdc_sync.errors import WireError

__all__ = ["MAX_NODES", "WireId", "connect_schema", "find_id", "inline", "without_logical_types"]

MAX_NODES = 20 * MAX_FIELDS
"""Names let a short text stand for a huge schema: every use of a name counts with all that it holds."""

T = TypeVar("T")
D = TypeVar("D")

_CONNECT = "org.apache.kafka.connect.data."
_LOGICAL = {
    ("int", "date"): f"{_CONNECT}Date",
    ("int", "time-millis"): f"{_CONNECT}Time",
    ("long", "timestamp-millis"): f"{_CONNECT}Timestamp",
}
_DECIMAL = f"{_CONNECT}Decimal"
_PRECISION = "connect.decimal.precision"
_UNKNOWN_PRECISION = 64
"""What AvroData writes for a decimal that does not say its precision."""
_ENTRY = "MapEntry"
_OF_THE_COLUMN = "__debezium.source."


@dataclass(frozen=True, slots=True)
class _Named:
    """A named type: itself, how many nodes it stands for, and how deep they nest."""

    schema: ConnectSchema
    nodes: int
    height: int


def connect_schema(text: str) -> ConnectSchema:
    """Read a schema from its Avro text.

    Defaults come out as `connect.load_json` reads the JSON converter's: bytes and decimals as base64, numbers as int or
    `Decimal`. A record that is used again by its name does not take over what is said about the column that declared
    it: default, and parameters `__debezium.source.*`.

    Raises:
        WireError: if the text is no Avro schema, is one that no Connect schema maps to (a union of more than null and
            one type, a type that contains itself), or goes beyond the limits of `connect.parse` or `MAX_NODES`.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise WireError("Cannot read Avro schema: it holds half of a surrogate pair") from error
    return _Reader().node(load_json(data, "Avro schema", unique_members=True), "", 0)


class _Reader:
    """Reads one schema; knows the names declared so far."""

    def __init__(self) -> None:
        self._named: dict[str, _Named | None] = {}  # None: its declaration is being read
        self._entries: set[str | None] = set()
        self._nodes = 0
        self._deepest = 0

    def node(self, node: object, namespace: str, depth: int) -> ConnectSchema:
        if isinstance(node, list):
            return self._union(node, namespace, depth)
        self._count(1, depth)
        if isinstance(node, str):
            return self._by_name(node, namespace, depth)
        if not isinstance(node, dict):
            raise _refusal(f"expected a type, found {type(node).__name__}")
        return self._typed(node, namespace, depth)

    def _count(self, nodes: int, deepest: int) -> None:
        self._nodes += nodes
        self._deepest = max(self._deepest, deepest)
        if self._nodes > MAX_NODES:
            raise _refusal(f"it stands for more than {MAX_NODES} types")
        if deepest > MAX_DEPTH:
            raise _refusal(f"it is nested deeper than {MAX_DEPTH}")

    def _union(self, branches: list[object], namespace: str, depth: int) -> ConnectSchema:
        real = [branch for branch in branches if not _is_null(branch)]
        if len(real) != 1 or isinstance(real[0], list):
            raise _refusal("a union is not one type, or one type and null")
        schema = self.node(real[0], namespace, depth)
        return replace(schema, optional=True) if len(branches) > 1 else schema

    def _by_name(self, name: str, namespace: str, depth: int) -> ConnectSchema:
        if name in PRIMITIVES:
            return ConnectSchema(type=PRIMITIVES[name])
        # A name without a namespace is one of the enclosing namespace, else of none.
        known = next((key for key in (full_name(name, namespace), name) if key in self._named), None)
        if known is None:
            raise _refusal(f"{name!r} is not a type, and not declared before")
        found = self._named[known]
        if found is None:
            raise _refusal(f"the type {name!r} contains itself")
        self._count(found.nodes - 1, depth + found.height)
        parameters = found.schema.parameters
        kept = {name: value for name, value in parameters.items() if not name.startswith(_OF_THE_COLUMN)}
        return replace(found.schema, default=None, parameters=kept)

    def _typed(self, node: dict[str, object], namespace: str, depth: int) -> ConnectSchema:
        kind = node.get("type")
        if not isinstance(kind, str):
            raise _refusal("an object has no type")
        if kind in ("record", "enum", "fixed"):
            return self._declared(kind, node, namespace, depth)
        if kind == "array":
            return _annotated(self._array(self.node(node.get("items"), namespace, depth + 1)), node)
        if kind == "map":
            values = self.node(node.get("values"), namespace, depth + 1)
            self._count(1, depth + 1)
            return _annotated(ConnectSchema(type="map", keys=ConnectSchema(type="string"), values=values), node)
        if kind not in PRIMITIVES:
            return self._by_name(kind, namespace, depth)
        return _annotated(_primitive(kind, node), node)

    def _array(self, items: ConnectSchema) -> ConnectSchema:
        """Return an array, or the map with keys of any type that an array of entries stands for."""
        key, value = items.member("key"), items.member("value")
        if key is None or value is None or items.name not in self._entries:
            return ConnectSchema(type="array", items=items)
        return ConnectSchema(type="map", keys=replace(key, field=None), values=replace(value, field=None))

    def _declared(self, kind: str, node: dict[str, object], namespace: str, depth: int) -> ConnectSchema:
        name = full_name(_required(node, "name"), _given(node, "namespace", str, namespace))
        if name in PRIMITIVES or not all(map(is_name, name.split("."))):
            raise _refusal(f"{name!r} is not a name")
        if name in self._named:
            raise _refusal(f"the type {name!r} is declared twice")
        self._named[name] = None
        nodes, deepest = self._nodes, self._deepest
        self._deepest = depth
        if kind == "record":
            members = self._members(node, namespace_of(name), depth)
            base = ConnectSchema(type="struct", name=name, doc=_given(node, "doc", str, None), members=members)
        else:
            base = _fixed(node) if kind == "fixed" else _enum(node)
        schema = _annotated(base, node)
        if name.rpartition(".")[2] == _ENTRY or node.get("connect.internal.type") == _ENTRY:
            self._entries.add(schema.name)
        self._named[name] = _Named(schema, self._nodes - nodes + 1, self._deepest - depth)
        self._deepest = max(deepest, self._deepest)
        return schema

    def _members(self, node: dict[str, object], namespace: str, depth: int) -> tuple[ConnectSchema, ...]:
        fields = node.get("fields")
        if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
            raise _refusal("a record has no list of fields")
        if len(fields) > MAX_FIELDS:
            raise _refusal(f"{len(fields)} fields are more than {MAX_FIELDS}")
        members: dict[str, ConnectSchema] = {}
        for field in fields:
            name = _required(field, "name")
            if not is_name(name):
                raise _refusal(f"{name!r} is not a field's name")
            if name in members:
                raise _refusal(f"the field {name!r} is there twice")
            members[name] = _field(field, name, self.node(field.get("type"), namespace, depth + 1))
        return tuple(members.values())


def _primitive(kind: str, node: dict[str, object]) -> ConnectSchema:
    logical = _given(node, "logicalType", str, "")
    if kind == "bytes" and (logical == "decimal" or node.get("connect.name") == _DECIMAL):
        return ConnectSchema(type="bytes", name=_DECIMAL, parameters=_decimal(node))
    narrow = node.get("connect.type")
    return ConnectSchema(
        type=str(narrow) if kind == "int" and narrow in ("int8", "int16") else PRIMITIVES[kind],
        name=_LOGICAL.get((kind, logical)),
    )


def _fixed(node: dict[str, object]) -> ConnectSchema:
    if _given(node, "size", int, -1) < 0:
        raise _refusal("a fixed type has no size")
    return _primitive("bytes", node)


def _enum(node: dict[str, object]) -> ConnectSchema:
    symbols = _given(node, "symbols", list, [])
    if not all(isinstance(symbol, str) and is_name(symbol) for symbol in symbols) or len(set(symbols)) < len(symbols):
        raise _refusal("an enum's symbols are not different names")
    return ConnectSchema(type="string")


def _decimal(node: dict[str, object]) -> dict[str, str]:
    precision = _given(node, "precision", int, _UNKNOWN_PRECISION)
    parameters = {"scale": str(_given(node, "scale", int, 0))}
    return parameters if precision == _UNKNOWN_PRECISION else {**parameters, _PRECISION: str(precision)}


def _annotated(schema: ConnectSchema, node: dict[str, object]) -> ConnectSchema:
    """Add what Connect knows and Avro does not; absent where the converter has `connect.meta.data=false`."""
    return replace(
        schema,
        name=_given(node, "connect.name", str, schema.name),
        version=_given(node, "connect.version", int, schema.version),
        doc=_given(node, "connect.doc", str, schema.doc),
        parameters={**schema.parameters, **_parameters(node)},
        default=_default(schema, node.get("connect.default")),
    )


def _field(field: dict[str, object], name: str, schema: ConnectSchema) -> ConnectSchema:
    """Return a type as a record's field; later converters say about the field what is not the type's own."""
    default = schema.default
    if default is None:
        default = _default(schema, field.get("connect.default", field.get("default")))
    return replace(
        schema,
        field=name,
        doc=_given(field, "connect.doc", str, _given(field, "doc", str, schema.doc)),
        parameters={**schema.parameters, **_parameters(field)},
        default=default,
    )


def _default(schema: ConnectSchema, value: object) -> object:
    """Return an Avro default, where bytes are a text of their code points, as the JSON converter writes it."""
    match schema.type, value:
        case "bytes", str():
            try:
                return base64.b64encode(value.encode("latin-1")).decode()
            except UnicodeEncodeError:
                return value  # which is not base64 either, so nobody takes it for a default
        case "array", list() if schema.items:
            return [_default(schema.items, item) for item in value]
        case "map", dict() if schema.values:
            return {key: _default(schema.values, item) for key, item in value.items()}
        case "struct", dict():
            return {key: _member_default(schema, key, item) for key, item in value.items()}
        case _:
            return value


def _member_default(schema: ConnectSchema, name: str, value: object) -> object:
    member = schema.member(name)
    return value if member is None else _default(member, value)


def _parameters(node: dict[str, object]) -> dict[str, str]:
    parameters = _given(node, "connect.parameters", dict, {})
    if not all(isinstance(value, str) for value in parameters.values()):
        raise _refusal("'connect.parameters' are not texts")
    return parameters


def _required(node: dict[str, object], name: str) -> str:
    value = _given(node, name, str, "")
    if not value:
        raise _refusal(f"a type or field has no {name}")
    return value


def _given(node: dict[str, object], name: str, kind: type[T], otherwise: D) -> T | D:
    value = node.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _refusal(f"{name!r} is a {type(value).__name__}, not a {kind.__name__}")
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise _refusal(f"{name!r} holds half of a surrogate pair")
    return value


def _is_null(branch: object) -> bool:
    return branch == "null" or (isinstance(branch, dict) and branch.get("type") == "null")


def _refusal(detail: str) -> WireError:
    return WireError(f"Cannot read Avro schema: {detail}")
