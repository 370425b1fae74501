"""Which columns can be divided by: the types that each transform of a partitioning takes."""

from __future__ import annotations

from typing_extensions import assert_never

from cdc_sync.core.schema.partitioning import Bucket, Identity, PartitionField, Period, Truncate
from cdc_sync.core.schema.types import (
    NESTED,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    StringType,
    TimestampType,
)


def fits(item: PartitionField, type_: DataType) -> bool:
    """Tell whether a table can be partitioned so by a column of a type."""
    return not isinstance(type_, NESTED) and what_it_takes(item, type_) is None


def what_it_takes(item: PartitionField, type_: DataType) -> str | None:
    """Return what a transform takes, None if the type, which is not nested, is among that.

    Source: Iceberg specification, "Partition Transforms".
    """
    match item:
        case Identity():
            return None
        case Bucket():
            floats = isinstance(type_, (BooleanType, FloatType))
            return "numbers without a floating point, text, bytes, dates and timestamps" if floats else None
        case Truncate():
            exact = isinstance(type_, (IntegerType, DecimalType, StringType, BinaryType))
            return None if exact else "numbers without a floating point, text and bytes"
        case Period(unit="hour"):
            return None if isinstance(type_, TimestampType) else "timestamps"
        case Period():
            return None if isinstance(type_, (DateType, TimestampType)) else "dates and timestamps"
        case _:
            assert_never(item)
