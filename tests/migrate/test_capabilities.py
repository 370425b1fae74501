"""What formats change in place: the whole matrix, and its members."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from cdc_sync.migrate.capabilities import ICEBERG, MEMORY, Capabilities, Promotion, can_change_in_place, can_compare
from cdc_sync.schema.types import (
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

D10_2, D12_2, D12_3 = (DecimalType(precision=p, scale=s) for p, s in ((10, 2), (12, 2), (12, 3)))
SCALARS: dict[str, DataType] = {
    "boolean": BOOLEAN,
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "float": FLOAT32,
    "double": FLOAT64,
    "decimal(10,2)": D10_2,
    "decimal(12,2)": D12_2,
    "decimal(12,3)": D12_3,
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMP_TZ,
}
IN_PLACE = {
    "int8": {"int16", "int32", "int64"},
    "int16": {"int32", "int64"},
    "int32": {"int64"},
    "float": {"double"},
    "decimal(10,2)": {"decimal(12,2)"},
}
"""Iceberg spec, "Schema Evolution"; 8 and 16 bit integers are int there."""
NOTHING = Capabilities(format="none", promotions=frozenset())


@pytest.mark.parametrize("old", SCALARS)
def test_scalars(old: str) -> None:
    wanted = {old} | IN_PLACE.get(old, set())
    for format_ in (ICEBERG, MEMORY):
        assert {new for new in SCALARS if can_change_in_place(format_, SCALARS[old], SCALARS[new])} == wanted
    assert {new for new in SCALARS if can_change_in_place(NOTHING, SCALARS[old], SCALARS[new])} == {old}


@pytest.mark.parametrize(
    ("promotion", "old", "new"),
    [
        (Promotion.WITHIN_INT32, INT8, INT32),
        (Promotion.INT32_TO_INT64, INT8, INT64),
        (Promotion.INT32_TO_INT64, INT32, INT64),
        (Promotion.FLOAT_TO_DOUBLE, FLOAT32, FLOAT64),
        (Promotion.DECIMAL_PRECISION, D10_2, D12_2),
    ],
)
def test_each_change_needs_its_own_promotion(promotion: Promotion, old: DataType, new: DataType) -> None:
    assert can_change_in_place(replace(NOTHING, promotions=frozenset({promotion})), old, new)
    assert not can_change_in_place(replace(NOTHING, promotions=frozenset(Promotion) - {promotion}), old, new)


def list_of(type_: DataType) -> DataType:
    return ListType(element_id=1, element=type_)


def map_to(type_: DataType) -> DataType:
    return MapType(key_id=1, key=STRING, value_id=2, value=type_)


def struct_of(type_: DataType, *, id_: int = 1, name: str = "x") -> DataType:
    return StructType(fields=(Field(id=id_, name=name, type=type_),))


def test_members_change_as_columns_do() -> None:
    for outer, (old, new) in product((list_of, map_to, struct_of), product(SCALARS.values(), repeat=2)):
        assert can_change_in_place(ICEBERG, outer(old), outer(new)) == can_change_in_place(ICEBERG, old, new)


def test_the_members_themselves_must_stay() -> None:
    assert not can_change_in_place(ICEBERG, struct_of(INT32), struct_of(INT32, name="y"))
    assert not can_change_in_place(ICEBERG, struct_of(INT32), struct_of(INT32, id_=2))
    assert not can_change_in_place(ICEBERG, struct_of(INT32), StructType(fields=()))
    keyed = MapType(key_id=1, key=INT32, value_id=2, value=STRING)
    assert not can_change_in_place(ICEBERG, keyed, replace(keyed, key=INT64))
    assert not can_change_in_place(ICEBERG, list_of(INT32), INT32)


@pytest.mark.parametrize("scalar", SCALARS.values(), ids=SCALARS.keys())
def test_all_but_maps_can_be_compared(scalar: DataType) -> None:
    map_ = MapType(key_id=1, key=STRING, value_id=2, value=scalar)
    for type_, comparable in ((scalar, True), (map_, False)):
        inside = StructType(fields=(Field(id=3, name="a", type=INT8), Field(id=4, name="b", type=type_)))
        for found in (type_, inside, ListType(element_id=5, element=type_), ListType(element_id=5, element=inside)):
            assert can_compare(found) == comparable
