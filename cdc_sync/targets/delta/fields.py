"""A field of a Delta table's schema, and what may become of a list of them; pure.

Each is a dictionary of `name`, `type`, `nullable` and `metadata`. The metadata has the field's id and the name that
data files know it by, which last as long as the field; one without them is given new ones by Delta.
Source: Delta Transaction Log Protocol, "Schema Serialization Format" and "Column Mapping".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pyspark.sql import types as T

from cdc_sync.core.schema.types import DataType
from cdc_sync.spark.types import to_spark, wide_integer, with_leaves

Field: TypeAlias = dict[str, Any]
COLUMN_ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
_LOCAL = "timestamp_ntz"


def delta_type(type_: DataType) -> T.DataType:
    """Return the Spark type that a Delta table holds a tracked type as: integers have 32 or 64 bits."""
    return with_leaves(to_spark(type_), wide_integer)


def new_field(name: str, type_: DataType, comment: str | None) -> Field:
    """Return a field that Delta does not know yet, nor any of its members; it may be NULL."""
    return commented({"name": name, "type": json.loads(delta_type(type_).json()), "nullable": True}, comment)


def features_for(fields: Sequence[Field]) -> dict[str, str]:
    """Return the properties that let a table have these columns; Delta asks for them where the table is there already.

    Source: Delta Transaction Log Protocol, "Timestamp without timezone (TimestampNtz)"; `TimestampNTZTableFeature`,
    which only a new table gets by itself.
    """
    local = any(f'"{_LOCAL}"' in json.dumps(field["type"]) for field in fields)
    return {"delta.feature.timestampNtz": "supported"} if local else {}


def commented(field: Field, comment: str | None) -> Field:
    """Return a field with another comment."""
    kept = {key: value for key, value in field.get("metadata", {}).items() if key != "comment"}
    return {**field, "metadata": {**kept, "comment": comment} if comment else kept}


def replaced(fields: Sequence[Field], name: str, change: Callable[[Field], Field]) -> list[Field]:
    """Return the fields, one of them changed."""
    return [change(field) if field["name"] == name else field for field in fields]


def without(fields: Sequence[Field], name: str) -> list[Field]:
    """Return the fields but one."""
    return [field for field in fields if field["name"] != name]


def placed(fields: Sequence[Field], field: Field, after: str | None) -> list[Field]:
    """Return the fields with one more, behind the one of a name; None is the first place."""
    place = 0 if after is None else [item["name"] for item in fields].index(after) + 1
    return [*fields[:place], field, *fields[place:]]


def moved(fields: Sequence[Field], name: str, after: str | None) -> list[Field]:
    """Return the fields, one of them in another place, as `placed` has it."""
    (field,) = (item for item in fields if item["name"] == name)
    return placed(without(fields, name), field, after)
