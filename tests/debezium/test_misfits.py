"""What is said of a payload that does not fit its own schema."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.conversions import wire_column
from cdc_sync.core.debezium.misfits import misfit
from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.testing import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    TEXT,
    TIMESTAMP,
    TIMESTAMP_TZ,
    array,
    column,
    decimal,
    struct,
)

MAP = ConnectSchema(type="map", keys=TEXT, values=TEXT)
VARIABLE = struct("io.debezium.data.VariableScaleDecimal", column("scale", INT32), column("value", BYTES))
BITS = ConnectSchema(type="bytes", name="io.debezium.data.Bits", version=1, parameters={"length": "8"})

_COLUMNS = (
    column("id", INT32, optional=False),
    column("a", decimal(5, 2)),
    column("b", BYTES),
    column("n", ConnectSchema(type="int16")),
    column("l", array(decimal(5, 2))),
    column("s", struct("p", column("x", TEXT))),
    column("big", decimal(65, 30)),
)
SCHEMA = EventSchema(columns=tuple(map(wire_column, _COLUMNS)), key=("id",), record_key=("id",))


def said(**row: object) -> str | None:
    return misfit({"op": "c", "after": {"id": 1, **row}}, SCHEMA, None)


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ({"id": "one"}, "after.id is a text where its schema says int32"),
        ({"a": Decimal("1000.00")}, "after.a is a number where its schema says a decimal of 5 digits, 2 behind"),
        ({"big": Decimal("1e9")}, "decimal.format=NUMERIC"),
        ({"a": "1.50"}, "after.a is a text where its schema says a decimal: bytes are base64"),
        ({"l": ["AQ==", {}]}, "after.l[] is an object where its schema says a decimal"),
        ({"l": "AQ=="}, "after.l is a text where its schema says an array"),
        ({"s": {"x": 5}}, "after.s.x is a whole number where its schema says a text"),
        ({"s": [1]}, "after.s is an array where its schema says a struct"),
        ({"b": "hex:0"}, "after.b is a text where its schema says bytes"),
        ({"n": 40000}, "after.n is a whole number where its schema says int16: it has no place there"),
        ({"n": True}, "after.n is true or false where its schema says int16"),
    ],
)
def test_the_field_what_stands_there_and_what_explains_it(row: dict[str, object], part: str) -> None:
    found = said(**row)
    assert found is not None
    assert part in found


def test_what_fits_is_no_reason() -> None:
    assert said(a="AQ==", b="AQ==", n=-32768, l=["AQ==", None], s={"x": "t"}, big="AQ==") is None
    assert said(a=Decimal("999.99"), l=[Decimal(0), 1], big=Decimal("1E-30")) is None
    assert said(a=None) is None
    assert said(a=Decimal("12.3")) is None


def test_the_row_before_the_change_and_the_envelope_count_too() -> None:
    assert "before.id is a text" in str(misfit({"op": "d", "before": {"id": "x"}, "after": None}, SCHEMA, None))
    assert "after is a text" in str(misfit({"op": "c", "after": "x"}, SCHEMA, None))
    assert "op is missing" in str(misfit({"after": {"id": 1}}, SCHEMA, None))


OTHERS = (
    ("flag", BOOLEAN, True, [(1, "a whole number where its schema says true or false")]),
    ("rate", FLOAT64, "NaN", [("many", "a text where its schema says a number"), (True, "true or false where")]),
    (
        "day",
        DATE,
        19000,
        [("2020-01-01", "a text where its schema says int32"), (2**31, "int32: it has no place there")],
    ),
    ("at", TIMESTAMP, 1, [(Decimal("1.5"), "a number where its schema says int64"), (2**63, "no place there")]),
    ("zoned", TIMESTAMP_TZ, "2020-01-01T00:00:00Z", [(5, "a whole number where its schema says a text")]),
    ("tags", MAP, {"a": "x"}, [("a=x", "a text where its schema says a map"), ({"a": 1}, "tags{} is a whole number")]),
    ("any", VARIABLE, {"scale": 0, "value": "AQ=="}, [("5", "a text where its schema says")]),
    ("mask", BITS, "AQ==", [(5, "a whole number where its schema says bytes")]),
)


@pytest.mark.parametrize(("name", "schema", "fits", "others"), OTHERS)
def test_every_kind_of_value_is_told_from_others(
    name: str, schema: ConnectSchema, fits: object, others: list[tuple[object, str]]
) -> None:
    columns = (wire_column(column("id", INT32, optional=False)), wire_column(column(name, schema)))
    known = EventSchema(columns=columns, key=("id",), record_key=("id",))
    assert misfit({"op": "c", "after": {"id": 1, name: fits}}, known, None) is None
    for value, part in others:
        assert part in (misfit({"op": "c", "after": {"id": 1, name: value}}, known, None) or "")
