"""The columns of a Delta table that somebody else made, as tracked ones.

Source: Delta Transaction Log Protocol, "Schema Serialization Format".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cdc_sync.core.revisions.actions import NewColumn
from cdc_sync.core.revisions.compile import new_schema
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    ListType,
    MapType,
    StructType,
)
from cdc_sync.core.schema.types import Field as Member
from cdc_sync.errors import TargetError
from cdc_sync.targets.delta.fields import Field

_PLAIN: Mapping[str, DataType] = {
    "boolean": BOOLEAN,
    "byte": INT8,
    "short": INT16,
    "integer": INT32,
    "long": INT64,
    "float": FLOAT32,
    "double": FLOAT64,
    "date": DATE,
    "timestamp": TIMESTAMP_TZ,
    "timestamp_ntz": TIMESTAMP,
    "string": STRING,
    "binary": BINARY,
}


def tracked(fields: Sequence[Field]) -> InternalSchema:
    """Return a table's schema; ids are given in the order of the columns, for Delta has none for parts of a list.

    Raises:
        TargetError: for a type that cdc_sync does not keep.
    """
    return new_schema(
        [
            NewColumn(
                name=field["name"], type=_type(field["type"], field["name"]), comment=field["metadata"].get("comment")
            )
            for field in fields
        ]
    )


def _type(type_: Any, place: str) -> DataType:
    if isinstance(type_, str):
        decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
        if decimal is not None:
            return DecimalType(precision=int(decimal[1]), scale=int(decimal[2]))
        if type_ not in _PLAIN:
            raise TargetError(f"Cannot track column {place}: cdc_sync keeps no columns of type {type_}")
        return _PLAIN[type_]
    match type_["type"]:
        case "struct":
            members = (
                Member(id=0, name=it["name"], type=_type(it["type"], f"{place}.{it['name']}")) for it in type_["fields"]
            )
            return StructType(fields=tuple(members))
        case "array":
            return ListType(element_id=0, element=_type(type_["elementType"], f"{place}.element"))
        case "map":
            key, value = _type(type_["keyType"], f"{place}.key"), _type(type_["valueType"], f"{place}.value")
            return MapType(key_id=0, key=key, value_id=0, value=value)
        case other:
            raise TargetError(f"Cannot track column {place}: cdc_sync keeps no columns of type {other}")
