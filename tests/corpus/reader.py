"""The captured topics, and the truth beside them, read from the archives when first asked for."""

from __future__ import annotations

import base64
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

_HERE = Path(__file__).parent

CAPTURES = ("postgres-json", "mariadb-json", "postgres-avro", "mariadb-avro")
"""Every capture: the database, and how its connector wrote."""

PREFIXES = {"postgres-json": "pgj", "mariadb-json": "maj", "postgres-avro": "pga", "mariadb-avro": "maa"}
"""The `topic.prefix` of each capture's connector."""

Expected: TypeAlias = dict[str, Any]
"""A table's final structure and rows: `db`, `table`, `primary_key`, `columns` (`name`, `type`, ...), `rows` as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One captured record; a null value is a tombstone."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def database(capture: str) -> str:
    """Return which truth a capture belongs to: `postgres` or `mariadb`."""
    return capture.partition("-")[0]


@cache
def topics(capture: str = "postgres-json") -> dict[str, list[Message]]:
    """Return all messages by topic, in offset order; callers must not change them."""
    found = {}
    for path, text in _files(capture):
        if path.suffix == ".jsonl" and path.parent.name == "topics":
            found[path.stem] = [_message(json.loads(line)) for line in text.splitlines()]
    return found


@cache
def schemas(capture: str) -> dict[int, str]:
    """Return an Avro capture's registered schemas by id, as registered."""
    return {line["id"]: line["schema"] for line in _lines(capture, "schemas.jsonl")}


@cache
def expected(capture: str = "postgres-json") -> dict[str, Expected]:
    """Return the final state of each table, by `schema.table`, or `database.table` where there are no schemas."""
    truth = f"{database(capture)}-sql"
    tables = [json.loads(text) for path, text in _files(truth) if path.parent.name == "expected"]
    return {table["table"]: table for table in tables}


@cache
def script(capture: str = "postgres-json") -> list[dict[str, Any]]:
    """Return the statements in the order they ran: `step`, `phase`, `tables`, `sql`, `error`, `pos_after`, `time`."""
    return _lines(f"{database(capture)}-sql", "script.jsonl")


@cache
def history(capture: str = "postgres-json") -> list[dict[str, Any]]:
    """Return structure and rows of each touched table after every step."""
    return _lines(f"{database(capture)}-sql", "history.jsonl")


def _lines(archive: str, name: str) -> list[dict[str, Any]]:
    text = next(text for path, text in _files(archive) if path.name == name)
    return [json.loads(line) for line in text.splitlines()]


def _files(archive: str) -> Iterator[tuple[PurePosixPath, bytes]]:
    with tarfile.open(_HERE / f"{archive}.tar.xz") as files:
        for member in files:
            content = files.extractfile(member)
            if content is not None:
                yield PurePosixPath(member.name), content.read()


def _message(line: dict[str, Any]) -> Message:
    return Message(
        topic=line["topic"],
        partition=line["partition"],
        offset=line["offset"],
        timestamp=line["timestamp"],
        key=_bytes(line["key_b64"]),
        value=_bytes(line["value_b64"]),
        headers=tuple((name, _bytes(value)) for name, value in line["headers"]),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
