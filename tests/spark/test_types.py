"""Every row of the table of conversions, value by value, against a decoder that shares nothing with ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Literal, TypeAlias

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.conversions import logical_type, wire_type
from cdc_sync.core.debezium.type_table import CONVERSIONS
from cdc_sync.core.debezium.wire import WireBigDecimal, WireDecimal, WireList, WireType
from cdc_sync.spark.decode import decoder, does_not_convert
from cdc_sync.spark.raw import Format, ReadAs, raw_type
from cdc_sync.spark.types import to_spark
from tests.spark.independent import LOST, beyond, decode
from tests.spark.reading import differences, found, parsed
from tests.spark.type_values import NESTED, values_of

pytestmark = pytest.mark.spark

SCHEMAS: dict[str, ConnectSchema] = {row.title: row.example for row in CONVERSIONS} | {
    title: schema for title, schema, _ in NESTED
}
VALUES: dict[str, list[Any]] = {row.title: values_of(row) for row in CONVERSIONS} | {
    title: [*values, None] for title, _, values in NESTED
}
Mode: TypeAlias = Literal["ansi", "lenient"]
Outcomes: TypeAlias = Callable[[Format, Mode], tuple[dict[str, list[Any]], dict[str, list[Any]]]]


def in_mode(session: SparkSession, mode: Mode, run: Callable[[], dict[str, list[Any]]]) -> dict[str, list[Any]]:
    before = session.conf.get("spark.sql.ansi.enabled") or "false"
    session.conf.set("spark.sql.ansi.enabled", str(mode == "ansi").lower())
    try:
        return run()
    finally:
        session.conf.set("spark.sql.ansi.enabled", before)


def given_in(form: Format) -> dict[str, list[Any]]:
    """Return the values; one too long for a decimal that Spark's Avro reader makes would spoil its whole record."""
    return {
        title: [value for value in column if not (spoils(title, form) and decode(SCHEMAS[title], value) is LOST)]
        for title, column in VALUES.items()
    }


def spoils(title: str, form: Format) -> bool:
    return form == "avro" and isinstance(raw_type(wire_type(SCHEMAS[title]), "avro"), T.DecimalType)


@pytest.fixture(scope="module")
def outcomes(session: SparkSession) -> Outcomes:
    """Reads all columns of a form at once, when first asked for one."""

    @cache
    def read(form: Format, mode: Mode) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        given = given_in(form)
        return given, in_mode(session, mode, lambda: found(session, SCHEMAS, given, form))

    return read


@pytest.mark.parametrize("mode", ["lenient", "ansi"])
@pytest.mark.parametrize("form", ["json", "avro"])
@pytest.mark.parametrize("title", SCHEMAS)
def test_every_value_of_every_row_arrives_exactly_or_is_found_lost(
    outcomes: Outcomes, title: str, form: Format, mode: Mode
) -> None:
    given, got = outcomes(form, mode)
    wanted = {title: [decode(SCHEMAS[title], value) for value in given[title]]}
    assert len(wanted[title]) > 1
    assert differences(got, wanted, given) == []


def test_titles_tell_rows_apart() -> None:
    assert len({row.title for row in CONVERSIONS}) == len(CONVERSIONS)


def test_nothing_of_an_avro_record_is_read_whose_decimal_has_too_many_digits(session: SparkSession) -> None:
    title = "org.apache.kafka.connect.data.Decimal scale=2 connect.decimal.precision=10"
    given: dict[str, list[Any]] = {title: [(10**10).to_bytes(6, "big")], "int32": [5]}
    assert parsed(session, SCHEMAS, given, "avro").select("r.*").collect()[0].asDict() == {"c0": None, "c1": None}


FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)


def by_policy(policy: str, schema: ConnectSchema, value: Any) -> Any:
    wanted = None if value is None else decode(schema, value)
    if wanted is not LOST:
        return wanted
    side = beyond(schema, value)
    if policy == "null":
        return None if side or isinstance(value, int) else LOST
    end = {-1: FIRST, 1: LAST}.get(side, LOST)
    return end.date() if isinstance(end, datetime) and (schema.name or "").endswith("Date") else end


@pytest.mark.parametrize("mode", ["lenient", "ansi"])
@pytest.mark.parametrize("policy", ["null", "clamp"])
def test_points_in_time_out_of_range_follow_the_policy(
    session: SparkSession, policy: Literal["null", "clamp"], mode: Mode
) -> None:
    titles = [title for title in VALUES if title.endswith(("Date", "Timestamp")) and "Structured" not in title]
    given = {title: VALUES[title] for title in titles}
    wanted = {title: [by_policy(policy, SCHEMAS[title], value) for value in given[title]] for title in given}
    got = in_mode(session, mode, lambda: found(session, SCHEMAS, given, "json", ReadAs(out_of_range=policy)))
    assert differences(got, wanted, given) == []


