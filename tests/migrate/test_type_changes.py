"""What becomes of a column whose type changed: the matrix, and the page that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_sync.core.migration.capabilities import ICEBERG, can_change_in_place
from cdc_sync.core.migration.typechange import InPlace, Rewrite, SideColumn, Stop, TypeChange, decide_type_change
from cdc_sync.core.schema.casts import Cast, always_converts, cast_between, keeps_apart
from cdc_sync.core.schema.policy import IncompatibleTypes
from cdc_sync.core.schema.promote import can_promote
from cdc_sync.core.schema.types import (
    DATE,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
    ListType,
)
from scripts.pages.type_changes import TYPES, render

PAIRS = [(old, new) for _, old in TYPES for _, new in TYPES]
NUMERIC = DecimalType(precision=10, scale=2)
INTS = ListType(element_id=9, element=INT32)


def decide(old: DataType, new: DataType, policy: IncompatibleTypes = "rewrite", *, key: bool = False) -> TypeChange:
    return decide_type_change(ICEBERG, policy, old, new, identifies=key)


def test_the_page_about_type_changes_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "type-changes.md"
    said = "run: python -m scripts.pages.type_changes > docs/type-changes.md"
    assert page.read_text() == render(), said


def test_what_changes_in_place_is_never_rewritten_and_all_else_needs_a_cast_or_a_side_column() -> None:
    for old, new in PAIRS:
        decided = decide(old, new)
        assert isinstance(decided, InPlace) == can_change_in_place(ICEBERG, old, new)
        if isinstance(decided, SideColumn):
            assert cast_between(old, new) is None
            assert not can_promote(old, new)


@pytest.mark.parametrize(
    ("old", "new", "cast"),
    [
        (INT32, STRING, Cast.INTEGER_TO_TEXT),
        (STRING, INT32, Cast.TEXT_TO_INTEGER),
        (INT64, INT16, Cast.INTEGER_TO_INTEGER),
        (FLOAT64, NUMERIC, Cast.FLOAT_TO_DECIMAL),
        (TIMESTAMP, DATE, Cast.TIMESTAMP_TO_DATE),
    ],
)
def test_a_cast_for_each_kind(old: DataType, new: DataType, cast: Cast) -> None:
    assert decide(old, new) == Rewrite(cast=cast)
    assert isinstance(decide(old, new, "side_column"), SideColumn)
    assert isinstance(decide(old, new, "pause"), Stop)


def test_types_without_a_conversion_stand_side_by_side() -> None:
    assert isinstance(decide(INTS, STRING), SideColumn)
    assert isinstance(decide(INT32, DATE), SideColumn)
    assert isinstance(decide(INTS, STRING, "pause"), Stop)


def test_a_key_is_rewritten_only_if_rows_stay_found() -> None:
    assert decide(INT32, STRING, key=True) == Rewrite(cast=Cast.INTEGER_TO_TEXT)
    assert isinstance(decide(STRING, INT32, key=True), Stop)
    assert isinstance(decide(TIMESTAMP, DATE, key=True), Stop)
    assert isinstance(decide(INT32, STRING, "side_column", key=True), Stop)
    assert decide(INT32, INT64, key=True) == InPlace()


def test_every_cast_has_a_rule_and_stands_in_the_table_of_casts() -> None:
    used = {cast_between(old, new) for old, new in PAIRS}
    assert set(Cast) <= used
    assert all(cast.rule for cast in Cast)


def test_whether_every_value_has_a_place_depends_on_digits_too() -> None:
    assert always_converts(INT32, DecimalType(precision=12, scale=2))
    assert not always_converts(INT32, DecimalType(precision=11, scale=2))
    assert always_converts(NUMERIC, DecimalType(precision=10, scale=1))
    assert not always_converts(NUMERIC, DecimalType(precision=9, scale=1))
    assert keeps_apart(INT64, NUMERIC)
    assert not keeps_apart(NUMERIC, DecimalType(precision=10, scale=1))
