"""What changes inside a column: members of structs, at any depth, in elements of lists and in values of maps.

A member is known by its id, as a column is. Nothing in the events tells a member that was renamed from one that was
dropped while another one was added, so `derive` gives a new name a new id, and a rename comes from nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from cdc_sync.core.schema.order import longest_run
from cdc_sync.core.schema.types import DataType, Field, ListType, MapType, StructType

Path: TypeAlias = tuple[str, ...]
"""Names from the column, which is left out, down to a part: `element`, `key` and `value` stand for those of a list or
map. Empty for the column itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddMember:
    """A struct has a new member; `parent` leads to the struct, `after` names its left neighbour, None for the first."""

    parent: Path
    field: Field
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropMember:
    """A member of a struct and its data go."""

    parent: Path
    field: Field


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameMember:
    """A member gets another name and keeps its id and data."""

    parent: Path
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePartType:
    """A member, an element or a value gets another type, and not only other members; `path` leads to it."""

    path: Path
    old: DataType
    new: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateKeyType:
    """The keys of a map get another type, in whatever way; `path` leads to the keys."""

    path: Path
    old: DataType
    new: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveMember:
    """A member moves behind another one of its struct; None is the first place."""

    parent: Path
    name: str
    after: str | None


MemberChange: TypeAlias = AddMember | DropMember | RenameMember | UpdatePartType | UpdateKeyType | MoveMember


def member_changes(old: DataType, new: DataType) -> tuple[MemberChange, ...]:
    """Return what leads from one type to another, in an order that always works; paths are as of each change.

    Of each struct: drop, rename, what is inside, add, move. Whether a part accepts NULL does not count, nor do
    comments: no target holds them. A type that is no struct, list or map, or is another kind of them, changes whole:
    one `UpdatePartType` with an empty path.

    Law: empty for types that are equal but for that.
    """
    return tuple(_changes((), old, new))


def _changes(path: Path, old: DataType, new: DataType) -> Iterator[MemberChange]:
    parts = shared_parts(old, new)
    match old, new:
        case StructType(), StructType():
            yield from _of_struct(path, old, new)
        case _ if parts is None:
            if old != new:
                yield UpdatePartType(path=path, old=old, new=new)
        case ListType(), _:
            yield from _changes((*path, "element"), *parts[0])
        case _:
            (key, new_key), value = parts
            if member_changes(key, new_key):
                yield UpdateKeyType(path=(*path, "key"), old=key, new=new_key)
            yield from _changes((*path, "value"), *value)


def _of_struct(path: Path, old: StructType, new: StructType) -> Iterator[MemberChange]:
    before, after = ({field.id: field for field in type_.fields} for type_ in (old, new))
    for field in old.fields:
        if field.id not in after:
            yield DropMember(parent=path, field=field)
    held = [field.id for field in old.fields if field.id in after]
    for id_ in held:
        if before[id_].name != after[id_].name:
            yield RenameMember(parent=path, old=before[id_].name, new=after[id_].name)
    for id_ in held:
        yield from _changes((*path, after[id_].name), before[id_].type, after[id_].type)
    left: Field | None = None
    for field in new.fields:
        if field.id not in before:
            yield AddMember(parent=path, field=field, after=None if left is None else left.name)
            held.insert(0 if left is None else held.index(left.id) + 1, field.id)
        left = field
    staying = longest_run(held, [field.id for field in new.fields])
    left = None
    for field in new.fields:
        if field.id not in staying:
            yield MoveMember(parent=path, name=field.name, after=None if left is None else left.name)
        left = field


def shared_parts(old: DataType, new: DataType) -> tuple[tuple[DataType, DataType], ...] | None:
    """Return the types of the parts that live on: of members by id, of elements, of keys and values.

    Returns:
        None if the two are not nested types of one kind.
    """
    match old, new:
        case StructType(), StructType():
            after = {field.id: field.type for field in new.fields}
            return tuple((field.type, after[field.id]) for field in old.fields if field.id in after)
        case ListType(), ListType() if old.element_id == new.element_id:
            return ((old.element, new.element),)
        case MapType(), MapType() if (old.key_id, old.value_id) == (new.key_id, new.value_id):
            return ((old.key, new.key), (old.value, new.value))
        case _:
            return None


def changes_shape_only(old: DataType, new: DataType) -> bool:
    """Tell whether members come, go or move and none of those that stay gets another type."""
    return not any(isinstance(change, (UpdatePartType, UpdateKeyType)) for change in member_changes(old, new))


def path_text(column: str, path: Path) -> str:
    """Write where a part is, from its column on: `lines.element.qty`."""
    return ".".join((column, *path))


def named_as(shown: DataType, known: DataType) -> DataType:
    """Return a type with the ids of another one wherever the names are the same; a member it has alone has none of its.

    Args:
        shown: what an event has; its ids do not count.
        known: the tracked type that its values are to become.
    """
    match shown, known:
        case StructType(), StructType():
            names = {field.name: field for field in known.fields}
            return StructType(
                fields=tuple(
                    replace(field, id=names[field.name].id, type=named_as(field.type, names[field.name].type))
                    if field.name in names
                    else replace(field, id=-place)
                    for place, field in enumerate(shown.fields, 1)
                )
            )
        case ListType(), ListType():
            return replace(shown, element_id=known.element_id, element=named_as(shown.element, known.element))
        case MapType(), MapType():
            return replace(
                shown,
                key_id=known.key_id,
                key=named_as(shown.key, known.key),
                value_id=known.value_id,
                value=named_as(shown.value, known.value),
            )
        case _:
            return shown
