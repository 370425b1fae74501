"""A schema that names types of other registered schemas, made whole."""

from __future__ import annotations

import json
from collections.abc import Mapping

from cdc_sync.core.debezium.avro_names import PRIMITIVES, declared_name, full_name, namespace_of
from cdc_sync.core.debezium.connect import load_json
from cdc_sync.errors import WireError


def inline(text: str, references: Mapping[str, str]) -> str:
    """Put the types of referenced schemas where they are named first.

    Args:
        text: an Avro schema.
        references: schema texts, of references of references too, in any order; what they are called does not matter,
            since Avro finds types by the names they declare.

    Raises:
        WireError: if a text is not JSON, or is nested too deeply.
    """
    if not references:
        return text
    known: dict[str, dict[str, object]] = {}
    try:
        for reference in references.values():
            _collect(_loaded(reference), "", known)
        return json.dumps(_Inliner(known).whole(_loaded(text), ""), separators=(",", ":"), default=float)
    except RecursionError as error:
        raise WireError("Cannot read Avro schema: it is nested too deeply") from error


def _loaded(text: str) -> object:
    try:
        return load_json(text.encode(), "Avro schema", unique_members=True)
    except UnicodeEncodeError as error:
        raise WireError("Cannot read Avro schema: it holds half of a surrogate pair") from error


def _collect(node: object, namespace: str, known: dict[str, dict[str, object]]) -> None:
    """Find every declaration below a node."""
    if isinstance(node, list):
        for branch in node:
            _collect(branch, namespace, known)
    if not isinstance(node, dict):
        return
    if (name := declared_name(node, namespace)) is not None:
        known[name] = {**node, "name": name}
        namespace = namespace_of(name)
    for inner in (node.get("items"), node.get("values"), *(field.get("type") for field in _fields(node))):
        _collect(inner, namespace, known)


class _Inliner:
    def __init__(self, known: Mapping[str, dict[str, object]]) -> None:
        self._known = known
        self._done: set[str] = set()

    def whole(self, node: object, namespace: str) -> object:
        """Return a node with every name declared at its first use."""
        if isinstance(node, list):
            return [self.whole(branch, namespace) for branch in node]
        if isinstance(node, str):
            return self._named(node, namespace)
        if not isinstance(node, dict):
            return node
        name = declared_name(node, namespace)
        if name is not None:
            if name in self._done:
                return name
            self._done.add(name)
            namespace = namespace_of(name)
            # The full name says it all: what is moved elsewhere must not take the namespace of its new place.
            node = {**{key: value for key, value in node.items() if key != "namespace"}, "name": name}
            if not namespace:
                node["namespace"] = ""
        inner = {key: self.whole(node[key], namespace) for key in ("items", "values") if key in node}
        if "fields" in node:
            inner["fields"] = [{**field, "type": self.whole(field.get("type"), namespace)} for field in _fields(node)]
        return {**node, **inner}

    def _named(self, name: str, namespace: str) -> object:
        if name in PRIMITIVES:
            return name
        for candidate in (full_name(name, namespace), name):
            if candidate in self._done:
                return candidate
            if candidate in self._known:
                return self.whole(self._known[candidate], "")
        return name


def _fields(node: dict[str, object]) -> list[dict[str, object]]:
    fields = node.get("fields")
    return [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
