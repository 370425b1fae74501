"""Values for every row of the table of conversions: the edges, and what captures hold."""

from __future__ import annotations

import math
import random
from typing import Any

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.rules import Conversion
from cdc_sync.core.debezium.type_table import CONVERSIONS

_KAFKA, _TIME, _DATA = "org.apache.kafka.connect.data", "io.debezium.time", "io.debezium.data"


def unscaled(number: int) -> bytes:
    """Java's `BigInteger.toByteArray`."""
    return number.to_bytes(
        (number.bit_length() if number >= 0 else (number + 1).bit_length()) // 8 + 1, "big", signed=True
    )


def _numbers(digits: int) -> list[bytes]:
    """Whole numbers of all lengths, at powers of two and ten too, and longer than they may be."""
    chance = random.Random(digits)
    edges = [0, 1, -1, 9, -9, 10**digits - 1, 1 - 10**digits, 10**digits, -(10**digits)]
    powers = [
        sign * (2**bits) + step for bits in (7, 8, 63, 64, 119, 127, 128, 200) for sign in (1, -1) for step in (0, -1)
    ]
    any_size = [chance.randrange(-(10**size), 10**size) for size in range(1, digits + 1, max(1, digits // 25))]
    whole = [number for number in (*powers, *any_size) if abs(number) < 10**digits]
    tens = [sign * 10**size for size in (1, 15, 37, 38, 39, 64) if size < digits for sign in (1, -1)]
    return [*map(unscaled, (*edges, *whole, *tens)), b""]


_ZEROS = 10**2046
_MICROS = [0, -1, 1, 1709210096123456, -62135596800000000, 253402300799999999, -62135596800000001, 253402300800000000]
_TEXTS = ["", 'é😀\n"\\\u0000', "null", "NaN"]
_CLOCKS = [0, 1, -1, 10, 999, -999, 86_399_999]
_LONG_ENDS = [2**63 - 1, -(2**63), 9223372036825200]
_LONGS = [0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)]
_STAMPS = [
    "2024-02-29T12:34:56.123456",
    "2017-09-15T04:05:11.789",
    "1969-12-31T23:59:59.999999999",
    "0001-01-01T00:00:00",
]
_STAMPS += ["9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.9999999", "2020-01-01T00:00:00.1", "2020-01-01T00:00"]
_NO_STAMPS = ["infinity", "-infinity", "+294276-12-31T23:59:59.999999Z", "+10000-01-01T00:00:00Z", "", "soon"]
_NO_STAMPS += ["0000-12-31T23:59:59Z", "-0044-03-15T00:00:00Z", "2023-02-29T00:00:00Z", "+999999999-01-01T00:00:00Z"]
_POINT = {"x": 1.5, "y": -2.25, "wkb": bytes.fromhex("0101000000000000000000f83f00000000000002c0"), "srid": None}
_DATE = {"year": 2024, "month": 2, "day": 29}
_CLOCK = {"hour": 23, "minute": 59, "second": 60, "picoseconds": 999_999_999_999}

_VALUES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int8": [127, -128, 128, 200, -129],
    "int16": [32767, -32768],
    "int32": [2**31 - 1, -(2**31)],
    "int64": _LONGS,
    "float": [1.5, -0.0, 1.401298464324817e-45, 3.4028234663852886e38, math.nan, math.inf, -math.inf],
    "double": [0.1, -0.0, 5e-324, 1.7976931348623157e308, -2.2250738585072014e-308, math.nan, math.inf, -math.inf],
    "string": [*_TEXTS, "__debezium_unavailable_value"],
    "bytes": [b"", b"\x00\xff", bytes(range(256))],
    "array": [[], [1, None, 3], [None]],
    "map": [[], [("a", None), ("", "x"), ("é", "")]],
    "struct": [{"a": 1, "b": "x"}, {"a": None, "b": None}],
    f"{_KAFKA}.Decimal scale=2 connect.decimal.precision=10": _numbers(10),
    f"{_KAFKA}.Decimal scale=2": _numbers(38),
    f"{_KAFKA}.Decimal scale=30 connect.decimal.precision=65": _numbers(65),
    f"{_KAFKA}.Decimal scale=1000 connect.decimal.precision=1000": _numbers(1000),
    f"{_KAFKA}.Decimal scale=-5 connect.decimal.precision=10": _numbers(15),
    f"{_KAFKA}.Decimal scale=-5 connect.decimal.precision=38": _numbers(40),
    f"{_KAFKA}.Decimal scale=2046 connect.decimal.precision=5": [
        unscaled(number * _ZEROS) for number in (0, 12300, -12300, 9999900, -9999900, 10_000_000)
    ]
    + [unscaled(12300 * _ZEROS + 1), unscaled(1), unscaled(-1), b""],
    f"{_KAFKA}.Decimal scale=2046 connect.decimal.precision=40": [
        unscaled(number * _ZEROS) for number in (0, 12300, -12300, 10**41)
    ]
    + [unscaled(-12300 * _ZEROS - 7), b""],
    f"{_DATA}.VariableScaleDecimal": [
        *({"scale": 35, "value": number} for number in _numbers(40)),
        *({"scale": 0, "value": number} for number in _numbers(30)),
        *({"scale": -7, "value": number} for number in _numbers(20)),
        {"scale": 20, "value": b"\x01"},
        {"scale": 1, "value": b"\x0f"},
        {"scale": 3, "value": unscaled(-1500)},
        {"scale": 16383, "value": unscaled(-1)},
    ],
    f"{_DATA}.Bits length=8": [b"", b"\xaa", b"\x0b\x01", b"\xff" * 8],
    f"{_TIME}.Date": [0, -1, 19782, -719162, 2932896, -719163, 2932897, -2147472692, 2**31 - 1, -(2**31)],
    f"{_KAFKA}.Date": [0, -1, 2932896, 2**31 - 1],
    f"{_TIME}.IsoDate": ["2017-09-15Z", "2017-09-15", "0001-01-01Z", "9999-12-31Z", "soon", "", "+10000-01-01Z"],
    f"{_TIME}.Year": [2024, 1900, 1901, -1],
    f"{_TIME}.Time": [*_CLOCKS, 45296789],
    f"{_TIME}.MicroTime": [*_CLOCKS, 86_400_000_000, -3_020_399_000_000, 45_296_120_000, 2**63 - 1, -(2**63)],
    f"{_TIME}.NanoTime": [*_CLOCKS, 86_399_999_999_000, 2**63 - 1, -(2**63)],
    f"{_KAFKA}.Time": _CLOCKS,
    f"{_TIME}.Timestamp": [
        0,
        -1,
        1709210096789,
        -62135596800000,
        253402300799999,
        253402300800000,
        -62135596800001,
        *_LONG_ENDS,
    ],
    f"{_TIME}.MicroTimestamp": [*_MICROS, 9223372036825200000, -9223372036832400000, -9223372036853775810],
    f"{_TIME}.NanoTimestamp": [0, 1_999, -1, -999, -1_000, -1_001, 2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63],
    f"{_KAFKA}.Timestamp": [0, -1, 1709210096789, 2**63 - 1],
    f"{_TIME}.IsoTimestamp": [*(f"{stamp}Z" for stamp in _STAMPS), *_NO_STAMPS],
    f"{_TIME}.ZonedTimestamp": [f"{stamp}{zone}" for stamp in _STAMPS for zone in ("Z", "+05:30", "-11:00")]
    + _NO_STAMPS,
    f"{_TIME}.ZonedTime": ["07:04:56.123456Z", "12:34:56+05:30"],
    f"{_TIME}.IsoTime": ["04:05:11.789Z"],
    f"{_TIME}.MicroDuration": [*_LONGS, 37091106789000],
    f"{_TIME}.NanoDuration": _LONGS,
    f"{_TIME}.Interval": ["P1Y2M3DT4H5M6.78S", "P0Y0M0DT0H0M0S", "P-1Y-2M3DT-4H5M-6.78S"],
    f"{_TIME}.StructuredDate": [
        {**_DATE, "specialValue": None},
        {"year": 0, "month": 0, "day": 0, "specialValue": None},
        {"year": None, "month": None, "day": None, "specialValue": "POSITIVE_INFINITY"},
    ],
    f"{_TIME}.StructuredTime": [{**_CLOCK, "precision": 6}],
    f"{_TIME}.StructuredTimestamp": [{**_DATE, **_CLOCK, "specialValue": None, "precision": 6}],
    f"{_TIME}.StructuredZonedTimestamp": [{**_DATE, **_CLOCK, "zone": "+02:00", "specialValue": None, "precision": 6}],
    f"{_TIME}.StructuredZonedTime": [{**_CLOCK, "zone": "Z", "precision": None}],
    f"{_TIME}.StructuredDuration": [
        {
            "years": 1,
            "months": -2,
            "days": 3,
            "hours": 4,
            "minutes": 5,
            "seconds": 2**40,
            "picoseconds": 6,
            "precision": 9,
        }
    ],
    f"{_DATA}.Json": ['{"a": 1, "b": [1,2.50,null]}', "[]", "null"],
    f"{_DATA}.Uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    f"{_DATA}.Xml": ["<a>x</a>"],
    f"{_DATA}.Ltree": ["Top.Science"],
    f"{_DATA}.Tsvector": ["'a' 'cat' 'fat'"],
    f"{_DATA}.Enum": ["happy", ""],
    f"{_DATA}.EnumSet": ["x,z", ""],
    "com.example.Unknown": _TEXTS,
    f"{_DATA}.geometry.Point": [_POINT, {**_POINT, "wkb": None, "srid": 4326, "x": math.inf}],
    f"{_DATA}.geometry.Geometry": [
        {"wkb": b"\x01", "srid": 4326, "extensions": [("type", "box"), ("note", None)]},
        {"wkb": None, "srid": None, "extensions": None},
    ],
    f"{_DATA}.geometry.Geography": [{"wkb": b"\x01\x02", "srid": None}],
    f"{_DATA}.geometry.Circle": [{"center": _POINT, "radius": 2.5}],
    f"{_DATA}.geometry.Line": [{"a": 1.0, "b": -2.0, "c": 0.1}],
    f"{_DATA}.DoubleVector": [[], [0.1, -5e-324, math.nan]],
    f"{_DATA}.FloatVector": [[0.5, -0.25]],
    f"{_DATA}.SparseDoubleVector": [
        {"dimensions": 5, "vector": [(1, 0.5), (3, math.nan)]},
        {"dimensions": 5, "vector": []},
        {"dimensions": 5, "vector": [(1, 0.5), (1, 0.25)]},
    ],
}


def values_of(row: Conversion) -> list[Any]:
    """Return the Connect values to try a row with, NULL among them; fails for a row that has none."""
    return [*_VALUES[row.title], None]


def _array(element: ConnectSchema) -> ConnectSchema:
    return ConnectSchema(type="array", optional=True, items=element)


_EXAMPLES = {row.title: row.example for row in CONVERSIONS}
_INTEGER_KEYS = ConnectSchema(type="int32")


def _map(keys: ConnectSchema, values: ConnectSchema) -> ConnectSchema:
    return ConnectSchema(type="map", optional=True, keys=keys, values=values)


NESTED: list[tuple[str, ConnectSchema, list[Any]]] = [
    ("array of dates", _array(_EXAMPLES[f"{_TIME}.Date"]), [[0, None], [0, 2**31 - 1], []]),
    (
        "array of decimals",
        _array(_EXAMPLES[f"{_KAFKA}.Decimal scale=30 connect.decimal.precision=65"]),
        [[unscaled(-(10**60)), None], [b""]],
    ),
    ("array of instants", _array(_EXAMPLES[f"{_TIME}.ZonedTimestamp"]), [["2020-01-01T00:00:00Z", None], ["infinity"]]),
    ("array of arrays", _array(_array(_EXAMPLES["int32"])), [[[1, None], None, []]]),
    (
        "array of structs",
        _array(_EXAMPLES[f"{_DATA}.VariableScaleDecimal"]),
        [[{"scale": 1, "value": b"\x0f"}, None], [{"scale": 1, "value": b""}]],
    ),
    (
        "map of dates by text",
        _map(ConnectSchema(type="string"), _EXAMPLES[f"{_TIME}.Date"]),
        [[("a", 0), ("b", None)], [("a", 2**31 - 1)]],
    ),
    (
        "map of texts by integer",
        _map(_INTEGER_KEYS, ConnectSchema(type="string", optional=True)),
        [[(1, 'a,"]'), (-2, None), (3, "null")], []],
    ),
    (
        "map of timestamps by date",
        _map(ConnectSchema(type="int32", name=f"{_TIME}.Date"), _EXAMPLES[f"{_TIME}.MicroTimestamp"]),
        [[(0, 0), (1, None)], [(2**31 - 1, 0)], [(0, 2**63 - 1)]],
    ),
    (
        "map of structs by integer",
        _map(_INTEGER_KEYS, ConnectSchema(type="struct", optional=True, members=_EXAMPLES["struct"].members)),
        [[(1, {"a": 5, "b": 'x"\n'}), (2, None)]],
    ),
    (
        "map of integers by instant",
        _map(ConnectSchema(type="string", name=f"{_TIME}.ZonedTimestamp"), _EXAMPLES["int32"]),
        [[("2020-01-01T00:00:00Z", 1)], [("2020-01-01T00:00:00Z", 1), ("2020-01-01T01:00:00+01:00", 2)], [("x", 1)]],
    ),
]
"""Types within types, with what is lost inside them."""
