"""Source positions as Spark expressions; the same order as `events.SourcePosition`."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.errors import SchemaError
from cdc_sync.events import SourcePosition

KIND, PARTS = "kind", "parts"


def source_type() -> T.StructType:
    """Return the members of the `source` block that tell table, position and snapshot, for all connectors."""
    text, number = T.StringType(), T.LongType()
    names = [
        ("connector", text),
        ("db", text),
        ("schema", text),
        ("table", text),
        ("snapshot", text),
        ("sequence", text),
        ("lsn", number),
        ("file", text),
        ("pos", number),
        ("row", number),
        ("ts_ms", number),
    ]
    return T.StructType([T.StructField(name, type_) for name, type_ in names])


def avro_source_type() -> list[dict[str, object]]:
    """Return the same members as the fields of an Avro reader's record."""
    return [
        {
            "name": field.name,
            "type": ["null", "long" if field.dataType == T.LongType() else "string"],
            "default": None,
        }
        for field in source_type()
    ]


def position_of(source: Column) -> Column:
    """Return a struct that sorts like the position: `kind` and an array of longs `parts`.

    Source: as in `debezium.position`, which computes the same for single events.
    """
    sequence = F.from_json(source.getField("sequence"), "array<string>")
    lsn = F.coalesce(F.get(sequence, F.lit(1)).cast("long"), source.getField("lsn"))
    commit = F.coalesce(F.get(sequence, F.lit(0)).cast("long"), lsn)
    file_number = F.regexp_extract(source.getField("file"), r"(\d+)$", 1).cast("long")
    binlog = F.array(file_number, source.getField("pos"), F.coalesce(source.getField("row"), F.lit(0)))
    connector = source.getField("connector")
    nothing = F.struct(F.lit("none").alias(KIND), F.array().cast("array<bigint>").alias(PARTS))
    return (
        F.when(
            (connector == "postgresql") & lsn.isNotNull(),
            F.struct(F.lit("postgresql").alias(KIND), F.array(commit, lsn).alias(PARTS)),
        )
        .when(
            connector.isin("mysql", "mariadb") & file_number.isNotNull() & source.getField("pos").isNotNull(),
            F.struct(F.lit("binlog").alias(KIND), binlog.alias(PARTS)),
        )
        .otherwise(nothing)
    )


def position_before(source: Column, bound: SourcePosition) -> Column:
    """Return whether an event lies before the bound; never of one whose position cannot be compared with it."""
    position = position_of(source)
    parts = F.array(*(F.lit(part).cast("long") for part in bound.parts))
    return (position.getField(KIND) == bound.kind) & (position.getField(PARTS) < parts)


def position_at_least(source: Column, bound: SourcePosition) -> Column:
    """Return whether an event's position is at or after the bound.

    Raises:
        SchemaError: for a bound without coordinates, with which nothing can be compared.
    """
    if not bound.parts:
        raise SchemaError(f"Cannot compare positions: {bound} has no coordinates")
    parts = F.array(*(F.lit(part).cast("long") for part in bound.parts))
    limit = F.struct(F.lit(bound.kind).alias(KIND), parts.alias(PARTS))
    return position_of(source) >= limit
