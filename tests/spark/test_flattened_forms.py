"""Flattened events in JSON of any layout and in Avro are the same rows, and what cannot be read is no delete."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any, Literal

import fastavro
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from cdc_sync.core.debezium.conversions import logical_type
from cdc_sync.core.debezium.flattened import FlattenedSettings
from cdc_sync.core.debezium.forms import KnownSchema
from cdc_sync.core.debezium.schema_book import Headers, SchemaBook
from cdc_sync.core.debezium.wireids import WireId, find_id
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.problems import MALFORMED, NO_KEY
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.projection import project
from cdc_sync.spark.compile import convert
from cdc_sync.spark.converter import Converter, Decoding
from cdc_sync.spark.eventreader import EventReader
from cdc_sync.spark.observe import survey
from cdc_sync.testing import INT32, TEXT, Record, column, message, struct
from tests.spark.independent import avro_schema
from tests.spark.records import frame, one

pytestmark = pytest.mark.spark

_SETTINGS = FlattenedSettings(add_fields=("op",))
_KEY = struct("p.s.t.Key", column("id", INT32, optional=False))
_ROWS = (
    struct("p.s.t.Value", column("id", INT32, optional=False), column("note", TEXT), column("__op", TEXT)),
    struct(
        "p.s.t.Value",
        *(column("id", INT32, optional=False), column("note", TEXT), column("more", INT32), column("__op", TEXT)),
    ),
)
_CHANGES: tuple[dict[str, Any], ...] = (
    {"id": 1, "note": "a", "__op": "c"},
    {"id": 2, "note": None, "__op": "r"},
    {"id": 1, "note": "b", "more": 7, "__op": "u"},
)


class Schemas:
    """Avro schemas by id, as a registry: the key's, and the rows' of each version, which may be null."""

    texts = (avro_schema(_KEY, "Key"), *(["null", avro_schema(row, "Value")] for row in _ROWS))

    def find_id(self, data: bytes, headers: Headers, part: Literal["key", "value"]) -> tuple[WireId, int] | None:
        return find_id(data, headers, part=part, registry_type="confluent", ids="content", use_headers=False)

    def schema(self, id_: WireId) -> str:
        number = int(id_.value)
        name = ("Key", "Value", "Value")[number]
        text = json.dumps(self.texts[number])
        # The converter keeps Connect's name of a schema beside Avro's.
        return text.replace(f'"name": "{name}"', f'"name": "{name}", "connect.name": "p.s.t.{name}"')


def _avro(number: int, value: Any) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, json.loads(json.dumps(Schemas.texts[number])), value)
    return b"\0" + number.to_bytes(4, "big") + body.getvalue()


@dataclass(frozen=True)
class Form:
    name: str

    def key(self, id_: int) -> bytes:
        return _avro(0, {"id": id_}) if self.name == "avro" else message(_KEY, {"id": id_})

    def record(self, change: dict[str, Any]) -> Record:
        version = int("more" in change)
        if self.name == "avro":
            return Record(key=self.key(change["id"]), value=_avro(1 + version, change))
        text = message(_ROWS[version], change)
        value = json.dumps(json.loads(text), indent=1).encode() if self.name == "white space" else text
        return Record(key=self.key(change["id"]), value=value)


FORMS = [Form("canonical"), Form("white space"), Form("avro")]


def learnt(session: SparkSession, records: list[Record]) -> list[KnownSchema]:
    book, found = SchemaBook(Schemas(), flattened=_SETTINGS), {}
    digests = frame(session, one(records)).select(EventReader().digest().alias("digest")).collect()
    for record, row in zip(records, digests, strict=True):
        if record.value is not None:
            found[row.digest] = book.learn(record.key, record.value, (), digest=row.digest)
    return list(found.values())


def converted(session: SparkSession, known: list[KnownSchema], records: list[Record]) -> list[Row]:
    ids = {"id": 1, "note": 2, "more": 3}
    schemas = []
    for item in known:
        assert item.schema is not None, item.broken
        columns = tuple(
            Column(id=ids[wire.name], name=wire.name, type=logical_type(wire.wire)) for wire in item.schema.columns
        )
        schemas.append(InternalSchema(columns=columns, primary_key=(1,), last_column_id=3))
    head = max(schemas, key=lambda schema: len(schema.columns))
    converters = tuple(
        Converter(
            key_form=item.key_form,
            value_form=item.value_form,
            table=TableId(database="p", schema="s", table="t"),
            schema=item.schema,
            projection=project(schema, head),
            flattened=item.flattened,
        )
        for item, schema in zip(known, schemas, strict=True)
        if item.schema is not None
    )
    found: DataFrame = convert(frame(session, one(records)), converters, head, Decoding(images=False))
    return sorted(found.collect(), key=lambda row: row.offset)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_flattened_events_are_rows_in_every_form(session: SparkSession, form: Form) -> None:
    records = [form.record(change) for change in _CHANGES]
    known = learnt(session, records)
    deleted = Record(key=form.key(2), value=None)

    rows = converted(session, known, [*records, deleted])

    assert [(row.problem, row.op, row.c1, row.c2, row.c3) for row in rows] == [
        (None, "c", 1, "a", None),
        (None, "r", 2, None, None),
        (None, "u", 1, "b", 7),
        # Of records in a layout of their own the key is not read, and a delete is no more than that.
        (NO_KEY, "d", None, None, None) if form.name == "white space" else (None, "d", 2, None, None),
    ]


def test_a_flattened_event_of_avro_that_is_cut_short_is_malformed_and_no_delete(session: SparkSession) -> None:
    form = Form("avro")
    records = [form.record(change) for change in _CHANGES]
    known = learnt(session, records)
    assert records[0].value is not None
    cut = Record(key=records[0].key, value=records[0].value[:-3])

    rows = converted(session, known, [cut])
    reader = EventReader.of(known, headers=False, began={})
    events = frame(session, one([cut])).withColumn("digest", reader.digest()).select(reader.event()["op"]).collect()

    assert [row.problem for row in rows] == [MALFORMED]
    assert events[0][0] != "d"


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_the_survey_finds_where_each_version_of_flattened_events_begins(session: SparkSession, form: Form) -> None:
    records = [form.record(change) for change in _CHANGES]
    reader = EventReader.of(learnt(session, records), headers=False, began={})

    found = survey(frame(session, one(records)), reader, {("t", 0): len(records)})

    assert [item.kafka.offset for item in found.stretches] == [0, 2]
    assert {str(item.table) for item in found.stretches} == {"p.s.t"}


def test_one_expression_reads_all_schemas_of_avro(session: SparkSession) -> None:
    records = [Form("avro").record(change) for change in _CHANGES]
    reader = EventReader.of(learnt(session, records), headers=False, began={})
    read = frame(session, one(records)).withColumn("digest", reader.digest()).select(reader.event()["op"])

    plan = read._jdf.queryExecution().analyzed().toString()

    assert plan.count("from_avro") == 1
