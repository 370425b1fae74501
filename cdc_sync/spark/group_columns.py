"""Which columns of records are read together, and how: what `groups` asks of single converters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.avro_union import MEMBER
from cdc_sync.core.debezium.forms import AvroBody, Prefix
from cdc_sync.core.debezium.unsent import fields_that_lose_elements, unsent_fields
from cdc_sync.core.debezium.wire import MAX_DIGITS, WireColumn, WireDecimal, WireInteger
from cdc_sync.core.schema.projection import FromColumn
from cdc_sync.spark.changelog import proving
from cdc_sync.spark.columns import KEY
from cdc_sync.spark.conditions import any_or_false
from cdc_sync.spark.converter import Converter, Decoding
from cdc_sync.spark.layouts import Layout
from cdc_sync.spark.payloads import behind, read_avro
from cdc_sync.spark.raw import ReadAs

MAY_BE_KEY_UPDATE, IS_KEY_UPDATE = "may_be_key_update", "is_key_update"
"""Whether a create may stand for a row that was there under another key, and whether it says so."""
FORM = "f"
"""The index of the record's form among those that are known, NULL if it has none of them."""
READING = "r"
"""The index of the record's converter, NULL if there is none."""


def unsent_of(converter: Converter, decoding: Decoding) -> frozenset[str]:
    """Return the fields in which a NULL may stand for an unchanged value, as far as that is asked for."""
    return unsent_fields(converter.schema) | converter.unread if decoding.unsent else frozenset()


def unread_of(converter: Converter, decoding: Decoding) -> frozenset[str]:
    """Return the fields of arrays whose elements the connector may not read, as far as that is asked for."""
    return fields_that_lose_elements(converter.schema) if decoding.unsent else frozenset()


def settings_of(converter: Converter, decoding: Decoding) -> ReadAs:
    """Return how the values of a converter's records are read."""
    return ReadAs(decimal_format=converter.decimal_format, out_of_range=decoding.out_of_range)


def key_fields(converter: Converter) -> frozenset[str]:
    """Return the wire fields of the columns that identify a row."""
    schema = converter.schema
    return frozenset(column.field for column in schema.columns if column.name in schema.key)


def needed_of(converter: Converter, decoding: Decoding) -> tuple[list[WireColumn], list[WireColumn]]:
    """Return the columns that are read of the row after the change, and of the one before it."""
    names = {entry.name for entry in converter.projection.columns if isinstance(entry, FromColumn)}
    names |= set(converter.schema.key)
    needed = [column for column in converter.schema.columns if column.name in names]
    if decoding.images:
        return needed, needed
    return needed, before_beside_key(converter)


_PROOFS = 4
"""A value in one column proves that the image is whole; every update would have those of more read."""


def before_beside_key(converter: Converter) -> list[WireColumn]:
    """Return the columns that are read of the row before the change where full images are not asked for.

    Besides the key those that tell whether a delete's key was made up, see `images`.
    """
    schema = converter.schema
    key = [column for column in schema.columns if column.name in schema.key]
    if not converter.may_make_up_values:
        return key
    read = {entry.name for entry in converter.projection.columns if isinstance(entry, FromColumn)}
    proofs = proving((column for column in schema.columns if column.name in read), schema.key)[:_PROOFS]
    return [column for column in schema.columns if column in key or not column.optional or column in proofs]


def read_both(one: WireColumn | None, other: WireColumn) -> WireColumn | None:
    """Return the column that reads the values of both: equal types, or one that was widened; None if none does."""
    if one is None or one.name != other.name:
        return None
    match one.wire, other.wire:
        case (first, second) if first == second:
            return one
        case WireInteger(bits=first), WireInteger(bits=second) if first >= 32 and second >= 32:
            return one if first > second else other
        case WireDecimal(scale=first), WireDecimal(scale=second) if first == second:
            digits = (item.wire.precision or MAX_DIGITS for item in (one, other) if isinstance(item.wire, WireDecimal))
            return replace(one, wire=WireDecimal(precision=max(digits), scale=first))
        case _:
            return None


def by_index(sizes: dict[int, int]) -> Column:
    """Return the number for the record's form: an array, for a literal of its own would be compiled anew."""
    if len(sizes) == 1:
        return F.lit(next(iter(sizes.values())))
    return F.get(F.array(*(F.lit(sizes.get(form)).cast("int") for form in range(max(sizes) + 1))), F.col(FORM))


def has_whole_before(converters: Sequence[Converter], layout: Layout, before: Iterable[str]) -> Column:
    """Return whether an event is known to hold the whole row before the change, whichever converter's it is.

    Args:
        converters: of one layout.
        layout: where the parts of the event are.
        before: wire fields that are read of the row before.
    """
    schemas = [converter.schema for converter in converters]
    proofs = [frozenset(column.field for column in proving(schema.columns, schema.key)) for schema in schemas]
    shown = [frozenset(column.field for column in schema.columns) for schema in schemas]
    told = [
        layout.before(field).isNotNull()
        for field in before
        if all(field in proof or field not in fields for proof, fields in zip(proofs, shown, strict=True))
    ]
    return F.lit(True) if not any(schema.record_key for schema in schemas) else any_or_false(told)


def read_key(converters: Mapping[int, Converter], key_type: T.StructType, members: list[dict[str, object]]) -> Column:
    """Return the record's key as a struct, NULL where its form cannot be read.

    Args:
        converters: by the record's form.
        key_type: the struct.
        members: the same, as Avro's fields.
    """
    data, found = F.col(KEY), F.lit(None).cast(key_type)
    for form, item in converters.items():
        if isinstance(item.key_form, Prefix):
            text = behind(data, len(item.key_form.text)).cast("string")
            here = F.col(FORM) == form
            found = F.when(here, F.from_json(F.when(here, text), key_type)).otherwise(found)
    avro = {form: item.key_form for form, item in converters.items() if isinstance(item.key_form, AvroBody)}
    if not avro:
        return found
    reader = {"type": "record", "name": "cdc_sync_key", "fields": members}
    return F.coalesce(read_avro(data, F.col(FORM), avro, reader).getField(MEMBER), found)
