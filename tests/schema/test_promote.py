"""Promotion as a full matrix, and the rules for nested types one by one."""

from __future__ import annotations

from pathlib import Path

from cdc_sync.core.schema.promote import can_promote, common_type
from cdc_sync.core.schema.serde import type_to_json
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

GOLDEN = Path(__file__).parent / "golden" / "promotions.txt"
DECIMALS = tuple(
    DecimalType(precision=precision, scale=scale)
    for precision, scale in ((3, 0), (5, 2), (7, 2), (7, 4), (10, 0), (19, 0), (21, 2), (38, 0), (38, 20))
)
TYPES: tuple[DataType, ...] = (
    BOOLEAN,
    INT8,
    INT16,
    INT32,
    INT64,
    FLOAT32,
    FLOAT64,
    *DECIMALS,
    STRING,
    BINARY,
    DATE,
    TIMESTAMP,
    TIMESTAMP_TZ,
)


def matrix() -> str:
    """Each line: a type, what it promotes to besides itself, and its common type with all others that have one."""
    lines = ["Written by tests/schema/test_promote.py. One block for each type: what it promotes to without loss, and"]
    lines += ["the smallest type that it and another type both promote to, where that is neither of the two.", ""]
    for old in TYPES:
        promotes = [str(type_to_json(new)) for new in TYPES if new != old and can_promote(old, new)]
        lines.append(f"{type_to_json(old)} -> {' '.join(promotes) or 'nothing else'}")
        for other in TYPES:
            common = common_type(old, other)
            if common is not None and common not in (old, other):
                lines.append(f"    with {type_to_json(other)}: {type_to_json(common)}")
    return "\n".join(lines) + "\n"


def test_the_whole_matrix_is_as_recorded() -> None:
    assert matrix() == GOLDEN.read_text(), "if the change is meant: python -m tests.schema.test_promote"


def list_of(element: DataType, *, id_: int = 2, optional: bool = True) -> ListType:
    return ListType(element_id=id_, element=element, element_optional=optional)


def map_to(value: DataType, *, key: DataType = STRING, optional: bool = True, id_: int = 2) -> MapType:
    return MapType(key_id=id_, key=key, value_id=3, value=value, value_optional=optional)


def struct_of(type_: DataType, *, name: str = "x", optional: bool = True, comment: str | None = None) -> StructType:
    return StructType(fields=(Field(id=2, name=name, type=type_, optional=optional, comment=comment),))


def test_nested_types_promote_member_by_member() -> None:
    assert can_promote(list_of(INT32), list_of(INT64))
    assert can_promote(map_to(INT32, key=INT8), map_to(INT64, key=INT16))
    assert can_promote(struct_of(INT32), struct_of(INT64))
    assert not can_promote(list_of(INT64), list_of(INT32))
    assert not can_promote(map_to(INT32, key=INT16), map_to(INT32, key=INT8))
    assert not can_promote(struct_of(INT64), struct_of(INT32))


def test_members_may_begin_to_accept_null_but_never_cease_to() -> None:
    assert can_promote(list_of(INT32, optional=False), list_of(INT32))
    assert not can_promote(list_of(INT32), list_of(INT32, optional=False))
    assert not can_promote(map_to(INT32), map_to(INT32, optional=False))
    assert not can_promote(struct_of(INT32), struct_of(INT32, optional=False))


def test_members_with_other_ids_or_names_are_other_members() -> None:
    assert not can_promote(list_of(INT32), list_of(INT32, id_=9))
    assert not can_promote(map_to(INT32), map_to(INT32, id_=9))
    assert not can_promote(struct_of(INT32), struct_of(INT32, name="y"))
    assert not can_promote(struct_of(INT32), StructType(fields=()))


def test_the_common_type_of_nested_types_is_found_member_by_member() -> None:
    assert common_type(list_of(INT8, optional=False), list_of(INT16)) == list_of(INT16)
    assert common_type(map_to(INT8), map_to(INT16, optional=False)) == map_to(INT16)
    assert common_type(struct_of(INT8, optional=False), struct_of(INT16)) == struct_of(INT16)


def test_nested_types_with_unlike_members_have_no_common_type() -> None:
    assert common_type(list_of(INT8), list_of(STRING)) is None
    assert common_type(list_of(INT8), list_of(INT8, id_=9)) is None
    assert common_type(map_to(INT8), map_to(STRING)) is None
    assert common_type(struct_of(INT8), struct_of(STRING)) is None
    assert common_type(struct_of(INT8), struct_of(INT8, name="y")) is None
    assert common_type(struct_of(INT8), StructType(fields=())) is None
    assert common_type(struct_of(INT8), list_of(INT8)) is None


def test_comments_do_not_hinder_and_only_a_shared_one_stays() -> None:
    assert can_promote(struct_of(INT8, comment="old"), struct_of(INT8, comment="new"))
    assert common_type(struct_of(INT8, comment="old"), struct_of(INT8, comment="new")) == struct_of(INT8)
    assert common_type(struct_of(INT8, comment="same"), struct_of(INT16, comment="same")) == struct_of(
        INT16, comment="same"
    )


if __name__ == "__main__":
    GOLDEN.write_text(matrix())
