"""Names that a format cannot hold: one rule that maps them, and names that would fall together.

A name that the format can hold stays as it is, whatever it looks like. In any other

1. every character the format cannot hold becomes `_xHHHH_`, where HHHH is its code point in hexadecimal digits, four at
   least; of a reserved name the first character counts as one of them: `a/b` becomes `a_x002F_b`, `_file` becomes
   `_x005F_file`; where names have to be plain, a first digit counts as one of them too;
2. a name that is still too long is cut and ends in `_` and the first eight hexadecimal digits of its SHA-256.

The rule looks at one name alone, so that a name never changes because another one came. Two names of one table that
fall together are refused. The source's name stays in the schema history, which knows nothing of the target's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from typing_extensions import assert_never

from cdc_sync.core.migration.migration import (
    AlterTable,
    Backfill,
    ChangeRegime,
    CreateTable,
    JoinValues,
    Migration,
    Repartition,
    RewriteTable,
    Step,
)
from cdc_sync.core.migration.namerules import NameRules
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.schema.changes import (
    AddColumn,
    DropColumn,
    JoinColumn,
    RenameColumn,
    RetireColumn,
    ReviveColumn,
    SchemaChange,
)
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import DataType, ListType, MapType, StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class NameClash:
    """Two names of one table that the format cannot hold beside each other, or one that it cannot hold at all.

    Attributes:
        names: the source's, one or two.
        target: the name both would have.
    """

    names: tuple[str, ...]
    target: str

    @property
    def reason(self) -> str:
        """Say what is wrong, without the end of a sentence."""
        if len(self.names) == 1:
            return f"the name {self.names[0]!r} cannot be used in a target"
        first, second = self.names
        return f"the names {first!r} and {second!r} are both {self.target!r} in the target"

    @property
    def remedy(self) -> str:
        """Say what to do."""
        return "rename one of them at the source" if len(self.names) > 1 else "rename it at the source"


def held_name(name: str, rules: NameRules) -> str:
    """Return the name a format holds in place of this one, which is the same if it can be held."""
    letters = list(name)
    if rules.plain:
        letters = [letter if _is_plain(letter) else _escaped(letter) for letter in letters]
        letters[:1] = [_escaped(letter) if letter.isdigit() else letter for letter in letters[:1]]
    if rules.forbidden and not rules.forbidden.isdisjoint(name):
        letters = [_escaped(letter) if letter in rules.forbidden else letter for letter in letters]
    if _is_reserved(name, rules):
        letters[0] = _escaped(name[0])
    held = "".join(letters)
    if rules.max_bytes is None or len(held.encode()) <= rules.max_bytes:
        return held
    end = f"_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return held.encode()[: rules.max_bytes - len(end)].decode(errors="ignore") + end


def _is_reserved(name: str, rules: NameRules) -> bool:
    if rules.reserved_prefix is None:
        return name in rules.reserved
    begin = name[: len(rules.reserved_prefix)]
    folded = begin.casefold() if rules.folds_case else begin
    return name in rules.reserved or folded == rules.reserved_prefix


def _is_plain(letter: str) -> bool:
    return letter == "_" or (letter.isascii() and letter.isalnum())


def _escaped(letter: str) -> str:
    return f"_x{ord(letter):04X}_"


def target_names(schema: InternalSchema, rules: NameRules) -> Mapping[str, str] | NameClash:
    """Return the target's name of every column, by the source's; or the first clash, in column order.

    Retired columns count: the target still has them.
    """
    names = {column.name: held_name(column.name, rules) for column in schema.columns}
    taken: dict[str, str] = {}
    for column in schema.columns:
        for path, target in _paths(column.name, names[column.name], column.type, nested=rules.joins_nested):
            if not column.name:
                return NameClash(names=(column.name,), target="")
            folded = target.casefold() if rules.folds_case else target
            other = taken.setdefault(folded, path)
            if other != path:
                return NameClash(names=(other, path), target=target)
    return names


def _paths(source: str, target: str, type_: DataType, *, nested: bool) -> Iterator[tuple[str, str]]:
    """Return a column's name, and with `nested` those of all its parts: the source's made unique, and the target's."""
    yield source, target
    if not nested:
        return
    match type_:
        case ListType(element=element):
            parts: tuple[tuple[str, DataType], ...] = (("element", element),)
        case MapType(key=key, value=value):
            parts = (("key", key), ("value", value))
        case StructType(fields=fields):
            parts = tuple((field.name, field.type) for field in fields)
        case _:
            parts = ()
    for name, part in parts:
        # Not a dot: the source's column `a.b` must not be taken for the part `b` of `a`.
        yield from _paths(f"{source} → {name}", f"{target}.{name}", part, nested=True)


