"""`docs/types.md`: the table of conversions for people, with the Spark type each row ends in.

Written anew by `python -m scripts.pages.types > docs/types.md`.
"""

from __future__ import annotations

import sys

from pyspark.sql import types as T

from cdc_sync.core.debezium.conversions import logical_type, wire_type
from cdc_sync.core.debezium.rules import Conversion
from cdc_sync.core.debezium.type_table import CONVERSIONS
from cdc_sync.spark.types import to_spark

_HEAD = """\
# Types

What a column of the source becomes, by what Kafka Connect says of it. This page is written from the table that the
program acts by (`cdc_sync/core/debezium/type_table.py`), and a test compares them.

- A value that has no place in its column's type never becomes NULL without a word. The record is *set aside*, which
  `status` shows with the column's name and the record's offset, unless the table below says otherwise.
- Dates and timestamps outside the years 1 to 9999, which most readers cannot show, follow `policy.out_of_range`:
  `quarantine` sets the record aside, `null` stores NULL and counts the event in `status`, `clamp` stores the first or
  last moment of those years.
  Postgres sends an infinite *date* without its sign; `clamp` sets such a record aside.
- A name that is not in this table, or on another Connect type than here, is read as its Connect type without a name is.
- Arrays, maps and structs hold whatever is in this table. Keys of maps are texts, integers or points in time, and a map
  whose keys are not texts holds no other such map; a table with any other is refused. Members and elements may be NULL
  whatever the source says.
- Decimals of `decimal.format=NUMERIC` are read exactly as well, up to 38 digits. Each record tells by itself how its
  decimals are written; `connector.decimal_format: numeric` only saves a second look at the first batch.
- With `decimal.handling.mode` `double` or `string`, `binary.handling.mode` `base64` or `hex`, and
  `bigint.unsigned.handling.mode=long`, values do not tell what they were. They are kept as sent.
- A transform may change a column's Connect type; what the event's own schema says counts.

Bit strings are bytes with the lowest first: bit `i` of byte `j` is bit `8 * j + i` of the column from its right end.
"""
_COLUMNS = (
    "| Connect type | Name and parameters | Sources | Unit | Values | Spark type | What has no place | Laid down in |"
)


def render() -> str:
    """Return the page."""
    lines = [_HEAD, _COLUMNS, "|---" * 8 + "|", *map(_line, CONVERSIONS)]
    return "\n".join(lines) + "\n"


def _line(row: Conversion) -> str:
    name = row.title if row.example.name else ""
    cells = (
        row.example.type,
        "any other" if "com.example" in name else name,
        row.origin,
        row.unit,
        row.values,
        _spelled(to_spark(logical_type(wire_type(row.example)))),
        row.otherwise,
        row.source,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _spelled(type_: T.DataType) -> str:
    return f"`{type_.simpleString().upper()}`" if not isinstance(type_, T.StructType) else f"`{type_.simpleString()}`"


if __name__ == "__main__":
    sys.stdout.write(render())
