"""Checked casts: what becomes of a value when its column gets a type that it does not widen to.

A value is converted only where every database that has the cast gives the same result; where they differ (one rounds a
fraction that becomes an integer, another cuts it off), it has no place in the new type and is kept aside. One table,
`cast_between`, with the rule of each cast in words; `spark.casting` carries them out.
"""

from __future__ import annotations

from enum import Enum

from cdc_sync.core.schema.members import UpdateKeyType, UpdatePartType, member_changes, shared_parts
from cdc_sync.core.schema.promote import can_promote
from cdc_sync.core.schema.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)


class Cast(Enum):
    """A kind of checked cast."""

    BOOLEAN_TO_INTEGER = "boolean to integer"
    INTEGER_TO_BOOLEAN = "integer to boolean"
    BOOLEAN_TO_TEXT = "boolean to text"
    TEXT_TO_BOOLEAN = "text to boolean"
    INTEGER_TO_INTEGER = "integer to integer"
    INTEGER_TO_FLOAT = "integer to float"
    INTEGER_TO_DECIMAL = "integer to decimal"
    INTEGER_TO_TEXT = "integer to text"
    FLOAT_TO_INTEGER = "float to integer"
    FLOAT_TO_FLOAT = "float to float"
    FLOAT_TO_DECIMAL = "float to decimal"
    FLOAT_TO_TEXT = "float to text"
    DECIMAL_TO_INTEGER = "decimal to integer"
    DECIMAL_TO_FLOAT = "decimal to float"
    DECIMAL_TO_DECIMAL = "decimal to decimal"
    DECIMAL_TO_TEXT = "decimal to text"
    TEXT_TO_INTEGER = "text to integer"
    TEXT_TO_FLOAT = "text to float"
    TEXT_TO_DECIMAL = "text to decimal"
    TEXT_TO_BINARY = "text to binary"
    BINARY_TO_TEXT = "binary to text"
    DATE_TO_TIMESTAMP = "date to timestamp"
    DATE_TO_TEXT = "date to text"
    TEXT_TO_DATE = "text to date"
    TIMESTAMP_TO_DATE = "timestamp to date"
    TIMESTAMP_TO_TIMESTAMP = "timestamp to timestamp"
    TIMESTAMP_TO_TEXT = "timestamp to text"
    TEXT_TO_TIMESTAMP = "text to timestamp"

    @property
    def rule(self) -> str:
        """What becomes of a value, in words."""
        return _RULES[self]

    @property
    def is_total(self) -> bool:
        """Whether every value has a place, whatever the digits and ranges of the two types are."""
        return "no place" not in _RULES[self]


def cast_between(old: DataType, new: DataType) -> Cast | None:
    """Return the cast that takes values of one type to another, None if there is none.

    Between equal types there is none, and none to or from arrays, maps and structs: their parts have casts of their
    own, see `converts`.
    """
    if old == new:
        return None
    return _CASTS.get((type(old), type(new)))


def converts(old: DataType, new: DataType) -> bool:
    """Tell whether there is a way from one type to the other: it widens, takes a checked cast, or does so part by part.

    Of structs only the members that both have count. The keys of a map must stay keys.
    """
    parts = shared_parts(old, new)
    if parts is None:
        return can_promote(old, new) or cast_between(old, new) is not None
    if isinstance(old, MapType) and not (always_converts(*parts[0]) and keeps_apart(*parts[0])):
        return False
    return all(converts(*part) for part in parts)


def needs_cast(old: DataType, new: DataType) -> bool:
    """Tell whether values take a checked cast, or get other members; else they widen, or only accept other NULLs."""
    return not can_promote(old, new) and converts(old, new)


def casts_values(old: DataType, new: DataType) -> bool:
    """Tell whether a value, or one inside it, takes a checked cast; not, if it widens or only gets other members."""
    return any(
        isinstance(change, (UpdatePartType, UpdateKeyType)) and not can_promote(change.old, change.new)
        for change in member_changes(old, new)
    )


