"""Wire types, the tracked types they become, and defaults in canonical form."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.conversions import logical_type, observed, wire_column, wire_type
from cdc_sync.core.debezium.envelope import event_schema
from cdc_sync.core.debezium.literals import canonical, canonical_default
from cdc_sync.core.debezium.wire import WireUnsupported
from cdc_sync.core.schema import types
from cdc_sync.core.schema.types import DataType, DecimalType, Field, ListType, MapType, StructType
from cdc_sync.errors import WireError
from cdc_sync.testing import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    JSON,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_MILLIS,
    TIMESTAMP_TZ,
    UUID,
    array,
    column,
    decimal,
    encode,
    enum,
    envelope_schema,
    struct,
)


def named(type_: ConnectSchema, name: str) -> ConnectSchema:
    return replace(type_, name=name, version=1)


def map_of(keys: ConnectSchema, values: ConnectSchema) -> ConnectSchema:
    return ConnectSchema(type="map", keys=keys, values=values)


KAFKA, TIMES, DATA = "org.apache.kafka.connect.data", "io.debezium.time", "io.debezium.data"
VARIABLE = struct(
    f"{DATA}.VariableScaleDecimal", column("scale", INT32, optional=False), column("value", BYTES, optional=False)
)


@pytest.mark.parametrize(
    ("connect", "tracked"),
    [
        (BOOLEAN, types.BOOLEAN),
        (INT8, types.INT8),
        (INT16, types.INT16),
        (INT32, types.INT32),
        (INT64, types.INT64),
        (FLOAT32, types.FLOAT32),
        (FLOAT64, types.FLOAT64),
        (TEXT, types.STRING),
        (BYTES, types.BINARY),
        (JSON, types.STRING),
        (UUID, types.STRING),
        (enum("a"), types.STRING),
        (DATE, types.DATE),
        (named(INT32, f"{KAFKA}.Date"), types.DATE),
        (named(TEXT, f"{TIMES}.IsoDate"), types.DATE),
        (TIME, types.STRING),
        (named(INT32, f"{TIMES}.Time"), types.STRING),
        (named(INT32, f"{KAFKA}.Time"), types.STRING),
        (named(INT64, f"{TIMES}.NanoTime"), types.STRING),
        (named(TEXT, f"{TIMES}.ZonedTime"), types.STRING),
        (TIMESTAMP, types.TIMESTAMP),
        (TIMESTAMP_MILLIS, types.TIMESTAMP),
        (named(INT64, f"{TIMES}.NanoTimestamp"), types.TIMESTAMP),
        (named(INT64, f"{KAFKA}.Timestamp"), types.TIMESTAMP),
        (named(TEXT, f"{TIMES}.IsoTimestamp"), types.TIMESTAMP),
        (TIMESTAMP_TZ, types.TIMESTAMP_TZ),
        (named(INT32, f"{TIMES}.Year"), types.INT32),
        (named(INT64, f"{TIMES}.MicroDuration"), types.INT64),
        (named(TEXT, f"{TIMES}.Interval"), types.STRING),
        (named(INT64, "com.example.Money"), types.INT64),
        (named(TEXT, f"{TIMES}.Date"), types.STRING),
        (decimal(10, 2), DecimalType(precision=10, scale=2)),
        (decimal(3, 5), DecimalType(precision=5, scale=5)),
        (decimal(0, 2), DecimalType(precision=38, scale=2)),
        (decimal(65, 30), types.STRING),
        (decimal(5, 40), types.STRING),
        (decimal(5, -2), DecimalType(precision=7, scale=0)),
        (decimal(37, -2), types.STRING),
        (decimal(0, -2), types.STRING),
        (decimal(5, 2046), DecimalType(precision=7, scale=0)),
        (decimal(5, 1048), types.STRING),
        (decimal(1000, 1000), types.STRING),
        (named(BYTES, f"{DATA}.Bits"), types.BINARY),
        (VARIABLE, types.STRING),
        (
            replace(VARIABLE, members=VARIABLE.members[:1]),
            StructType(fields=(Field(id=0, name="scale", type=types.INT32),)),
        ),
        (map_of(INT16, TEXT), MapType(key_id=0, key=types.INT16, value_id=0, value=types.STRING)),
        (array(INT32), ListType(element_id=0, element=types.INT32)),
        (
            array(array(decimal(6, 2))),
            ListType(element_id=0, element=ListType(element_id=0, element=DecimalType(precision=6, scale=2))),
        ),
    ],
)
def test_a_wire_type_becomes_the_tracked_type(connect: ConnectSchema, tracked: DataType) -> None:
    assert logical_type(wire_type(connect)) == tracked


@pytest.mark.parametrize(
    ("connect", "name", "reason"),
    [
        (struct(f"{DATA}.VariableScaleDecimal"), f"{DATA}.VariableScaleDecimal", "no members"),
        (struct("s", column("m", struct("t"))), "s with a member that is a t", "no members"),
        (array(struct("t")), "array of t", "no members"),
        (map_of(TEXT, struct("t")), "map with t", "no members"),
        (map_of(FLOAT64, TEXT), "map with keys of type double", "keys"),
        (map_of(struct("k", column("a", INT32)), TEXT), "map with keys of type k", "keys"),
        (map_of(INT32, struct("s", column("m", array(map_of(INT32, TEXT))))), "map of maps", "are not texts"),
        (ConnectSchema(type="map"), "map", "have no type"),
        (ConnectSchema(type="array"), "array", "has no type"),
        (decimal(5, 40_000), "decimal", "scale 40000"),
        (decimal(5, -40_000), "decimal", "scale -40000"),
        (named(BYTES, f"{KAFKA}.Decimal"), "decimal", "not a number"),
    ],
)
def test_what_is_not_read_says_so(connect: ConnectSchema, name: str, reason: str) -> None:
    wire = wire_type(connect)
    assert isinstance(wire, WireUnsupported)
    assert wire.name == name
    assert reason in wire.reason
    with pytest.raises(WireError, match=reason):
        logical_type(wire)
    seen = observed(event_schema(envelope_schema("s.t", [column("c", connect)]), None))
    assert seen.columns[0].type == types.STRING


def test_a_comment_is_the_doc_or_the_propagated_comment_but_never_the_docs_of_a_type() -> None:
    assert wire_column(column("a", TEXT, comment="why")).comment == "why"
    propagated = replace(TEXT, parameters={"__debezium.source.column.comment": "why"})
    assert wire_column(column("a", propagated)).comment == "why"
    assert wire_column(column("a", struct("p"), comment="Geometry (POINT)")).comment is None


def test_a_column_has_the_name_it_has_in_the_source_and_the_field_it_has_on_the_wire() -> None:
    adjusted = replace(column("a_b", TEXT), parameters={"__debezium.source.column.name": "a b"})
    assert (wire_column(adjusted).name, wire_column(adjusted).field) == ("a b", "a_b")
    assert (wire_column(column("a", TEXT)).name, wire_column(column("a", TEXT)).field) == ("a", "a")


@pytest.mark.parametrize(
    ("connect", "default", "canonical_form", "suspect"),
    [
        (INT32, 5, 5, False),
        (INT32, 0, 0, True),
        (INT32, 1 << 40, None, True),
        (INT32, True, None, True),
        (FLOAT64, Decimal("1.5"), 1.5, False),
        (FLOAT64, 3, 3.0, False),
        (FLOAT64, Decimal("0.0"), 0.0, True),
        (FLOAT64, "NaN", None, True),
        (FLOAT64, Decimal("1E+999999999"), None, True),
        (BOOLEAN, True, True, False),
        (BOOLEAN, False, False, True),
        (TEXT, "lbl", "lbl", False),
        (TEXT, "", "", True),
        (TEXT, "CURRENT_USER", "CURRENT_USER", True),
        (TEXT, "user", "user", False),
        (TEXT, '"current_user"()', '"current_user"()', True),
        (TEXT, "(CURRENT_DATE)::text", "(CURRENT_DATE)::text", True),
        (TEXT, "he''llo", "he''llo", True),
        (TEXT, 7, None, True),
        (JSON, "{}", "{}", False),
        (UUID, "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000", True),
        (TEXT, "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000", False),
        (BYTES, "AQ==", "01", False),
        (BYTES, "", "", True),
        (BYTES, "?", None, True),
        (decimal(6, 2), "AJY=", "1.50", False),
        (decimal(6, 2), "/w==", "-0.01", False),
        (decimal(6, 2), "AA==", "0.00", True),
        (decimal(6, 0), "BQ==", "5", False),
        (decimal(3, 2), "fwAA", None, True),
        (decimal(6, 2), "", None, True),
        (decimal(6, 2), Decimal("1.5"), "1.50", False),
        (decimal(6, 2), Decimal("1E+2"), "100.00", False),
        (decimal(6, 2), Decimal("1.555"), None, True),
        (decimal(6, 2), Decimal("1E-400"), None, True),
        (decimal(65, 30), "AQ==", "0." + "0" * 29 + "1", False),
        (decimal(65, 0), encode(decimal(65, 0), Decimal(-(10**64))), "-1" + "0" * 64, False),
        (decimal(65, 2), Decimal("0.00"), "0.00", True),
        (decimal(10, -5), "AQ==", "100000", False),
        (decimal(5, 2046), encode(decimal(0, 0), Decimal(123 * 10**2048)), "12300", False),
        (decimal(5, 2046), "AQ==", None, True),
        (decimal(5, 2046), "AA==", "0", True),
        (named(BYTES, f"{DATA}.Bits"), "qg==", "aa", False),
        (VARIABLE, {"scale": 1, "value": "AQ=="}, None, True),
        (DATE, 18262, "2020-01-01", False),
        (DATE, 0, "1970-01-01", True),
        (DATE, 2**31 - 1, None, True),
        (named(TEXT, f"{TIMES}.IsoDate"), "2020-01-01Z", "2020-01-01", False),
        (named(TEXT, f"{TIMES}.IsoDate"), "soon", None, True),
        (TIMESTAMP, 1577836800500000, "2020-01-01T00:00:00.500000", False),
        (TIMESTAMP_MILLIS, -1, "1969-12-31T23:59:59.999000", False),
        (TIMESTAMP_MILLIS, 0, "1970-01-01T00:00:00", True),
        (TIMESTAMP, 9223372036825200000, None, True),
        (named(INT64, f"{TIMES}.NanoTimestamp"), -1, "1969-12-31T23:59:59.999999", False),
        (named(TEXT, f"{TIMES}.IsoTimestamp"), "2020-01-01T01:02:03.5Z", "2020-01-01T01:02:03.500000", False),
        (TIMESTAMP_TZ, "1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:00Z", True),
        (TIMESTAMP_TZ, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", True),
        (TIMESTAMP_TZ, "2020-01-01T02:00:00+02:00", "2020-01-01T00:00:00Z", False),
        (TIMESTAMP_TZ, "2020-01-01T00:00:00.123456789Z", "2020-01-01T00:00:00.123456Z", False),
        (TIMESTAMP_TZ, "infinity", None, True),
        (TIMESTAMP_TZ, "2020-01-01T00:00:00", None, True),
        (TIMESTAMP_TZ, "0001-01-01T00:00:00+10:00", None, True),
        (TIME, 3723000000, "01:02:03", False),
        (TIME, -3020399500000, "-838:59:59.5", False),
        (TIME, 0, "00:00:00", True),
        (named(INT32, f"{TIMES}.Time"), 45296789, "12:34:56.789", False),
        (named(INT64, f"{TIMES}.NanoTime"), 1, "00:00:00.000000001", False),
        (array(INT32), [1, 2], None, True),
        (INT32, None, None, False),
    ],
)
def test_defaults_are_canonical_and_placeholders_are_suspect(
    connect: ConnectSchema, default: object, canonical_form: object, suspect: bool
) -> None:
    result = canonical_default(wire_type(connect), default)
    assert result == (canonical_form, suspect)
    assert type(result[0]) is type(canonical_form)


@given(
    precision=st.integers(1, 38),
    scale=st.integers(0, 38),
    digits=st.integers(-(10**38) + 1, 10**38 - 1),
)
@settings(max_examples=80, deadline=None)
def test_a_decimal_comes_back_digit_for_digit(precision: int, scale: int, digits: int) -> None:
    precision = max(precision, scale)
    unscaled = digits % 10**precision * (1 if digits >= 0 else -1)
    sign, parts = int(unscaled < 0), tuple(map(int, str(abs(unscaled))))
    value = Decimal((sign, parts, -scale))
    wire = wire_type(decimal(precision, scale))
    shown = f"{value:f}" if unscaled else f"{Decimal((0, (0,), -scale)):f}"
    assert canonical(wire, encode(decimal(precision, scale), value)) == shown
    assert canonical(wire, value) == shown


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)))
@settings(max_examples=50, deadline=None)
def test_dates_and_times_come_back_as_they_were(moment: datetime) -> None:
    assert canonical(wire_type(TIMESTAMP), encode(TIMESTAMP, moment)) == moment.isoformat()
    assert canonical(wire_type(DATE), encode(DATE, moment.date())) == date.isoformat(moment.date())
    zoned = moment.replace(tzinfo=timezone.utc)
    assert canonical(wire_type(TIMESTAMP_TZ), encode(TIMESTAMP_TZ, zoned)) == moment.isoformat() + "Z"
