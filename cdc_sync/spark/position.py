"""Source positions as Spark expressions; the same order as `events.SourcePosition`."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.model.incarnations import Began
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.errors import SchemaError

INCARNATION, KIND, PARTS = "incarnation", "kind", "parts"


POSITION_TYPE = T.StructType(
    [
        T.StructField(INCARNATION, T.IntegerType()),
        T.StructField(KIND, T.StringType()),
        T.StructField(PARTS, T.ArrayType(T.LongType())),
    ]
)
"""What `position_of` returns; its parts sort in this order."""


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


def position_of(source: Column, incarnation: Column | None = None) -> Column:
    """Return a struct that sorts like the position: `incarnation`, `kind` and an array of longs `parts`.

    Source: as in `debezium.position`, which computes the same for single events.

    Args:
        source: the source block.
        incarnation: see `incarnation_of`; the first one where it is not given.
    """
    sequence = F.from_json(source.getField("sequence"), "array<string>")
    lsn = F.coalesce(F.get(sequence, F.lit(1)).cast("long"), source.getField("lsn"))
    commit = F.coalesce(F.get(sequence, F.lit(0)).cast("long"), lsn)
    file_number = F.regexp_extract(source.getField("file"), r"(\d+)$", 1).cast("long")
    binlog = F.array(file_number, source.getField("pos"), F.coalesce(source.getField("row"), F.lit(0)))
    connector = source.getField("connector")
    begun = F.lit(0) if incarnation is None else incarnation

    def place(kind: str, parts: Column) -> Column:
        return F.struct(begun.alias(INCARNATION), F.lit(kind).alias(KIND), parts.alias(PARTS))

    return (
        F.when((connector == "postgresql") & lsn.isNotNull(), place("postgresql", F.array(commit, lsn)))
        .when(
            connector.isin("mysql", "mariadb") & file_number.isNotNull() & source.getField("pos").isNotNull(),
            place("binlog", binlog),
        )
        .otherwise(place("none", F.array().cast("array<bigint>")))
    )


def incarnation_of(source: Column, began: Began) -> Column:
    """Return which incarnation of its source's log an event is of, as `incarnations.incarnation_at`."""
    at, newest = source.getField("ts_ms"), F.lit(len(began))
    if not began:
        return newest
    passed = F.size(F.filter(F.array(*(F.lit(begin).cast("long") for begin in began)), lambda begin: begin <= at))
    return F.when(at.isNull(), newest).otherwise(passed)


def literal_position(position: SourcePosition) -> Column:
    """Return a position as `position_of` does."""
    parts = F.array(*(F.lit(part).cast("long") for part in position.parts)).cast("array<bigint>")
    return F.struct(
        F.lit(position.incarnation).alias(INCARNATION), F.lit(position.kind).alias(KIND), parts.alias(PARTS)
    )


def position_before(source: Column, bound: SourcePosition, began: Began = ()) -> Column:
    """Return whether an event lies before the bound; never of one whose position cannot be compared with it."""
    position = position_of(source, incarnation_of(source, began))
    return (position.getField(KIND) == bound.kind) & (position < literal_position(bound))


def position_at_least(source: Column, bound: SourcePosition, began: Began = ()) -> Column:
    """Return whether an event's position is at or after the bound.

    Raises:
        SchemaError: for a bound without coordinates, with which nothing can be compared.
    """
    if not bound.parts:
        raise SchemaError(f"Cannot compare positions: {bound} has no coordinates")
    return position_of(source, incarnation_of(source, began)) >= literal_position(bound)