def always_converts(old: DataType, new: DataType) -> bool:
    """Tell whether every value of `old` has a place in `new`, whatever it is; values of dropped members need none."""
    if can_promote(old, new):
        return True
    parts = shared_parts(old, new)
    if parts is not None:
        return all(always_converts(*part) for part in parts)
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        # Rounding may carry into one more digit.
        return old.precision - old.scale < new.precision - new.scale
    cast = cast_between(old, new)
    return cast is not None and cast.is_total


def keeps_apart(old: DataType, new: DataType) -> bool:
    """Tell whether two different values of `old` are never one value of `new`, so that keys stay keys."""
    if can_promote(old, new):
        return True
    parts = shared_parts(old, new)
    if parts is not None:
        lost = len(old.fields) - len(parts) if isinstance(old, StructType) else 0
        return not lost and all(keeps_apart(*part) for part in parts)
    return cast_between(old, new) in _INJECTIVE


_INJECTIVE = frozenset(
    (
        Cast.BOOLEAN_TO_INTEGER,
        Cast.BOOLEAN_TO_TEXT,
        Cast.INTEGER_TO_INTEGER,
        Cast.INTEGER_TO_DECIMAL,
        Cast.INTEGER_TO_TEXT,
        Cast.DECIMAL_TO_TEXT,
        Cast.TEXT_TO_BINARY,
        Cast.BINARY_TO_TEXT,
        Cast.DATE_TO_TIMESTAMP,
        Cast.DATE_TO_TEXT,
        Cast.TIMESTAMP_TO_TIMESTAMP,
        Cast.TIMESTAMP_TO_TEXT,
    )
)

_RULES: dict[Cast, str] = {
    Cast.BOOLEAN_TO_INTEGER: "true is 1, false is 0",
    Cast.INTEGER_TO_BOOLEAN: "0 is false, any other number is true",
    Cast.BOOLEAN_TO_TEXT: "`true` or `false`",
    Cast.TEXT_TO_BOOLEAN: (
        "`t`, `true`, `y`, `yes`, `on`, `1` are true, `f`, `false`, `n`, `no`, `off`, `0` false, in any case and "
        "between spaces; nothing else has a place"
    ),
    Cast.INTEGER_TO_INTEGER: "the same number; one outside the new range has no place",
    Cast.INTEGER_TO_FLOAT: "the nearest number that the type has",
    Cast.INTEGER_TO_DECIMAL: "the same number; one with too many digits has no place",
    Cast.INTEGER_TO_TEXT: "its decimal digits",
    Cast.FLOAT_TO_INTEGER: ("the same number; a fraction, NaN, an infinity, or one outside the range has no place"),
    Cast.FLOAT_TO_FLOAT: "the nearest number that the type has; one beyond its range has no place",
    Cast.FLOAT_TO_DECIMAL: (
        "its digits, as many as tell it from any other number, rounded half away from zero; NaN, an infinity, or one "
        "with too many digits has no place"
    ),
    Cast.FLOAT_TO_TEXT: (
        "its digits, as many as tell it from any other number, in full from 0.0001 up to 1e15, else as `1.5e+20`"
    ),
    Cast.DECIMAL_TO_INTEGER: "the same number; a fraction, or one outside the range has no place",
    Cast.DECIMAL_TO_FLOAT: "the nearest number that the type has",
    Cast.DECIMAL_TO_DECIMAL: "rounded half away from zero; one with too many digits has no place",
    Cast.DECIMAL_TO_TEXT: "all digits of the scale, in full",
    Cast.TEXT_TO_INTEGER: (
        "an optional sign and digits, between spaces; anything else, or one outside the range, has no place"
    ),
    Cast.TEXT_TO_FLOAT: (
        "a decimal number, with an exponent or without, `NaN`, `Infinity` or `-Infinity`, between spaces; "
        "anything else, or one beyond the range, has no place"
    ),
    Cast.TEXT_TO_DECIMAL: (
        "an optional sign and digits with an optional point, between spaces, rounded half away from zero; "
        "anything else, or one with too many digits, has no place"
    ),
    Cast.TEXT_TO_BINARY: "its bytes in UTF-8",
    Cast.BINARY_TO_TEXT: "the text whose UTF-8 it is; other bytes have no place",
    Cast.DATE_TO_TIMESTAMP: "midnight at its beginning, of UTC if the type is zoned",
    Cast.DATE_TO_TEXT: "`2024-02-29`",
    Cast.TEXT_TO_DATE: (
        "`2024-02-29`, between spaces; anything else, or a day that is not in the calendar, has no place"
    ),
    Cast.TIMESTAMP_TO_DATE: "its day, of UTC if the type is zoned",
    Cast.TIMESTAMP_TO_TIMESTAMP: "the local time is taken as, or written in, UTC",
    Cast.TIMESTAMP_TO_TEXT: "`2024-02-29 12:00:00.5`; a zoned one in UTC with `+00` behind it",
    Cast.TEXT_TO_TIMESTAMP: (
        "a date, or a date and a time (`2024-02-29 12:00:00.5`, or with `T`), between spaces, at most six digits "
        "behind the point; for a zoned type `Z` or an offset (`+02:00`) may follow, else it is UTC; anything else "
        "has no place"
    ),
}

