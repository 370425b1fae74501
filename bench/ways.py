"""The ways of decoding that `decode.py` compares: by hand with a static schema, and ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from evolving import Events, Generation, registered
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from cdc_sync.config import Config
from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.schema_book import Headers, SchemaBook
from cdc_sync.core.debezium.wireids import WireId, find_id
from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition
from cdc_sync.core.planning.observation import Observation
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.schema.policy import Policy
from cdc_sync.runtime.row_shape import Shape, decoding_of
from cdc_sync.runtime.write_plan import converters_for
from cdc_sync.spark.compile import convert
from cdc_sync.spark.recognise import has_payload
from cdc_sync.testing import Record

Decode = Callable[[DataFrame], DataFrame]
"""Kafka records to `op`, `lsn` and the head's columns, maybe with others before them."""
Format = Literal["json", "avro"]
_JSON_TYPES = {"boolean": "boolean", "int32": "int", "int64": "bigint", "double": "double", "string": "string"}


def static(format_: Format, head: Generation) -> Decode:
    """Decode whole messages with the one schema of `head`, as a job does that was written by hand for it."""
    if format_ == "json":
        row = ",".join(f"{column.field}:{_JSON_TYPES.get(column.type, 'binary')}" for column in head.columns)
        payload = f"before:struct<id:bigint>,after:struct<{row}>,source:struct<lsn:bigint>,op:string"
        event = F.from_json(F.col("value").cast("string"), f"struct<payload:struct<{payload}>>").getField("payload")
    else:
        event = from_avro(F.expr("substring(value, 6)"), registered(head)[_value_id(head)])

    def decode(records: DataFrame) -> DataFrame:
        parsed = records.select("partition", "offset", event.alias("event"))
        row = F.coalesce(F.col("event.after.id"), F.col("event.before.id"))
        others = (_typed(column, F.col(f"event.after.{column.field}"), format_) for column in head.columns[1:])
        return parsed.select("partition", "offset", "event.op", "event.source.lsn", row.alias("id"), *others)

    return decode


def _typed(column: ConnectSchema, value: Column, format_: Format) -> Column:
    match column.name:
        case "org.apache.kafka.connect.data.Decimal" if format_ == "json":
            precision, scale = column.parameters["connect.decimal.precision"], column.parameters["scale"]
            schema = {"type": "bytes", "logicalType": "decimal", "precision": int(precision), "scale": int(scale)}
            length = F.unhex(F.lpad(F.hex(2 * F.length(value)), 2, "0"))
            typed = from_avro(F.concat(length, value), json.dumps(schema))
        case "io.debezium.time.MicroTimestamp":
            typed = F.timestamp_micros(value).cast("timestamp_ntz")
        case "io.debezium.time.ZonedTimestamp":
            typed = value.cast("timestamp")
        case "io.debezium.time.Date":
            typed = F.date_from_unix_date(value)
        case _:
            typed = value
    return typed.alias(column.field or "")


def ours(format_: Format, events: Events, shown: Sequence[Generation], config: Config) -> Decode:
    """Decode as the job does when these schemas of the table are live, to the last of them."""
    route = Route(
        table=events.table,
        target=TargetName(namespace="inv", name=events.table.table),
        renames={},
        drops=frozenset(),
        initials={},
        policy=Policy(),
    )
    book = SchemaBook(_Registered({id_: text for each in shown for id_, text in registered(each).items()}))
    samples = [next(iter(getattr(events, format_)([each]))) for each in shown]
    history = _history(book, route, samples)
    known = [book.learn(sample.key, sample.value) for sample in samples]
    converters = converters_for(history, route, known)
    decoding = decoding_of(config, route, Shape.RECORD_KEY, keep_unchanged=False, numbers=False, headers=False)
    return lambda records: convert(
        records.where(has_payload(F.col("value"))), converters, history.head.schema, decoding
    )


def _history(book: SchemaBook, route: Route, samples: Sequence[Record]) -> History:
    """Plan the versions that the samples, one for each schema, lead to."""
    observations = []
    for place, sample in enumerate(samples):
        assert sample.value is not None
        known = book.learn(sample.key, sample.value)
        assert known.schema is not None, known.broken
        assert known.fingerprint is not None
        observation = Observation(
            table=route.table,
            position=SourcePosition(kind="postgresql", parts=(place + 1, place + 1)),
            kafka=KafkaPosition(topic="wide", partition=0, offset=place),
            schema=known.schema,
            fingerprint=known.fingerprint,
            snapshot=False,
            append_only=True,
            before_seen_in_stream=True,
        )
        observations.append(observation)
    plan = plan_table(None, observations, route, ICEBERG)
    assert plan.refusal is None, plan.refusal
    assert len(plan.versions) == len(samples)
    return History(table=route.table, versions=plan.versions)


class _Registered:
    """A registry that is a dictionary."""

    def __init__(self, schemas: Mapping[int, str]) -> None:
        self._schemas = schemas

    def find_id(self, data: bytes, headers: Headers, part: Literal["key", "value"]) -> tuple[WireId, int] | None:
        return find_id(data, headers, part=part, registry_type="confluent", ids="content", use_headers=False)

    def schema(self, id_: WireId) -> str:
        return self._schemas[int(id_.value)]


def _value_id(head: Generation) -> int:
    return max(registered(head))
