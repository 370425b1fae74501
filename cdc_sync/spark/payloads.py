"""Where in a record's bytes its payload is, and reading it as Avro."""

from __future__ import annotations

import json

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from cdc_sync.core.debezium.forms import AvroBody
from cdc_sync.spark.conditions import any_of


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


def read_avro(data: Column, form: AvroBody, here: Column, reader: object) -> Column:
    """Return the body of records of a form, read into a reader's schema; NULL where `here` is not true.

    The body is made NULL where it is another's, for what is not called for may be computed all the same.
    """
    body = data.substr(F.lit(form.start + 1), F.length(data)) if form.start else data
    options = {"avroSchema": json.dumps(reader), "mode": "PERMISSIVE"}
    return from_avro(F.when(here, body), form.writer, options)
