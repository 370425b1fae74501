"""Changes inside a column of a Delta table that its metadata can tell: members are mapped, as columns are; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
)
from cdc_sync.errors import TargetError
from cdc_sync.targets.delta.fields import Field, moved, new_field, placed, replaced, without

_PARTS = {"element": "elementType", "value": "valueType"}


def changed_inside(column: Field, changes: Sequence[MemberChange]) -> Field:
    """Return a column after changes inside it, in which every other part keeps the name that data files have for it."""
    for change in changes:
        column = _changed(column, change)
    return column


def _changed(column: Field, change: MemberChange) -> Field:
    match change:
        case AddMember(parent=parent, field=field, after=after):
            new = new_field(field.name, field.type, None)
            return _at(column, parent, lambda members: placed(members, new, after))
        case DropMember(parent=parent, field=field):
            return _at(column, parent, lambda members: without(members, field.name))
        case MoveMember(parent=parent, name=name, after=after):
            return _at(column, parent, lambda members: moved(members, name, after))
        case UpdatePartType():
            return column  # within 32 bits, which is one type there
        case RenameMember() | UpdateKeyType():
            raise TargetError(f"Cannot change column {column['name']!r}: {change} is not done in place")
        case _:
            assert_never(change)


def _at(column: Field, parent: Path, change: Callable[[list[Field]], list[Field]]) -> Field:
    return {**column, "type": _of_type(column["type"], parent, change)}


def _of_type(type_: Any, path: Path, change: Callable[[list[Field]], list[Field]]) -> Any:
    """Return a type as Delta writes it, the members of the struct at a path changed."""
    if not path:
        return {**type_, "fields": change(type_["fields"])}
    name, *rest = path
    if type_["type"] == "struct":
        fields = replaced(type_["fields"], name, lambda field: _at(field, tuple(rest), change))
        return {**type_, "fields": fields}
    return {**type_, _PARTS[name]: _of_type(type_[_PARTS[name]], tuple(rest), change)}
