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
    """Base64 with padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireDecimal:
    """Base64 of the unscaled value as a big-endian two's complement integer.

    Attributes:
        precision: digits, at most 38 and at least `scale`; None if the connector does not say.
        scale: digits after the point, 0 to 38.
    """

    precision: int | None
    scale: int


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
    """A JSON array."""

    element: WireType
    element_optional: bool = True


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
    | WireDecimal
    | WireDate
    | WireDateText
    | WireTimestamp
    | WireTimestampText
    | WireInstant
    | WireTime
    | WireList
    | WireUnsupported
)
