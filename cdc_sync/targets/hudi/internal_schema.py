"""Columns by their ids, as Hudi's schema-on-read has them: our ids, moved behind those that we know nothing of; pure.

Hudi numbers columns and everything inside them, as we do, and finds by these numbers in a file what a query asks for.
So nothing needs to be kept that says which of its numbers is which of ours, and a name that is used again is
another number. Source: Hudi 1.2.0, `InternalSchema` and `SerDeHelper`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from typing_extensions import assert_never

from cdc_sync.core.migration.modes import METADATA, Mode
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)
from cdc_sync.targets.hudi.schema import META, HeldColumns

Field = Mapping[str, Any]
"""A column or member: `id`, `name` and `type`, which is a text or such a mapping itself."""
LATEST_SCHEMA = "latest_schema"
"""The key of a commit's extra metadata that holds this. Source: `SerDeHelper.LATEST_SCHEMA`."""
FIRST_ID = 100
"""What is added to ids of ours; those of Hudi's own columns and of a changelog's are below."""
_UNDATED = 0


def internal_schema(schema: InternalSchema, mode: Mode) -> str:
    """Return the columns of a table as JSON, not dated yet; `schema` has the names it holds."""
    own = [(name, StringType()) for name in META]
    behind = METADATA if mode == "append" else ()
    fields = [
        *(_field(number, name, type_) for number, (name, type_) in enumerate(own)),
        *map(field_of, schema.columns),
        *(_field(len(own) + number, name, type_) for number, (name, type_) in enumerate(behind)),
    ]
    return json.dumps(
        {
            "max_column_id": FIRST_ID + schema.last_column_id,
            "version_id": _UNDATED,
            "type": "record",
            "fields": fields,
        }
    )


def field_of(column: Column) -> dict[str, Any]:
    """Return a column of ours as a field of it."""
    return _field(FIRST_ID + column.id, column.name, column.type, column.comment)


def is_dated(internal: str) -> bool:
    """Whether a commit was made already since which these are the columns."""
    return bool(json.loads(internal)["version_id"] != _UNDATED)


def dated(internal: str, instant: str) -> str:
    """Return the same columns as of a commit."""
    return json.dumps({**json.loads(internal), "version_id": int(instant)})


def anew(columns: HeldColumns) -> HeldColumns:
    """Return the same columns for a commit that is still to be made, where another commit's came between."""
    return columns if columns.internal is None else replace(columns, internal=dated(columns.internal, str(_UNDATED)))


def with_history(internal: str, history: str) -> str:
    """Return the columns of all commits with new ones before them, as Hudi's `SerDeHelper.inheritSchemas` does.

    Args:
        history: of before, empty if there is none.
    """
    before = json.loads(history)["schemas"] if history else []
    return json.dumps({"schemas": [json.loads(internal), *before]})


def versions_of(history: str, oldest: int) -> tuple[str, ...]:
    """Return the columns that files have which are not older than a commit, of those `with_history` put together."""
    versions = sorted(json.loads(history)["schemas"] if history else (), key=lambda it: int(it["version_id"]))
    places = [place for place, it in enumerate(versions) if it["version_id"] <= oldest]
    return tuple(json.dumps(it) for it in versions[places[-1] if places else 0 :])


def fields_of(internal: str) -> tuple[Field, ...]:
    """Return the fields of a table, Hudi's own ones too."""
    return tuple(json.loads(internal)["fields"])


def _field(id_: int, name: str, type_: DataType, comment: str | None = None) -> dict[str, Any]:
    doc = {"doc": comment} if comment else {}
    return {"id": id_, "name": name, "optional": True, "type": _type(type_), **doc}


def _type(type_: DataType) -> Any:
    match type_:
        case BooleanType():
            return "boolean"
        case IntegerType(bits=bits):
            return "long" if bits == 64 else "int"
        case FloatType(bits=bits):
            return "double" if bits == 64 else "float"
        case DecimalType(precision=precision, scale=scale):
            return f"decimal_fixed({precision}, {scale})[{_bytes_of(precision)}]"
        case StringType():
            return "string"
        case BinaryType():
            return "binary"
        case DateType():
            return "date"
        case TimestampType(zoned=zoned):
            # Hudi writes this with hyphens, and cannot read that again.
            return "timestamp" if zoned else "local_timestamp_micros"
        case StructType(fields=fields):
            return {"type": "record", "fields": [_field(FIRST_ID + it.id, it.name, it.type) for it in fields]}
        case ListType(element_id=id_, element=element):
            return {
                "type": "array",
                "element_id": FIRST_ID + id_,
                "element": _type(element),
                "element_optional": True,
            }
        case MapType(key_id=key_id, key=key, value_id=value_id, value=value):
            return {
                "type": "map",
                "key_id": FIRST_ID + key_id,
                "key": _type(key),
                "value_id": FIRST_ID + value_id,
                "value": _type(value),
                "value_optional": True,
            }
        case _:
            assert_never(type_)


def _bytes_of(precision: int) -> int:
    """Return how many bytes hold a signed number of so many digits, as Spark's Parquet files have them."""
    return next(size for size in range(1, 17) if 10**precision <= 2 ** (8 * size - 1))
