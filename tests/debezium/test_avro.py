"""Avro schemas become the Connect schemas that the JSON converter writes for the same table."""

from __future__ import annotations

import base64
import io
import json
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

import fastavro
import pytest

from cdc_sync.core.debezium.avro import MAX_NODES, connect_schema
from cdc_sync.core.debezium.avro_names import without_logical_types
from cdc_sync.core.debezium.avro_references import inline
from cdc_sync.core.debezium.connect import MAX_DEPTH, MAX_FIELDS, ConnectSchema
from cdc_sync.core.debezium.conversions import wire_column
from cdc_sync.core.debezium.envelope import classify, event_schema, read_schema, split
from cdc_sync.core.debezium.forms import RecordKind
from cdc_sync.core.debezium.wire import WireColumn
from cdc_sync.core.debezium.wireids import find_id
from cdc_sync.errors import WireError
from tests.corpus.reader import PREFIXES, Message, schemas, topics

DATABASES = ("postgres", "mariadb")
KAFKA = "org.apache.kafka.connect.data"


def parse(schema: object) -> ConnectSchema:
    return connect_schema(json.dumps(schema))


def record(*fields: dict[str, Any], **more: object) -> dict[str, object]:
    return {"type": "record", "name": "Row", "fields": list(fields), **more}


def field_of(type_: object, **more: object) -> ConnectSchema:
    return parse(record({"name": "f", "type": type_, **more})).members[0]


class TestAgainstTheJsonConverter:
    """The same script ran before both captures, so event for event the tables are the same."""

    @pytest.mark.parametrize(
        ("database", "counts"), [("postgres", (372, 133, 127)), ("mariadb", (356, 114, 109))], ids=DATABASES
    )
    def test_every_key_and_value_schema_is_the_same_in_every_node(
        self, database: str, counts: tuple[int, int, int]
    ) -> None:
        pairs = list(same_events(database))
        different = {(json_[0], avro[0]) for json_, avro in pairs}
        tables = {avro[0][1] for _, avro in pairs if classify(avro[1]) is RecordKind.TABLE_CHANGE}
        for (_, json_value, json_key), (_, avro_value, avro_key) in pairs:
            assert adjusted(json_value, database) == without_prefix(avro_value, database)
            assert (json_key is None) == (avro_key is None)
            if json_key is not None and avro_key is not None:
                assert adjusted(json_key, database) == without_prefix(avro_key, database)
        assert (len(pairs), len(different), len(tables)) == counts

    @pytest.mark.parametrize("database", DATABASES)
    def test_every_column_is_the_same_but_for_its_adjusted_name(self, database: str) -> None:
        seen = 0
        for (_, json_value, json_key), (_, avro_value, avro_key) in same_events(database):
            if classify(json_value) is not RecordKind.TABLE_CHANGE:
                continue
            expected, found = event_schema(json_value, json_key), event_schema(avro_value, avro_key)
            assert found.columns == tuple(adjusted_column(column) for column in expected.columns)
            assert found.key == tuple(adjusted_name(name) for name in expected.key)
            seen += len(found.columns)
        assert seen == {"postgres": 3759, "mariadb": 2714}[database]

    @pytest.mark.parametrize("database", DATABASES)
    def test_every_row_is_the_same_when_read_without_what_only_connect_knows(self, database: str) -> None:
        bare = {number: json.loads(without_logical_types(text)) for number, text in schemas(f"{database}-avro").items()}
        assert "connect." not in json.dumps(bare)
        rows = 0
        for json_, avro in zip(values(f"{database}-json"), values(f"{database}-avro"), strict=True):
            expected = json.loads(split(json_.value or b"").payload)
            found = read_whole(avro.value or b"", bare)
            if "after" in expected:
                assert all(same_row(expected[side], found[side]) for side in ("before", "after"))
                rows += 1
        assert rows == {"postgres": 256, "mariadb": 195}[database]


def read_whole(data: bytes, registered: dict[int, Any]) -> Any:
    stream = io.BytesIO(data[5:])
    found = fastavro.schemaless_reader(stream, registered[id_of(data)], None)
    assert not stream.read()
    return found


