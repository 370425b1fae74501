"""Where in a record's bytes its payload is, and reading it as Avro."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from cdc_sync.core.debezium.avro_union import MEMBER, branch_mark, union_of
from cdc_sync.core.debezium.forms import AvroBody
from cdc_sync.spark.conditions import any_of

K = TypeVar("K", int, str)


def behind(data: Column, size: Column | int) -> Column:
    """Return what stands between a JSON record's prefix of a size and the wrapper's closing brace, as bytes."""
    width = F.lit(size) if isinstance(size, int) else size
    return data.substr(width + 1, F.length(data) - width - 1)


def lost_quotes(payload: Column, member: str, value: Column, *, compact: bool) -> Column:
    """Return whether a text was none in JSON: Spark's parser makes one of any value; never NULL.

    Quotes count wherever the payload has a member of the name, the row before the change included.

    Args:
        payload: the text of the JSON.
        member: its name, within quotes, with what has to be escaped in JSON.
        value: what the parser made of it.
        compact: whether to expect no white space, as in Kafka Connect's layout.
    """
    # Few values may be bare, and only for them the payload is searched; for NULL it would be, without the coalesce.
    first = F.when(F.startswith(value, F.lit('"')), '\\"').otherwise(F.substring(value, 1, 1))
    return F.coalesce(_may_be_bare(value), F.lit(False)) & ~is_quoted(payload, member, first, compact=compact)


def _may_be_bare(value: Column) -> Column:
    """Return whether Spark's parser can have made a text of an array, an object, a number or a boolean.

    Of NaN and infinities it makes quotes. Between the parts of an object it writes no white space, which databases do.
    In a number, a minus stands first or in an exponent, which dates and UUIDs do not have.
    """
    marks = any_of(F.startswith(value, F.lit(mark)) for mark in '"[')
    bare_object = F.startswith(value, F.lit("{")) & ~F.contains(value, F.lit('": '))
    digits = (value >= "-") & (value < ":") & ((F.locate("-", value, 2) == 0) | F.contains(value, F.lit("E-")))
    return marks | bare_object | digits | value.isin("true", "false")


def is_quoted(payload: Column, member: str, begins: Column, *, compact: bool) -> Column:
    """Return whether some member of the name is a text that begins so, or any with white space before; never NULL.

    Of a name that is not ASCII any text will do, for writers differ in what they escape: Jackson, which is Kafka
    Connect's, what lies beyond the basic plane, others everything.
    """
    if not member.isascii():
        return F.coalesce(F.rlike(payload, F.lit(_in_any_spelling(member) + r'\s*:\s*"')), F.lit(False))
    space = r"(\s+:\s*|:\s+)" if compact else r"\s*:\s*"
    found = F.rlike(payload, F.lit(rf'\Q{member}\E{space}"'))
    if compact:
        found = F.contains(payload, F.concat(F.lit(f'{member}:"'), begins)) | found
    return F.coalesce(found, F.lit(False))


def _in_any_spelling(member: str) -> str:
    """Return a pattern of Java's for a name within quotes, each character as it is or escaped."""

    def spelt(character: str) -> str:
        if character.isascii():
            return rf"\x{ord(character):02x}"
        units = character.encode("utf-16-be").hex()
        escaped = "".join(rf"\\u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))
        return rf"(?:\x{{{ord(character):x}}}|{escaped})"

    return "".join(map(spelt, member))


def read_avro(data: Column, which: Column, forms: Mapping[K, AvroBody], reader: object) -> Column:
    """Return the bodies of records as structs with one member, `MEMBER`, read into a reader's schema.

    The struct is NULL where the record has none of the forms, and its member where the bytes cannot be read.
    One expression reads all forms whose bodies begin at one place: each costs every task some tens of milliseconds,
    before the first record, for Spark reads a Hadoop configuration for it.

    Args:
        data: a record's bytes.
        which: which of the forms a record has.
        forms: by what `which` holds; numbers or texts. There must be one.
        reader: what the bodies are read into, as `json` takes it.
    """
    by_start: dict[int, dict[K, AvroBody]] = {}
    for key, form in forms.items():
        by_start.setdefault(form.start, {})[key] = form
    wanted = {"type": "record", "name": "cdc_sync_record", "fields": [{"name": MEMBER, "type": reader}]}
    options = {"avroSchema": json.dumps(wanted), "mode": "PERMISSIVE"}
    found = []
    for start, alike in by_start.items():
        writers = {writer: number for number, writer in enumerate({form.writer: None for form in alike.values()})}
        marks = {key: branch_mark(writers[form.writer]) for key, form in alike.items()}
        body = data.substr(F.lit(start + 1), F.length(data)) if start else data
        found.append(from_avro(F.concat(_by_key(marks, which), body), union_of(list(writers)), options))
    return found[0] if len(found) == 1 else F.coalesce(*found)


def _by_key(values: Mapping[K, bytes], which: Column) -> Column:
    """Return the bytes for a key, NULL if it is none of them; one literal, whatever they are, for what is compiled."""
    keys, marks = F.array(*map(F.lit, values)), F.array(*(F.lit(bytearray(mark)) for mark in values.values()))
    return F.element_at(F.map_from_arrays(keys, marks), which)
