"""Every wire type, value by value: what JSON holds, what the target gets, what is lost and what stands for nothing."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.conversions import logical_type
from cdc_sync.core.debezium.wire import (
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
    WireText,
    WireTime,
    WireTimestamp,
    WireTimestampText,
    WireType,
    WireUnsupported,
    WireVariableDecimal,
)
from cdc_sync.errors import SchemaError
from cdc_sync.spark.decode import decoder, does_not_convert, json_type
from cdc_sync.spark.placeholders import PLACEHOLDER, is_placeholder
from cdc_sync.spark.types import to_spark

LOST = object()
"""Expected of a value that has no place in its type."""


@dataclass(frozen=True)
class Case:
    wire: WireType
    given: object
    wanted: object


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def number(value: int) -> str:
    size = (value.bit_length() if value >= 0 else (value + 1).bit_length()) // 8 + 1
    return b64(value.to_bytes(size, "big", signed=True))


def cases(wire: WireType, *pairs: tuple[object, object]) -> list[Case]:
    return [Case(wire, given, wanted) for given, wanted in (*pairs, (None, None))]


D9_2, D38_0, D38_38 = (WireDecimal(precision=p, scale=s) for p, s in ((9, 2), (38, 0), (38, 38)))
MONEY = WireDecimal(precision=None, scale=2)
NINES = 10**38 - 1
UTC = timezone.utc

CASES = [
    *cases(WireBoolean(), (True, True), (False, False)),
    *cases(WireInteger(bits=8), (127, 127), (-128, -128)),
    *cases(WireInteger(bits=16), (32767, 32767), (-32768, -32768)),
    *cases(WireInteger(bits=32), (2**31 - 1, 2**31 - 1), (-(2**31), -(2**31))),
    *cases(WireInteger(bits=64), (2**63 - 1, 2**63 - 1), (-(2**63), -(2**63)), (2**53 + 1, 2**53 + 1)),
    *cases(WireFloat(bits=32), (0.5, 0.5), ("NaN", math.nan), ("-Infinity", -math.inf)),
    *cases(WireFloat(bits=64), (0.1, 0.1), (5e-324, 5e-324), (-0.0, -0.0), ("Infinity", math.inf), ("NaN", math.nan)),
    *cases(WireText(), ("", ""), ('é😀\n"\\\u0000', 'é😀\n"\\\u0000'), ("null", "null")),
    *cases(WireText(semantic="io.debezium.data.Json"), ('{"a": [1, null]}', '{"a": [1, null]}')),
    *cases(WireBytes(), (b64(b""), b""), (b64(b"\x00\xff"), b"\x00\xff")),
    *cases(
        D9_2,
        (number(0), Decimal("0.00")),
        (number(-1), Decimal("-0.01")),
        (number(123456789), Decimal("1234567.89")),
        (number(-128), Decimal("-1.28")),
        (b64(b"\x00\x00\x01"), Decimal("0.01")),
        (b64(b""), LOST),
        (number(10**9), LOST),
    ),
    *cases(D38_0, (number(NINES), Decimal(NINES)), (number(-NINES), Decimal(-NINES)), (number(10**38), LOST)),
    *cases(D38_0, (b64(b"\x00" * 17 + b"\x01"), LOST)),
    *cases(D38_38, (number(NINES), Decimal("0." + "9" * 38)), (number(1), Decimal("1E-38"))),
    *cases(MONEY, (number(-(2**63)), Decimal("-92233720368547758.08"))),
    *cases(
        WireDate(),
        (0, date(1970, 1, 1)),
        (-1, date(1969, 12, 31)),
        (-719162, date(1, 1, 1)),
        (2932896, date(9999, 12, 31)),
        (-719163, LOST),
        (2932897, LOST),
        (2147483647, LOST),
    ),
    *cases(WireDateText(), ("2017-09-15Z", date(2017, 9, 15)), ("1969-12-31Z", date(1969, 12, 31)), ("infinity", LOST)),
    *cases(
        WireTimestamp(unit="milli"),
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999000)),
        (1_700_000_000_123, datetime(2023, 11, 14, 22, 13, 20, 123000)),
        (-62135596800000, datetime(1, 1, 1)),
        (2**63 - 1, LOST),
        (-(2**63), LOST),
    ),
    *cases(
        WireTimestamp(unit="micro"),
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999999)),
        (253402300799999999, datetime(9999, 12, 31, 23, 59, 59, 999999)),
        (253402300800000000, LOST),
        (9223372036825200000, LOST),
        (-9223372036832400000, LOST),
    ),
    *cases(
        WireTimestamp(unit="nano"),
        (1_999, datetime(1970, 1, 1, 0, 0, 0, 1)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999999)),
        (-1_000, datetime(1969, 12, 31, 23, 59, 59, 999999)),
        (-1_001, datetime(1969, 12, 31, 23, 59, 59, 999998)),
        (2**63 - 2, datetime(2262, 4, 11, 23, 47, 16, 854775)),
        (2**63 - 1, LOST),
        (-(2**63), LOST),
        (1 - 2**63, datetime(1677, 9, 21, 0, 12, 43, 145224)),
    ),
    *cases(
        WireTimestampText(),
        ("2017-09-15T04:05:11.789Z", datetime(2017, 9, 15, 4, 5, 11, 789000)),
        ("1969-12-31T23:59:59.999999999Z", datetime(1969, 12, 31, 23, 59, 59, 999999)),
        ("infinity", LOST),
    ),
    *cases(
        WireInstant(),
        ("2020-01-01T00:00:00Z", datetime(2020, 1, 1, tzinfo=UTC)),
        ("2020-01-01T02:30:00+02:30", datetime(2020, 1, 1, tzinfo=UTC)),
        ("2019-12-31T19:00:00.5-05:00", datetime(2020, 1, 1, 0, 0, 0, 500000, tzinfo=UTC)),
        ("1969-12-31T23:59:59.123456789Z", datetime(1969, 12, 31, 23, 59, 59, 123456, tzinfo=UTC)),
        ("infinity", LOST),
        ("-infinity", LOST),
        ("+294247-01-10T04:00:54.775807Z", LOST),
        ("", LOST),
    ),
    *cases(WireTime(unit="milli"), (0, "00:00:00"), (86_399_999, "23:59:59.999"), (1_500, "00:00:01.5")),
    *cases(
        WireTime(unit="micro"),
        (86_400_000_000, "24:00:00"),
        (-1, "-00:00:00.000001"),
        (-3_020_399_000_000, "-838:59:59"),
        (45_296_120_000, "12:34:56.12"),
    ),
    *cases(WireTime(unit="nano"), (1, "00:00:00.000000001"), (86_399_999_999_000, "23:59:59.999999")),
    *cases(WireList(element=WireText()), ([], []), (["a", None, ""], ["a", None, ""]), ([None], [None])),
    *cases(WireList(element=WireInteger(bits=64)), ([2**53 + 1, None], [2**53 + 1, None])),
    *cases(WireList(element=WireDate()), ([0, None], [date(1970, 1, 1), None]), ([0, 2147483647], LOST)),
    *cases(WireList(element=D9_2), ([number(150), None], [Decimal("1.50"), None]), ([number(10**9)], LOST)),
    *cases(WireList(element=WireInstant()), (["2020-01-01T00:00:00Z"], [datetime(2020, 1, 1, tzinfo=UTC)])),
    *cases(WireList(element=WireList(element=WireInteger(bits=32))), ([[1], [None, 2]], [[1], [None, 2]])),
]

HSTORE = WireMap(key=WireText(), value=WireText())
UUIDS = WireList(element=WireText(semantic="io.debezium.data.Uuid"))
CODES = list(PLACEHOLDER.encode())
PLACEHOLDERS = [
    Case(WireText(), PLACEHOLDER, True),
    Case(WireText(), PLACEHOLDER + " ", False),
    Case(WireText(semantic="io.debezium.data.Json"), PLACEHOLDER, True),
    Case(WireBytes(), "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", True),
    Case(WireBytes(), b64(b"x"), False),
    Case(WireList(element=WireText()), [PLACEHOLDER], True),
    Case(WireList(element=WireText()), [PLACEHOLDER, PLACEHOLDER], False),
    Case(WireList(element=WireText()), [None], False),
    Case(WireList(element=WireBytes()), [b64(PLACEHOLDER.encode())], True),
    Case(WireList(element=WireInteger(bits=32)), CODES, True),
    Case(WireList(element=WireInteger(bits=64)), CODES, True),
    Case(WireList(element=WireDate()), CODES, True),
    Case(WireList(element=WireInteger(bits=32)), CODES[:-1], False),
    Case(UUIDS, ["00ec0b0c-0d5b-3b64-a8e5-8d7e29b4a1b5"], False),
    Case(WireText(semantic="io.debezium.data.Json"), f'{{"{PLACEHOLDER}":"{PLACEHOLDER}"}}', True),
    Case(WireText(), f'{{"{PLACEHOLDER}":"{PLACEHOLDER}"}}', False),
    Case(HSTORE, {PLACEHOLDER: PLACEHOLDER}, True),
    Case(HSTORE, {PLACEHOLDER: None}, False),
    Case(HSTORE, {PLACEHOLDER: PLACEHOLDER, "a": "b"}, False),
    Case(HSTORE, {}, False),
    Case(HSTORE, {"a": PLACEHOLDER}, False),
    Case(WireList(element=WireInstant()), [PLACEHOLDER], True),
    Case(WireList(element=WireInteger(bits=16)), CODES, True),
    Case(WireList(element=WireFloat(bits=64)), CODES, True),
    Case(WireList(element=WireTimestamp(unit="micro")), CODES, True),
    Case(WireList(element=D9_2), [number(code) for code in CODES], True),
    Case(WireList(element=D9_2), [number(code) for code in CODES[1:]], False),
    Case(WireList(element=WireVariableDecimal()), [{"scale": 0, "value": number(code)} for code in CODES], True),
]
"""In every form of reference section "unavailable values"; the UUID's is checked below."""