def same_row(json_: dict[str, Any] | None, avro: dict[str, Any] | None) -> bool:
    if json_ is None or avro is None:
        return json_ is avro
    assert [adjusted_name(name) for name in json_] == list(avro)
    return all(same_value(expected, found) for expected, found in zip(json_.values(), avro.values(), strict=True))


def same_value(json_: Any, avro: Any) -> bool:
    match avro:
        case bytes():
            return bool(json_ == base64.b64encode(avro).decode())
        case dict():
            return same_row(json_, avro)
        case list():
            return len(json_) == len(avro) and all(map(same_value, json_, avro))
        case float():
            # Kafka's converter writes a float's own digits; read as a double, only its 32 bits are the same.
            number = float(json_)
            return number == avro or struct.pack(">f", number) == struct.pack(">f", avro)
        case _:
            return bool(json_ == avro)


def values(capture: str) -> list[Message]:
    return [message for messages in topics(capture).values() for message in messages if message.value is not None]


Schemas = tuple[tuple[object, object], ConnectSchema, ConnectSchema | None]


def same_events(database: str) -> Iterator[tuple[Schemas, Schemas]]:
    """Pair the captures' events that have a value; each as an identity and the value's and key's schema."""
    for json_, avro in zip(values(f"{database}-json"), values(f"{database}-avro"), strict=True):
        yield of_json(json_), of_avro(avro, f"{database}-avro")


def of_json(message: Message) -> Schemas:
    prefix = split(message.value or b"").prefix
    key = split(message.key).prefix if message.key else None
    return (key, prefix), read_json(prefix), read_json(key) if key else None


def of_avro(message: Message, capture: str) -> Schemas:
    value = id_of(message.value or b"")
    key = id_of(message.key) if message.key else None
    return (key, value), read_avro(capture, value), read_avro(capture, key) if key is not None else None


def id_of(data: bytes) -> int:
    found = find_id(data, (), part="value", registry_type="confluent", ids="content", use_headers=False)
    assert found is not None
    assert found[1] == 5
    return int(found[0].value)


@cache
def read_json(prefix: bytes) -> ConnectSchema:
    return read_schema(prefix)


@cache
def read_avro(capture: str, number: int) -> ConnectSchema:
    return connect_schema(schemas(capture)[number])


