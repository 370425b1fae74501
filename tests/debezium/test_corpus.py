"""Every captured message is read, and our builders write the same bytes."""

from __future__ import annotations

import json
from functools import cache

from cdc_sync.core.debezium.connect import ConnectSchema, load_json
from cdc_sync.core.debezium.conversions import observed
from cdc_sync.core.debezium.envelope import (
    classify,
    event_schema,
    first_row_holds_default,
    read_schema,
    read_source,
    split,
)
from cdc_sync.core.debezium.forms import RecordKind
from cdc_sync.core.debezium.schema_book import structural
from cdc_sync.core.debezium.wire import EventSchema, WireUnsupported
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.testing import (
    INT32,
    TEXT,
    change_payload,
    column,
    envelope_schema,
    json_text,
    key_schema,
    message,
    source_block,
)
from tests.corpus.reader import Message, expected, topics

MESSAGES = [record for records in topics().values() for record in records]
VALUES = [record for record in MESSAGES if record.value is not None]


@cache
def read(prefix: bytes) -> ConnectSchema:
    return read_schema(prefix)


def value_schema(record: Message) -> ConnectSchema:
    return read(split(record.value or b"").prefix)


def schema_of(record: Message) -> EventSchema:
    return event_schema(value_schema(record), read(split(record.key).prefix) if record.key else None)


CHANGES = [record for record in VALUES if classify(value_schema(record)) is RecordKind.TABLE_CHANGE]


def changes_of(table: str) -> list[Message]:
    return [record for record in CHANGES if record.topic == f"pgj.inv.{table}"]


def payload_of(record: Message) -> bytes:
    return split(record.value or b"").payload


def test_the_archives_hold_all_captured_messages_and_tables() -> None:
    assert (len(topics()), len(MESSAGES), len(expected())) == (38, 394, 35)


def test_every_key_and_value_is_split_exactly() -> None:
    for text in [record.value for record in VALUES] + [record.key for record in MESSAGES]:
        if text is not None:
            parts = split(text)
            assert parts.prefix + parts.payload + b"}" == text
            assert json.loads(parts.payload) == json.loads(text)["payload"]


def test_every_message_is_a_table_change_or_a_logical_message() -> None:
    kinds = [classify(value_schema(record)) for record in VALUES]
    assert kinds.count(RecordKind.TABLE_CHANGE) == 256
    assert kinds.count(RecordKind.LOGICAL_MESSAGE) == 116
    assert len(kinds) == 372


def test_every_column_is_read() -> None:
    wires = [column.wire for record in CHANGES for column in schema_of(record).columns]
    assert not [wire for wire in wires if isinstance(wire, WireUnsupported)]


def test_columns_of_the_last_event_are_those_of_the_table() -> None:
    # Generated columns are not in the stream; DDL without a later row is not seen; money[] and the like are omitted.
    for table in ("evolve", "casts", "burst", "swap", "rename3", "rename_last", "comp", "wide", "raced", "later"):
        last = schema_of(changes_of(table)[-1])
        assert [c.name for c in observed(last).columns] == [c["name"] for c in expected()[f"inv.{table}"]["columns"]]


def test_sources_name_table_position_and_setting() -> None:
    sources = [read_source(payload_of(record)) for record in CHANGES]
    assert {source.position.kind for source in sources} == {"postgresql"}
    assert {source.table.database for source in sources} == {"postgres"}
    assert {source.null_is_default for source in sources if not source.snapshot} == {True}
    assert {source.null_is_default for source in sources if source.snapshot} == {None}
    odd = read_source(payload_of(topics()["pgj.Odd_Schema.Odd.Table__"][0]))
    assert odd.table == TableId(database="postgres", schema="Odd Schema", table="Odd.Table é")


def test_positions_grow_along_each_topic() -> None:
    by_topic: dict[str, list[SourcePosition]] = {}
    for record in CHANGES:
        by_topic.setdefault(record.topic, []).append(read_source(payload_of(record)).position)
    for topic, positions in by_topic.items():
        assert positions == sorted(positions), topic


