"""Whatever stands in a record of an evidence topic, it is read, or refused as one that cannot be."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from cdc_sync.core.lineage.ddl_log import DdlLog
from cdc_sync.core.lineage.ddl_records import schema_change
from cdc_sync.core.lineage.messages import MessageLog, logical_message
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.errors import WireError
from tests.corpus.reader import topics
from tests.evidence.test_messages_captured import payloads

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**63,
    10**5000,
    1.5,
    float("nan"),
    "",
    "9" * 5000,
    "binlog." + "9" * 5000,
    '["' + "9" * 20 + '","' + "9" * 20 + '"]',
    "[" * 5000,
    "\ud800",
    "\0${env:HOME}\u202e",
    [],
    {},
    [None],
    {"a": {"b": []}},
)


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document, inner ones and leaves."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (*above, name)
        yield from places(item, (*above, name))


def with_value(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    found = deepcopy(document)
    inner = found
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return found


def mutants(documents: Sequence[Mapping[str, Any]], seed: int, count: int) -> Iterator[Any]:
    random = Random(seed)
    for _ in range(count):
        document = random.choice(documents)
        yield with_value(document, random.choice(list(places(document))), random.choice(HOSTILE))


def at(offset: int) -> KafkaPosition:
    return KafkaPosition(topic="t", partition=0, offset=offset)


@pytest.mark.parametrize("seed", range(4))
def test_schema_changes(seed: int) -> None:
    (told,) = (found for name, found in topics("mariadb-json").items() if name == "maj")
    documents = [json.loads(message.value or b"null")["payload"] for message in told]
    log = DdlLog()
    for offset, document in enumerate(mutants(documents, seed, 400)):
        try:
            record = schema_change(document, at(offset))
        except WireError:
            continue
        log.add(record)
        if not offset % 20:
            log.log()
    log.log()


@pytest.mark.parametrize("seed", range(4))
def test_logical_messages_and_what_they_hold(seed: int) -> None:
    documents = [dict(payload) for _, payload in payloads("postgres-json")]
    contents = [json.loads(base64.b64decode(str(item["message"]["content"]))) for item in documents]  # type: ignore[index]
    log = MessageLog()
    for offset, (document, content) in enumerate(
        zip(mutants(documents, seed, 400), mutants(contents, seed + 9, 400), strict=True)
    ):
        for candidate in (document, _with_content(documents[offset % len(documents)], content)):
            try:
                message = logical_message(candidate, at(offset))
            except WireError:
                continue
            log.add(message)
        if not offset % 20:
            log.log()
    log.log()


def _with_content(document: Mapping[str, Any], content: Any) -> Any:
    try:
        text = json.dumps(content).encode("utf-8", "surrogatepass")
    except ValueError:
        text = b"{"  # a number of 5,000 digits is not written
    return with_value(document, ("message", "content"), base64.b64encode(text).decode())
