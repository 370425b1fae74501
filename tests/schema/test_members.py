"""What changes inside a column, how it is told by ids, and what converts member by member."""

from __future__ import annotations

import pytest

from cdc_sync.core.schema.casts import always_converts, converts, keeps_apart, needs_cast
from cdc_sync.core.schema.members import (
    AddMember,
    DropMember,
    MemberChange,
    MoveMember,
    RenameMember,
    UpdateKeyType,
    UpdatePartType,
    changes_shape_only,
    member_changes,
    named_as,
    path_text,
)
from cdc_sync.core.schema.promote import reads_as
from cdc_sync.core.schema.types import (
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    DataType,
    Field,
    ListType,
    MapType,
    StructType,
    without_ids,
)


def struct(**members: tuple[int, DataType]) -> StructType:
    return StructType(fields=tuple(Field(id=id_, name=name, type=type_) for name, (id_, type_) in members.items()))


def listed(element: DataType) -> ListType:
    return ListType(element_id=90, element=element)


def mapped(value: DataType, key: DataType = STRING) -> MapType:
    return MapType(key_id=91, key=key, value_id=92, value=value)


POINT = struct(x=(1, INT32), y=(2, INT32))
Z = Field(id=3, name="z", type=STRING)
CHANGES: dict[str, tuple[StructType, tuple[MemberChange, ...]]] = {
    "nothing": (POINT, ()),
    "added last": (struct(x=(1, INT32), y=(2, INT32), z=(3, STRING)), (AddMember(parent=(), field=Z, after="y"),)),
    "added first": (struct(z=(3, STRING), x=(1, INT32), y=(2, INT32)), (AddMember(parent=(), field=Z, after=None),)),
    "dropped": (struct(y=(2, INT32)), (DropMember(parent=(), field=POINT.fields[0]),)),
    "moved": (struct(y=(2, INT32), x=(1, INT32)), (MoveMember(parent=(), name="x", after="y"),)),
    "wider": (struct(x=(1, INT64), y=(2, INT32)), (UpdatePartType(path=("x",), old=INT32, new=INT64),)),
    "renamed": (struct(z=(1, INT32), y=(2, INT32)), (RenameMember(parent=(), old="x", new="z"),)),
    "dropped and added under its name": (
        struct(x=(3, INT32), y=(2, INT32)),
        (
            DropMember(parent=(), field=POINT.fields[0]),
            AddMember(parent=(), field=Field(id=3, name="x", type=INT32), after=None),
        ),
    ),
}


@pytest.mark.parametrize(("after", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_of_members_is_told_by_their_ids(after: StructType, expected: tuple[MemberChange, ...]) -> None:
    assert member_changes(POINT, after) in (expected, _other_way(expected))


def _other_way(expected: tuple[MemberChange, ...]) -> tuple[MemberChange, ...]:
    """Of two members that change places, either one may be said to move."""
    moves = (MoveMember(parent=(), name="y", after=None),)
    return moves if any(isinstance(change, MoveMember) for change in expected) else expected


def test_paths_lead_through_lists_maps_and_structs() -> None:
    def column(inner: StructType) -> DataType:
        return struct(lines=(7, listed(mapped(inner))))

    (change,) = member_changes(column(POINT), column(struct(x=(1, INT64), y=(2, INT32))))
    assert isinstance(change, UpdatePartType)
    assert path_text("order", change.path) == "order.lines.element.value.x"


def test_another_kind_of_type_changes_whole_and_so_does_a_scalar() -> None:
    for old, new in ((POINT, STRING), (INT32, STRING), (listed(INT32), POINT)):
        assert member_changes(old, new) == (UpdatePartType(path=(), old=old, new=new),)
    inner = member_changes(listed(INT32), listed(INT64))
    assert inner == (UpdatePartType(path=("element",), old=INT32, new=INT64),)


def test_the_keys_of_a_map_change_whole() -> None:
    (change,) = member_changes(mapped(INT32, key=POINT), mapped(INT32, key=struct(x=(1, INT32))))
    assert change == UpdateKeyType(path=("key",), old=POINT, new=struct(x=(1, INT32)))


def test_members_that_come_go_or_move_are_no_other_type() -> None:
    other = struct(z=(3, STRING), y=(2, INT32))
    assert changes_shape_only(listed(POINT), listed(other))
    assert not changes_shape_only(listed(POINT), listed(struct(x=(1, INT64))))
    assert not changes_shape_only(INT32, INT64)


@pytest.mark.parametrize("around", [lambda it: it, listed, mapped], ids=["struct", "list", "map"])
def test_a_struct_converts_if_every_member_that_stays_does(around: object) -> None:
    assert callable(around)
    old = around(POINT)
    for new, there, always, apart in (
        (struct(x=(1, INT32)), True, True, False),
        (struct(y=(2, INT32), x=(1, INT32), z=(3, STRING)), True, True, True),
        (struct(x=(1, STRING), y=(2, INT32)), True, True, True),
        (struct(x=(1, INT64), y=(2, FLOAT32)), True, True, False),
        (struct(x=(1, listed(INT32)), y=(2, INT32)), False, False, False),
    ):
        found = around(new)
        assert (converts(old, found), always_converts(old, found), keeps_apart(old, found)) == (there, always, apart)
        assert needs_cast(old, found) is there
    assert not always_converts(around(struct(x=(1, STRING))), around(struct(x=(1, INT32))))
    assert not needs_cast(old, around(struct(x=(1, INT64), y=(2, INT32)))), "it widens"


def test_keys_of_maps_convert_only_if_they_stay_keys() -> None:
    assert converts(mapped(STRING, key=INT32), mapped(STRING, key=STRING))
    assert not converts(mapped(STRING, key=STRING), mapped(STRING, key=INT32))
    assert not converts(mapped(STRING, key=FLOAT64), mapped(STRING, key=FLOAT32))


def test_what_an_event_shows_is_read_by_names() -> None:
    shown = without_ids(listed(struct(y=(0, INT32), n=(0, STRING))))
    assert reads_as(shown, listed(POINT))
    assert not reads_as(shown, listed(struct(y=(2, STRING))))
    assert named_as(shown, listed(POINT)) == listed(struct(y=(2, INT32), n=(-2, STRING)))
