"""Whatever is no change of a table is called by its name, and always by the same."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.debezium import refusals
from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.refusals import Configured, NotATable, why_not_a_table
from cdc_sync.testing import INT32, JSON, TEXT, column, envelope_schema, heartbeat, message, struct
from tests.debezium.data import captured

ALL = [item for item in vars(refusals).values() if isinstance(item, NotATable)]
ROW = struct("shop.public.t.Value", column("id", INT32))
ENVELOPE = envelope_schema("shop.public.t", [column("id", INT32)])
MONGO_SOURCE = replace(struct("io.debezium.connector.mongo.Source", column("connector", TEXT)), field="source")
MONGO = struct("m.db.c.Envelope", column("before", JSON), column("after", JSON), MONGO_SOURCE, column("op", TEXT))
OLD_MONGO = struct("m.db.c.Envelope", column("after", JSON), column("patch", JSON), column("op", TEXT))
FLAT_MONGO = struct("m.db.c", column("_id", TEXT), column("name", TEXT))


def text(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("outbox", refusals.OUTBOX),
        ("cloudevents", refusals.CLOUD_EVENT),
        ("schemaless", refusals.WITHOUT_SCHEMA),
        ("schemaless-flattened", refusals.FLATTENED_WITHOUT_SCHEMA),
        ("flattened-rewrite", refusals.FLATTENED),
        ("flattened-drop", refusals.FLATTENED),
    ],
)
def test_captured_records_are_recognised(name: str, expected: NotATable) -> None:
    for record in captured(name):
        found = why_not_a_table(record.value, headers=record.headers, topic=record.topic)
        assert found == (None if record.value is None else expected)


def test_what_can_be_read_is_not_refused() -> None:
    for name in ("flattened-rewrite", "flattened-tombstone"):
        for record in captured(name):
            assert why_not_a_table(record.value, configured=Configured(flattened=True)) is None
    for record in captured("router"):
        assert why_not_a_table(record.value, headers=record.headers, topic=record.topic) is None
    assert why_not_a_table(heartbeat("shop", 1).value) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"", refusals.EMPTY),
        (text({"id": 1, "source": "/a", "specversion": "1.0", "data": {}}), refusals.CLOUD_EVENT),
        (text({"schemaId": 7, "payload": {"op": "c"}}), refusals.EXT_JSON),
        (text({"after": '{"_id": 1}', "source": {"connector": "mongodb"}, "op": "c"}), refusals.MONGODB),
        (message(MONGO, None), refusals.MONGODB),
        (message(OLD_MONGO, None), refusals.MONGODB),
        (message(FLAT_MONGO, None), refusals.MONGODB),
        (text({"after": {"id": 1}, "source": {"connector": "mysql"}, "op": "c"}), refusals.WITHOUT_SCHEMA),
        (text({"id": 1, "__op": "c"}), refusals.FLATTENED_WITHOUT_SCHEMA),
        (text({"database": "a", "table": "b", "type": "insert", "ts": 1, "data": {}}), refusals.OTHER_TOOL),
        (text({"id": 1, "name": "x"}), refusals.PLAIN_JSON),
        (text({"payload": 1}), refusals.PLAIN_JSON),
        (text({"schema": None, "payload": {"id": 1}}), refusals.NULL_SCHEMA),
        (text({"schema": "string", "payload": 1}), refusals.OTHER_SCHEMA),
        (text({"payload": 1, "schema": {"type": "record"}}), refusals.OTHER_SCHEMA),
        (message(TEXT, "hello"), refusals.BARE_VALUE),
        (message(struct("com.acme.Thing", column("id", INT32)), {"id": 1}), refusals.OTHER_STRUCT),
        (message(struct("CloudEvents.Envelope", column("specversion", TEXT)), None), refusals.CLOUD_EVENT),
        (b"\x00\x00\x00\x00\x07\x02\x08", refusals.NO_REGISTRY),
        (b'\x00\x00\x00\x00\x07{"id":1}', refusals.JSON_SCHEMA),
        (gzip.compress(b"{}", mtime=0), refusals.COMPRESSED),
        (b"\xef\xbb\xbf{}", refusals.MARKED),
        (b"\xff\xfe{\x00}\x00", refusals.MARKED),
        (b"\x9f\x80\x81", refusals.BINARY),
        (b"<?xml version='1.0'?><a/>", refusals.XML),
        (b" \n<a/>", refusals.XML),
        (b'{"id":1', refusals.DAMAGED_JSON),
        (b'{"id":NaN}', refusals.DAMAGED_JSON),
        (b'{"a":' * 200_000, refusals.DAMAGED_JSON),
        (b"hello", refusals.TEXT),
        (b"17", refusals.BARE_VALUE),
        (b'["a"]', refusals.BARE_VALUE),
    ],
)
def test_a_value_is_recognised_by_its_bytes(value: bytes, expected: NotATable) -> None:
    assert why_not_a_table(value) == expected


@pytest.mark.parametrize("value", [b"hello", b'"{\\"id\\": 4}"', text({"id": 4}), message(JSON, "{}"), b"4"])
def test_an_outbox_event_is_known_by_its_header_or_topic_whatever_its_payload(value: bytes) -> None:
    assert why_not_a_table(value, headers=[("id", b"7a1c")]) == refusals.OUTBOX
    assert why_not_a_table(value, topic="outbox.event.order") == refusals.OUTBOX
    assert why_not_a_table(value) not in (refusals.OUTBOX, None)


def test_a_table_with_a_header_called_id_stays_a_table() -> None:
    assert why_not_a_table(message(ENVELOPE, {}), headers=[("id", b"7a1c")]) is None


def test_a_cloud_event_in_binary_mode_is_known_by_its_headers() -> None:
    assert why_not_a_table(text({"id": 1}), headers=[("ce_specversion", b"1.0")]) == refusals.CLOUD_EVENT


@pytest.mark.parametrize("header", ["__value_schema_id", "apicurio.value.globalId", "apicurio.value.contentId"])
def test_an_id_in_a_header_asks_for_the_setting(header: str) -> None:
    record = [(header, b"\x00\x00\x00\x00\x00\x00\x00\x07")]
    assert why_not_a_table(b"\x02\x08", headers=record) == refusals.NO_HEADERS
    assert why_not_a_table(b"\x02\x08", headers=record, configured=Configured(registry=True)) == refusals.NO_HEADERS


def test_a_magic_byte_that_the_registry_does_not_explain_is_told_apart() -> None:
    found = why_not_a_table(b"\x00\x00\x00\x00\x07\x02\x08", configured=Configured(registry=True))
    assert found == refusals.UNKNOWN_ID


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (MONGO, refusals.MONGODB),
        (ROW, refusals.FLATTENED),
        (ENVELOPE, None),
        (TEXT, refusals.BARE_VALUE),
        (struct("x", column("y", TEXT)), refusals.OTHER_STRUCT),
    ],
)
def test_a_value_is_recognised_by_its_schema_whatever_its_bytes(
    schema: ConnectSchema, expected: NotATable | None
) -> None:
    assert why_not_a_table(b"\x00\x00\x00\x00\x07\x02", schema=schema) == expected


def test_a_wrapped_tombstone_is_not_refused() -> None:
    assert why_not_a_table(b'{"schema":null,"payload":null}') is None


def test_reasons_are_few_short_and_say_what_to_do() -> None:
    assert len({item.reason for item in ALL}) == len(ALL) > 20
    for item in ALL:
        assert len(item.reason) < 110
        assert item.remedy
        assert not any(character.isdigit() for character in item.reason)


JUNK = st.binary(max_size=60) | st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["schema", "payload", "type", "fields", "source", "op", "after", "specversion", "_id", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
).map(text)


@given(JUNK, st.booleans(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_whatever_comes_the_answer_is_one_of_the_known(value: bytes, registry: bool, routed: bool) -> None:
    topic = "outbox.event.x" if routed else "t"
    found = why_not_a_table(value, topic=topic, configured=Configured(registry=registry))
    assert found is None or found in ALL
