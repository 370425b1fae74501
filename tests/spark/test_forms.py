"""One batch that mixes JSON in every layout and Avro with ids everywhere gives what plain JSON gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from cdc_sync.core.debezium.forms import KnownSchema
from cdc_sync.core.debezium.schema_book import Headers, SchemaBook
from cdc_sync.core.debezium.wireids import WireId, find_id
from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.planning.column_mappings import readings
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.spark.compile import convert
from cdc_sync.spark.converter import Converter, Decoding
from cdc_sync.spark.eventreader import EventReader
from cdc_sync.spark.observe import survey
from cdc_sync.testing import Record
from tests.corpus.reader import Message, schemas, topics
from tests.plan.model import ROUTE, observations, stretches, topic

pytestmark = pytest.mark.spark

Laid = tuple[bytes | None, bytes | None, Headers]


class Captured:
    """The schemas of the Avro capture, as a registry."""

    def find_id(self, data: bytes, headers: Headers, part: Literal["key", "value"]) -> tuple[WireId, int] | None:
        return find_id(data, headers, part=part, registry_type="confluent", ids="content", use_headers=True)

    def schema(self, id_: WireId) -> str:
        return schemas("postgres-avro")[int(id_.value)]


def as_it_is(json_: Message, avro: Message) -> Laid:
    return json_.key, json_.value, ()


def with_white_space(json_: Message, avro: Message) -> Laid:
    assert json_.key is not None
    assert json_.value is not None
    return _spaced(json_.key), _spaced(json_.value), ()


def _spaced(text: bytes) -> bytes:
    return b"\n " + json.dumps(json.loads(text), indent=1, ensure_ascii=False).encode()


def payload_first(json_: Message, avro: Message) -> Laid:
    assert json_.value is not None
    record = json.loads(json_.value)
    turned = {"payload": record["payload"], "schema": record["schema"]}
    return json_.key, json.dumps(turned, separators=(",", ":")).encode(), ()


def avro_with_ids_in_front(json_: Message, avro: Message) -> Laid:
    return avro.key, avro.value, ()


def avro_with_ids_in_headers(json_: Message, avro: Message) -> Laid:
    assert avro.key is not None
    assert avro.value is not None
    headers = (("other", b"x"), ("__key_schema_id", avro.key[:5]), ("__value_schema_id", avro.value[:5]))
    return avro.key[5:], avro.value[5:], headers


FORMS = (as_it_is, with_white_space, payload_first, avro_with_ids_in_front, avro_with_ids_in_headers)


def pairs(table: str) -> list[tuple[Message, Message]]:
    """Every change of a table, once from each capture of the same statements."""
    found = zip(topics("postgres-json")[f"pgj.{table}"], topics("postgres-avro")[f"pga.{table}"], strict=True)
    return [(json_, avro) for json_, avro in found if json_.value is not None and json_.key is not None]


def frame(session: SparkSession, laid: Sequence[Laid]) -> DataFrame:
    rows = [
        ("t", 0, offset, _bytes(key), _bytes(value), [(name, _bytes(data)) for name, data in headers] or None)
        for offset, (key, value, headers) in enumerate(laid)
    ]
    place = "topic string, partition int, offset bigint, key binary, value binary"
    return session.createDataFrame(rows, f"{place}, headers array<struct<key:string,value:binary>>")


def _bytes(data: bytes | None) -> bytearray | None:
    return None if data is None else bytearray(data)


def history(messages: Sequence[Message]) -> History:
    (events,) = topic([Record(key=message.key, value=message.value) for message in messages])
    plan = plan_table(None, observations(None, stretches(events, events, None), events), ROUTE, ICEBERG)
    assert plan.refusal is None, plan.refusal
    table = events[0].source.table
    return History(table=table, versions=plan.versions)


def learnt(session: SparkSession, laid: Sequence[Laid]) -> dict[str, KnownSchema]:
    """Learn every schema of a batch by the digest that Spark finds for its record."""
    book, reader = SchemaBook(Captured(), use_headers=True), EventReader(headers=True)
    rows = frame(session, laid).select("offset", reader.digest().alias("digest")).collect()
    found = {}
    for row in rows:
        key, value, headers = laid[row.offset]
        assert value is not None
        found[row.digest] = book.learn(key, value, headers, digest=row.digest)
        assert found[row.digest].broken is None, found[row.digest].broken
        assert book.digest_of(key, value, headers) in ("", row.digest)
    return found


def values(session: SparkSession, laid: Sequence[Laid], known: History) -> list[Row]:
    converters = tuple(
        Converter(
            key_form=item.key_form,
            value_form=item.value_form,
            table=known.table,
            schema=item.schema,
            projection=reading.projection,
            from_position=reading.from_position,
            to_position=reading.to_position,
        )
        for item in learnt(session, laid).values()
        if item.schema is not None and item.fingerprint is not None
        for reading in readings(known, item.schema, item.fingerprint, known.head.position)
    )
    found = convert(frame(session, laid), converters, known.head.schema, Decoding(headers=True))
    return sorted(found.drop("lsn").collect(), key=lambda row: row.offset)


@pytest.mark.parametrize("table", ["inv.comp", "inv.later"])
def test_forms_may_be_mixed_in_one_batch(session: SparkSession, table: str) -> None:
    both = pairs(table)
    known = history([json_ for json_, _ in both])
    plain = values(session, [as_it_is(*pair) for pair in both], known)
    mixed: list[Any] = [FORMS[index % len(FORMS)](*pair) for index, pair in enumerate(both)]

    assert {row.problem for row in plain} == {None}
    assert values(session, mixed, known) == plain


def test_the_survey_reads_place_and_operation_in_every_form(session: SparkSession) -> None:
    both = pairs("inv.comp")
    ends = {("t", 0): len(both)}
    for form in FORMS:
        laid = [form(*pair) for pair in both]
        reader = EventReader.of(learnt(session, laid).values(), headers=True, began={})
        found = survey(frame(session, laid), reader, ends)
        stretch = found.stretches[0]  # of the snapshot; what was streamed behind it is another
        assert (str(stretch.table), stretch.position.kind, stretch.kafka.offset) == (
            "postgres.inv.comp",
            "postgresql",
            0,
        )
        assert found.others == ()


def test_a_tombstone_in_an_envelope_of_json_is_no_record(session: SparkSession) -> None:
    ((first, _), *_) = pairs("inv.later")
    assert first.value is not None
    schema = json.dumps(json.loads(first.value)["schema"], separators=(",", ":")).encode()
    laid: list[Laid] = [
        (first.key, b'{"schema":null,"payload":null}', ()),
        (first.key, b'{"schema":' + schema + b',"payload":null}', ()),
    ]
    found = survey(frame(session, laid), EventReader(), {("t", 0): 2})
    assert (found.stretches, found.others) == ((), ())
