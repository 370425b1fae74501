"""What a column's values look like on the wire: a closed union of frozen values.

`debezium.conversions` says which Connect schema is which of these, and which tracked type each becomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["milli", "micro", "nano"]


@dataclass(frozen=True, slots=True)
class WireBoolean:
    """true or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireInteger:
    """A signed integer of `bits` 8, 16, 32 or 64."""

    bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFloat:
    """An IEEE 754 number of `bits` 32 or 64; NaN and the infinities are JSON strings."""

    bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WireText:
    """Text that is kept as it is; `semantic` is the schema name, such as `io.debezium.data.Json`."""

    semantic: str | None = None


@dataclass(frozen=True, slots=True)
class WireBytes:
    """Bytes; JSON shows them in base64 with padding."""


@dataclass(frozen=True, slots=True)
class WireBits:
    """Bytes of a bit string: bit `i` of byte `j` is bit `8 * j + i` of the column, counted from its right end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireDecimal:
    """Bytes of the unscaled value as a big-endian two's complement integer; with `decimal.format=NUMERIC` a number.

    Attributes:
        precision: digits, at most 38 and at least `scale`; None if the connector does not say.
        scale: digits after the point, 0 to 38.
    """

    precision: int | None
    scale: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WireBigDecimal:
    """As `WireDecimal`, with more digits than 38 or a scale that is not in 0 to 38.

    Attributes:
        scale: the unscaled value is the value times `10 ** scale`. May be negative; a negative scale of Postgres is
            sent modulo 2048, and so are the bytes: 12300 of `numeric(5,-2)` as 12300 * 10 ** 2046.
        shown: digits after the point that are the value's; those beyond are zeros.
        precision: digits of the whole number the value is; None if no decimal of 38 digits holds it, so that it is
            kept as text.
    """

    scale: int
    shown: int
    precision: int | None = None


@dataclass(frozen=True, slots=True)
class WireVariableDecimal:
    """A struct of `scale` and the unscaled `value`, as bytes whatever `decimal.format` says; kept as text."""


@dataclass(frozen=True, slots=True)
class WireDate:
    """Days since 1970-01-01."""


@dataclass(frozen=True, slots=True)
class WireDateText:
    """`2017-09-15Z`; the Z is decoration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireTimestamp:
    """A local date and time as units since 1970-01-01T00:00:00, as if it were UTC."""

    unit: Unit


@dataclass(frozen=True, slots=True)
class WireTimestampText:
    """`2017-09-15T04:05:11.789Z` for a local date and time; the Z is decoration."""


@dataclass(frozen=True, slots=True)
class WireInstant:
    """An instant as ISO 8601 text with an offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireTime:
    """Units since midnight; MySQL's may be negative or beyond a day, Postgres has 24:00:00."""

    unit: Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class WireList:
    """An array."""

    element: WireType
    element_optional: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WireMap:
    """A map.

    With `text_keys` JSON shows an object, otherwise an array of pairs. Avro shows a map if the keys are required texts,
    otherwise an array of records of `key` and `value`.

    Attributes:
        text_keys: whether the keys are texts on the wire, whatever they mean.
        key_optional: whether the schema allows a NULL key, which no map of ours can hold.
    """

    key: WireType
    value: WireType
    value_optional: bool = True
    text_keys: bool = True
    key_optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WireField:
    """A member of a struct."""

    name: str
    type: WireType
    optional: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WireStruct:
    """A JSON object, an Avro record; `semantic` as in `WireText`."""

    fields: tuple[WireField, ...]
    semantic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireUnsupported:
    """Something that is not read; `name` says what it is and `reason` why not, for people."""

    name: str
    reason: str


WireType: TypeAlias = (
    WireBoolean
    | WireInteger
    | WireFloat
    | WireText
    | WireBytes
    | WireBits
    | WireDecimal
    | WireBigDecimal
    | WireVariableDecimal
    | WireDate
    | WireDateText
    | WireTimestamp
    | WireTimestampText
    | WireInstant
    | WireTime
    | WireList
    | WireMap
    | WireStruct
    | WireUnsupported
)
