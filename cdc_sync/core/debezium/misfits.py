"""Why a JSON payload cannot be read as its own schema says: where, what stands there, and what explains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from typing_extensions import assert_never

from cdc_sync.core.debezium.forms import FlattenedSchema
from cdc_sync.core.debezium.literals import from_base64
from cdc_sync.core.debezium.wire import (
    MAX_DIGITS,
    EventSchema,
    WireBigDecimal,
    WireBits,
    WireBoolean,
    WireBytes,
    WireDate,
    WireDateText,
    WireDecimal,
    WireFloat,
    WireInstant,
    WireInteger,
    WireList,
    WireMap,
    WireStruct,
    WireText,
    WireTime,
    WireTimestamp,
    WireTimestampText,
    WireType,
    WireUnsupported,
    WireVariableDecimal,
)

_FLOATS = ("NaN", "Infinity", "-Infinity")
_NOT_CONVERTED = "value.converter, or a transform that changes values without their schema, wrote it"
_NO_BYTES = "bytes are base64 in JSON; value.converter, or a transform, wrote something else"


def misfit(payload: Mapping[str, object], schema: EventSchema, flattened: FlattenedSchema | None) -> str | None:
    """Say what of an event does not fit its schema; None if all does.

    The text holds no value of the record, so that records can be counted by it.
    """
    if flattened is not None:
        return next(_of_row(payload, schema, ""), None)
    if not isinstance(payload.get("op"), str):
        return "op is missing: it is no change event of Debezium's"
    found = (part for name in ("after", "before") for part in _of_image(payload.get(name), schema, name))
    return next(found, None)


def _of_image(row: object, schema: EventSchema, name: str) -> Iterator[str]:
    if isinstance(row, Mapping):
        yield from _of_row(row, schema, f"{name}.")
    elif row is not None:
        yield _say(name, row, "a row", _NOT_CONVERTED)


def _of_row(row: Mapping[str, object], schema: EventSchema, before: str) -> Iterator[str]:
    for column in schema.columns:
        yield from _of(row.get(column.field), column.wire, f"{before}{column.field}")


def _say(path: str, value: object, wanted: str, explained: str) -> str:
    return f"{path} is {_called(value)} where its schema says {wanted}: {explained}"


def _called(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case Decimal():
            return "a number"
        case str():
            return "a text"
        case Mapping():
            return "an object"
        case _:
            return "an array"


def _of(value: object, wire: WireType, path: str) -> Iterator[str]:
    if value is None:
        return
    match wire:
        case WireList(element=element):
            yield from _of_list(value, element, path)
        case WireMap(value=inner, text_keys=True):
            if isinstance(value, Mapping):
                for item in value.values():
                    yield from _of(item, inner, f"{path}{{}}")
            else:
                yield _say(path, value, "a map", _NOT_CONVERTED)
        case WireStruct(fields=fields):
            if isinstance(value, Mapping):
                for field in fields:
                    yield from _of(value.get(field.name), field.type, f"{path}.{field.name}")
            else:
                yield _say(path, value, "a struct", _NOT_CONVERTED)
        case _:
            wanted = _wanted(value, wire)
            if wanted is not None:
                yield _say(path, value, *wanted)


def _of_list(value: object, element: WireType, path: str) -> Iterator[str]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        yield _say(path, value, "an array", _NOT_CONVERTED)
        return
    for item in value:
        yield from _of(item, element, f"{path}[]")


def _wanted(value: object, wire: WireType) -> tuple[str, str] | None:
    """Return what should stand in place of a single value, and what explains that it does not; None if it may."""
    match wire:
        case WireBoolean():
            return None if isinstance(value, bool) else ("true or false", _NOT_CONVERTED)
        case WireInteger(bits=bits):
            return _of_bits(value, bits)
        case WireDate():
            return _of_bits(value, 32)
        case WireTimestamp() | WireTime():
            return _of_bits(value, 64)
        case WireFloat():
            number = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
            return None if number or value in _FLOATS else ("a number", _NOT_CONVERTED)
        case WireText() | WireInstant() | WireDateText() | WireTimestampText():
            return None if isinstance(value, str) else ("a text", _NOT_CONVERTED)
        case WireBytes() | WireBits():
            return None if from_base64(value) is not None else ("bytes", _NO_BYTES)
        case WireDecimal() | WireBigDecimal():
            return _of_decimal(value, wire)
        case WireVariableDecimal():
            return None if isinstance(value, Mapping) else ("a decimal with its scale", _NOT_CONVERTED)
        case WireMap():
            return None if isinstance(value, (list, Mapping)) else ("a map", _NOT_CONVERTED)
        case WireList() | WireStruct() | WireUnsupported():
            return None
        case _:
            assert_never(wire)


def _of_bits(value: object, bits: int) -> tuple[str, str] | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return f"int{bits}", _NOT_CONVERTED
    fits = -(1 << bits - 1) <= value < 1 << bits - 1
    return None if fits else (f"int{bits}", "it has no place there")


def _of_decimal(value: object, wire: WireDecimal | WireBigDecimal) -> tuple[str, str] | None:
    if isinstance(value, str):
        return None if from_base64(value) is not None else ("a decimal", _NO_BYTES)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return "a decimal", _NOT_CONVERTED
    scale = wire.scale if isinstance(wire, WireDecimal) else wire.shown
    digits, exact = wire.precision or MAX_DIGITS, Decimal(value)
    if not exact or exact.adjusted() + 1 + scale <= digits:
        return None
    return (
        f"a decimal of {digits} digits, {scale} behind the point",
        "it has more, and as a number (value.converter.decimal.format=NUMERIC) it is not read beyond them; "
        "set decimal.format=BASE64 in the connector",
    )