def adjusted_name(name: str) -> str:
    """Return what the connector makes of a field's name with `field.name.adjustment.mode=avro`."""
    units = len(name.encode("utf-16-le")) // 2
    replaced = re.sub("[^A-Za-z0-9_]", lambda found: "_" * (len(found[0].encode("utf-16-le")) // 2), name)
    assert len(replaced) == units
    return f"_{replaced}" if replaced[0].isdigit() else replaced


def adjusted_column(column: WireColumn) -> WireColumn:
    return replace(column, name=adjusted_name(column.name), field=adjusted_name(column.field))


def adjusted(schema: ConnectSchema, database: str) -> ConnectSchema:
    return changed(schema, PREFIXES[f"{database}-json"], adjust=True)


def without_prefix(schema: ConnectSchema, database: str) -> ConnectSchema:
    return changed(schema, PREFIXES[f"{database}-avro"], adjust=False)


def changed(schema: ConnectSchema, prefix: str, *, adjust: bool) -> ConnectSchema:
    def inner(child: ConnectSchema | None) -> ConnectSchema | None:
        return None if child is None else changed(child, prefix, adjust=adjust)

    return replace(
        schema,
        name=schema.name.removeprefix(prefix) if schema.name else None,
        field=adjusted_name(schema.field) if adjust and schema.field else schema.field,
        members=tuple(changed(member, prefix, adjust=adjust) for member in schema.members),
        items=inner(schema.items),
        keys=inner(schema.keys),
        values=inner(schema.values),
    )


class TestTypes:
    @pytest.mark.parametrize(
        ("avro", "connect"),
        [
            ("boolean", "boolean"),
            ("int", "int32"),
            ({"type": "int", "connect.type": "int8"}, "int8"),
            ({"type": "int", "connect.type": "int16"}, "int16"),
            ("long", "int64"),
            ("float", "float"),
            ("double", "double"),
            ("string", "string"),
            ({"type": "string", "avro.java.string": "String"}, "string"),
            ("bytes", "bytes"),
            ({"type": "fixed", "name": "Four", "size": 4}, "bytes"),
            ({"type": "enum", "name": "Mood", "symbols": ["SAD"]}, "string"),
        ],
    )
    def test_base_types(self, avro: object, connect: str) -> None:
        assert field_of(avro) == ConnectSchema(type=connect, field="f")

    def test_a_schema_may_be_a_single_type(self) -> None:
        assert parse("string") == ConnectSchema(type="string")

    @pytest.mark.parametrize(
        ("avro", "name"),
        [
            ({"type": "int", "logicalType": "date"}, "Date"),
            ({"type": "int", "logicalType": "time-millis"}, "Time"),
            ({"type": "long", "logicalType": "timestamp-millis"}, "Timestamp"),
            ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "Decimal"),
        ],
    )
    def test_connects_own_types_are_known_without_connects_annotations(self, avro: object, name: str) -> None:
        assert field_of(avro).name == f"{KAFKA}.{name}"

    def test_a_logical_type_on_another_type_is_none(self) -> None:
        assert field_of({"type": "long", "logicalType": "date"}).name is None

    def test_the_precision_64_says_that_there_is_none(self) -> None:
        plain = {"type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 64}
        assert field_of(plain).parameters == {"scale": "2"}
        assert field_of({**plain, "precision": 10}).parameters == {"scale": "2", "connect.decimal.precision": "10"}
        assert field_of({**plain, "connect.parameters": {"scale": "2", "connect.decimal.precision": "64"}}).parameters[
            "connect.decimal.precision"
        ] == "64"  # fmt: skip

    def test_a_scale_that_avro_cannot_say_stands_in_the_parameters(self) -> None:
        odd = {"type": "bytes", "connect.name": f"{KAFKA}.Decimal", "connect.parameters": {"scale": "-2"}}
        assert field_of(odd).parameters["scale"] == "-2"

    def test_annotations_are_taken_over(self) -> None:
        found = field_of(
            {
                "type": "string",
                "connect.name": "io.debezium.data.Enum",
                "connect.version": 1,
                "connect.doc": "mood",
                "connect.parameters": {"allowed": "a,b", "__debezium.source.column.name": "my mood"},
            }
        )
        assert found == ConnectSchema(
            type="string",
            name="io.debezium.data.Enum",
            version=1,
            doc="mood",
            parameters={"allowed": "a,b", "__debezium.source.column.name": "my mood"},
            field="f",
        )

    def test_annotations_of_the_field_have_the_last_word(self) -> None:
        inner = record(name="Point", **{"connect.parameters": {"a": "1", "b": "1"}})
        assert field_of(inner, doc="here", **{"connect.parameters": {"b": "2"}}).parameters == {"a": "1", "b": "2"}
        assert field_of(inner, doc="here").doc == "here"

    def test_arrays_and_maps(self) -> None:
        assert field_of({"type": "array", "items": ["null", "int"]}).items == ConnectSchema(type="int32", optional=True)
        found = field_of({"type": "map", "values": ["null", "string"]})
        assert (found.type, found.keys, found.values) == (
            "map",
            ConnectSchema(type="string"),
            ConnectSchema(type="string", optional=True),
        )

    @pytest.mark.parametrize(
        "names",
        [
            {"name": "MapEntry", "namespace": "io.confluent.connect.avro"},
            {"name": "Vector", "connect.internal.type": "MapEntry"},
        ],
    )
    def test_an_array_of_map_entries_is_a_map(self, names: dict[str, object]) -> None:
        entry = record(
            {"name": "key", "type": {"type": "int", "connect.type": "int16"}}, {"name": "value", "type": "double"}
        )
        found = field_of({"type": "array", "items": {**entry, **names}})
        assert (found.type, found.items) == ("map", None)
        assert (found.keys, found.values) == (ConnectSchema(type="int16"), ConnectSchema(type="double"))

    def test_an_array_of_other_pairs_stays_one(self) -> None:
        pair = record({"name": "key", "type": "int"}, {"name": "value", "type": "int"}, name="Pair")
        assert field_of({"type": "array", "items": pair}).type == "array"


class TestOptionals:
    def test_null_may_stand_first_or_last(self) -> None:
        assert field_of(["null", "int"], default=None) == ConnectSchema(type="int32", optional=True, field="f")
        assert field_of(["int", "null"], default=3) == ConnectSchema(type="int32", optional=True, default=3, field="f")
        assert not field_of(["int"]).optional

    @pytest.mark.parametrize("union", [[], ["null"], ["int", "string"], ["null", "int", "string"], [["null", "int"]]])
    def test_other_unions_are_refused(self, union: object) -> None:
        with pytest.raises(WireError, match="a union is not one type, or one type and null"):
            field_of(union)


class TestDefaults:
    @pytest.mark.parametrize(
        ("avro", "default", "json_"),
        [
            ("int", 5, "5"),
            ("long", 2**63 - 1, "9223372036854775807"),
            ("double", 1.5, "1.5"),
            ("boolean", False, "false"),
            ("string", "x", '"x"'),
            ("bytes", "\x00\x96\xff", '"AJb/"'),
            ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}, "\x00\x96", '"AJY="'),
            ({"type": "int", "logicalType": "date"}, 18262, "18262"),
            ({"type": "array", "items": "bytes"}, ["\x01"], '["AQ=="]'),
            ({"type": "map", "values": "bytes"}, {"k": "\x01"}, '{"k": "AQ=="}'),
            (record({"name": "wkb", "type": "bytes"}, name="P"), {"wkb": "\x01"}, '{"wkb": "AQ=="}'),
        ],
    )
    def test_they_come_as_json_has_them_wherever_they_stand(self, avro: object, default: object, json_: str) -> None:
        expected = json.loads(json_, parse_float=Decimal)
        annotated = {**(avro if isinstance(avro, dict) else {"type": avro}), "connect.default": default}
        for found in (
            field_of(avro, default=default),
            field_of([avro, "null"], default=default),
            field_of([annotated, "null"], default=default),
            field_of(["null", annotated], default=None),
        ):
            assert found.default == expected
            assert type(found.default) is type(expected)

    def test_null_is_no_default(self) -> None:
        assert field_of(["null", "int"], default=None).default is None

    def test_bytes_that_are_none_are_a_suspect_default(self) -> None:
        column = wire_column(field_of("bytes", default="€"))
        assert (column.default, column.suspect_default) == (None, True)


