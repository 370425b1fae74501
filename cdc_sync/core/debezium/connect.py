"""The Kafka Connect schema that the JSON converter writes in front of every payload.

Source of the form: Apache Kafka, `connect/json`, `JsonConverter` and `JsonSchema`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count

from cdc_sync.errors import WireError

PRIMITIVES = frozenset(("boolean", "int8", "int16", "int32", "int64", "float", "double", "bytes", "string"))
MAX_DEPTH = 64
MAX_FIELDS = 10_000
MAX_NODES = 20 * MAX_FIELDS
"""Of a whole schema: its text may be as long as a message."""

_STRUCTURAL_PARAMETERS = ("scale", "connect.decimal.precision", "length")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectSchema:
    """One node of a Connect schema.

    Attributes:
        type: one of `PRIMITIVES`, or `array`, `map`, `struct`.
        name: the semantic type, such as `io.debezium.time.Date`, or a struct's name.
        doc: the column's comment, or for some semantic types a fixed text of the connector.
        default: as JSON shows it, with `decimal.Decimal` for numbers that have a point or an exponent; None is no
            default, because Connect cannot express a default of NULL.
        field: the name in the enclosing struct, None elsewhere.
        members: a struct's fields in order.
        items: an array's element. `keys`, `values`: a map's.
    """

    type: str
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    default: object = None
    field: str | None = None
    members: tuple[ConnectSchema, ...] = ()
    items: ConnectSchema | None = None
    keys: ConnectSchema | None = None
    values: ConnectSchema | None = None

    def member(self, name: str) -> ConnectSchema | None:
        """Return the field with this name, or None."""
        return next((member for member in self.members if member.field == name), None)


def parse(text: bytes) -> ConnectSchema:
    """Read a schema from its JSON text.

    Raises:
        WireError: if the text is not a Connect schema, repeats a field, nests deeper than `MAX_DEPTH`, or has a
            struct of more than `MAX_FIELDS` fields or more than `MAX_NODES` parts.
    """
    return _node(load_json(text, "schema", unique_members=True), 0, count(1))


def schema_of(record: object) -> ConnectSchema:
    """Read the schema from a record's JSON as `load_json` returns it, whatever the order of its members.

    Raises:
        WireError: if it has no schema, or see `parse`.
    """
    if not isinstance(record, dict) or record.get("schema") is None:
        raise WireError("Cannot read record: it carries no schema; set schemas.enable=true in the converter")
    return _node(record["schema"], 0, count(1))


def load_json(text: bytes, thing: str, *, unique_members: bool = False) -> object:
    """Read JSON so that no digit is lost: whole numbers as int, all others as `Decimal`.

    Args:
        text: JSON in UTF-8.
        thing: what the text is, for the error message.
        unique_members: refuse objects that hold a member twice.

    Raises:
        WireError: if the text is not JSON in UTF-8.
    """
    pairs: Callable[[list[tuple[str, object]]], object] | None = _unique if unique_members else None
    try:
        result: object = json.loads(
            text.decode(), parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=pairs
        )
    except RecursionError as error:
        raise WireError(f"Cannot read {thing}: it is nested too deeply") from error
    except (ValueError, ArithmeticError) as error:  # Arithmetic: an exponent that `Decimal` does not hold.
        raise WireError(f"Cannot read {thing}: it is not JSON: {error}") from error
    return result


def structure(schema: ConnectSchema) -> str:
    """Describe a type for the structural fingerprint.

    Contains types, semantic names, nested fields and their optionality, scale, precision and length. Leaves out
    whether the node itself is optional, defaults, comments, enum labels and the connector's `__debezium.source.*`.
    The text is part of recorded fingerprints: changing its form makes known schemas unknown.
    """
    return json.dumps(_structure(schema), separators=(",", ":"))


def _structure(schema: ConnectSchema) -> list[object]:
    given = schema.parameters
    parameters = [[name, given[name]] for name in _STRUCTURAL_PARAMETERS if name in given]
    members = [[member.field, member.optional, _structure(member)] for member in schema.members]
    inner = [child for child in (schema.items, schema.keys, schema.values) if child is not None]
    return [schema.type, schema.name, parameters, members, [[child.optional, _structure(child)] for child in inner]]


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object holds a member twice")
    return members


def _no_constant(name: str) -> object:
    # Python's reader takes a bare NaN; Kafka Connect writes it between quotes.
    raise ValueError(f"{name} is not JSON")


def _node(node: object, depth: int, numbers: Iterator[int]) -> ConnectSchema:
    if next(numbers) > MAX_NODES:
        raise WireError(f"Cannot read schema: it has more than {MAX_NODES} parts")
    if depth > MAX_DEPTH:
        raise WireError(f"Cannot read schema: it is nested deeper than {MAX_DEPTH}")
    if not isinstance(node, dict):
        raise WireError(f"Cannot read schema: expected an object, found {type(node).__name__}")
    kind = node.get("type")
    if not isinstance(kind, str):
        raise WireError(f"Cannot read schema: a type is a {type(kind).__name__}, not a text")
    if kind not in PRIMITIVES and kind not in ("array", "map", "struct"):
        raise WireError(f"Cannot read schema: {_short(kind)} is not a type of Kafka Connect")

    def child(name: str, wanted: str) -> ConnectSchema | None:
        return _node(node.get(name), depth + 1, numbers) if kind == wanted else None

    return ConnectSchema(
        type=kind,
        optional=node.get("optional") is True,
        name=_text(node, "name"),
        version=_integer(node, "version"),
        doc=_text(node, "doc"),
        parameters=_parameters(node),
        default=node.get("default"),
        field=_text(node, "field"),
        members=_members(node, depth, numbers) if kind == "struct" else (),
        items=child("items", "array"),
        keys=child("keys", "map"),
        values=child("values", "map"),
    )


def _members(node: dict[str, object], depth: int, numbers: Iterator[int]) -> tuple[ConnectSchema, ...]:
    fields = node.get("fields")
    if not isinstance(fields, list):
        raise WireError("Cannot read schema: a struct has no list of fields")
    if len(fields) > MAX_FIELDS:
        raise WireError(f"Cannot read schema: {len(fields)} fields are more than {MAX_FIELDS}")
    members = tuple(_node(member, depth + 1, numbers) for member in fields)
    names: set[str] = set()
    for member in members:
        if member.field is None:
            raise WireError("Cannot read schema: a field of a struct has no name")
        if member.field in names:
            raise WireError(f"Cannot read schema: the field {_short(member.field)} is there twice")
        names.add(member.field)
    return members


def _short(text: str) -> str:
    """Show a text that may be as long as a message."""
    return repr(text if len(text) <= 80 else f"{text[:80]}…")


def _parameters(node: dict[str, object]) -> dict[str, str]:
    parameters = node.get("parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict) or not all(isinstance(value, str) for value in parameters.values()):
        raise WireError("Cannot read schema: parameters are not an object of texts")
    return parameters


def _text(node: dict[str, object], name: str) -> str | None:
    value = node.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise WireError(f"Cannot read schema: {name!r} is not a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise WireError(f"Cannot read schema: {name!r} holds half of a surrogate pair") from error
    return value


def _integer(node: dict[str, object], name: str) -> int | None:
    value = node.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise WireError(f"Cannot read schema: {name!r} is not a whole number")
    return value
