"""Actions on what is inside a column: a member of a struct, at any depth, by its path.

A path is written as Spark's SQL writes it: `address.city`, `lines.element.qty` in a list of structs, `tags.value.x` in
a map. A name that has a dot itself is quoted: `` `a.b`.c ``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.revisions.actions import (
    AddColumn,
    CastColumn,
    ColumnAction,
    CommentColumn,
    DropColumn,
    MoveColumn,
    Place,
    RenameColumn,
)
from cdc_sync.core.schema.casts import converts
from cdc_sync.core.schema.changes import UpdateColumnType
from cdc_sync.core.schema.derive import with_ids
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import DataType, Field, ListType, MapType, StructType
from cdc_sync.errors import SchemaError

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def parse_path(text: str) -> tuple[str, ...]:
    """Return the names that lead to a column, or to a part of one.

    Raises:
        SchemaError: if it is no path; the message continues "it ".
    """
    parts, at = [], 0
    while True:
        found = _PART.match(text, at)
        if found is None:
            break
        parts.append(found[1].replace("``", "`") if found[1] else found[2])
        at = found.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            break
        at += 1
    raise SchemaError(f"names {text!r}; a part of a column is column.member, and a name with a dot or ` is quoted by `")


def change_inside(action: ColumnAction, schema: InternalSchema) -> UpdateColumnType | None:
    """Return what an action makes of the column that it is inside of, None if it is of a whole column.

    Raises:
        SchemaError: if there is no such part, or the action is not for parts; the message continues "it ".
    """
    text = (
        action.column.name
        if isinstance(action, AddColumn)
        else action.old
        if isinstance(action, RenameColumn)
        else action.name
    )
    if schema.find(text) is not None:
        return None
    name, *path = parse_path(text)
    if not path:
        return None
    column = schema.find(name)
    if column is None:
        names = ", ".join(item.name for item in schema.columns)
        raise SchemaError(f"names {text!r}, and the table has no column {name!r} by then; it has {names}")
    after = _type_after(action, column, path, schema.last_column_id)
    return UpdateColumnType(id=column.id, old=column.type, new=after)


def check_cast(column: Column, after: DataType) -> None:
    """Look whether a column's values can be those of another type.

    Raises:
        SchemaError: if there is no such cast; the message continues "it ".
    """
    if not converts(column.type, after):
        raise SchemaError(
            f"casts {column.name!r} from {type_text(column.type)} to {type_text(after)}, between which there is no "
            "cast; `cdc-sync docs type-changes` lists them"
        )


def _type_after(action: ColumnAction, column: Column, path: list[str], last: int) -> DataType:
    *parent, name = path
    match action:
        case CastColumn(type=type_, way=way):
            if way == "expand":
                raise SchemaError(f"expands {'.'.join(path)!r} of {column.name!r}; say way: exchange")
            after = _with_part(column.type, path, lambda old: with_ids(type_, last, old), column.name)
            check_cast(column, after)
            return after
        case CommentColumn():
            raise SchemaError(f"comments on a part of {column.name!r}; comments stand at columns")
        case AddColumn() if action.fill is not None or action.fill_sql is not None:
            raise SchemaError(f"fills a part of {column.name!r}; rows of before read NULL in a new member")
        case AddColumn(column=new, place=place):
            added = Field(id=last + 1, name=name, type=with_ids(new.type, last + 1), comment=new.comment)
            return _with_members(column, parent, lambda members: _placed(members, added, place))
        case DropColumn():
            return _with_members(column, parent, lambda members: _without(members, name))
        case RenameColumn(new=to):
            return _with_members(column, parent, lambda members: _renamed(members, name, to))
        case MoveColumn(place=place):
            return _with_members(column, parent, lambda members: _moved(members, name, place))


def _with_part(type_: DataType, path: list[str], change: Callable[[DataType], DataType], place: str) -> DataType:
    """Return a type in which the part at a path is another one."""
    if not path:
        return change(type_)
    name, *rest = path
    below = f"{place}.{name}"
    match type_:
        case StructType(fields=fields):
            found = _member(fields, name)
            changed = replace(found, type=_with_part(found.type, rest, change, below))
            return StructType(fields=tuple(changed if field is found else field for field in fields))
        case ListType() if name == "element":
            return replace(type_, element=_with_part(type_.element, rest, change, below))
        case MapType() if name == "value":
            return replace(type_, value=_with_part(type_.value, rest, change, below))
        case _:
            raise SchemaError(f"names {below!r}; {place} is {type_text(type_)}")


def _with_members(
    column: Column, path: list[str], change: Callable[[tuple[Field, ...]], tuple[Field, ...]]
) -> DataType:
    place = ".".join((column.name, *path))

    def changed(type_: DataType) -> DataType:
        if not isinstance(type_, StructType):
            raise SchemaError(f"names a member of {place}, which is {type_text(type_)}")
        return StructType(fields=change(type_.fields))

    return _with_part(column.type, path, changed, column.name)


def _member(members: tuple[Field, ...], name: str) -> Field:
    found = next((field for field in members if field.name == name), None)
    if found is None:
        names = ", ".join(field.name for field in members)
        raise SchemaError(f"names member {name!r}, which the struct does not have by then; it has {names}")
    return found


def _without(members: tuple[Field, ...], name: str) -> tuple[Field, ...]:
    gone = _member(members, name)
    if len(members) == 1:
        raise SchemaError(f"takes {name!r} away, the only member; a struct without members cannot be")
    return tuple(field for field in members if field is not gone)


def _placed(members: tuple[Field, ...], field: Field, place: Place) -> tuple[Field, ...]:
    _check_free(members, field.name)
    at = len(members)
    if place.first:
        at = 0
    elif place.after is not None:
        at = members.index(_member(members, place.after)) + 1
    return (*members[:at], field, *members[at:])


def _moved(members: tuple[Field, ...], name: str, place: Place) -> tuple[Field, ...]:
    found = _member(members, name)
    return _placed(tuple(field for field in members if field is not found), found, place)


def _renamed(members: tuple[Field, ...], old: str, to: str) -> tuple[Field, ...]:
    found, new = _member(members, old), parse_path(to)
    if len(new) > 1:
        raise SchemaError(f"renames a member to {to!r}; say its new name alone, for it stays in its struct")
    _check_free(tuple(field for field in members if field is not found), new[0])
    return tuple(replace(field, name=new[0]) if field is found else field for field in members)


def _check_free(members: tuple[Field, ...], name: str) -> None:
    """Engines do not tell names apart by case."""
    other = next((field.name for field in members if field.name.casefold() == name.casefold()), None)
    if other is not None:
        raise SchemaError(f"gives the name {name!r}, and the struct has {other!r}")
