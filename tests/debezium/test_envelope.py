"""Messages are parted exactly, and what is no message is refused with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.debezium.connect import MAX_FIELDS, ConnectSchema
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
from cdc_sync.core.debezium.forms import RecordKind
from cdc_sync.core.debezium.schema_book import structural
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.errors import WireError
from cdc_sync.testing import (
    INT32,
    INT64,
    TEXT,
    array,
    column,
    decimal,
    enum,
    envelope_schema,
    heartbeat,
    json_text,
    key_schema,
    message,
    struct,
)

ID = column("id", INT32, optional=False)
HOSTILE = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        ',"payload":',
        '","payload":null}',
        '"',
        "\\",
        '\\"',
        "}",
        '{"schema":',
        "\x00\x1f\x7f",
        "é漢😀",
        "\u2028",
        "a.b`c d",
    ]
)


@given(names=st.lists(HOSTILE, unique=True, max_size=4), default=HOSTILE, comment=HOSTILE, value=HOSTILE)
@settings(max_examples=40, deadline=None)
def test_nothing_in_names_defaults_comments_or_values_moves_the_split(
    names: list[str], default: str, comment: str, value: str
) -> None:
    columns = [column(name, TEXT, default=default or None, comment=comment or None) for name in names]
    schema, payload = envelope_schema("shop.public.t", columns), {"after": dict.fromkeys(names, value)}
    parts = split(message(schema, payload))
    assert parts.prefix == message(schema, None)[: -len(b"null}")]
    assert parts.payload == json_text(payload).encode()
    assert [c.name for c in event_schema(read_schema(parts.prefix), None).columns] == names


@given(st.binary(max_size=40) | HOSTILE.map(lambda text: ('{"schema":{' + text).encode()))
@settings(max_examples=40, deadline=None)
def test_bytes_that_are_no_message_are_refused(junk: bytes) -> None:
    with pytest.raises(WireError):
        split(junk)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "it is empty"),
        (b"\x00\x00\x00\x00\x07abc", "as Avro does"),
        (b"hello", "not JSON"),
        (b"\xff{}", "not JSON in UTF-8"),
        (b'{"id":1}', "schemas.enable=true"),
        (b"17", "schemas.enable=true"),
        (b'{"schema":null,"payload":null}', "its schema is null"),
        (b'{"schema": {},"payload":1}', "not laid out"),
        (b'{"payload":1,"schema":{}}', "not laid out"),
        (b'{"schema":"string","payload":1}', "not laid out"),
        (b'{"schema":{}}', "the payload is missing"),
        (b'{"schema":{},"payload":1,"more":2}', "not laid out"),
        (b'{"schema":{},"more":2,"payload":1}', "not laid out"),
        (b'{"schema":{},"payload":1} ', "not laid out"),
        (b'{"schema":{},"payload":NaN}', "not JSON"),
        (b'{"schema":{},"payload":{"a":1}', "not laid out"),
        (b'{"schema":' + b'{"a":' * 200_000, "nested too deeply"),
    ],
)
def test_a_message_that_cannot_be_split_says_why(text: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        split(text)


def test_members_named_payload_inside_the_schema_do_not_end_it() -> None:
    text = b'{"schema":{"type":"string","parameters":{"a":"1","payload":"2"},"optional":false},"payload":"x"}'
    assert split(text).payload == b'"x"'
    assert read_schema(split(text).prefix).parameters == {"a": "1", "payload": "2"}


def deep(levels: int) -> ConnectSchema:
    schema = INT32
    for _ in range(levels):
        schema = array(schema)
    return schema


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([column("a", TEXT), column("a", INT32)], "'a' is there twice"),
        ([column("a", deep(70))], "nested deeper than 64"),
        ([replace(column("a", TEXT), type="uint8")], "'uint8' is not a type"),
        ([replace(column("a", TEXT), field=None)], "has no name"),
    ],
)
def test_schemas_beyond_reason_are_refused(columns: list[ConnectSchema], reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        read_schema(split(message(struct("t.Value", *columns), None)).prefix)


def test_a_struct_of_too_many_fields_is_refused() -> None:
    fields = b",".join([b"{}"] * (MAX_FIELDS + 1))
    with pytest.raises(WireError, match="10001 fields are more than 10000"):
        read_schema(b'{"schema":{"type":"struct","fields":[' + fields + b']},"payload":')


def test_schemas_with_damaged_members_are_refused() -> None:
    for damaged in (
        b'{"type":"string","type":"int32"}',
        b'{"type":"struct"}',
        b'{"type":"array","items":7}',
        b'{"type":"string","parameters":{"a":1}}',
        b'{"type":"string","version":"1"}',
        b'{"type":"string","name":7}',
        b'{"type":"string","field":"\\ud83d"}',
        b'{"type":"double","default":1E+99999999999999999999}',
    ):
        with pytest.raises(WireError):
            read_schema(split(b'{"schema":' + damaged + b',"payload":1}').prefix)


def test_kinds_are_told_by_the_name_of_the_schema() -> None:
    def kind(name: str) -> RecordKind:
        return classify(struct(name))

    connector = "io.debezium.connector"
    assert kind("shop.public.t.Envelope") is RecordKind.TABLE_CHANGE
    assert kind(f"{connector}.common.TransactionMetadataValue") is RecordKind.TRANSACTION
    assert kind(f"{connector}.mysql.SchemaChangeValue") is RecordKind.SCHEMA_CHANGE
    assert kind(f"{connector}.common.Notification") is RecordKind.NOTIFICATION
    assert kind(f"{connector}.postgresql.MessageValue") is RecordKind.LOGICAL_MESSAGE
    assert kind("shop.public.t.Value") is RecordKind.UNKNOWN
    assert classify(TEXT) is RecordKind.UNKNOWN
    value = heartbeat("shop", 1).value or b""
    assert classify(read_schema(split(value).prefix)) is RecordKind.HEARTBEAT


def test_an_event_schema_has_the_columns_of_after_and_the_key_in_key_order() -> None:
    amount = column("amount", decimal(10, 2), comment="in euro")
    schema = event_schema(envelope_schema("s.t", [ID, amount]), key_schema("s.t", [amount, ID]))
    assert [column.name for column in observed(schema).columns] == ["id", "amount"]
    assert schema.key == ("amount", "id")
    assert schema.columns[1].comment == "in euro"
    assert schema.record_key == schema.key
    assert schema.connector == "postgresql"
    assert event_schema(envelope_schema("s.t", [ID]), None).key == ()


def test_the_connector_is_not_known_where_the_source_block_has_another_name() -> None:
    good = envelope_schema("s.t", [ID])
    named = [replace(part, name="a.Source" if part.field == "source" else part.name) for part in good.members]
    for members in (named, [part for part in good.members if part.field != "source"]):
        assert event_schema(replace(good, members=tuple(members)), None).connector is None


def test_an_envelope_without_two_equal_row_structs_is_refused() -> None:
    good = envelope_schema("s.t", [ID])
    only_after = replace(good, members=good.members[1:])
    different = replace(good, members=(replace(good.members[0], members=()), *good.members[1:]))
    document = replace(good, members=(column("before", TEXT), column("after", TEXT)))
    for bad, reason in ((only_after, "no fields"), (different, "different columns"), (document, "not a struct")):
        with pytest.raises(WireError, match=reason):
            event_schema(bad, None)
    with pytest.raises(WireError, match="it is a string, not a struct"):
        event_schema(good, TEXT)


def test_the_fingerprint_follows_columns_and_key_only() -> None:
    def fingerprint(*columns: ConnectSchema, key: tuple[ConnectSchema, ...] = (ID,)) -> str:
        return structural(event_schema(envelope_schema("s.t", columns), key_schema("s.t", key)))

    base = fingerprint(ID, column("a", enum("x")))
    assert len(base) == 16
    assert base == fingerprint(ID, column("a", enum("x", "y"), default="x", comment="c"))
    others = [
        fingerprint(column("a", enum("x")), ID),
        fingerprint(ID, column("a", TEXT)),
        fingerprint(ID, column("b", enum("x"))),
        fingerprint(ID, column("a", enum("x"), optional=False)),
        fingerprint(ID, column("a", enum("x")), key=()),
        fingerprint(ID, column("a", decimal(5, 2))),
        fingerprint(ID, column("a", decimal(6, 2))),
        fingerprint(ID, column("a", array(TEXT))),
        fingerprint(ID, column("a", array(INT64))),
    ]
    assert len({base, *others}) == len(others) + 1


POSTGRES = {"connector": "postgresql", "db": "d", "schema": "s", "table": "t"}
MARIADB = {"connector": "mariadb", "db": "d", "table": "t", "file": "bin.000012", "pos": 7, "row": None}


@pytest.mark.parametrize(
    ("source", "position"),
    [
        (POSTGRES | {"sequence": '["5","9"]', "lsn": 9}, "postgresql:5/9"),
        (POSTGRES | {"sequence": '[null,"9"]', "lsn": 9}, "postgresql:9/9"),
        (POSTGRES | {"sequence": '["5","9"]', "lsn": None}, "postgresql:5/9"),
        (POSTGRES | {"lsn": 9}, "postgresql:9/9"),
        (POSTGRES | {"sequence": "broken", "lsn": 9}, "postgresql:9/9"),
        (POSTGRES | {"sequence": '{"0":1}', "lsn": 9}, "postgresql:9/9"),
        (POSTGRES, "none:"),
        (MARIADB, "binlog:12/7/0"),
        (MARIADB | {"file": "a.b.1000000", "row": 3}, "binlog:1000000/7/3"),
        (MARIADB | {"file": None}, "none:"),
        ({"connector": "mongodb", "db": "d", "table": "t"}, "none:"),
    ],
)
def test_positions_are_read_from_the_source_block(source: dict[str, object], position: str) -> None:
    assert read_source({"source": source, "op": "c"}).position == SourcePosition.parse(position)


def test_positions_order_transactions_by_their_commits() -> None:
    def place(commit: int, lsn: int) -> SourcePosition:
        return read_source({"source": POSTGRES | {"sequence": f'["{commit}","{lsn}"]'}}).position

    # The second transaction wrote earlier in the log and committed later.
    assert place(100, 90) < place(110, 50)


def test_a_source_block_tells_table_snapshot_and_null_setting() -> None:
    def read(op: str, snapshot: str | None) -> tuple[bool, bool, bool | None]:
        source = read_source({"source": POSTGRES | {"snapshot": snapshot}, "op": op})
        return source.snapshot, source.incremental, source.null_is_default

    assert read("c", "false") == (False, False, True)
    assert read("u", None) == (False, False, False)
    assert read("r", "true") == (True, False, None)
    assert read("r", "incremental") == (True, True, None)
    whole = read_source({"source": POSTGRES | {"sequence": '["5","9"]'}, "op": "d"})
    assert (whole.table, whole.op) == (TableId(database="d", schema="s", table="t"), "d")
    assert (whole.last_commit, whole.lsn, whole.append_only) == (5, 9, True)
    other = read_source({"source": MARIADB, "op": "c"})
    assert (other.table.schema, other.last_commit, other.lsn, other.append_only) == ("", None, None, False)


@pytest.mark.parametrize(
    "payload", [b"7", b"{", b"{}", b'{"source":1}', b'{"source":{"connector":"mysql","db":"d","table":null}}']
)
def test_a_payload_without_a_table_is_refused(payload: bytes) -> None:
    with pytest.raises(WireError, match="Cannot read event"):
        read_source(payload)


def test_a_value_that_equals_the_default_is_noticed_whatever_its_type() -> None:
    columns = [ID, column("n", INT32, default=0), column("t", TEXT, default=""), column("x", TEXT, default="a")]
    schema = event_schema(envelope_schema("s.t", columns), None)
    assert first_row_holds_default(schema, {"id": 1, "n": 0, "t": None, "x": "b"}) == {"n"}
    assert first_row_holds_default(schema, {}) == frozenset()


def test_a_default_cut_off_at_a_quote_is_noticed_where_a_row_shows_the_whole() -> None:
    columns = [ID, column("t", TEXT, default="it"), column("x", TEXT, default="it"), column("n", INT32, default=1)]
    schema = event_schema(envelope_schema("s.t", columns), None)
    assert first_row_betrays_default(schema, {"id": 1, "t": "it's new", "x": "items", "n": 1}) == {"t"}
    assert first_row_betrays_default(schema, {}) == frozenset()
