"""JSON records of the fuzzed tables as Confluent's Avro converter would have written them, and read back strictly."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro

from tests.fuzz.model import Unreadable

_TYPES = {"int8": "int", "int16": "int", "int32": "int", "int64": "long"}


@dataclass(slots=True)
class Twins:
    """Writes Avro twins; every schema gets the next id.

    Attributes:
        texts: the schemas by id, for a registry to serve.
    """

    texts: dict[int, str] = field(default_factory=dict)
    _ids: dict[str, int] = field(default_factory=dict)

    def of(self, data: bytes | None) -> bytes | None:
        """Return the twin of a JSON key or value."""
        if data is None:
            return None
        document = json.loads(data)
        text = json.dumps(_node(document["schema"], "", set()), separators=(",", ":"))
        id_ = self._ids.setdefault(text, len(self._ids) + 1)
        self.texts[id_] = text
        body = io.BytesIO()
        value = _converted(document["schema"], document["payload"])
        fastavro.schemaless_writer(body, fastavro.parse_schema(json.loads(text)), value)
        return b"\x00" + id_.to_bytes(4, "big") + body.getvalue()


def read_twin(value: bytes, texts: Mapping[int, str]) -> dict[str, Any]:
    """Read an Avro value as the document the JSON converter would have written.

    Raises:
        Unreadable: if the id is not known, or the body does not follow its schema.
    """
    id_ = int.from_bytes(value[1:5], "big")
    if value[:1] != b"\x00" or len(value) < 5 or id_ not in texts:
        raise Unreadable("no schema")
    schema = json.loads(texts[id_])
    try:
        payload = fastavro.schemaless_reader(io.BytesIO(value[5:]), fastavro.parse_schema(schema))
    except Exception as error:  # whatever its decoder meets in a damaged body
        raise Unreadable(str(error)) from error
    return {"schema": {"name": schema.get("connect.name")}, "payload": _as_json(payload)}


def _as_json(value: Any) -> Any:
    match value:
        case dict():
            return {name: _as_json(item) for name, item in value.items()}
        case list():
            return [_as_json(item) for item in value]
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return value


def _node(schema: dict[str, Any], namespace: str, written: set[str]) -> Any:
    """Return a type as AvroData writes it, without the union that makes it optional."""
    about = {
        f"connect.{name}": schema[name] for name in ("name", "version", "parameters") if schema.get(name) is not None
    }
    if schema["type"] == "array":
        return {"type": "array", "items": _optional(schema["items"], namespace, written)}
    if schema["type"] != "struct":
        # Decimals without Avro's logical type: the bytes are the same.
        plain = _TYPES.get(schema["type"], schema["type"])
        return {"type": plain, **about} if about else plain
    own, _, name = schema["name"].rpartition(".")
    if schema["name"] in written:
        return schema["name"]
    written.add(schema["name"])
    fields = []
    for member in schema["fields"]:
        fields.append({"name": member["field"], "type": _optional(member, own, written)})
        if member["optional"]:
            fields[-1]["default"] = None
    return {"type": "record", "name": name, "namespace": own, "fields": fields, **about}


def _optional(schema: dict[str, Any], namespace: str, written: set[str]) -> Any:
    node = _node(schema, namespace, written)
    return ["null", node] if schema["optional"] else node


def _converted(schema: dict[str, Any], value: Any) -> Any:
    """Return a JSON value as Connect has it."""
    if value is None:
        return None
    match schema["type"]:
        case "struct":
            return {member["field"]: _converted(member, value.get(member["field"])) for member in schema["fields"]}
        case "array":
            return [_converted(schema["items"], item) for item in value]
        case "bytes":
            return base64.b64decode(value)
        case "double" | "float":
            return float(value)
        case _:
            return value
