"""Which schema a record follows, as Spark expressions over its bytes; `schema_book` is the driver's form of it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F
from typing_extensions import assert_never

from cdc_sync.core.debezium.forms import (
    KEY_WITHOUT_SCHEMA,
    PAYLOAD_MARKER,
    SCHEMA_MARKER,
    Absent,
    AvroBody,
    Document,
    Form,
    Opaque,
    Prefix,
    id_headers,
)
from cdc_sync.spark.columns import HEADERS, KEY, VALUE
from cdc_sync.spark.conditions import all_of


@cache
def value_has_payload() -> Column:
    """Return `has_payload` of a record's value."""
    return has_payload(F.col(VALUE))


def has_payload(value: Column) -> Column:
    """Return whether a record's value is not null and no tombstone of the JSON converter, `"payload":null}`."""
    return value.isNotNull() & ~F.endswith(value, F.lit(bytearray((PAYLOAD_MARKER + "null}").encode())))


def is_key_update(headers: Column) -> Column:
    """Return whether a create says that it stands for a row that was there under another key."""
    found = F.exists(headers, lambda header: header.getField("key") == "__debezium.oldkey")
    return F.coalesce(found, F.lit(False))


def may_be_key_update(headers: Column) -> Column:
    """Return whether a create may stand for a row that was there under another key; without headers nothing tells.

    Source: Debezium, `RelationalChangeRecordEmitter`; since 3.2.1 all its records have headers.
    """
    return is_key_update(headers) | (F.coalesce(F.size(headers), F.lit(0)) <= 0)


def is_text(data: Column) -> Column:
    """Return whether bytes are UTF-8."""
    return F.decode(data, "UTF-8").cast("binary") == data


_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF_OF_A_PAIR = rf"(?<!\\)(?:\\\\)*(?:{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW})"
"""In JSON text: one half of a surrogate pair without the other; a backslash that is escaped begins none."""


def holds_half_of_a_pair(document: Column) -> Column:
    """Return whether a JSON text holds half of a surrogate pair, which is no character: the parser makes it a `?`."""
    may_hold = F.contains(document, F.lit("\\ud")) | F.contains(document, F.lit("\\uD"))
    return F.coalesce(may_hold & document.rlike(_HALF_OF_A_PAIR), F.lit(False))


def are_text(values: Iterable[Column]) -> Column:
    """Return whether the bytes of many texts are UTF-8; never NULL.

    All are looked at together. What stands between them is no part of any character, so none is made of two halves.
    """
    return is_text(F.concat_ws("\0", *values).cast("binary"))


@cache
def digest(*, headers: bool) -> Column:
    """Return the digest of a record's schemas as `schema_book.digest_of` does, and of those in other layouts too.

    Args:
        headers: whether the records have the column `headers`, where ids may be.

    Returns:
        64 hexadecimal digits, or '' where the value shows no schema.
    """
    bare = F.when(F.col(KEY).isNotNull(), F.lit(bytearray(KEY_WITHOUT_SCHEMA))).otherwise(F.lit(bytearray()))
    key = F.coalesce(_part(KEY, "key", headers=headers), bare)
    value = _part(VALUE, "value", headers=headers)
    both = F.concat(key, F.lit(bytearray(b"\n")), value)
    return F.coalesce(F.sha2(both, 256), F.lit(""))


def _part(name: str, part: Literal["key", "value"], *, headers: bool) -> Column:
    """Return the bytes that tell a schema, NULL if there are none."""
    data = F.col(name)
    text = data.cast("string")
    id_size = F.when((F.length(data) >= 9) & (F.substring(data, 2, 4) == F.lit(bytearray(4))), 9).otherwise(5)
    is_avro = (F.substring(data, 1, 1) == F.lit(bytearray(1))) & (F.length(data) >= 5)
    schema = F.get_json_object(text, "$.schema")
    in_bytes = (
        F.when(is_canonical(data), F.substring_index(text, PAYLOAD_MARKER, 1).cast("binary"))
        .when(is_avro, data.substr(F.lit(1), id_size))
        .when(F.ltrim(F.substring(text, 1, 64)).startswith("{"), F.concat(F.lit("d:"), schema).cast("binary"))
    )
    return F.coalesce(*_header_ids(part), in_bytes) if headers else in_bytes


def is_canonical(data: Column) -> Column:
    """Return whether bytes are laid out as Kafka Connect's JSON converter does it, schema first, no white space."""
    begins = F.startswith(data, F.lit(bytearray((SCHEMA_MARKER + "{").encode())))
    return begins & F.contains(data, F.lit(bytearray(PAYLOAD_MARKER.encode())))


def _header_ids(part: Literal["key", "value"]) -> list[Column]:
    return [F.concat(F.lit(bytearray(name.encode() + b":")), _header(name)) for name in id_headers(part)]


def _header(name: str) -> Column:
    found = F.filter(F.col(HEADERS), lambda header: header.getField("key") == name)
    value = F.get(found, F.size(found) - 1).getField("value")
    return F.when(F.length(value) > 0, value)


def matches(key_form: Form, value_form: Form, *, headers: bool) -> Column:
    """Return whether a record has these forms; never NULL for a value that is not null."""
    conditions = [
        condition
        for name, part, form in ((VALUE, "value", value_form), (KEY, "key", key_form))
        if (condition := _has_form(name, part, form, headers=headers)) is not None
    ]
    return F.coalesce(all_of([F.lit(True), *conditions]), F.lit(False))


def _has_form(name: str, part: str, form: Form, *, headers: bool) -> Column | None:
    data = F.col(name)
    match form:
        case Prefix(text=text):
            return F.startswith(data, F.lit(bytearray(text)))
        case Document(digest=wanted):
            return digest(headers=headers) == wanted
        case AvroBody(raw=raw, header=header):
            if header is None:
                return F.startswith(data, F.lit(bytearray(raw)))
            return _header(header) == F.lit(bytearray(raw))
        case Absent():
            return data.isNull()
        case Opaque():
            return None
        case _:
            assert_never(form)
