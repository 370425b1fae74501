"""What is said of a payload that does not fit its own schema."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.conversions import EventSchema, wire_column
from cdc_sync.core.debezium.misfits import misfit
from cdc_sync.testing import BYTES, INT32, TEXT, array, column, decimal, struct

_COLUMNS = (
    column("id", INT32, optional=False),
    column("a", decimal(5, 2)),
    column("b", BYTES),
    column("n", ConnectSchema(type="int16")),
    column("l", array(decimal(5, 2))),
    column("s", struct("p", column("x", TEXT))),
    column("big", decimal(65, 30)),
)
SCHEMA = EventSchema(
    columns=tuple(map(wire_column, _COLUMNS)), key=("id",), record_key=("id",), envelope_name="t.Envelope"
)


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
