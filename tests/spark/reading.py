"""Values written as Kafka Connect does, read and decoded by our expressions, and compared."""

from __future__ import annotations

import json
import math
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.avro.functions import from_avro

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.conversions import logical_type, wire_type
from cdc_sync.core.debezium.wire import WireType
from cdc_sync.spark.decode import decoder, does_not_convert
from cdc_sync.spark.raw import DEFAULTS, Format, Settings, avro_reader_type, raw_type
from cdc_sync.spark.types import to_spark
from tests.spark.independent import LOST, as_json, avro_body, avro_schema, json_value


def parsed(
    session: SparkSession,
    schemas: dict[str, ConnectSchema],
    values: dict[str, list[Any]],
    form: Format,
    settings: Settings = DEFAULTS,
) -> DataFrame:
    """Write the values side by side as records, and read them with our types into a struct `r` of `c0`, `c1`, ..."""
    named = {f"c{n}": schemas[title] for n, title in enumerate(values)}
    columns = list(values.values())
    rows = [
        {f"c{n}": column[i] if i < len(column) else None for n, column in enumerate(columns)}
        for i in range(max(map(len, columns)))
    ]
    if form == "json":
        records: list[Any] = [
            as_json({name: json_value(named[name], value) for name, value in row.items()}) for row in rows
        ]
        members = [T.StructField(name, raw_type(wire_type(schema), "json", settings)) for name, schema in named.items()]
        read = F.from_json(F.col("record"), T.StructType(members), {"columnNameOfCorruptRecord": "corrupt"})
        frame = session.createDataFrame(list(enumerate(records)), "n int, record string")
    else:
        optional = [{"name": name, "type": ["null", _branch(schema, name)]} for name, schema in named.items()]
        writer = {"type": "record", "name": "Value", "namespace": "s.t", "fields": optional}
        records = [bytearray(avro_body(writer, named, row)) for row in rows]
        reader = {"type": "record", "name": "Row", "fields": [_reader(name, named[name]) for name in named]}
        read = from_avro(F.col("record"), json.dumps(writer), {"avroSchema": json.dumps(reader), "mode": "PERMISSIVE"})
        frame = session.createDataFrame(list(enumerate(records)), "n int, record binary")
    return frame.select("n", read.alias("r"))


def _branch(schema: ConnectSchema, name: str) -> Any:
    written = avro_schema(schema, name)
    return written[1] if schema.optional else written


def _reader(name: str, schema: ConnectSchema) -> dict[str, Any]:
    return {"name": name, "type": avro_reader_type(wire_type(schema), name), "default": None}


def converted(wire: WireType, raw: Column, form: Format, settings: Settings = DEFAULTS) -> Column:
    decode = decoder(wire, form, settings)
    return raw if decode is None else decode(raw)


def found(
    session: SparkSession,
    schemas: dict[str, ConnectSchema],
    values: dict[str, list[Any]],
    form: Format,
    settings: Settings = DEFAULTS,
) -> dict[str, list[Any]]:
    """Return by column what our expressions make of the values, `LOST` where they say that a value is."""
    titles = list(values)
    columns = [
        _value_and_loss(wire_type(schemas[title]), F.col("r")[f"c{n}"], form, settings).alias(f"c{n}")
        for n, title in enumerate(titles)
    ]
    collected = sorted(parsed(session, schemas, values, form, settings).select("n", *columns).collect())
    rows = [row.asDict(recursive=True) for row in collected]
    return {
        title: [LOST if row[f"c{n}"]["lost"] else row[f"c{n}"]["value"] for row in rows[: len(values[title])]]
        for n, title in enumerate(titles)
    }


def _value_and_loss(wire: WireType, raw: Column, form: Format, settings: Settings) -> Column:
    value = converted(wire, raw, form, settings)
    lost = does_not_convert(wire, raw, value, form, settings)
    type_ = to_spark(logical_type(wire))
    shown = value.cast(type_).cast(_shown(type_))
    return F.struct(shown.alias("value"), (F.lit(False) if lost is None else lost).alias("lost"))


def _shown(type_: T.DataType) -> T.DataType:
    """Return the type in which Python shows an instant in UTC."""
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(_shown(type_.elementType))
    if isinstance(type_, T.MapType):
        return T.MapType(_shown(type_.keyType), _shown(type_.valueType))
    return T.TimestampNTZType() if isinstance(type_, T.TimestampType) else type_


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal to the sign of zero and the scale of nothing; NaN is itself."""
    if isinstance(other, dict):
        return isinstance(one, dict) and one.keys() == other.keys() and all(same(one[k], other[k]) for k in other)
    if isinstance(other, list):
        return isinstance(one, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bytearray):
        return bool(bytes(one) == other)
    if isinstance(other, float) and isinstance(one, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return bool(one == other) and math.copysign(1, one) == math.copysign(1, other)
    return type(one) is type(other) and bool(one == other)


def differences(got: dict[str, list[Any]], wanted: dict[str, list[Any]], given: dict[str, list[Any]]) -> list[str]:
    """Return a sentence for each value that is not what it should be."""

    def named(value: Any) -> str:
        return "LOST" if value is LOST else f"{value!r:.90}"

    return [
        f"{title}: of {named(value)} we made {named(one)}, not {named(other)}"
        for title in wanted
        for one, other, value in zip(got[title], wanted[title], given[title], strict=True)
        if not same(one, other)
    ]