class TestNames:
    def test_a_record_is_used_again_by_its_name(self) -> None:
        row = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "int"}]}
        envelope = record(
            {"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Value"]}, namespace="a.b"
        )
        before, after = parse(envelope).members
        assert before.name == "a.b.Value"
        assert replace(before, field="after") == after

    @pytest.mark.parametrize(
        ("declared", "used"),
        [
            ({"name": "P", "namespace": "x"}, "x.P"),
            ({"name": "x.P"}, "x.P"),
            ({"name": "P", "namespace": ""}, "P"),
            ({"name": "P"}, "P"),
            ({"name": "P"}, "a.P"),
            ({"name": "P"}, {"type": "P"}),
        ],
    )
    def test_names_are_found_in_their_namespace(self, declared: dict[str, object], used: object) -> None:
        row = record({"name": "p", "type": record(**declared)}, {"name": "q", "type": used}, namespace="a")
        first, second = parse(row).members
        assert first.name == second.name

    def test_connects_name_wins_over_avros(self) -> None:
        assert parse(record(**{"connect.name": "a-b.Row"})).name == "a-b.Row"

    def test_a_used_name_leaves_behind_what_was_said_of_the_first_column(self) -> None:
        point = record(
            {"name": "x", "type": "double"},
            name="Point",
            **{
                "connect.default": {"x": 1.0},
                "connect.parameters": {"__debezium.source.column.name": "first", "other": "1"},
            },
        )
        first, second = parse(record({"name": "a", "type": point}, {"name": "b", "type": "Point"})).members
        assert first.default == {"x": Decimal("1.0")}
        assert (second.default, second.parameters) == (None, {"other": "1"})
        assert second.members == first.members

    @pytest.mark.parametrize(
        ("schema", "reason"),
        [
            (record({"name": "f", "type": "Unknown"}), "'Unknown' is not a type, and not declared before"),
            (record({"name": "f", "type": ["null", "Row"]}), "the type 'Row' contains itself"),
            (record({"name": "f", "type": record()}), "the type 'Row' is declared twice"),
            (record({"name": "f", "type": "int"}, {"name": "f", "type": "int"}), "the field 'f' is there twice"),
            (record({"name": "", "type": "int"}), "a type or field has no name"),
            (record({"name": "f", "type": "null"}), "'null' is not a type"),
            (record({"name": "f", "type": {"type": {"type": "int"}}}), "an object has no type"),
            (record(name="a-b"), "'a-b' is not a name"),
            (record(name="int"), "'int' is not a name"),
            (record({"name": "f", "type": "fixed"}), "'fixed' is not a type"),
            (record(namespace="a..b"), "'a..b.Row' is not a name"),
            (record({"name": "a.b", "type": "int"}), "'a.b' is not a field's name"),
            (record({"name": "1st", "type": "int"}), "'1st' is not a field's name"),
            (record({"name": "x²", "type": "int"}), "'x²' is not a field's name"),
            ({"type": "fixed", "name": "F"}, "a fixed type has no size"),
            ({"type": "enum", "name": "E", "symbols": ["a", "a"]}, "an enum's symbols are not different names"),
            ({"type": "enum", "name": "E", "symbols": [["a"]]}, "an enum's symbols are not different names"),
            (record({"name": "f"}), "expected a type, found NoneType"),
            ({"type": "record", "name": "Row"}, "a record has no list of fields"),
            (record(**{"connect.version": "1"}), "'connect.version' is a str, not a int"),
            (record(**{"connect.parameters": {"a": 1}}), "'connect.parameters' are not texts"),
            (record({"name": "\ud800", "type": "int"}), "'name' holds half of a surrogate pair"),
            ({"type": "object", "properties": {}}, "'object' is not a type"),
            (17, "expected a type, found int"),
        ],
    )
    def test_what_is_no_such_schema_is_refused(self, schema: object, reason: str) -> None:
        with pytest.raises(WireError, match=f"Cannot read Avro schema: {re.escape(reason)}"):
            parse(schema)

    @pytest.mark.parametrize("text", ["", "{", 'syntax = "proto3";', '"\ud800"', '{"type": "int", "type": "int"}'])
    def test_what_is_no_json_is_refused(self, text: str) -> None:
        with pytest.raises(WireError, match="Cannot read Avro schema"):
            connect_schema(text)

    def test_letters_of_all_scripts_are_names(self) -> None:
        assert parse(record({"name": "größe_٣", "type": "int"})).members[0].field == "größe_٣"