def held_schema(schema: InternalSchema, rules: NameRules) -> InternalSchema:
    """Return a schema with the target's names; the same schema if none differs.

    Raises:
        SchemaError: if two names fall together, which planning refuses.
    """
    columns = tuple(_held_column(column, rules) for column in schema.columns)
    return schema if columns == schema.columns else replace(schema, columns=columns)


def held_migration(migration: Migration, rules: NameRules) -> Migration:
    """Return the same steps in the target's names.

    Raises:
        SchemaError: if two names fall together, which planning refuses.
    """
    if not rules.plain and all(held_name(name, rules) == name for name in _names_of(migration)):
        return migration
    steps = tuple(_held_step(step, rules) for step in migration.steps)
    return replace(migration, schema=held_schema(migration.schema, rules), steps=steps)


def _names_of(migration: Migration) -> set[str]:
    """Return all names in a migration; those between its first schema and its last stand in the changes."""
    names = {column.name for column in migration.schema.columns}
    for step in migration.steps:
        match step:
            case JoinValues(schema=schema):
                names.update(column.name for column in schema.columns)
            case AlterTable(steps=((schema, _), *_) as steps) | RewriteTable(steps=((schema, _), *_) as steps):
                names.update(column.name for column in schema.columns)
                for _, change in steps:
                    match change:
                        case AddColumn(column=column):
                            names.add(column.name)
                        case RenameColumn(new=new):
                            names.add(new)
                        case _:
                            pass
            case _:
                pass  # what is created or filled has the names of the last schema
    return names


def _held_column(column: Column, rules: NameRules) -> Column:
    name = held_name(column.name, rules)
    type_ = _held_type(column.type, rules) if rules.plain else column.type
    return column if (name, type_) == (column.name, column.type) else replace(column, name=name, type=type_)


def _held_type(type_: DataType, rules: NameRules) -> DataType:
    match type_:
        case ListType():
            return replace(type_, element=_held_type(type_.element, rules))
        case MapType():
            return replace(type_, key=_held_type(type_.key, rules), value=_held_type(type_.value, rules))
        case StructType():
            fields = (
                replace(field, name=held_name(field.name, rules), type=_held_type(field.type, rules))
                for field in type_.fields
            )
            return replace(type_, fields=tuple(fields))
        case _:
            return type_


def _held_step(step: Step, rules: NameRules) -> Step:
    match step:
        case CreateTable(schema=schema):
            return replace(step, schema=held_schema(schema, rules))
        case AlterTable(steps=steps):
            return replace(step, steps=_held_changes(steps, rules))
        case RewriteTable(before=before, steps=steps, filled=filled):
            return replace(
                step,
                before=held_schema(before, rules),
                steps=_held_changes(steps, rules),
                filled=tuple(_held_column(column, rules) for column in filled),
            )
        case JoinValues(schema=schema):
            return replace(step, schema=held_schema(schema, rules))
        case Backfill(columns=columns):
            return replace(step, columns=tuple(_held_column(column, rules) for column in columns))
        case ChangeRegime():
            return step  # it names no column
        case Repartition():
            return step  # its text is stamped as the operator wrote it, so the target looks the names up
        case _:
            assert_never(step)


def _held_changes(
    steps: tuple[tuple[InternalSchema, SchemaChange], ...], rules: NameRules
) -> tuple[tuple[InternalSchema, SchemaChange], ...]:
    return tuple((held_schema(schema, rules), _held_change(change, rules)) for schema, change in steps)


def _held_change(change: SchemaChange, rules: NameRules) -> SchemaChange:
    match change:
        case AddColumn(column=column) | DropColumn(column=column) | JoinColumn(column=column):
            return replace(change, column=_held_column(column, rules))
        case RenameColumn(old=old, new=new):
            return replace(change, old=held_name(old, rules), new=held_name(new, rules))
        case RetireColumn(name=name) | ReviveColumn(name=name):
            return replace(change, name=held_name(name, rules))
        case _:
            return change


def held_parts(name: TargetName, rules: NameRules) -> tuple[str, str]:
    """Return the parts of a table's name as folders of their own; a crafted one must not leave the warehouse."""
    return held_name(name.namespace, rules), held_name(name.name, rules)


def held_target(name: TargetName, rules: NameRules) -> TargetName:
    """Return the name that a table is found by in the target."""
    namespace, table = held_parts(name, rules)
    return TargetName(namespace=namespace, name=table)
