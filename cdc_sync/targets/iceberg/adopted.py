"""The columns of an Iceberg table that somebody else made, as tracked ones: their ids are Iceberg's field ids.

Source: Iceberg spec, "Appendix C: JSON serialization", Schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    Field,
    ListType,
    MapType,
    StructType,
)
from cdc_sync.errors import TargetError

_PLAIN: Mapping[str, DataType] = {
    "boolean": BOOLEAN,
    "int": INT32,
    "long": INT64,
    "float": FLOAT32,
    "double": FLOAT64,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMP_TZ,
    "string": STRING,
    "binary": BINARY,
}


def tracked(fields: Sequence[Mapping[str, Any]], last_column_id: int) -> InternalSchema:
    """Return a table's schema.

    Args:
        fields: of Iceberg's schema, as its JSON has them.
        last_column_id: the highest id that the table ever had.

    Raises:
        TargetError: for a type that cdc_sync does not keep: `time`, `uuid`, `fixed`, and those of format version 3.
    """
    columns = tuple(
        Column(
            id=field["id"],
            name=field["name"],
            type=_type(field["type"], field["name"]),
            optional=not field["required"],
            comment=field.get("doc"),
        )
        for field in fields
    )
    return InternalSchema(columns=columns, primary_key=(), last_column_id=last_column_id)


def _type(type_: Any, place: str) -> DataType:
    if isinstance(type_, str):
        decimal = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", type_)
        if decimal is not None:
            return DecimalType(precision=int(decimal[1]), scale=int(decimal[2]))
        if type_ not in _PLAIN:
            raise TargetError(f"Cannot track column {place}: cdc_sync keeps no columns of type {type_}")
        return _PLAIN[type_]
    match type_["type"]:
        case "struct":
            return StructType(fields=tuple(_member(field, place) for field in type_["fields"]))
        case "list":
            return ListType(
                element_id=type_["element-id"],
                element=_type(type_["element"], f"{place}.element"),
                element_optional=not type_["element-required"],
            )
        case _:
            return MapType(
                key_id=type_["key-id"],
                key=_type(type_["key"], f"{place}.key"),
                value_id=type_["value-id"],
                value=_type(type_["value"], f"{place}.value"),
                value_optional=not type_["value-required"],
            )


def _member(field: Mapping[str, Any], place: str) -> Field:
    return Field(
        id=field["id"],
        name=field["name"],
        type=_type(field["type"], f"{place}.{field['name']}"),
        optional=not field["required"],
        comment=field.get("doc"),
    )
