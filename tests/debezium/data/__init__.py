"""Captured records of Debezium's transforms and converters, read when asked for; `capture.py` made them."""

from __future__ import annotations

import base64
import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """One record; a null value is a tombstone."""

    topic: str
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@cache
def captured(name: str) -> tuple[Captured, ...]:
    """Return the records of one connector, by topic and offset."""
    lines = lzma.decompress((_HERE / f"{name}.jsonl.xz").read_bytes()).splitlines()
    return tuple(_captured(json.loads(line)) for line in lines)


def _captured(line: dict[str, object]) -> Captured:
    headers = line["headers"]
    assert isinstance(headers, list)
    return Captured(
        topic=str(line["topic"]),
        offset=int(str(line["offset"])),
        key=_bytes(line["key_b64"]),
        value=_bytes(line["value_b64"]),
        headers=tuple((name, _bytes(value)) for name, value in headers),
    )


def _bytes(text: object) -> bytes | None:
    return base64.b64decode(text) if isinstance(text, str) else None
