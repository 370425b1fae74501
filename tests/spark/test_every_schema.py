"""Whatever a schema declares, Spark can analyse its reading: no crafted schema makes a table fail for ever."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest
from pyspark.sql import SparkSession

from cdc_sync.core.debezium.connect import PRIMITIVES, ConnectSchema
from cdc_sync.core.debezium.conversions import logical_type, wire_column
from cdc_sync.core.debezium.forms import AvroBody, Document, Form, Opaque, Prefix
from cdc_sync.core.debezium.type_table import CONVERSIONS
from cdc_sync.core.debezium.wire import EventSchema, WireColumn, WireUnsupported, WireVariableDecimal
from cdc_sync.core.debezium.wireids import WireId
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.projection import FromColumn, Projection
from cdc_sync.core.schema.types import DataType, ListType, MapType, StructType
from cdc_sync.spark.columns import value_column
from cdc_sync.spark.compile import convert, unchangeable
from cdc_sync.spark.converter import Converter, Decoding
from cdc_sync.spark.types import to_spark
from cdc_sync.testing import INT32

pytestmark = pytest.mark.spark

_KEYS = {row.key for row in CONVERSIONS if not row.example.members}
_TEXT, _NUMBER = ConnectSchema(type="string"), ConnectSchema(type="int32", optional=True)
_NUMBERS = ("-2147483648", "-1", "0", "2", "38", "39", "2047", "16383", "16384", "2147483648", "9" * 80, "x", "")
_PARAMETERS: tuple[dict[str, str], ...] = (
    {},
    *({"scale": scale} for scale in _NUMBERS),
    *({"scale": "2", "connect.decimal.precision": precision} for precision in _NUMBERS),
    {"scale": "-5", "connect.decimal.precision": "10"},
    *({"length": length} for length in _NUMBERS),
    {"connect.decimal.precision": "10"},
)


def _schemas() -> Iterator[ConnectSchema]:
    """Yield every name of the type table on every Connect type, with every odd parameter."""
    names = {row.example.name for row in CONVERSIONS} | {"nobody.knows.This", "", "x.Envelope"}
    shapes = {
        "array": [ConnectSchema(type="array", items=_NUMBER)],
        "map": [
            ConnectSchema(type="map", keys=_TEXT, values=_NUMBER),
            ConnectSchema(type="map", keys=_NUMBER, values=_TEXT),
            ConnectSchema(type="map", keys=replace(_TEXT, optional=True), values=_NUMBER),
        ],
        "struct": [ConnectSchema(type="struct"), *(row.example for row in CONVERSIONS if row.example.members)],
        **{type_: [ConnectSchema(type=type_)] for type_ in sorted(PRIMITIVES)},
    }
    for name in sorted(names, key=repr):
        for shape in (shape for several in shapes.values() for shape in several):
            for parameters in _PARAMETERS:
                schema = replace(shape, name=name, parameters=parameters, optional=True)
                yield schema
                if not parameters and (shape.type, name) in _KEYS:
                    yield ConnectSchema(type="array", items=schema)
                    yield ConnectSchema(type="map", keys=_TEXT, values=schema)
                    yield ConnectSchema(type="map", keys=schema, values=_TEXT)
                    members = (replace(schema, field="a.b`", optional=False), replace(schema, field="b"))
                    yield ConnectSchema(type="struct", members=members, optional=not name)


def _columns() -> list[WireColumn]:
    """Return one column for every way of reading that some schema asks for."""
    found: dict[str, WireColumn] = {}
    for schema in _schemas():
        made = wire_column(replace(schema, field="c"))
        # Of texts and structs the name does not matter, but for texts that may be the placeholder in another form.
        found.setdefault(
            re.sub(r"semantic='(?!io.debezium.data.(Json|Uuid)')[^']*'", "semantic=None", repr(made.wire)), made
        )
    return [replace(made, name=f"c{n}", field=f"c{n}") for n, made in enumerate(found.values())]


def _named_as(form: Form, columns: list[WireColumn]) -> list[WireColumn]:
    """Leave out what the form has no names for; a schema of Avro with such a name is refused before."""
    return [item for item in columns if not (isinstance(form, AvroBody) and "a.b`" in repr(item.wire))]


_EVERY = _columns()
_READ = [item for item in _EVERY if not isinstance(item.wire, WireUnsupported)]
_ID = WireColumn(name="id", field="id", wire=wire_column(replace(INT32, field="id")).wire, optional=False)
_WRITER = json.dumps({"type": "record", "name": "e", "fields": []})
_FORMS: dict[str, Form] = {
    "json": Prefix(text=b'{"schema":{},"payload":'),
    "document": Document(digest="0" * 64),
    "avro": AvroBody(id=WireId(kind="confluent", value=1), raw=bytes(5), header=None, start=5, writer=_WRITER),
}
_DECODINGS = {
    "steady": Decoding(),
    "all": Decoding(keep_unchanged=True, images=True, refuse_ambiguous_null=True, out_of_range="clamp"),
    "changelog": Decoding(changelog=True, images=True, numbers=True, out_of_range="null"),
}


def _numbered(type_: DataType, numbers: Iterator[int]) -> DataType:
    """Give every part of a nested type an id."""
    match type_:
        case ListType():
            return replace(type_, element_id=next(numbers), element=_numbered(type_.element, numbers))
        case MapType():
            key, value = _numbered(type_.key, numbers), _numbered(type_.value, numbers)
            return replace(type_, key_id=next(numbers), key=key, value_id=next(numbers), value=value)
        case StructType(fields=fields):
            numbered = (replace(it, id=next(numbers), type=_numbered(it.type, numbers)) for it in fields)
            return replace(type_, fields=tuple(numbered))
        case _:
            return type_


def _analysed(
    session: SparkSession, columns: list[WireColumn], types: list[DataType], form: Form, decoding: Decoding
) -> None:
    """Have Spark analyse reading the columns into a head of these types."""
    numbers = count(len(types) + 1)
    head = InternalSchema(
        columns=tuple(
            Column(id=n, name=item.name, type=_numbered(type_, numbers))
            for n, (item, type_) in enumerate(zip([_ID, *columns], types, strict=True), start=1)
        ),
        primary_key=(1,),
        last_column_id=next(numbers),
    )
    projection = Projection(
        columns=tuple(FromColumn(name=it.name, id=it.id, source=it.type, target=it.type) for it in head.columns)
    )
    converter = Converter(
        key_form=Opaque(),
        value_form=form,
        table=TableId(database="d", schema="s", table="t"),
        schema=EventSchema(columns=(_ID, *columns), key=("id",), record_key=("id",)),
        projection=projection,
    )
    records = session.createDataFrame(
        [],
        "partition int, offset bigint, key binary, value binary, headers array<struct<key string, value binary>>",
    )
    found = convert(records, (converter,), head, decoding)
    assert {value_column(it.id): to_spark(it.type) for it in head.columns}.items() <= {
        field.name: field.dataType for field in found.schema.fields
    }.items()
    assert set(unchangeable((converter,), head, decoding)) <= {it.id for it in head.columns}


def test_every_schema_is_read_somehow_or_refused_in_words() -> None:
    assert len(_READ) > 60
    assert [item for item in _EVERY if isinstance(item.wire, WireUnsupported) and not item.wire.reason] == []


@pytest.mark.parametrize(
    ("name", "asked"),
    [("json", "all"), ("document", "steady"), ("json", "changelog"), ("avro", "all"), ("avro", "changelog")],
)
def test_spark_can_read_every_schema_into_its_own_type(session: SparkSession, name: str, asked: str) -> None:
    form = _FORMS[name]
    columns = _named_as(form, _READ)
    _analysed(session, columns, [logical_type(item.wire) for item in (_ID, *columns)], form, _DECODINGS[asked])


@pytest.mark.parametrize("name", ["json", "avro"])
def test_spark_can_read_every_schema_whatever_the_head_holds(session: SparkSession, name: str) -> None:
    """As for a type change that is refused, or a late event: no version has such a schema."""
    form = _FORMS[name]
    columns = _named_as(form, _EVERY)
    kinds = list(
        dict.fromkeys(logical_type(item.wire) for item in columns if not isinstance(item.wire, WireUnsupported))
    )
    for shift in (1, len(kinds) // 2):
        types = [kinds[(n + shift) % len(kinds)] for n in range(len(columns))]
        _analysed(session, columns, [logical_type(_ID.wire), *types], form, _DECODINGS["all"])


def test_a_struct_that_is_not_null_is_read_before_and_after_the_change(session: SparkSession) -> None:
    """In Avro both sides once declared a record of one name, which its schemas must not."""
    (number,) = (item for item in _READ if isinstance(item.wire, WireVariableDecimal))
    required = [replace(number, optional=False)]
    _analysed(session, required, [logical_type(it.wire) for it in (_ID, *required)], _FORMS["avro"], Decoding())
