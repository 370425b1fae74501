"""Types as each format writes them, in Iceberg's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SPARK = {"integer": "int", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
_AVRO = {"bytes": "binary"}
_AVRO_LOGICAL = {"date": "date", "timestamp-micros": "timestamptz", "local-timestamp-micros": "timestamp"}


def of_iceberg(type_: Any) -> str:
    """Return a type of pyiceberg's without ids and optionality."""
    if hasattr(type_, "fields"):
        return _struct((field.name, of_iceberg(field.field_type)) for field in type_.fields)
    if hasattr(type_, "element_type"):
        return f"list<{of_iceberg(type_.element_type)}>"
    if hasattr(type_, "key_type"):
        return f"map<{of_iceberg(type_.key_type)}, {of_iceberg(type_.value_type)}>"
    return str(type_)


def of_spark(type_: Any) -> str:
    """Return a type of Spark's JSON, which is what Delta's log has and what Spark writes into a Hive metastore."""
    if isinstance(type_, str):
        return re.sub(r"decimal\((\d+),(\d+)\)", r"decimal(\1, \2)", _SPARK.get(type_, type_))
    match type_["type"]:
        case "struct":
            return _struct((field["name"], of_spark(field["type"])) for field in type_["fields"])
        case "array":
            return f"list<{of_spark(type_['elementType'])}>"
        case _:
            return f"map<{of_spark(type_['keyType'])}, {of_spark(type_['valueType'])}>"


def of_avro(type_: Any) -> str:
    """Return a type of an Avro schema, which is what Hudi's commits have; NULL is one of the choices of every union."""
    match type_:
        case str():
            return _AVRO.get(type_, type_)
        case list():
            (other,) = (choice for choice in type_ if choice != "null")
            return of_avro(other)
        case {"logicalType": "decimal", "precision": precision, "scale": scale}:
            return f"decimal({precision}, {scale})"
        case {"logicalType": logical}:
            return _AVRO_LOGICAL[logical]
        case {"type": "record", "fields": fields}:
            return _struct((field["name"], of_avro(field["type"])) for field in fields)
        case {"type": "array", "items": items}:
            return f"list<{of_avro(items)}>"
        case {"type": "map", "values": values}:
            return f"map<string, {of_avro(values)}>"
        case {"type": inner}:
            return of_avro(inner)
        case _:
            raise ValueError(f"not a type of Avro's: {type_}")


def of_arrow(type_: Any) -> str:
    """Return a type of Arrow's, which is what it makes of a Parquet file."""
    import pyarrow as pa

    if pa.types.is_struct(type_):
        return _struct((field.name, of_arrow(field.type)) for field in type_)
    if pa.types.is_list(type_):
        return f"list<{of_arrow(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"map<{of_arrow(type_.key_type)}, {of_arrow(type_.item_type)}>"
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    if pa.types.is_timestamp(type_):
        assert type_.unit == "us", type_
        return "timestamp" if type_.tz is None else "timestamptz"
    return _ARROW[str(type_)]


_ARROW: Mapping[str, str] = {
    "bool": "boolean",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date32[day]": "date",
}


def _struct(fields: Any) -> str:
    return f"struct<{', '.join(f'{name}: {type_}' for name, type_ in fields)}>"