class TestLimits:
    def test_depth(self) -> None:
        def nested(depth: int) -> object:
            return "int" if depth == 0 else {"type": "array", "items": nested(depth - 1)}

        assert parse(nested(MAX_DEPTH)).type == "array"
        with pytest.raises(WireError, match="nested deeper than"):
            parse(nested(MAX_DEPTH + 1))
        with pytest.raises(WireError, match="nested too deeply"):
            connect_schema('{"type":"array","items":' * 100_000 + '"int"' + "}" * 100_000)

    def test_depth_through_names(self) -> None:
        def chain(length: int) -> ConnectSchema:
            links = [record({"name": "v", "type": "int"}, name="L0")]
            links += [record({"name": "v", "type": f"L{n - 1}"}, name=f"L{n}") for n in range(1, length)]
            return parse(record(*({"name": f"f{n}", "type": link} for n, link in enumerate(links))))

        assert len(chain(MAX_DEPTH - 1).members) == MAX_DEPTH - 1
        with pytest.raises(WireError, match="nested deeper than"):
            chain(MAX_DEPTH)

    def test_fields(self) -> None:
        fields = [{"name": f"f{number}", "type": "int"} for number in range(MAX_FIELDS + 1)]
        assert len(parse(record(*fields[1:])).members) == MAX_FIELDS
        with pytest.raises(WireError, match="fields are more than"):
            parse(record(*fields))

    def test_a_short_text_that_stands_for_a_huge_schema(self) -> None:
        levels = [record({"name": "v", "type": "int"}, name="L0")]
        levels += [
            record(*({"name": f"f{field}", "type": f"L{level - 1}"} for field in range(10)), name=f"L{level}")
            for level in range(1, 12)
        ]
        with pytest.raises(WireError, match=f"stands for more than {MAX_NODES} types"):
            parse(record(*({"name": f"f{number}", "type": level} for number, level in enumerate(levels))))


