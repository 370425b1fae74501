"""Schema changes on the schema as a Delta table's metadata holds it; pure.

Each top-level field is a dictionary of `name`, `type`, `nullable` and `metadata`. The metadata has the column's id and
the name that data files know it by, which last as long as the column; a field without them is given new ones by Delta.
Source: Delta Transaction Log Protocol, "Schema Serialization Format" and "Column Mapping".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pyspark.sql import types as T
from typing_extensions import assert_never

from cdc_sync.migrate.modes import METADATA, Mode
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
from cdc_sync.schema.internal import InternalSchema
from cdc_sync.schema.types import DataType
from cdc_sync.spark.types import to_spark, wide_integer, with_leaves

Field: TypeAlias = dict[str, Any]
PHYSICAL_NAME = "delta.columnMapping.physicalName"


def delta_type(type_: DataType) -> T.DataType:
    """Return the Spark type that a Delta table holds a tracked type as: integers have 32 or 64 bits."""
    return with_leaves(to_spark(type_), wide_integer)


def new_fields(schema: InternalSchema, mode: Mode) -> list[Field]:
    """Return the fields of a table that is to be made; every column is optional."""
    metadata = METADATA if mode == "append" else ()
    return [
        *(_field(column.name, column.type, column.comment) for column in schema.columns),
        *(_field(label, type_, None) for label, type_ in metadata),
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
            return _placed(fields, _field(column.name, column.type, column.comment), before, after)
        case DropColumn(column=column) | JoinColumn(column=column):
            return [field for field in fields if field["name"] != column.name]
        case RenameColumn(old=old, new=new):
            return _replaced(fields, old, lambda field: {**field, "name": new})
        case UpdateColumnType(id=id_, old=old_type, new=new_type):
            if delta_type(old_type) == delta_type(new_type):
                return fields
            column = before.column(id_)
            return _replaced(fields, column.name, lambda _: _field(column.name, new_type, column.comment))
        case UpdateColumnComment(id=id_, new=comment):
            return _replaced(fields, before.column(id_).name, lambda field: _commented(field, comment))
        case MoveColumn(id=id_, new_after=after):
            name = before.column(id_).name
            (moved,) = (field for field in fields if field["name"] == name)
            return _placed([field for field in fields if field is not moved], moved, before, after)
        case UpdateColumnNullability() | UpdateColumnDefault() | RetireColumn() | ReviveColumn() | ChangePrimaryKey():
            return fields  # recorded in the history; every target column stays optional
        case _:
            assert_never(change)


def _field(name: str, type_: DataType, comment: str | None) -> Field:
    return _commented({"name": name, "type": json.loads(delta_type(type_).json()), "nullable": True}, comment)


def _commented(field: Field, comment: str | None) -> Field:
    kept = {key: value for key, value in field.get("metadata", {}).items() if key != "comment"}
    return {**field, "metadata": {**kept, "comment": comment} if comment else kept}


def _replaced(fields: list[Field], name: str, change: Callable[[Field], Field]) -> list[Field]:
    return [change(field) if field["name"] == name else field for field in fields]


def _placed(fields: list[Field], field: Field, before: InternalSchema, after: int | None) -> list[Field]:
    if after is None:
        return [field, *fields]
    names = [item["name"] for item in fields]
    place = names.index(before.column(after).name) + 1
    return [*fields[:place], field, *fields[place:]]
