"""Avro's rules for names, and the walk over the places where a type can stand.

Source: Apache Avro specification, "Names", "Schema Declaration".
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from cdc_sync.core.debezium.connect import load_json
from cdc_sync.errors import WireError

PRIMITIVES = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "string": "string",
}
"""Avro type -> Kafka Connect type."""

_OF_THE_LAYOUT = ("type", "name", "namespace", "fields", "items", "values", "symbols", "size")


def is_name(name: str) -> bool:
    """Tell whether a name is one to Avro's Java library, which takes letters and digits of all scripts."""
    first = name[:1]
    return (first == "_" or first.isalpha()) and all(c == "_" or c.isalpha() or c.isdecimal() for c in name)


def full_name(name: str, namespace: str) -> str:
    """Return a type's full name; a name with a dot is one already."""
    return f"{namespace}.{name}" if namespace and "." not in name else name


def namespace_of(name: str) -> str:
    """Return the namespace that names inside a type of this full name belong to."""
    return name.rpartition(".")[0]


def declared_name(node: Mapping[str, object], namespace: str) -> str | None:
    """Return the full name of the type that a node declares, None if it declares none."""
    name, given = node.get("name"), node.get("namespace", namespace)
    if node.get("type") not in ("record", "enum", "fixed") or not isinstance(name, str) or not isinstance(given, str):
        return None
    return full_name(name, given)


def without_logical_types(text: str) -> str:
    """Return the schema with only what the layout of the bytes depends on.

    Readers then give plain integers and bytes, and the text is a fraction of what was registered.

    Raises:
        WireError: if the text is not JSON.
    """
    try:
        return json.dumps(_bare(load_json(text.encode(), "Avro schema")), separators=(",", ":"))
    except (RecursionError, UnicodeEncodeError, TypeError) as error:  # Type: a fraction where a number of bytes stands.
        raise WireError("Cannot read Avro schema: it is nested too deeply, or is not Unicode, or no schema") from error


def _bare(node: object) -> object:
    if isinstance(node, list):
        return [_bare(branch) for branch in node]
    if not isinstance(node, dict):
        return node
    kept = {name: value for name, value in node.items() if name in _OF_THE_LAYOUT}
    for name in ("items", "values"):
        if name in kept:
            kept[name] = _bare(kept[name])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [
            {"name": field.get("name"), "type": _bare(field.get("type"))} if isinstance(field, dict) else field
            for field in kept["fields"]
        ]
    return kept
