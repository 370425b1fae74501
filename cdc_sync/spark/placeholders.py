"""Values that stand for "unchanged": what a connector sends for a column it has no value of.

Source: Debezium documentation, `unavailable.value.placeholder`; Debezium, `UnchangedToastedPlaceholder` up to 3.7.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.wire import (
    WireBytes,
    WireDate,
    WireDateText,
    WireDecimal,
    WireFloat,
    WireInstant,
    WireInteger,
    WireList,
    WireMap,
    WireText,
    WireTime,
    WireTimestamp,
    WireTimestampText,
    WireType,
    WireVariableDecimal,
)
from cdc_sync.spark.raw import DEFAULTS, Format, Settings, raw_type

PLACEHOLDER = "__debezium_unavailable_value"
"""Debezium's default `unavailable.value.placeholder`, sent for unchanged TOAST values."""

_HEX = "hex:"
_UUID = "io.debezium.data.Uuid"


def is_placeholder(
    wire: WireType,
    raw: Column,
    form: Format = "json",
    placeholder: str = PLACEHOLDER,
    settings: Settings = DEFAULTS,
) -> Column | None:
    """Return the condition under which a value stands for "unchanged", None where its type has no such form.

    Arrays of booleans have none here: Debezium 3.7 shows them as so many times true, which is a value as well.

    Args:
        wire: the value's type.
        raw: the value as `raw_type` has it.
        form: how it was written.
        placeholder: the connector's setting, `hex:` and digits for bytes.
        settings: as for `raw_type`.
    """
    sent = _bytes_of(placeholder)
    text = sent.decode(errors="replace")
    match wire:
        case WireText(semantic="io.debezium.data.Json"):
            return raw.isin(text, _object(text))
        case WireText():
            return raw == F.lit(text)
        case WireBytes():
            return raw == F.lit(bytearray(sent))
        case WireMap(key=WireText(), value=WireText(), text_keys=True, key_optional=False):
            return (F.size(raw) == 1) & raw.getItem(text).eqNullSafe(F.lit(text))
        case WireList(element=element):
            elements = _elements(element, sent, text, form, settings)
            return None if elements is None else raw == F.array(*elements)
        case _:
            return None


def _elements(element: WireType, sent: bytes, text: str, form: Format, settings: Settings) -> list[Column] | None:
    """Return the elements that an array shows: one for the whole placeholder, or one for each of its bytes."""
    codes = [code - 256 if code > 127 else code for code in sent]  # Java's bytes have a sign
    match element:
        case WireText(semantic=semantic):
            return [F.lit(_name_uuid(sent) if semantic == _UUID else text)]
        case WireInstant() | WireDateText() | WireTimestampText():
            return [F.lit(text)]
        case WireBytes():
            return [F.lit(bytearray(sent))]
        case WireInteger() | WireFloat() | WireDate() | WireTime() | WireTimestamp():
            return [F.lit(code).cast(raw_type(element, form, settings)) for code in codes]
        case WireDecimal(scale=scale):
            type_ = raw_type(element, form, settings)
            if not isinstance(type_, T.DecimalType):
                return [F.lit(_one_byte(code)) for code in codes]
            if type_.precision < 3:
                return None
            return [F.lit(Decimal(code).scaleb(-scale)).cast(type_) for code in codes]
        case WireVariableDecimal():
            return [F.struct(F.lit(0).alias("scale"), F.lit(_one_byte(code)).alias("value")) for code in codes]
        case _:
            return None


def _bytes_of(placeholder: str) -> bytes:
    if placeholder.startswith(_HEX):
        return bytes.fromhex(placeholder.removeprefix(_HEX))
    return placeholder.encode()


def _object(text: str) -> str:
    """Return an hstore of the placeholder in JSON mode."""
    return json.dumps({text: text}, ensure_ascii=False, separators=(",", ":"))


def _one_byte(code: int) -> bytearray:
    return bytearray(code.to_bytes(1, "big", signed=True))


def _name_uuid(name: bytes) -> str:
    """Java's `UUID.nameUUIDFromBytes`: a version 3 UUID without a name space."""
    digest = hashlib.md5(name, usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest, version=3))
