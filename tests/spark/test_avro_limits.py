"""A damaged Avro record that claims to be huge is a record that cannot be read, and not the end of the process."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

pytestmark = pytest.mark.spark

_CLAIMED = 2**31 - 100
"""More than a heap holds; a little more yet and Avro refuses it by itself."""


def _long(number: int) -> bytes:
    """Return Avro's form of a number that is not negative. Source: Avro 1.11 specification, "Binary Encoding"."""
    number, found = number << 1, bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*found, number))


@pytest.mark.parametrize(
    "kind", ["string", "bytes", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}], ids=str
)
def test_what_claims_to_be_larger_than_a_message_is_not_made_room_for(kind: object, session: SparkSession) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}
    rows = session.createDataFrame([(bytearray(_long(_CLAIMED) + b"ab"),)], "value binary")

    found = rows.select(from_avro(F.col("value"), json.dumps(schema), {"mode": "PERMISSIVE"}).getField("a"))

    assert found.collect()[0][0] is None
