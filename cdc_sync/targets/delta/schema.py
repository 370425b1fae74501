"""Schema changes on the schema as a Delta table's metadata holds it; pure.

`fields` has what a field is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import assert_never

from cdc_sync.core.migration.capabilities import DELTA, can_change_in_place
from cdc_sync.core.migration.modes import METADATA, Mode
from cdc_sync.core.schema.changes import (
    AddColumn,
    ChangePrimaryKey,
    DropColumn,
    JoinColumn,
    MoveColumn,
    RenameColumn,
    RetireColumn,
    ReviveColumn,
    SchemaChange,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
)
from cdc_sync.core.schema.internal import InternalSchema
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
from cdc_sync.core.schema.types import NESTED
from cdc_sync.errors import TargetError
from cdc_sync.targets.delta.fields import Field, commented, delta_type, moved, new_field, placed, replaced, without

_MAPPED = replace(DELTA, rewritten=DELTA.rewritten - {AddMember})
"""What names that are mapped can tell. Members come by a rewrite, and all others keep the names that files have for
them: states of before are read by those."""
_PARTS = {"element": "elementType", "value": "valueType"}


def new_fields(schema: InternalSchema, mode: Mode) -> list[Field]:
    """Return the fields of a table that is to be made; every column is optional."""
    metadata = METADATA if mode == "append" else ()
    return [
        *(new_field(column.name, column.type, column.comment) for column in schema.columns),
        *(new_field(label, type_, None) for label, type_ in metadata),
    ]


def altered(fields: Sequence[Field], steps: Sequence[tuple[InternalSchema, SchemaChange]]) -> list[Field]:
    """Return the fields after the changes; a column whose type Delta cannot change is another one afterwards."""
    found = list(fields)
    for before, change in steps:
        found = _changed(found, before, change)
    return found


def _changed(fields: list[Field], before: InternalSchema, change: SchemaChange) -> list[Field]:
    match change:
        case AddColumn(column=column, after=after):
            return placed(fields, new_field(column.name, column.type, column.comment), _name(before, after))
        case DropColumn(column=column) | JoinColumn(column=column):
            return without(fields, column.name)
        case RenameColumn(old=old, new=new):
            return replaced(fields, old, lambda field: {**field, "name": new})
        case UpdateColumnType(id=id_, old=old_type, new=new_type):
            column = before.column(id_)
            if can_change_in_place(_MAPPED, old_type, new_type):
                changes = member_changes(old_type, new_type)
                return replaced(fields, column.name, lambda field: changed_inside(field, changes))
            if delta_type(old_type) == delta_type(new_type) and not isinstance(new_type, NESTED):
                return fields
            return replaced(fields, column.name, lambda _: new_field(column.name, new_type, column.comment))
        case UpdateColumnComment(id=id_, new=comment):
            return replaced(fields, before.column(id_).name, lambda field: commented(field, comment))
        case MoveColumn(id=id_, new_after=after):
            return moved(fields, before.column(id_).name, _name(before, after))
        case UpdateColumnNullability() | UpdateColumnDefault() | RetireColumn() | ReviveColumn() | ChangePrimaryKey():
            return fields  # recorded in the history; every target column stays optional
        case _:
            assert_never(change)


def _name(before: InternalSchema, id_: int | None) -> str | None:
    return None if id_ is None else before.column(id_).name


def changed_inside(column: Field, changes: Sequence[MemberChange]) -> Field:
    """Return a column after changes inside it, in which every other part keeps the name that data files have for it."""
    for change in changes:
        column = _member_changed(column, change)
    return column


def _member_changed(column: Field, change: MemberChange) -> Field:
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
