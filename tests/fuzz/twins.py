"""JSON records of the fuzzed tables as Confluent's Avro converter would have written them, and read back strictly."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Iterator, Mapping
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
        payload = _Body(io.BytesIO(value[5:]), dict(_records(schema))).value(schema)
    except RecursionError as error:
        raise Unreadable(str(error)) from error
    return {"schema": {"name": schema.get("connect.name")}, "payload": payload}


class _Body:
    """Reads a body as the Avro specification says, and where that is silent as Avro's own library does.

    A damaged number is another number: bits beyond an `int`'s 32 or a `long`'s 64 are dropped, and a boolean that is
    neither 0 nor 1 is false. Bytes that are no text stay bytes, for they may be in what nobody needs.
    """

    def __init__(self, data: io.BytesIO, named: Mapping[str, Any]) -> None:
        self._data = data
        self._named = named

    def value(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return self.value(schema[self._index(len(schema))])
        kind = schema["type"] if isinstance(schema, dict) else schema
        match kind:
            case "record":
                return {member["name"]: self.value(member["type"]) for member in schema["fields"]}
            case "array":
                return self._array(schema["items"])
            case "null":
                return None
            case "boolean":
                return self._bytes(1) == b"\x01"
            case "int":
                return self._number(32)
            case "long":
                return self._number(64)
            case "float":
                return struct.unpack("<f", self._bytes(4))[0]
            case "double":
                return struct.unpack("<d", self._bytes(8))[0]
            case "bytes":
                return base64.b64encode(self._bytes(self._number(64))).decode()
            case "string":
                return _text(self._bytes(self._number(64)))
            case _:
                return self.value(self._named[kind])

    def _array(self, items: Any) -> list[Any]:
        found = []
        while count := self._number(64):
            if count < 0:
                count = -count
                self._number(64)  # the block's size in bytes
            for _ in range(count):
                found.append(self.value(items))
        return found

    def _index(self, size: int) -> int:
        index = self._number(32)
        if not 0 <= index < size:
            raise Unreadable("no such branch")
        return index

    def _number(self, bits: int) -> int:
        found = 0
        for place in range(0, bits, 7):
            (byte,) = self._bytes(1)
            found |= (byte & 0x7F) << place
            if byte < 0x80:
                found &= (1 << bits) - 1
                return (found >> 1) ^ -(found & 1)
        raise Unreadable("an endless number")

    def _bytes(self, size: int) -> bytes:
        found = self._data.read(size) if size >= 0 else b""
        if size < 0 or len(found) < size:
            raise Unreadable("cut short")
        return found


def _records(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield the records in a schema by name; references come after them, but their values may come first."""
    match schema:
        case list():
            for branch in schema:
                yield from _records(branch)
        case {"type": "record", "namespace": namespace, "name": name, "fields": fields}:
            yield f"{namespace}.{name}", schema
            for member in fields:
                yield from _records(member["type"])
        case {"type": "array", "items": items}:
            yield from _records(items)


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _node(schema: dict[str, Any], namespace: str, written: set[str]) -> Any:
    """Return a type as AvroData writes it, without the union that makes it optional."""
    about = {
        f"connect.{name}": schema[name] for name in ("name", "version", "parameters") if schema.get(name) is not None
    }
    if schema["type"] == "array":
        return {"type": "array", "items": _optional(schema["items"], namespace, written)}
    if schema["type"] == "map":
        return {"type": "map", "values": _optional(schema["values"], namespace, written)}  # keys are texts
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
        case "map":
            return {key: _converted(schema["values"], item) for key, item in value.items()}
        case "bytes":
            return base64.b64decode(value)
        case "double" | "float":
            return float(value)
        case _:
            return value
