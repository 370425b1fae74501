"""Values of an earlier state, or of an old file, of a Hudi table whose columns have ids, as a later state has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.targets.hudi.internal_schema import Field


def value_of(wanted: Field, held: Sequence[Field], type_: T.DataType) -> Column:
    """Return the value of a column in rows that have the columns `held`; NULL if it is none of them.

    Args:
        wanted: as the later state has it.
        type_: the same in Spark.
    """
    field = _same(wanted, held)
    return _nothing(type_) if field is None else _as(F.col(quoted(field["name"])), field["type"], wanted["type"], type_)


def _same(wanted: Field, held: Sequence[Field]) -> Field | None:
    return next((field for field in held if field["id"] == wanted["id"]), None)


def _nothing(type_: T.DataType) -> Column:
    return F.lit(None).cast(type_)


def _as(value: Column, held: Any, wanted: Any, type_: T.DataType) -> Column:
    if held == wanted:
        return value
    match type_:
        case T.StructType():
            members = [
                _member(value, _same(field, held["fields"]), field, part.dataType).alias(part.name)
                for field, part in zip(wanted["fields"], type_.fields, strict=True)
            ]
            return F.when(value.isNotNull(), F.struct(*members))
        case T.ArrayType(elementType=part):
            return F.transform(value, lambda it: _as(it, held["element"], wanted["element"], part))
        case T.MapType(valueType=part):
            return F.transform_values(value, lambda _, it: _as(it, held["value"], wanted["value"], part))
        case _:
            return value.cast(type_)


def _member(value: Column, held: Field | None, wanted: Field, type_: T.DataType) -> Column:
    return _nothing(type_) if held is None else _as(value[held["name"]], held["type"], wanted["type"], type_)
