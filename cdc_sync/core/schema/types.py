"""The data types of tracked columns: a closed union of frozen values.

They are the types a *target* column has, after the conversion table of `debezium.conversions` has turned what is on
the wire into them; units and encodings of the wire never appear here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

Default: TypeAlias = bool | int | float | str | None
"""A literal in canonical form: decimals as "1.50", days as "2020-01-01", local timestamps as "2020-01-01T00:00:00",
instants with a trailing Z, bytes as lower-case hex, everything else as itself. Floats are finite."""


@dataclass(frozen=True, slots=True)
class BooleanType:
    """True or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerType:
    """A signed integer of `bits` 8, 16, 32 or 64."""

    bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatType:
    """An IEEE 754 number of `bits` 32 or 64."""

    bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecimalType:
    """An exact number with `precision` digits, 1 to 38, `scale` of them after the point."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class StringType:
    """Text of any length."""


@dataclass(frozen=True, slots=True)
class BinaryType:
    """Bytes of any length."""


@dataclass(frozen=True, slots=True)
class DateType:
    """A calendar day without zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampType:
    """Microseconds; with `zoned` an instant, without it a local date and time."""

    zoned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A member of a struct; `id` lives as long as the member, like a column's."""

    id: int
    name: str
    type: DataType
    optional: bool = True
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StructType:
    """Named members in order."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListType:
    """Elements of one type; `element_id` as in `Field`."""

    element_id: int
    element: DataType
    element_optional: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MapType:
    """Keys of one type to values of one type; ids as in `Field`."""

    key_id: int
    key: DataType
    value_id: int
    value: DataType
    value_optional: bool = True


DataType: TypeAlias = (
    BooleanType
    | IntegerType
    | FloatType
    | DecimalType
    | StringType
    | BinaryType
    | DateType
    | TimestampType
    | StructType
    | ListType
    | MapType
)

INT8 = IntegerType(bits=8)
INT16 = IntegerType(bits=16)
INT32 = IntegerType(bits=32)
INT64 = IntegerType(bits=64)
FLOAT32 = FloatType(bits=32)
FLOAT64 = FloatType(bits=64)
BOOLEAN = BooleanType()
STRING = StringType()
BINARY = BinaryType()
DATE = DateType()
TIMESTAMP = TimestampType(zoned=False)
TIMESTAMP_TZ = TimestampType(zoned=True)


NESTED = (StructType, ListType, MapType)
"""The types that have others below them."""


def nested_ids(type_: DataType) -> tuple[int, ...]:
    """Return the ids of all members below a type, depth first."""
    match type_:
        case StructType(fields=fields):
            return tuple(id_ for field in fields for id_ in (field.id, *nested_ids(field.type)))
        case ListType(element_id=element_id, element=element):
            return (element_id, *nested_ids(element))
        case MapType(key_id=key_id, key=key, value_id=value_id, value=value):
            return (key_id, *nested_ids(key), value_id, *nested_ids(value))
        case _:
            return ()


def without_ids(type_: DataType) -> DataType:
    """Return the type with all ids of its members 0, as an event shows it."""
    match type_:
        case StructType(fields=fields):
            return StructType(fields=tuple(replace(field, id=0, type=without_ids(field.type)) for field in fields))
        case ListType():
            return replace(type_, element_id=0, element=without_ids(type_.element))
        case MapType():
            return replace(type_, key_id=0, key=without_ids(type_.key), value_id=0, value=without_ids(type_.value))
        case _:
            return type_
