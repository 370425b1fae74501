"""The writer's schemas of many records as one, so that one reader reads them all.

Source: Apache Avro specification, "Names" and "Binary Encoding": a union's value is the number of its branch as a long,
and behind it the value; a record is its fields' values and nothing besides.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from cdc_sync.core.debezium.avro_names import PRIMITIVES, declared_name, full_name, namespace_of

MEMBER = "body"
"""The field that holds what the record was, in every branch."""


def union_of(writers: Sequence[str]) -> str:
    """Return a schema of which each writer's is a branch: a record with one field, `MEMBER`, of that schema.

    In such a record any schema has a place, a union too, and two of one kind. Each branch has names of its own: in one
    schema a name may be declared once only.

    Args:
        writers: valid schemas, each whole in itself; see `avro_references`.
    """
    return f"[{','.join(_branch(number, writer) for number, writer in enumerate(writers))}]"


@lru_cache(maxsize=1024)
def _branch(number: int, writer: str) -> str:
    name = f"w{number}"
    member = {"name": MEMBER, "type": _Renamer(name).of(writer)}
    return json.dumps({"type": "record", "name": name, "fields": [member]}, separators=(",", ":"))


def branch_mark(number: int) -> bytes:
    """Return what stands before a body so that it is read as a branch: its number as Avro's long."""
    rest, mark = number << 1, bytearray()
    while rest > 0x7F:
        mark.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*mark, rest))


class _Renamer:
    """Gives each declared type of a schema the next name of its own, without a namespace, wherever it is named."""

    def __init__(self, branch: str) -> None:
        self._branch = branch
        self._names: dict[str, str] = {}

    def of(self, writer: str) -> object:
        return self._renamed(json.loads(writer), "")

    def _renamed(self, node: object, namespace: str) -> object:
        if isinstance(node, list):
            return [self._renamed(branch, namespace) for branch in node]
        if isinstance(node, str):
            return self._named(node, namespace)
        if not isinstance(node, dict):
            return node
        if (name := declared_name(node, namespace)) is not None:
            return self._declared(node, name)
        inner = {"array": "items", "map": "values"}.get(str(node.get("type")), "type")
        return {**node, inner: self._renamed(node.get(inner), namespace)}

    def _declared(self, node: dict[str, object], name: str) -> dict[str, object]:
        self._names[name] = f"{self._branch}_{len(self._names)}"
        renamed = {**node, "name": self._names[name]}
        renamed.pop("namespace", None)
        if isinstance(fields := node.get("fields"), list):
            within = namespace_of(name)
            renamed["fields"] = [{**field, "type": self._renamed(field["type"], within)} for field in fields]
        return renamed

    def _named(self, name: str, namespace: str) -> str:
        if name in PRIMITIVES or name == "null":
            return name
        # As Avro's Java library looks a name up: first within the namespace, then without one.
        return self._names.get(full_name(name, namespace)) or self._names.get(name, name)
