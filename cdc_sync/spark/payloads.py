"""Where in a record's bytes its payload is, and reading it as Avro."""

from __future__ import annotations

import json

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from cdc_sync.debezium.forms import AvroBody


def behind(data: Column, size: Column | int) -> Column:
    """Return what stands between a JSON record's prefix of a size and the wrapper's closing brace, as bytes."""
    width = F.lit(size) if isinstance(size, int) else size
    return data.substr(width + 1, F.length(data) - width - 1)


def read_avro(data: Column, form: AvroBody, here: Column, reader: object) -> Column:
    """Return the body of records of a form, read into a reader's schema; NULL where `here` is not true.

    The body is made NULL where it is another's, for what is not called for may be computed all the same.
    """
    body = data.substr(F.lit(form.start + 1), F.length(data)) if form.start else data
    options = {"avroSchema": json.dumps(reader), "mode": "PERMISSIVE"}
    return from_avro(F.when(here, body), form.writer, options)
