"""Maps, which are not always maps on the wire: JSON shows pairs and Avro entries where the keys are not texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.wire import WireMap, WireType
from cdc_sync.spark.raw import Format, Settings, is_object, raw_type

Decoder: TypeAlias = Callable[[Column], Column]


def map_decoder(
    wire: WireMap, form: Format, settings: Settings, *, key: Decoder | None, value: Decoder | None
) -> Decoder | None:
    """Return what turns the raw value into a map, None if it is one already; NULL where a key is NULL or there twice.

    Args:
        wire: the map's type.
        form: how it was written.
        settings: as for `raw_type`.
        key: decodes a raw key, None if it needs no decoding.
        value: decodes a raw value.
    """
    if is_object(wire, form) and key is None:
        return None if value is None else lambda raw: F.transform_values(raw, lambda _, item: value(item))

    def decode(raw: Column) -> Column:
        keys, values, intact = _parts(wire, raw, form, settings)
        keys = keys if key is None else F.transform(keys, key)
        values = values if value is None else F.transform(values, value)
        unique = F.size(F.array_distinct(keys)) == F.size(keys)
        # Spark fails the query for a key that is NULL or there twice.
        return F.when(intact & unique & ~F.exists(keys, lambda item: item.isNull()), F.map_from_arrays(keys, values))

    return decode


def raw_values(wire: WireMap, raw: Column, form: Format, settings: Settings) -> Column:
    """Return the raw values as an array, in the order of the map."""
    return _parts(wire, raw, form, settings)[1]


def _parts(wire: WireMap, raw: Column, form: Format, settings: Settings) -> tuple[Column, Column, Column]:
    """Return keys, values, and whether the entries could be read."""
    if is_object(wire, form):
        return F.map_keys(raw), F.map_values(raw), F.lit(True)
    if form == "json":
        keys = F.transform(raw, lambda pair: F.get(pair, F.lit(0)))
        values = F.transform(raw, lambda pair: F.get(pair, F.lit(1)))
        read_keys = _parsed(wire.key, keys, form, settings)
        read_values = _parsed(wire.value, values, form, settings)
        pairs = ~F.exists(raw, lambda pair: pair.isNull() | (F.size(pair) != 2))
        return read_keys, read_values, pairs & _same_nulls(keys, read_keys) & _same_nulls(values, read_values)
    entries = ~F.exists(raw, lambda entry: entry.isNull())
    return F.transform(raw, lambda entry: entry["key"]), F.transform(raw, lambda entry: entry["value"]), entries


def _parsed(wire: WireType, texts: Column, form: Format, settings: Settings) -> Column:
    """Read JSON values that were read as texts: strings have lost their quotes, all others are as they were."""
    type_ = raw_type(wire, form, settings)
    quoted = isinstance(type_, (T.StringType, T.BinaryType))
    text = F.to_json(texts) if quoted else F.concat(F.lit("["), F.array_join(texts, ",", "null"), F.lit("]"))
    return F.from_json(text, T.ArrayType(type_))


def _same_nulls(one: Column, other: Column) -> Column:
    found = [F.size(F.filter(side, lambda item: item.isNull())) for side in (one, other)]
    return F.coalesce((F.size(one) == F.size(other)) & (found[0] == found[1]), F.lit(False))
