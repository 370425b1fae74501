"""Which schema an Avro record was written with: ids in front of the body, or in the record's headers.

Sources: Confluent schema-registry, `schema-serializer/.../schema/id`; Apicurio Registry, `serde-common`
(`Default4ByteIdHandler`, `Legacy8ByteIdHandler`, `OptimisticFallbackIdHandler`) and `serde-kafka-common/.../headers`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cdc_sync.errors import WireError

IdKind: TypeAlias = Literal["confluent", "content", "global", "guid"]

_MAGIC = 0
_GUID = 1
_SHORT = 5
_LONG = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class WireId:
    """A schema's id in one of the registries' id spaces, which do not mean the same thing by one number.

    Attributes:
        kind: `confluent`, `content` and `global` (both Apicurio's) are numbers, `guid` is Confluent 8's.
        value: a number, or the GUID's text in small letters.
    """

    kind: IdKind
    value: int | str

    def __str__(self) -> str:
        """Such as `confluent-17`: stable, and fit for a file's name."""
        return f"{self.kind}-{self.value}"


def find_id(
    data: bytes,
    headers: Sequence[tuple[str, bytes | None]],
    *,
    part: Literal["key", "value"],
    registry_type: Literal["confluent", "apicurio"],
    ids: Literal["content", "global"],
    use_headers: bool,
) -> tuple[WireId, int] | None:
    """Return the id of a record's key or value, and the byte its Avro body begins at; None if there is no id.

    Args:
        data: the key or the value.
        headers: the record's.
        part: which of the two `data` is.
        registry_type, ids: what a 4-byte number in front of the body means.
        use_headers: look at the headers first.

    Raises:
        WireError: if a header that names a schema has no known form, or is there twice.
    """
    if use_headers:
        found = _in_headers(headers, part)
        if found is not None:
            return found, 0
    if len(data) < _SHORT or data[0] != _MAGIC:
        return None
    kind: IdKind = "confluent" if registry_type == "confluent" else ids
    start = _SHORT
    if not any(data[1:_SHORT]) and len(data) >= _LONG:
        # Apicurio 2 without headers: 8 bytes, always a global id. No registry gives out the id 0.
        kind, start = "global", _LONG
    found = _numbered(kind, data[1:start])
    return None if found is None else (found, start)


def _numbered(kind: IdKind, number: bytes) -> WireId | None:
    value = int.from_bytes(number, "big", signed=True)
    return WireId(kind=kind, value=value) if value >= 0 else None


def _in_headers(headers: Sequence[tuple[str, bytes | None]], part: str) -> WireId | None:
    readers: tuple[tuple[str, Callable[[bytes], WireId | None]], ...] = (
        (f"__{part}_schema_id", _confluent),
        (f"apicurio.{part}.globalId", lambda data: _apicurio("global", data)),
        (f"apicurio.{part}.contentId", lambda data: _apicurio("content", data)),
    )
    for name, read in readers:
        values = {value for header, value in headers if header == name and value}
        if len(values) > 1:
            raise WireError(f"Cannot read header {name!r}: it is there twice")
        for value in values:
            found = read(value)
            if found is None:
                raise WireError(f"Cannot read header {name!r}: {value[:20].hex()} is not the id of a schema")
            return found
    return None


def _confluent(data: bytes) -> WireId | None:
    if data[0] == _GUID and len(data) == 17:
        return WireId(kind="guid", value=str(uuid.UUID(bytes=data[1:])))
    if data[0] == _MAGIC and len(data) == _SHORT:
        return _numbered("confluent", data[1:])
    return None


def _apicurio(kind: IdKind, data: bytes) -> WireId | None:
    return _numbered(kind, data) if len(data) == 8 else None
