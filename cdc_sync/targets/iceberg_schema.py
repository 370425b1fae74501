"""Schema changes as calls of Iceberg's `UpdateSchema`."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_never

from cdc_sync.migrate.capabilities import ICEBERG, can_change_in_place
from cdc_sync.schema.changes import (
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
from cdc_sync.schema.evolve import left_neighbour
from cdc_sync.schema.internal import InternalSchema
from cdc_sync.schema.types import NESTED, DataType
from cdc_sync.spark.types import to_spark
from cdc_sync.targets.iceberg_partitions import leave_out, release, take_back


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
            target = iceberg_type(jvm, new_type)
            if transaction.table().schema().findType(name).equals(target):
                return None  # both are one Iceberg type: it has no 8 and 16 bit integers
            if not can_change_in_place(ICEBERG, old_type, new_type):
                # Another field of Iceberg's in the column's place: one field's type can only widen.
                fields = release(transaction, name)
                leave_out(transaction, name).commit()
                update = transaction.updateSchema().addColumn(None, name, target, before.column(id_).comment)
                _place(update, name, before, left_neighbour(before, id_)).commit()
                take_back(jvm, transaction, name, fields)
                return None
            return transaction.updateSchema().updateColumn(name, target)
        case UpdateColumnComment(id=id_, new=comment):
            return transaction.updateSchema().updateColumnDoc(before.column(id_).name, comment)
        case MoveColumn(id=id_, new_after=after):
            return _place(transaction.updateSchema(), before.column(id_).name, before, after)
        case UpdateColumnNullability() | UpdateColumnDefault() | RetireColumn() | ReviveColumn() | ChangePrimaryKey():
            return None  # recorded in the history; every target column stays optional
        case _:
            assert_never(change)


def widen(jvm: Any, table: Any, name: str, type_: DataType) -> None:
    """Give a column a wider type, in a commit of its own; nothing happens if it has it."""
    target = iceberg_type(jvm, type_)
    if isinstance(type_, NESTED) or table.schema().findType(name).equals(target):
        return
    table.updateSchema().updateColumn(name, target).commit()


def _place(update: Any, name: str, before: InternalSchema, after: int | None) -> Any:
    return update.moveFirst(name) if after is None else update.moveAfter(name, before.column(after).name)


def iceberg_type(jvm: Any, type_: DataType) -> Any:
    """Return a tracked type as Iceberg's."""
    java = jvm.org.apache.spark.sql.types.DataType.fromJson(to_spark(type_).json())
    return jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(java)