def test_function_defaults_are_suspect_and_constants_are_not() -> None:
    columns = {column.name: column for column in schema_of(changes_of("defaults")[-1]).columns}
    assert {name for name, column in columns.items() if column.suspect_default} == set("cfgns")
    assert {name: columns[name].default for name in "ademo"} == {
        "a": 5,
        "d": "2020-01-01",
        "e": "1.50",
        "m": 1.5,
        "o": "01:02:03",
    }
    evolve = {column.name: column for record in changes_of("evolve") for column in schema_of(record).columns}
    assert {name for name, column in evolve.items() if column.suspect_default} == {"created", "rnd", "seq"}


def row_of(record: Message) -> dict[str, object]:
    event = load_json(payload_of(record), "event")
    assert isinstance(event, dict)
    row: dict[str, object] = event["after"]
    return row


def test_a_row_that_took_the_default_is_told_from_one_that_did_not() -> None:
    record = changes_of("defaults")[-1]
    held = first_row_holds_default(schema_of(record), row_of(record))
    assert held >= set("adefijkmopqr")
    assert not held & set("cgns")


def test_fingerprints_differ_exactly_where_columns_do() -> None:
    by_text: dict[str, set[str]] = {}
    by_fingerprint: dict[str, set[tuple[object, ...]]] = {}
    for record in CHANGES:
        schema = schema_of(record)
        shape = tuple((column.name, column.wire, column.optional) for column in schema.columns)
        by_text.setdefault(split(record.value or b"").prefix.decode() + str(schema.key), set()).add(structural(schema))
        by_fingerprint.setdefault(structural(schema), set()).add((*shape, schema.key))
    assert all(len(fingerprints) == 1 for fingerprints in by_text.values())
    assert all(len(shapes) == 1 for shapes in by_fingerprint.values())


def test_our_writer_writes_every_captured_key_and_value_again() -> None:
    parts = [split(text) for record in MESSAGES for text in (record.key, record.value) if text]
    whole = {part.prefix + b"null}" for part in parts} | {part.payload for part in parts}
    for text in whole:
        assert json_text(json.loads(text)).encode() == text


def test_our_envelope_has_the_schema_text_of_every_captured_table() -> None:
    for prefix in {split(record.value or b"").prefix for record in CHANGES}:
        schema = read(prefix)
        after = schema.member("after")
        assert after is not None
        built = envelope_schema((schema.name or "").removesuffix(".Envelope"), after.members)
        assert message(built, None) == prefix + b"null}"


def test_the_builders_rebuild_a_captured_topic_byte_for_byte() -> None:
    table = TableId(database="postgres", schema="inv", table="later")
    id_, v, w = column("id", INT32, optional=False), column("v", TEXT), column("w", INT32)
    first = change_payload(
        before=None,
        after={"id": 1, "v": "x"},
        source=source_block(
            table, prefix="pgj", lsn=23731552, last_commit=23714512, tx_id=1038, ts_us=1795231680707162
        ),
        op="c",
        ts_ns=1795231681189631446,
    )
    second = change_payload(
        before=None,
        after={"id": 2, "v": "y", "w": 3},
        source=source_block(
            table, prefix="pgj", lsn=23734360, last_commit=23733136, tx_id=1040, ts_us=1795231681003485
        ),
        op="c",
        ts_ns=1795231681197041129,
    )
    built = [
        (
            message(key_schema("pgj.inv.later", [id_]), {"id": 1}),
            message(envelope_schema("pgj.inv.later", [id_, v]), first),
        ),
        (
            message(key_schema("pgj.inv.later", [id_]), {"id": 2}),
            message(envelope_schema("pgj.inv.later", [id_, v, w]), second),
        ),
    ]
    assert built == [(record.key, record.value) for record in topics()["pgj.inv.later"]]