def rows(session: SparkSession, given: list[Case], expression: Callable[[WireType, Column], Column]) -> list[Any]:
    """Evaluate an expression over many values at once: a column for each wire type, a row for each value."""
    wires = list(dict.fromkeys(case.wire for case in given))
    schema = T.StructType([T.StructField(f"w{i}", json_type(wire)) for i, wire in enumerate(wires)])
    texts = [(n, json.dumps({f"w{wires.index(case.wire)}": case.given})) for n, case in enumerate(given)]
    read = session.createDataFrame(texts, "n int, text string").select("n", F.from_json("text", schema).alias("j"))
    columns = (expression(wire, F.col("j").getField(f"w{i}")).alias(f"w{i}") for i, wire in enumerate(wires))
    found = sorted(read.select("n", *columns).collect())
    return [row[f"w{wires.index(case.wire)}"] for row, case in zip(found, given, strict=True)]


def _value_and_loss(wire: WireType, raw: Column) -> Column:
    decode = decoder(wire)
    converted = raw if decode is None else decode(raw)
    lost = does_not_convert(wire, raw, converted)
    return F.struct(
        converted.cast(to_spark(logical_type(wire))).alias("value"),
        F.coalesce(F.lit(False) if lost is None else lost, F.lit(False)).alias("lost"),
    )


