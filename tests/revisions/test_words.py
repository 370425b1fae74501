"""Types and values as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.schema.type_words import parse_type
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    Field,
    ListType,
    MapType,
    StructType,
)
from cdc_sync.core.schema.values import Written, canonical_value
from cdc_sync.errors import SchemaError

PLAIN = [BOOLEAN, INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, STRING, BINARY, DATE]
DECIMALS = st.integers(1, 38).flatmap(
    lambda digits: st.builds(DecimalType, precision=st.just(digits), scale=st.integers(0, digits))
)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)


def _nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.lists(st.tuples(NAMES, inner), min_size=1, max_size=3, unique_by=lambda item: item[0])
    return st.one_of(
        st.builds(ListType, element_id=st.just(0), element=inner),
        st.builds(MapType, key_id=st.just(0), key=inner, value_id=st.just(0), value=inner),
        fields.map(lambda found: StructType(fields=tuple(Field(id=0, name=name, type=type_) for name, type_ in found))),
    )


@given(st.recursive(st.one_of(st.sampled_from(PLAIN), DECIMALS), _nested, max_leaves=6))
def test_a_type_is_read_as_every_report_writes_it(type_: DataType) -> None:
    assert parse_type(type_text(type_)) == type_
    assert parse_type(type_text(type_).lower()) == type_


def test_members_may_have_any_name_in_backticks() -> None:
    found = parse_type("struct<`a b`: int, `c``>`: array<timestamptz>>")

    assert isinstance(found, StructType)
    assert [(field.name, field.type) for field in found.fields] == [
        ("a b", INT32),
        ("c`>", ListType(element_id=0, element=TIMESTAMP_TZ)),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("timestamp", "timestamptz (an instant) or timestamp_ntz (a local date and time)"),
        ("array<timestamp>", "timestamptz (an instant) or timestamp_ntz"),
        ("int not null", "not 'int not null', wrong from 'not null' on"),
        ("int)", "wrong from ')' on"),
        ("int; DROP TABLE x", "wrong from '; DROP TABLE x' on"),
        ("decimal(18;2)", "wrong from ';2)' on"),
        ("decimal(18, 200)", "wrong from"),
        ("decimal", "must be a type (boolean"),
        ("decimal(39, 2)", "must have 1 to 38 digits"),
        ("decimal(0, 0)", "must have 1 to 38 digits"),
        ("decimal(5, 6)", "must have 1 to 38 digits"),
        ("varchar(10)", "must be a type (boolean"),
        ("struct<>", "wrong from '>' on"),
        ("struct<a: int, a: int>", "has two members 'a'"),
        ("map<string>", "wrong from '>' on"),
        ("", "not ''"),
        ("array<" * 60 + "int" + ">" * 60, "is nested too deeply"),
    ],
)
def test_what_is_no_type_is_refused_with_where(text: str, said: str) -> None:
    with pytest.raises(SchemaError) as found:
        parse_type(text)

    assert said in str(found.value)


@pytest.mark.parametrize(
    ("value", "type_", "canonical"),
    [
        (None, INT32, None),
        (True, BOOLEAN, True),
        (127, INT8, 127),
        (3, FLOAT64, 3.0),
        (1.5, DecimalType(precision=10, scale=2), "1.50"),
        ("-1.5", DecimalType(precision=2, scale=1), "-1.5"),
        (7, DecimalType(precision=3, scale=2), "7.00"),
        ("x", STRING, "x"),
        ("CAFE", BINARY, "cafe"),
        ("2024-02-29", DATE, "2024-02-29"),
        ("2024-02-29 12:00:00", TIMESTAMP, "2024-02-29T12:00:00"),
        ("2024-02-29T12:00:00.500000", TIMESTAMP, "2024-02-29T12:00:00.500000"),
        ("2024-02-29T12:00:00Z", TIMESTAMP_TZ, "2024-02-29T12:00:00Z"),
        ("2024-02-29T12:00:00+02:00", TIMESTAMP_TZ, "2024-02-29T10:00:00Z"),
    ],
)
def test_a_value_is_canonical_for_its_type(value: Written, type_: DataType, canonical: Written) -> None:
    found = canonical_value(value, type_)

    assert (found, type(found)) == (canonical, type(canonical))


@pytest.mark.parametrize(
    ("value", "type_", "said"),
    [
        (1, BOOLEAN, "must be true or false, not 1"),
        (True, INT32, "must be a whole number of 32 bits, not True"),
        (128, INT8, "must be a whole number of 8 bits, not 128"),
        ("5", INT32, "must be a whole number of 32 bits, not '5'"),
        (float("inf"), FLOAT32, "must be a number"),
        ("1.555", DecimalType(precision=10, scale=2), "at most 10 digits, 2 of them behind the point"),
        (100, DecimalType(precision=3, scale=2), "at most 3 digits"),
        ("NaN", DecimalType(precision=3, scale=2), "at most 3 digits"),
        ("one", DecimalType(precision=3, scale=2), "at most 3 digits"),
        (5, STRING, "must be text, in quotes where it looks like something else, not 5"),
        ("xyz", BINARY, "must be bytes, as hexadecimal digits"),
        ("2023-02-29", DATE, "must be a day such as 2020-01-31"),
        ("2024-02-29T12:00:00Z", TIMESTAMP, "must be a time without a zone"),
        ("2024-02-29T12:00:00", TIMESTAMP_TZ, "must be a time with its zone"),
        ("x", ListType(element_id=0, element=STRING), "must be left out, or null"),
    ],
)
def test_a_value_of_another_type_is_refused(value: Written, type_: DataType, said: str) -> None:
    with pytest.raises(SchemaError) as found:
        canonical_value(value, type_)

    assert said in str(found.value)
