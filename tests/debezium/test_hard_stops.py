"""A crafted schema costs no more than a plain one of its size, and what is beyond all measure is not built at all."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest

from cdc_sync.core.debezium.connect import MAX_FIELDS, MAX_NODES, parse
from cdc_sync.core.debezium.envelope import split
from cdc_sync.errors import WireError


def text(names: list[str]) -> bytes:
    fields = [{"type": "string", "optional": True, "field": name} for name in names]
    return json.dumps({"type": "struct", "fields": fields}).encode()


def seconds(schema: bytes) -> float:
    started = time.process_time()
    with suppress(WireError):
        parse(schema)
    return time.process_time() - started


def test_a_field_that_is_there_twice_is_found_at_once() -> None:
    names = [f"column_{number}" for number in range(MAX_FIELDS)]
    plain, crafted = text(names), text([*names[:-1], names[-2]])
    with pytest.raises(WireError, match=f"the field '{names[-2]}' is there twice"):
        parse(crafted)
    assert min(seconds(crafted) for _ in range(3)) < 3 * min(seconds(plain) for _ in range(3))


def test_structs_in_structs_do_not_get_around_the_limit_on_fields() -> None:
    inner = '{"type":"struct","field":"%d","fields":[%s]}'
    leaves = ",".join(f'{{"type":"int8","field":"{number}"}}' for number in range(1000))
    schema = '{"type":"struct","fields":[' + ",".join(inner % (number, leaves) for number in range(300)) + "]}"
    with pytest.raises(WireError, match=f"more than {MAX_NODES} parts"):
        parse(schema.encode())


@pytest.mark.parametrize(
    "schema",
    [
        b'{"type":"int64","default":' + b"9" * 2_000_000 + b"}",
        b'{"type":"double","default":1e' + b"9" * 2_000_000 + b"}",
        b'{"type":"' + b"x" * 2_000_000 + b'"}',
        b'{"type":' * 500_000,
        b"[" * 2_000_000,
    ],
)
def test_numbers_texts_and_nesting_of_any_size_are_refused_in_a_short_sentence(schema: bytes) -> None:
    started = time.process_time()
    with pytest.raises(WireError) as refused:
        parse(schema)
    assert time.process_time() - started < 2
    assert len(str(refused.value)) < 300


def test_a_message_of_many_megabytes_is_parted_in_one_pass() -> None:
    payload = b'{"after":{"note":"' + b'\\"},\\u00e9' * 1_000_000 + b'"}}'
    started = time.process_time()
    assert split(b'{"schema":{"type":"struct","fields":[]},"payload":' + payload + b"}").payload == payload
    assert time.process_time() - started < 3