def _same(found: object, wanted: object) -> bool:
    if isinstance(wanted, float) and math.isnan(wanted):
        return isinstance(found, float) and math.isnan(found)
    if isinstance(found, bytearray):
        return bytes(found) == wanted
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(_same(f, w) for f, w in zip(found, wanted, strict=True))  # type: ignore[call-overload]
    return found == wanted and type(found) is type(wanted) and str(found).startswith("-") == str(wanted).startswith("-")


def _instants_as_utc(found: object, type_: T.DataType) -> object:
    """Spark hands instants out in the local zone of Python; the tests speak of UTC."""
    if isinstance(found, list) and isinstance(type_, T.ArrayType):
        return [_instants_as_utc(item, type_.elementType) for item in found]
    if isinstance(found, datetime) and isinstance(type_, T.TimestampType):
        return found.astimezone(UTC)
    return found


@pytest.mark.spark
def test_every_value_arrives_exactly_or_is_found_lost(session: SparkSession) -> None:
    found = rows(session, CASES, _value_and_loss)
    wrong = []
    for case, (value, is_lost) in zip(CASES, found, strict=True):
        value = _instants_as_utc(value, to_spark(logical_type(case.wire)))
        if is_lost != (case.wanted is LOST) or not (is_lost or _same(value, case.wanted)):
            wrong.append(f"{case.wire} {case.given!r}: {value!r}, lost={is_lost}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
def test_placeholders_are_found_in_every_form(session: SparkSession) -> None:
    import hashlib
    import uuid

    digest = hashlib.md5(PLACEHOLDER.encode(), usedforsecurity=False).digest()
    given = [*PLACEHOLDERS, Case(UUIDS, [str(uuid.UUID(bytes=digest, version=3))], True)]

    def is_one(wire: WireType, raw: Column) -> Column:
        found = is_placeholder(wire, raw)
        assert found is not None
        return F.coalesce(found, F.lit(False))

    found = rows(session, given, is_one)
    wrong = [case for case, is_placeholder_ in zip(given, found, strict=True) if case.wanted != is_placeholder_]
    assert not wrong


@pytest.mark.spark
def test_the_placeholder_is_the_connectors_setting_in_avro_too(session: SparkSession) -> None:
    given: list[tuple[WireType, object, str, str]] = [
        (WireBytes(), bytearray(b"\x00\xffA"), "binary", "hex:00ff41"),
        (WireList(element=WireInteger(bits=64)), [0, -1, 65], "array<bigint>", "hex:00ff41"),
        (WireText(), "gone", "string", "gone"),
        (WireText(), "A", "string", "hex:41"),
        (WireList(element=D9_2), [Decimal("0.65"), Decimal("-0.01")], "array<decimal(9,2)>", "hex:41ff"),
        (HSTORE, {"gone": "gone"}, "map<string,string>", "gone"),
    ]
    for wire, value, type_, placeholder in given:
        raw = session.createDataFrame([(value,)], f"raw {type_}")
        found = is_placeholder(wire, F.col("raw"), "avro", placeholder)
        assert found is not None
        assert raw.select(found).collect()[0][0] is True, wire


@pytest.mark.spark
def test_types_without_a_form_of_the_placeholder_never_show_it(session: SparkSession) -> None:
    for wire in (WireInteger(bits=32), D9_2, WireInstant(), WireList(element=WireBoolean())):
        assert is_placeholder(wire, F.lit(None)) is None


@pytest.mark.spark
def test_every_wire_type_comes_out_as_the_type_it_is_tracked_as(session: SparkSession) -> None:
    for wire in dict.fromkeys(case.wire for case in CASES):
        decode = decoder(wire)
        raw = session.range(1).select(F.lit(None).cast(json_type(wire)).alias("raw"))
        (found,) = raw.select(F.col("raw") if decode is None else decode(F.col("raw"))).schema.fields
        assert found.dataType.simpleString() == to_spark(logical_type(wire)).simpleString(), wire


def test_what_is_not_read_has_no_type() -> None:
    with pytest.raises(SchemaError, match="Cannot read geometry"):
        json_type(WireUnsupported(name="geometry", reason="not yet"))
