"""Schema changes and types in the words of the people who run databases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from typing_extensions import assert_never

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
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.members import (
    AddMember,
    DropMember,
    MemberChange,
    MoveMember,
    RenameMember,
    UpdateKeyType,
    UpdatePartType,
    member_changes,
    path_text,
)
from cdc_sync.core.schema.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    Default,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A change in words.

    Attributes:
        kind: the change's type, for machines: `AddColumn`, `RenameColumn`, ...
        column: id of the column; None for changes of the whole table.
        text: one clause, such as "rename column qty to quantity".
    """

    kind: str
    column: int | None
    text: str


def phrases(
    changes: Iterable[SchemaChange], before: InternalSchema | None, after: InternalSchema
) -> tuple[Phrase, ...]:
    """Put changes in words, in their order; a rename by way of a temporary name is one rename.

    Args:
        changes: what leads from one schema to the other.
        before: None for the first version.
        after: what the changes lead to.
    """
    names = {column.id: column.name for schema in (before, after) if schema for column in schema.columns}
    return tuple(
        Phrase(kind=type(change).__name__, column=_column_id(change), text=change_text(change, names))
        for change in _direct_renames(changes)
    )


def _direct_renames(changes: Iterable[SchemaChange]) -> list[SchemaChange]:
    told: list[SchemaChange] = []
    for change in changes:
        earlier = next(
            (i for i, item in enumerate(told) if isinstance(item, RenameColumn) and item.id == _column_id(change)),
            None,
        )
        if isinstance(change, RenameColumn) and earlier is not None:
            first = told[earlier]
            assert isinstance(first, RenameColumn)
            told[earlier] = replace(first, new=change.new)
        else:
            told.append(change)
    return told


def _column_id(change: SchemaChange) -> int | None:
    match change:
        case AddColumn(column=column) | DropColumn(column=column) | JoinColumn(column=column):
            return column.id
        case ChangePrimaryKey():
            return None
        case _:
            return change.id


def change_text(change: SchemaChange, names: Mapping[int, str]) -> str:
    """Put one change in words; `names` gives the columns' names by id."""
    match change:
        case AddColumn(column=column, after=after):
            return f"add column {column.name} {type_text(column.type)} {_place(after, names)}{_traits(column)}"
        case DropColumn(column=column):
            return f"drop column {column.name} {type_text(column.type)}"
        case JoinColumn(column=column, into_name=name):
            return f"join column {column.name} into column {name}"
        case RenameColumn(old=old, new=new):
            return f"rename column {old} to {new}"
        case UpdateColumnType(id=id_, old=old_type, new=new_type):
            parts = member_changes(old_type, new_type)
            if any(isinstance(part, UpdatePartType) and not part.path for part in parts):
                return f"change type of column {names[id_]} from {type_text(old_type)} to {type_text(new_type)}"
            return f"change column {names[id_]}: " + ", ".join(member_text(names[id_], part) for part in parts)
        case UpdateColumnNullability(id=id_, new=optional):
            return f"{'allow' if optional else 'forbid'} NULL in column {names[id_]}"
        case UpdateColumnComment(id=id_, new=comment):
            return _set_or_remove("comment", names[id_], comment)
        case UpdateColumnDefault(id=id_, new=default):
            return _set_or_remove("default", names[id_], default)
        case MoveColumn(id=id_, new_after=new_after):
            return f"move column {names[id_]} {_place(new_after, names)}"
        case RetireColumn(name=name):
            return f"keep column {name}, which the source no longer has"
        case ReviveColumn(name=name):
            return f"fill column {name} again, which the source has again"
        case ChangePrimaryKey(old=old_key, new=new_key):
            return f"change primary key from {_key(old_key, names)} to {_key(new_key, names)}"
        case _:
            assert_never(change)


def member_text(column: str, change: MemberChange) -> str:
    """Put one change inside a column in words, with the path of what it is about: `lines.element.qty`."""
    match change:
        case AddMember(parent=parent, field=field, after=after):
            place = "first" if after is None else f"after {after}"
            return f"add {path_text(column, (*parent, field.name))} {type_text(field.type)} {place}"
        case DropMember(parent=parent, field=field):
            return f"drop {path_text(column, (*parent, field.name))} {type_text(field.type)}"
        case RenameMember(parent=parent, old=old, new=new):
            return f"rename {path_text(column, (*parent, old))} to {new}"
        case UpdatePartType(path=path, old=old, new=new) | UpdateKeyType(path=path, old=old, new=new):
            return f"change type of {path_text(column, path)} from {type_text(old)} to {type_text(new)}"
        case MoveMember(parent=parent, name=name, after=after):
            return f"move {path_text(column, (*parent, name))} {'first' if after is None else f'after {after}'}"
        case _:
            assert_never(change)


def _place(after: int | None, names: Mapping[int, str]) -> str:
    return "first" if after is None else f"after {names[after]}"


def _traits(column: Column) -> str:
    parts = [] if column.optional else ["NOT NULL"]
    if column.default is not None:
        parts.append(f"default {literal_text(column.default)}")
    parts.append(f"rows from before read {literal_text(column.initial)}")
    return "".join(f", {part}" for part in parts)


def _set_or_remove(what: str, column: str, value: Default) -> str:
    if value is None:
        return f"remove {what} of column {column}"
    return f"set {what} of column {column} to {literal_text(value)}"


def _key(ids: tuple[int, ...], names: Mapping[int, str]) -> str:
    return f"({', '.join(names[id_] for id_ in ids)})" if ids else "none"


def literal_text(value: Default) -> str:
    """Write a value as SQL would."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)


_DROPPED: Mapping[str, str] = {
    "keep": "the target keeps its rows",
    "drop": "the target is dropped",
    "archive": "the target is archived",
    "rename": "the target is renamed with it",
}


def dropped_text(answer: str) -> str:
    """Say what becomes of the target of a source table that was dropped; `answer` is as in `policy.drop_table`."""
    return _DROPPED[answer]


_INTEGERS = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}


def type_text(type_: DataType) -> str:
    """Write a type as SQL would."""
    match type_:
        case BooleanType():
            return "BOOLEAN"
        case IntegerType(bits=bits):
            return _INTEGERS[bits]
        case FloatType(bits=bits):
            return "DOUBLE" if bits == 64 else "FLOAT"
        case DecimalType(precision=precision, scale=scale):
            return f"DECIMAL({precision}, {scale})"
        case StringType():
            return "STRING"
        case BinaryType():
            return "BINARY"
        case DateType():
            return "DATE"
        case TimestampType(zoned=zoned):
            return "TIMESTAMP WITH TIME ZONE" if zoned else "TIMESTAMP"
        case StructType(fields=fields):
            return f"STRUCT<{', '.join(f'{field.name}: {type_text(field.type)}' for field in fields)}>"
        case ListType(element=element):
            return f"ARRAY<{type_text(element)}>"
        case MapType(key=key, value=value):
            return f"MAP<{type_text(key)}, {type_text(value)}>"
        case _:
            assert_never(type_)
