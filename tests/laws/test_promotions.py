"""Laws of type promotion: an order, and its smallest common upper bound."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdc_sync.core.schema.promote import can_promote, common_type
from cdc_sync.core.schema.types import INT32, INT64, DataType, DecimalType, ListType, MapType, StructType
from tests.laws.strategies import SCALARS, TYPES, types

law = settings(max_examples=150, deadline=None, derandomize=False)


def without_comments(type_: DataType) -> DataType:
    match type_:
        case StructType(fields=fields):
            return StructType(
                fields=tuple(replace(field, comment=None, type=without_comments(field.type)) for field in fields)
            )
        case ListType(element=element):
            return replace(type_, element=without_comments(element))
        case MapType(key=key, value=value):
            return replace(type_, key=without_comments(key), value=without_comments(value))
        case _:
            return type_


def test_promotion_of_scalars_is_a_partial_order() -> None:
    for a in SCALARS:
        assert can_promote(a, a)
        for b in SCALARS:
            assert a == b or not (can_promote(a, b) and can_promote(b, a))
            for c in SCALARS:
                assert can_promote(a, c) or not (can_promote(a, b) and can_promote(b, c))


def test_the_common_type_of_scalars_is_their_smallest_upper_bound() -> None:
    for a in SCALARS:
        for b in SCALARS:
            upper = [c for c in SCALARS if can_promote(a, c) and can_promote(b, c)]
            common = common_type(a, b)
            assert common is not None or not upper
            if common is not None:
                assert can_promote(a, common)
                assert can_promote(b, common)
                assert all(can_promote(common, c) for c in upper)


def test_the_common_type_of_three_does_not_depend_on_the_order() -> None:
    for a, b, c in product(TYPES, repeat=3):
        left, right = common_type(a, b), common_type(b, c)
        assert (common_type(left, c) if left else None) == (common_type(a, right) if right else None)


@law
@given(types, types, types)
@example(INT64, DecimalType(precision=38, scale=20), INT32)
def test_common_type_is_commutative_associative_and_idempotent(a: DataType, b: DataType, c: DataType) -> None:
    left, right = common_type(a, b), common_type(b, c)
    assert left == common_type(b, a)
    assert common_type(a, a) == a
    assert (common_type(left, c) if left else None) == (common_type(a, right) if right else None)


@law
@given(types, types)
def test_both_types_widen_to_their_common_type(a: DataType, b: DataType) -> None:
    common = common_type(a, b)
    assert can_promote(a, a)
    if common is not None:
        assert can_promote(a, common)
        assert can_promote(b, common)
    if can_promote(a, b):
        assert common is not None
        assert without_comments(common) == without_comments(b)
    if can_promote(a, b) and can_promote(b, a):
        assert without_comments(a) == without_comments(b)


@law
@given(st.lists(st.tuples(st.integers(1, 38), st.integers(0, 38)), min_size=3, max_size=3))
def test_promotion_of_decimals_is_transitive(digits: list[tuple[int, int]]) -> None:
    a, b, c = (DecimalType(precision=precision, scale=min(precision, scale)) for precision, scale in digits)
    assert can_promote(a, c) or not (can_promote(a, b) and can_promote(b, c))
    common = common_type(a, b)
    if common is not None and can_promote(a, c) and can_promote(b, c):
        assert can_promote(common, c)
