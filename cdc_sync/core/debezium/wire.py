"""What a column's values look like on the wire, a closed union of frozen values, and an event's columns.

`debezium.conversions` says which Connect schema is which of these, and which tracked type each becomes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cdc_sync.core.schema.sent import Sent
from cdc_sync.core.schema.types import Default

MAX_DIGITS = 38
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WireColumn:
    """A column of an event's row struct.

    Attributes:
        name: the column's in the source.
        field: the field's in the event, JSON member or Avro field; differs where the connector adjusts names.
        optional: whether the source accepts NULL. Postgres reports what its catalogue says when the
            connector reads it, which may be later than the event.
        default: in canonical form, None if there is none or it could not be read.
        suspect_default: see `literals.canonical_default`.
        structure: the type as the structural fingerprint sees it, see `connect.structure`.
        sent: the type as the history keeps it; how values are read does not depend on it.
    """

    name: str
    field: str
    wire: WireType
    optional: bool = True
    comment: str | None = None
    default: Default = None
    suspect_default: bool = False
    structure: str = ""
    sent: Sent | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSchema:
    """What the schema of a change event says about its table.

    Attributes:
        columns: in the source's order.
        key: names of the columns that identify a row, in key order: the record key's, or those the operator declared.
        record_key: names of the record key's fields in key order; empty if records have no key.
        connector: which one writes such events, as their source block names it; None if that is not known.
    """

    columns: tuple[WireColumn, ...]
    key: tuple[str, ...]
    record_key: tuple[str, ...]
    connector: str | None = None
