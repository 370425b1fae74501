"""Whatever bytes a record holds, reading it on the driver ends in a schema or in a reason why not, and soon.

CDC_SYNC_FUZZ_READ=100000 asks for that many records, CDC_SYNC_FUZZ_SEED for other ones.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Literal

import pytest

from cdc_sync.core.debezium import avro, wireids
from cdc_sync.core.debezium.conversions import observed
from cdc_sync.core.debezium.envelope import (
    classify,
    event_schema,
    first_row_betrays_default,
    first_row_holds_default,
    read_schema,
    read_source,
    split,
)
from cdc_sync.core.debezium.flattened import FlattenedSettings
from cdc_sync.core.debezium.forms import KnownSchema
from cdc_sync.core.debezium.schema_book import Headers, SchemaBook, digest_of, structural
from cdc_sync.errors import WireError
from cdc_sync.sources.records import Record
from cdc_sync.sources.samples import read_sample
from tests.corpus.reader import CAPTURES, schemas, topics
from tests.fuzz.documents import damaged_schema
from tests.fuzz.mutations import Mutator
from tests.fuzz.octets import Mutant

pytestmark = pytest.mark.timeout(7200)

_RECORDS = int(os.environ.get("CDC_SYNC_FUZZ_READ", "10000"))
_SEED = int(os.environ.get("CDC_SYNC_FUZZ_SEED", "4"))
_PATIENCE = 2.0
"""Seconds of the processor that one record may take; the slowest captured one takes a hundredth."""

_MANY_COLUMNS = 60_000
_FLATTENED = FlattenedSettings(add_fields=("op", "table", "lsn", "source.ts_ms"), prefix="__")


class Captured:
    """A registry that holds the captured schemas, some of them damaged, and no other."""

    def __init__(self, capture: str, seed: int) -> None:
        self._schemas = schemas(capture) if capture.endswith("avro") else {}
        self._seed = seed

    def find_id(
        self, data: bytes, headers: Headers, part: Literal["key", "value"]
    ) -> tuple[wireids.WireId, int] | None:
        return wireids.find_id(data, headers, part=part, registry_type="confluent", ids="content", use_headers=True)

    def schema(self, id_: wireids.WireId) -> str:
        text = self._schemas.get(id_.value) if isinstance(id_.value, int) else None
        if text is None:
            raise WireError(f"Cannot find schema {id_}")
        return damaged_schema(text, seed=self._seed) if self._seed % 5 == 0 else text


def _mutator(capture: str) -> Mutator:
    records = [(message.key, message.value) for messages in topics(capture).values() for message in messages]
    # The widest table's records are 40 times as long as all others: it is met by chance, not in every second record.
    usual = [record for record in records if len(record[1] or b"") < _MANY_COLUMNS]
    return Mutator(usual, seed=_SEED)


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_record_is_learnt_or_broken_for_a_reason(capture: str) -> None:
    mutator = _mutator(capture)
    outcomes: Counter[str] = Counter()
    for number in range(_RECORDS // len(CAPTURES)):
        mutant = mutator.mutant()
        outcomes[_within_patience(mutant, partial(_outcome, capture, mutant, number))] += 1

    assert outcomes["broken"] > 0
    assert outcomes["read"] > 0
    assert sum(outcomes.values()) == _RECORDS // len(CAPTURES)


def _within_patience(mutant: Mutant, read: Callable[[], str]) -> str:
    started = time.process_time()
    try:
        return read()
    except Exception as error:
        raise AssertionError(f"{mutant.kind}: {type(error).__name__}: {error}\n{_shown(mutant)}") from error
    finally:
        taken = time.process_time() - started
        assert taken < _PATIENCE, f"{mutant.kind}: took {taken:.1f} s\n{_shown(mutant)}"


def _shown(mutant: Mutant) -> str:
    return f"key {(mutant.key or b'')[:300]!r}, value {(mutant.value or b'')[:3000]!r}, headers {mutant.headers!r}"


def _outcome(capture: str, mutant: Mutant, number: int) -> str:
    """Take a record the whole way it would go on the driver."""
    if mutant.value is None:
        return "tombstone"
    book = SchemaBook(Captured(capture, number), use_headers=True, flattened=_FLATTENED if number % 3 == 0 else None)
    digest_of(mutant.key, mutant.value)
    known = book.learn(mutant.key, mutant.value, mutant.headers)
    _read_by_hand(mutant)
    if known.broken is not None:
        assert known.broken.startswith("Cannot "), known.broken
        return "broken"
    if known.schema is None:
        return known.kind.value
    observed(known.schema)
    assert structural(known.schema) == known.fingerprint
    return _read_payload(book, known, mutant)


def _read_by_hand(mutant: Mutant) -> None:
    for data in (mutant.key, mutant.value):
        try:
            parts = split(data or b"")
            assert parts.prefix + parts.payload + b"}" == data
            schema = read_schema(parts.prefix)
            classify(schema)
            event_schema(schema, None)
            read_source(parts.payload)
        except WireError:
            continue


def _read_payload(book: SchemaBook, known: KnownSchema, mutant: Mutant) -> str:
    record = Record(
        topic="t", partition=0, offset=0, timestamp=None, key=mutant.key, value=mutant.value, headers=mutant.headers
    )
    assert known.schema is not None
    try:
        sample = read_sample(book, record)
        first_row_holds_default(known.schema, sample.row)
        first_row_betrays_default(known.schema, sample.row)
        assert sample.source.table.table is not None
    except WireError:
        return "unreadable payload"
    return "read"


@pytest.mark.parametrize("capture", ["postgres-avro", "mariadb-avro"])
def test_every_avro_schema_is_read_or_refused(capture: str) -> None:
    texts = list(schemas(capture).values())
    outcomes: Counter[str] = Counter()
    for number in range(_RECORDS // 8):
        text = damaged_schema(texts[number % len(texts)], seed=_SEED * 10_000_019 + number)
        mutant = Mutant(kind="schema", key=None, value=text.encode("utf-8", "surrogatepass"))
        outcomes[_within_patience(mutant, partial(_read_avro_schema, text))] += 1

    assert outcomes["read"] > 0
    assert outcomes["refused"] > 0


def _read_avro_schema(text: str) -> str:
    try:
        schema = avro.connect_schema(text)
        classify(schema)
        observed(event_schema(schema, None))
    except WireError:
        return "refused"
    return "read"
