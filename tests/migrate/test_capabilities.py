"""What formats change in place: the whole matrix, and its members."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from cdc_sync.core.migration.capabilities import (
    HUDI,
    HUDI_ON_READ,
    ICEBERG,
    MEMORY,
    Capabilities,
    Promotion,
    can_change_in_place,
    can_compare,
)
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.internal import Column, InternalSchema
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


HELD = InternalSchema(
    columns=(
        Column(id=1, name="id", type=INT64),
        Column(id=2, name="a", type=INT32),
        Column(id=3, name="b", type=STRING),
    ),
    primary_key=(1,),
    last_column_id=3,
)
ID, A, B = HELD.columns
NEW = Column(id=4, name="n", type=STRING)
CHANGED: dict[str, tuple[InternalSchema, bool]] = {
    "nothing": (HELD, False),
    "a column at the end": (replace(HELD, columns=(ID, A, B, NEW), last_column_id=4), False),
    "two at the end": (
        replace(HELD, columns=(ID, A, B, NEW, Column(id=5, name="m", type=STRING)), last_column_id=5),
        False,
    ),
    "a column in the middle": (replace(HELD, columns=(ID, NEW, A, B), last_column_id=4), True),
    "one of two in the middle": (
        replace(HELD, columns=(ID, NEW, A, B, Column(id=5, name="m", type=STRING)), last_column_id=5),
        True,
    ),
    "a column that is only kept": (replace(HELD, columns=(ID, replace(A, retired=True), B)), False),
    "wider": (replace(HELD, columns=(ID, replace(A, type=INT64), B)), False),
    "another type": (replace(HELD, columns=(ID, replace(A, type=STRING), B)), True),
    "a name": (replace(HELD, columns=(ID, replace(A, name="c"), B)), True),
    "a place": (replace(HELD, columns=(ID, B, A)), True),
    "fewer columns": (replace(HELD, columns=(ID, B)), True),
    "another key": (replace(HELD, primary_key=(2,)), True),
}


@pytest.mark.parametrize(("after", "expected"), CHANGED.values(), ids=CHANGED.keys())
def test_what_readers_that_find_columns_by_name_in_old_files_do_not_take_is_rewritten(
    after: InternalSchema, expected: bool
) -> None:
    assert rewrites(diff(HELD, after), HUDI, after) is expected


@pytest.mark.parametrize(("name", "after"), [(name, after) for name, (after, _) in CHANGED.items()], ids=CHANGED.keys())
def test_where_columns_are_found_by_ids_only_another_kind_of_type_and_another_key_are_rewritten(
    name: str, after: InternalSchema
) -> None:
    assert rewrites(diff(HELD, after), HUDI_ON_READ, after) is (name in ("another type", "another key"))


def test_a_changelog_has_its_own_columns_behind_every_new_one_anyway() -> None:
    after, _ = CHANGED["a column in the middle"]
    assert not rewrites(diff(HELD, after), HUDI, after, "append")


def test_the_parts_of_a_column_are_not_widened_in_place_where_a_reader_fails_at_it() -> None:
    before, after = (ListType(element_id=4, element=element) for element in (INT32, INT64))
    assert can_change_in_place(ICEBERG, before, after)
    assert not can_change_in_place(HUDI, before, after)
    assert not can_change_in_place(HUDI_ON_READ, before, after)
    assert can_change_in_place(HUDI, before, before)