_CASTS: dict[tuple[type, type], Cast] = {
    (BooleanType, IntegerType): Cast.BOOLEAN_TO_INTEGER,
    (BooleanType, StringType): Cast.BOOLEAN_TO_TEXT,
    (IntegerType, BooleanType): Cast.INTEGER_TO_BOOLEAN,
    (IntegerType, IntegerType): Cast.INTEGER_TO_INTEGER,
    (IntegerType, FloatType): Cast.INTEGER_TO_FLOAT,
    (IntegerType, DecimalType): Cast.INTEGER_TO_DECIMAL,
    (IntegerType, StringType): Cast.INTEGER_TO_TEXT,
    (FloatType, IntegerType): Cast.FLOAT_TO_INTEGER,
    (FloatType, FloatType): Cast.FLOAT_TO_FLOAT,
    (FloatType, DecimalType): Cast.FLOAT_TO_DECIMAL,
    (FloatType, StringType): Cast.FLOAT_TO_TEXT,
    (DecimalType, IntegerType): Cast.DECIMAL_TO_INTEGER,
    (DecimalType, FloatType): Cast.DECIMAL_TO_FLOAT,
    (DecimalType, DecimalType): Cast.DECIMAL_TO_DECIMAL,
    (DecimalType, StringType): Cast.DECIMAL_TO_TEXT,
    (StringType, BooleanType): Cast.TEXT_TO_BOOLEAN,
    (StringType, IntegerType): Cast.TEXT_TO_INTEGER,
    (StringType, FloatType): Cast.TEXT_TO_FLOAT,
    (StringType, DecimalType): Cast.TEXT_TO_DECIMAL,
    (StringType, BinaryType): Cast.TEXT_TO_BINARY,
    (StringType, DateType): Cast.TEXT_TO_DATE,
    (StringType, TimestampType): Cast.TEXT_TO_TIMESTAMP,
    (BinaryType, StringType): Cast.BINARY_TO_TEXT,
    (DateType, StringType): Cast.DATE_TO_TEXT,
    (DateType, TimestampType): Cast.DATE_TO_TIMESTAMP,
    (TimestampType, StringType): Cast.TIMESTAMP_TO_TEXT,
    (TimestampType, DateType): Cast.TIMESTAMP_TO_DATE,
    (TimestampType, TimestampType): Cast.TIMESTAMP_TO_TIMESTAMP,
}
