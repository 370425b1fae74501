"""Columns as an earlier state of a table has them inside: members may have come or gone since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column as SparkColumn

from cdc_sync.core.schema.types import NESTED, STRING, DataType, Field, ListType, MapType, StructType
from cdc_sync.spark.casting import converted
from cdc_sync.spark.types import to_spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A column, or something inside one, as a table's schema has it.

    Attributes:
        mark: what the format knows it by for as long as it lives.
        name: what it is called in this schema.
        parts: members of a struct, the element of a list, key and value of a map.
    """

    mark: int | str
    name: str
    parts: tuple[Part, ...] = ()


def iceberg_part(field: Mapping[str, Any]) -> Part:
    """Return a field of Iceberg's schema as `SchemaParser.toJson` writes it.

    Source: Iceberg specification, "Appendix C: JSON serialization".
    """
    return Part(mark=field["id"], name=field["name"], parts=_iceberg_parts(field["type"]))


def _iceberg_parts(type_: Any) -> tuple[Part, ...]:
    if isinstance(type_, str):
        return ()
    if type_["type"] == "struct":
        return tuple(iceberg_part(field) for field in type_["fields"])
    names = ("element",) if type_["type"] == "list" else ("key", "value")
    return tuple(Part(mark=type_[f"{name}-id"], name=name, parts=_iceberg_parts(type_[name])) for name in names)


def delta_part(field: Mapping[str, Any], mark: str) -> Part:
    """Return a field of a Delta table's schema; `mark` is the metadata that tells its lasting name.

    Source: Delta Transaction Log Protocol, "Schema Serialization Format".
    """
    return Part(mark=field["metadata"][mark], name=field["name"], parts=_delta_parts(field["type"], mark))


def _delta_parts(type_: Any, mark: str) -> tuple[Part, ...]:
    if isinstance(type_, str):
        return ()
    if type_["type"] == "struct":
        return tuple(delta_part(field, mark) for field in type_["fields"])
    names = ("element",) if type_["type"] == "array" else ("key", "value")
    return tuple(Part(mark=name, name=name, parts=_delta_parts(type_[f"{name}Type"], mark)) for name in names)


def as_now(value: SparkColumn, then: Part, now: Part, type_: DataType) -> SparkColumn:
    """Return a column's value of an earlier state in its present type, members found by their marks.

    Args:
        value: as the earlier state has it.
        then, now: the column in the schemas of the two states.
        type_: the tracked type it has now.
    """
    if isinstance(type_, NESTED):
        value = converted(value, type_then(then, now, type_), type_)
    return value.cast(to_spark(type_))


def type_then(then: Part, now: Part, type_: DataType) -> DataType:
    """Return the type that a part had: of its members those that it still has, with their ids and present types."""
    match type_:
        case StructType():
            known = {
                part.mark: (part, field) for part in now.parts for field in type_.fields if part.name == field.name
            }
            fields = []
            for place, part in enumerate(then.parts, 1):
                if part.mark in known:
                    present, field = known[part.mark]
                    fields.append(replace(field, name=part.name, type=type_then(part, present, field.type)))
                else:
                    fields.append(Field(id=-place, name=part.name, type=STRING))
            return StructType(fields=tuple(fields))
        case ListType():
            return replace(type_, element=type_then(then.parts[0], now.parts[0], type_.element))
        case MapType():
            return replace(type_, value=type_then(then.parts[1], now.parts[1], type_.value))
        case _:
            return type_
