"""Columns as Parquet files have them, as Hive's metastore names them, and as Spark finds them there; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import types as T

from cdc_sync.core.migration.modes import METADATA, Mode
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.types import DataType
from cdc_sync.spark.types import to_spark, wide_integer, with_leaves

_LONGEST_COMMENT = 256
"""Characters. Source: Hive's `package.jdo` of 2.3 to 4.0, `COLUMNS_V2.COMMENT`."""
_PART = 4000
"""The longest value of a table's parameter that every metastore takes. Source: Hive's `TABLE_PARAMS.PARAM_VALUE`."""
_HIVE_NAMES: Mapping[type[T.DataType], str] = {
    T.BooleanType: "boolean",
    T.IntegerType: "int",
    T.LongType: "bigint",
    T.FloatType: "float",
    T.DoubleType: "double",
    T.StringType: "string",
    T.BinaryType: "binary",
    T.DateType: "date",
    # Hive's only type of a moment until Hive 3, and the one that Trino, Presto and Spark read both kinds by.
    T.TimestampType: "timestamp",
    T.TimestampNTZType: "timestamp",
}
"""Source: Hive's `serdeConstants`."""


@dataclass(frozen=True, slots=True)
class HiveColumn:
    """A column as the metastore has it."""

    name: str
    type: str
    comment: str | None


def held_type(type_: DataType) -> T.DataType:
    """Return the Spark type that a column is held as: integers have 32 or 64 bits, and every part may be NULL."""
    return with_leaves(to_spark(type_), wide_integer, optional=True)


def table_struct(schema: InternalSchema, mode: Mode) -> T.StructType:
    """Return the columns of a table; `schema` has the names it holds."""
    metadata = METADATA if mode == "append" else ()
    return T.StructType(
        [
            T.StructField(
                column.name, held_type(column.type), True, {"comment": column.comment} if column.comment else None
            )
            for column in schema.columns
        ]
        + [T.StructField(label, held_type(type_), True) for label, type_ in metadata]
    )


def hive_columns(struct: T.StructType) -> tuple[HiveColumn, ...]:
    """Return what the metastore is told; it folds names to lower case by itself."""
    return tuple(
        HiveColumn(field.name, hive_type(field.dataType), _comment(field.metadata.get("comment")))
        for field in struct.fields
    )


def hive_type(type_: T.DataType) -> str:
    """Return Hive's text of a type.

    Source: Hive Language Manual, "Types"; names of parts of structs are letters, digits and `_` here, as
    `TypeInfoUtils.TypeInfoParser` wants them.
    """
    match type_:
        case T.DecimalType():
            return f"decimal({type_.precision},{type_.scale})"
        case T.ArrayType():
            return f"array<{hive_type(type_.elementType)}>"
        case T.MapType():
            return f"map<{hive_type(type_.keyType)},{hive_type(type_.valueType)}>"
        case T.StructType():
            return f"struct<{','.join(f'{field.name}:{hive_type(field.dataType)}' for field in type_.fields)}>"
        case _:
            return _HIVE_NAMES[type(type_)]


def _comment(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST_COMMENT else f"{text[: _LONGEST_COMMENT - 1]}…"


def spark_parameters(
    struct: T.StructType, provider: str = "parquet", keys: T.StructType | None = None
) -> dict[str, str]:
    """Return the table's parameters by which Spark knows upper and lower case, and moments without a zone.

    Source: Spark's `HiveExternalCatalog`, `DATASOURCE_SCHEMA`, read by every line from 2.0 to 4.

    Args:
        keys: what the table is partitioned by; Spark then asks the metastore for its partitions.
    """
    named = [] if keys is None else keys.fieldNames()
    divided = {}
    if keys is not None and named:
        struct = T.StructType([*struct.fields, *keys.fields])
        divided = {
            "spark.sql.partitionProvider": "catalog",
            "spark.sql.sources.schema.numPartCols": str(len(named)),
            **{f"spark.sql.sources.schema.partCol.{number}": name for number, name in enumerate(named)},
        }
    text = struct.json()
    parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
    return {
        "spark.sql.sources.provider": provider,
        "spark.sql.sources.schema.numParts": str(len(parts)),
        **{f"spark.sql.sources.schema.part.{number}": part for number, part in enumerate(parts)},
        **divided,
    }