class TestReferences:
    INNER = record({"name": "x", "type": "int"}, name="Inner", namespace="a")
    MIDDLE = record(
        {"name": "in", "type": "a.Inner"}, {"name": "m", "type": {"type": "enum", "name": "E", "symbols": ["S"]}},
        name="Middle", namespace="b",
    )  # fmt: skip

    def test_a_schema_without_references_stays_as_it_is(self) -> None:
        assert inline(' "int" ', {}) == ' "int" '

    def test_types_of_other_schemas_are_put_where_they_are_named_first(self) -> None:
        outer = record(
            {"name": "e", "type": "b.E"},
            {"name": "m", "type": ["null", "b.Middle"]},
            {"name": "i", "type": {"type": "array", "items": "a.Inner"}},
            name="Outer",
            namespace="c",
        )
        whole = inline(json.dumps(outer), {"one": json.dumps(self.INNER), "two": json.dumps(self.MIDDLE)})
        enum, middle, inner = parse(json.loads(whole)).members
        assert (enum.type, middle.name, middle.optional) == ("string", "b.Middle", True)
        assert [member.name for member in middle.members] == ["a.Inner", None]
        assert inner.items is not None
        assert inner.items.name == "a.Inner"
        fastavro.parse_schema(json.loads(whole))

    def test_a_type_without_a_namespace_keeps_having_none(self) -> None:
        outer = record({"name": "p", "type": "Plain"}, {"name": "q", "type": "Plain"}, name="Outer", namespace="c")
        whole = inline(json.dumps(outer), {"": json.dumps(record(name="Plain"))})
        assert [member.name for member in parse(json.loads(whole)).members] == ["Plain", "Plain"]

    def test_names_nobody_declares_are_left_for_the_reader_to_refuse(self) -> None:
        outer = json.dumps(record({"name": "p", "type": "Nowhere"}))
        with pytest.raises(WireError, match="'Nowhere' is not a type"):
            connect_schema(inline(outer, {"": json.dumps(self.INNER)}))

    @pytest.mark.parametrize("text", ["{", '"\ud800"', "[" * 100_000])
    def test_a_reference_that_is_no_json_is_refused(self, text: str) -> None:
        with pytest.raises(WireError, match="Cannot read Avro schema"):
            inline('"int"', {"": text})


def test_the_layout_keeps_what_the_bytes_depend_on_only() -> None:
    text = json.dumps(
        record(
            {
                "name": "amount",
                "type": [{"type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 9}, "null"],
                "default": "\x01",
                "doc": "d",
            },
            {"name": "f", "type": {"type": "fixed", "name": "F", "size": 4, "connect.name": "x"}},
            {"name": "l", "type": {"type": "array", "items": {"type": "int", "logicalType": "date"}}},
            namespace="a",
        )
    )
    assert json.loads(without_logical_types(text)) == record(
        {"name": "amount", "type": [{"type": "bytes"}, "null"]},
        {"name": "f", "type": {"type": "fixed", "name": "F", "size": 4}},
        {"name": "l", "type": {"type": "array", "items": {"type": "int"}}},
        namespace="a",
    )


def test_base64_is_the_standard_alphabet() -> None:
    assert field_of("bytes", default="\xfb\xff").default == base64.b64encode(b"\xfb\xff").decode()
