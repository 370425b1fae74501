"""Schema changes as calls of Iceberg's `UpdateSchema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as T
from typing_extensions import assert_never

from cdc_sync.core.migration.capabilities import ICEBERG, can_change_in_place
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
from cdc_sync.core.schema.evolve import left_neighbour
from cdc_sync.core.schema.internal import InternalSchema
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
from cdc_sync.core.schema.types import NESTED, DataType
from cdc_sync.errors import TargetError
from cdc_sync.spark.types import to_spark
from cdc_sync.targets.iceberg.partitions import leave_out, release, take_back


def set_properties(transaction: Any, properties: Mapping[str, str | None]) -> None:
    """Set properties of a table in a transaction, and take away those that are None."""
    update = transaction.updateProperties()
    for key, value in properties.items():
        if value is None:
            update.remove(key)
        else:
            update.set(key, value)
    update.commit()


def alter(jvm: Any, transaction: Any, steps: tuple[tuple[InternalSchema, SchemaChange], ...]) -> None:
    """Add the changes to an open Iceberg transaction, each as an update of its own.

    One `UpdateSchema` cannot rename a column and add another under the old name; several in a transaction can, and
    still make one commit.

    Raises:
        TargetError: for a change that must never reach this target.
    """
    for before, change in steps:
        update = _update(jvm, transaction, before, change)
        if update is not None:
            update.commit()


def _update(jvm: Any, transaction: Any, before: InternalSchema, change: SchemaChange) -> Any:
    match change:
        case AddColumn(column=column, after=after):
            update = transaction.updateSchema()
            update.addColumn(None, column.name, iceberg_type(jvm, column.type), column.comment)
            return _place(update, column.name, before, after)
        case DropColumn(column=column) | JoinColumn(column=column):
            return leave_out(transaction, column.name)
        case RenameColumn(old=old, new=new):
            return transaction.updateSchema().renameColumn(old, new)
        case UpdateColumnType(id=id_, old=old_type, new=new_type):
            name = before.column(id_).name
            if can_change_in_place(ICEBERG, old_type, new_type):
                for part in member_changes(old_type, new_type):
                    _change_inside(jvm, transaction, name, part)
                return None
            target = iceberg_type(jvm, new_type)
            if not transaction.table().schema().findType(name).equals(target):
                # Another field of Iceberg's in the column's place: one field's type can only widen.
                fields = release(transaction, name)
                leave_out(transaction, name).commit()
                update = transaction.updateSchema().addColumn(None, name, target, before.column(id_).comment)
                _place(update, name, before, left_neighbour(before, id_)).commit()
                take_back(jvm, transaction, name, fields)
            return None
        case UpdateColumnComment(id=id_, new=comment):
            return transaction.updateSchema().updateColumnDoc(before.column(id_).name, comment)
        case MoveColumn(id=id_, new_after=after):
            return _place(transaction.updateSchema(), before.column(id_).name, before, after)
        case UpdateColumnNullability() | UpdateColumnDefault() | RetireColumn() | ReviveColumn() | ChangePrimaryKey():
            return None  # recorded in the history; every target column stays optional
        case _:
            assert_never(change)


def _change_inside(jvm: Any, transaction: Any, column: str, change: MemberChange) -> None:
    """Change a column's type, or a part of it: Iceberg names parts by their paths, `lines.element.qty`.

    Each is an update of its own, so that a name may go and come again.
    """
    match change:
        case UpdatePartType(path=path, new=type_):
            name, target = path_text(column, path), iceberg_type(jvm, type_)
            if not transaction.table().schema().findType(name).equals(target):  # it has no 8 and 16 bit integers
                transaction.updateSchema().updateColumn(name, target).commit()
        case AddMember(parent=parent, field=field, after=after):
            within, name = path_text(column, parent), path_text(column, (*parent, field.name))
            update = transaction.updateSchema()
            update.addColumn(within, field.name, iceberg_type(jvm, field.type), None)
            _place_member(update, name, within, after).commit()
        case DropMember(parent=parent, field=field):
            transaction.updateSchema().deleteColumn(path_text(column, (*parent, field.name))).commit()
        case MoveMember(parent=parent, name=name, after=after):
            within = path_text(column, parent)
            _place_member(transaction.updateSchema(), f"{within}.{name}", within, after).commit()
        case RenameMember() | UpdateKeyType():
            raise TargetError(f"Cannot change column {column!r}: {change} is not done in place")
        case _:
            assert_never(change)


def _place_member(update: Any, name: str, within: str, after: str | None) -> Any:
    return update.moveFirst(name) if after is None else update.moveAfter(name, f"{within}.{after}")


def widen(jvm: Any, table: Any, name: str, type_: DataType) -> None:
    """Give a column a wider type; nothing happens if it has it."""
    target = iceberg_type(jvm, type_)
    if isinstance(type_, NESTED) or table.schema().findType(name).equals(target):
        return
    table.updateSchema().updateColumn(name, target).commit()


def _place(update: Any, name: str, before: InternalSchema, after: int | None) -> Any:
    return update.moveFirst(name) if after is None else update.moveAfter(name, before.column(after).name)


def iceberg_type(jvm: Any, type_: DataType) -> Any:
    """Return a tracked type as Iceberg's."""
    # Of a struct alone, `convert` makes a schema and no type.
    column = T.StructType([T.StructField("column", to_spark(type_))])
    java = jvm.org.apache.spark.sql.types.DataType.fromJson(column.json())
    return jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(java).findType("column")
