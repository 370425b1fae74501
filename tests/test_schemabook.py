"""Schema texts are parsed once, and recognised by their bytes whatever stands in names and values."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.debezium.envelope import split
from cdc_sync.core.debezium.forms import Absent, Opaque, Prefix, RecordKind
from cdc_sync.core.debezium.schema_book import SchemaBook, digest_of
from cdc_sync.testing import INT32, TEXT, SourceTable, column, heartbeat, message

CRAFTED = ',"payload":'


def table(name: str = "t", *columns: str, key: tuple[str, ...] = ("id",)) -> SourceTable:
    texts = (column(extra, TEXT) for extra in columns)
    return SourceTable(name, [column("id", INT32, optional=False), *texts], key=key)


def test_a_schema_is_learnt_once() -> None:
    t = table()
    (first,), (second,) = t.insert(id=1), t.insert(id=2)
    assert first.value is not None
    assert second.value is not None
    book = SchemaBook()
    known = book.learn(first.key, first.value)
    assert book.learn(second.key, second.value) is known
    assert book.get(digest_of(second.key, second.value)) is known
    assert book.get("another") is None


def test_what_is_known_of_a_change_of_a_table() -> None:
    (record,) = table().insert(id=1)
    assert record.key is not None
    assert record.value is not None
    known = SchemaBook().learn(record.key, record.value)
    assert (known.kind, known.broken) == (RecordKind.TABLE_CHANGE, None)
    assert known.key_form == Prefix(text=split(record.key).prefix)
    assert known.value_form == Prefix(text=split(record.value).prefix)
    assert known.schema is not None
    assert known.schema.key == ("id",)
    assert known.fingerprint is not None


def test_the_key_is_part_of_the_schema() -> None:
    (keyed,), (keyless,) = table().insert(id=1), table(key=()).insert(id=1)
    assert keyed.value is not None
    assert keyless.value is not None
    book = SchemaBook()
    assert book.learn(keyed.key, keyed.value) is not book.learn(keyless.key, keyless.value)
    without = book.learn(None, keyless.value)
    assert (without.key_form, without.schema and without.schema.key) == (Absent(), ())


def test_other_records_are_known_by_their_kind() -> None:
    record = heartbeat("shop", 1)
    assert record.value is not None
    known = SchemaBook().learn(record.key, record.value)
    assert (known.kind, known.schema, known.broken) == (RecordKind.HEARTBEAT, None, None)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b'{"schema":{"type":"struct"', "not JSON"),
        (b"plain", "not JSON"),
        (b'{"a":1}', "no schema"),
        (b'{"schema":{"type":"no such type","optional":false},"payload":1}', "no such type"),
    ],
)
def test_a_schema_that_cannot_be_read_is_learnt_as_broken(value: bytes, why: str) -> None:
    book = SchemaBook()
    known = book.learn(None, value)
    assert why in (known.broken or "")
    assert book.learn(None, value) == known


def test_a_key_that_cannot_be_read_breaks_the_record() -> None:
    (record,) = table().insert(id=1)
    assert record.value is not None
    assert SchemaBook().learn(b'{"schema":{"type":7},"payload":1}', record.value).broken is not None


def test_a_record_without_a_schema_has_no_digest() -> None:
    assert digest_of(b"key", b'{"id":1}') == ""
    assert digest_of(None, b"") == ""


@given(
    st.lists(
        st.sampled_from([CRAFTED, '"', "\\", '\\"', '",', ":", "payload", "é", "\u2028", "😀", "\x00", "a"]),
        max_size=5,
    ).map("".join),
    st.text(alphabet=',"payload:{}\\', max_size=14),
)
def test_the_digest_is_of_the_schema_parts_whatever_names_and_values_hold(name: str, value: str) -> None:
    t = table(name or "t", f"c{name}")
    (record,) = t.insert({"id": 1, f"c{name}": value})
    assert record.key is not None
    assert record.value is not None
    marker = len(CRAFTED)
    parts = split(record.key).prefix[:-marker], split(record.value).prefix[:-marker]
    assert digest_of(record.key, record.value) == hashlib.sha256(b"\n".join(parts)).hexdigest()


@pytest.mark.parametrize("key", [b"", b"7", b'{"id":7}'])
def test_a_key_without_a_schema_is_another_form_than_no_key(key: bytes) -> None:
    value, book = message(INT32, 1), SchemaBook()

    assert digest_of(key, value) != digest_of(None, value)
    assert isinstance(book.learn(None, value).key_form, Absent)
    assert isinstance(book.learn(key, value).key_form, Opaque)
