"""Changes of members, applied one after the other, lead from one type to the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import assert_never

from cdc_sync.core.schema.members import (
    AddMember,
    DropMember,
    MemberChange,
    MoveMember,
    Path,
    RenameMember,
    UpdateKeyType,
    UpdatePartType,
    member_changes,
)
from cdc_sync.core.schema.types import INT32, INT64, STRING, DataType, Field, ListType, MapType, StructType

Members: TypeAlias = tuple[Field, ...]


def _types(depth: int, base: int) -> st.SearchStrategy[DataType]:
    """Types whose parts have ids by where they are, so that two of them have parts in common."""
    scalars: st.SearchStrategy[DataType] = st.sampled_from((INT32, INT64, STRING))
    if not depth:
        return scalars
    struct = _structs(depth, base)
    listed = struct.map(lambda inner: ListType(element_id=base + 7, element=inner))
    mapped = struct.map(lambda inner: MapType(key_id=base + 8, key=STRING, value_id=base + 9, value=inner))
    return scalars | struct | listed | mapped


def _structs(depth: int, base: int) -> st.SearchStrategy[DataType]:
    ids = st.permutations(range(1, 6)).flatmap(lambda order: st.integers(0, 5).map(lambda count: order[:count]))

    def members(chosen: list[int]) -> st.SearchStrategy[DataType]:
        # No rename: nothing derives one.
        types = st.tuples(*(_types(depth - 1, 10 * (base + id_)) for id_ in chosen))
        return types.map(
            lambda found: StructType(
                fields=tuple(
                    Field(id=base + id_, name=f"m{id_ % 4}_{id_}", type=type_)
                    for id_, type_ in zip(chosen, found, strict=True)
                )
            )
        )

    return ids.flatmap(members)


def _applied(type_: DataType, change: MemberChange) -> DataType:
    match change:
        case AddMember(parent=parent, field=field, after=after):
            return _inside(type_, parent, lambda held: _placed(held, field, after))
        case DropMember(parent=parent, field=field):
            return _inside(type_, parent, lambda held: tuple(item for item in held if item.name != field.name))
        case MoveMember(parent=parent, name=name, after=after):
            return _inside(type_, parent, lambda held: _moved(held, name, after))
        case UpdatePartType(path=path, new=new):
            return _replaced(type_, path, new)
        case RenameMember() | UpdateKeyType():
            raise AssertionError(change)
        case _:
            assert_never(change)


def _placed(held: Members, field: Field, after: str | None) -> Members:
    place = 0 if after is None else [item.name for item in held].index(after) + 1
    return (*held[:place], field, *held[place:])


def _moved(held: Members, name: str, after: str | None) -> Members:
    (field,) = (item for item in held if item.name == name)
    return _placed(tuple(item for item in held if item is not field), field, after)


def _inside(type_: DataType, path: Path, change: object) -> DataType:
    assert callable(change)
    if not path:
        assert isinstance(type_, StructType)
        return StructType(fields=change(type_.fields))
    return _at(type_, path, lambda inner, rest: _inside(inner, rest, change))


def _replaced(type_: DataType, path: Path, new: DataType) -> DataType:
    return new if not path else _at(type_, path, lambda inner, rest: _replaced(inner, rest, new))


def _at(type_: DataType, path: Path, change: object) -> DataType:
    assert callable(change)
    name, rest = path[0], path[1:]
    match type_:
        case StructType(fields=fields):
            found = (replace(item, type=change(item.type, rest)) if item.name == name else item for item in fields)
            return StructType(fields=tuple(found))
        case ListType(element=element):
            return replace(type_, element=change(element, rest))
        case MapType(value=value):
            return replace(type_, value=change(value, rest))
        case _:
            raise AssertionError(type_)


@given(_types(3, 10), _types(3, 10))
def test_the_changes_lead_from_one_type_to_the_other_in_their_order(old: DataType, new: DataType) -> None:
    found = old
    for change in member_changes(old, new):
        found = _applied(found, change)
    assert found == new
    assert member_changes(new, new) == ()