def test_the_policy_reaches_into_arrays(session: SparkSession) -> None:
    given: dict[str, list[Any]] = {
        "array of dates": [[0, 2**31 - 1]],
        "array of instants": [["infinity", "2020-01-01T00:00:00Z"], ["soon"]],
    }
    day, moment = date(1970, 1, 1), datetime(2020, 1, 1)
    nulled: dict[str, list[Any]] = {"array of dates": [[day, None]], "array of instants": [[None, moment], LOST]}
    clamped: dict[str, list[Any]] = {
        "array of dates": [[day, LAST.date()]],
        "array of instants": [[LAST, moment], LOST],
    }
    assert differences(found(session, SCHEMAS, given, "avro", ReadAs(out_of_range="null")), nulled, given) == []
    assert differences(found(session, SCHEMAS, given, "avro", ReadAs(out_of_range="clamp")), clamped, given) == []


NUMBERS: list[tuple[WireType, str, Any]] = [
    (WireDecimal(precision=10, scale=2), "12345678.90", Decimal("12345678.90")),
    (WireDecimal(precision=38, scale=10), "-1234567890123456789012345678.0123456789", ...),
    (WireDecimal(precision=38, scale=0), "9" * 38, Decimal("9" * 38)),
    (WireDecimal(precision=38, scale=38), "1E-38", Decimal("1E-38")),
    (WireDecimal(precision=None, scale=8), "1E-8", Decimal("0.00000001")),
    (WireDecimal(precision=5, scale=2), "1000.00", "malformed"),
    (WireBigDecimal(scale=30, shown=30), f"1.{'0' * 30}", f"1.{'0' * 30}"),
    (WireBigDecimal(scale=30, shown=30), "-1E-30", f"-0.{'0' * 29}1"),
    (WireBigDecimal(scale=0, shown=0), "-" + "9" * 38, "-" + "9" * 38),
    (WireBigDecimal(scale=30, shown=30), f"123456789.{'0' * 30}", "malformed"),
    (WireBigDecimal(scale=1000, shown=1000), "1E-1000", LOST),
    (WireBigDecimal(scale=-5, shown=0), "1.23E+45", LOST),
    (WireBigDecimal(scale=-5, shown=0, precision=15), "1.23E+7", Decimal(12300000)),
    (WireBigDecimal(scale=2046, shown=0, precision=7), f"12300.{'0' * 900}", Decimal(12300)),
    (WireList(element=WireDecimal(precision=10, scale=2)), "[1.50,null]", [Decimal("1.50"), None]),
]


@pytest.mark.parametrize("mode", ["lenient", "ansi"])
def test_decimals_as_json_numbers_are_exact_or_found_lost(session: SparkSession, mode: Mode) -> None:
    settings = ReadAs(decimal_format="numeric")
    got: dict[str, list[Any]] = {}
    for number, (wire, text, _) in enumerate(NUMBERS):
        type_ = T.StructType(
            [T.StructField("v", raw_type(wire, "json", settings)), T.StructField("bad", T.StringType())]
        )
        event = F.from_json(F.lit(f'{{"v":{text}}}'), type_, {"columnNameOfCorruptRecord": "bad"})
        raw = F.col("r.v")
        decode_ = decoder(wire, "json", settings)
        value = (raw if decode_ is None else decode_(raw)).cast(to_spark(logical_type(wire)))
        lost = does_not_convert(wire, raw, value, "json", settings)
        frame = session.range(1).select(event.alias("r"))
        columns = frame.select(F.col("r.bad").isNotNull(), F.lit(False) if lost is None else lost, value)
        bad, is_lost, shown = in_mode(session, mode, lambda columns=columns: columns.collect()[0])  # type: ignore[misc]
        got[f"{number} {text[:50]}"] = ["malformed" if bad else LOST if is_lost else shown]
    wanted = {
        f"{number} {text[:50]}": [Decimal(text) if value is ... else value]
        for number, (_, text, value) in enumerate(NUMBERS)
    }
    assert differences(got, wanted, wanted) == []


@pytest.mark.parametrize(
    "text", ['{"s":{"x":40000}}', '{"l":[1,70000]}', '{"m":{"k":70000}}', '{"m":{"k":1.5}}', '{"l":["1"]}']
)
def test_integers_out_of_their_bits_make_the_record_malformed(session: SparkSession, text: str) -> None:
    small = ConnectSchema(type="int16", optional=True)
    schemas = {
        "s": ConnectSchema(type="struct", members=(ConnectSchema(type="int16", field="x", optional=True),)),
        "l": ConnectSchema(type="array", items=small),
        "m": ConnectSchema(type="map", keys=ConnectSchema(type="string"), values=small),
    }
    members = [T.StructField(name, raw_type(wire_type(schema))) for name, schema in schemas.items()]
    type_ = T.StructType([*members, T.StructField("bad", T.StringType())])
    read = F.from_json(F.lit(text), type_, {"columnNameOfCorruptRecord": "bad"})
    assert session.range(1).select(read.getField("bad")).collect()[0][0] == text
    assert json.loads(text)
