"""Columns that a table is partitioned by where the format divides by columns only: computed from the source's.

Every field of a partitioning has a derived column of its own, a column's own value too. Values of partitions are names
of folders or texts in a log, where '' reads back as NULL, numbers and times are written in as many ways as there are
writers, and long texts do not fit: so nothing of the source is ever read from them. They only tell readers which files
to leave out, and a source's column stays what it is, whatever becomes of the partitioning.

The columns stand behind all others and are named `cdc_sync_by_<transform>_<column>`: what is derived from a column that
is renamed is renamed with it. `spark.derived` computes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from typing_extensions import assert_never

from cdc_sync.core.migration.modes import Mode, column_types
from cdc_sync.core.migration.namerules import DERIVED_PREFIX, NameRules
from cdc_sync.core.migration.names import held_name
from cdc_sync.core.schema.changes import DropColumn, JoinColumn, RenameColumn, SchemaChange, UpdateColumnType
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import Bucket, Identity, PartitionField, Partitioning, Period, Truncate
from cdc_sync.core.schema.transforms import fits
from cdc_sync.core.schema.types import (
    DATE,
    INT32,
    INT64,
    STRING,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
)

MAX_TEXT = 40
"""Characters of a text that a derived column has at most, and twice the bytes of a binary: four bytes each, and a name,
are a folder's name of at most 255 bytes."""
_MAX_NAME = 90
_ESCAPE, _ESCAPED = re.compile(r"_(?=x[0-9A-F]{4})"), "_x005F_"
_PLAIN_SCALE = 6
"""Decimals of more digits behind the point are written with an exponent by Java, which not every reader reads."""


Steps: TypeAlias = Sequence[tuple[InternalSchema, SchemaChange]]
"""Changes of columns, each with the schema that it is applied to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """One derived column.

    Attributes:
        name: its own, in the target.
        type: its own.
        field: how it is computed and from which column, in the target's names.
        source: the type of that column.
    """

    name: str
    type: DataType
    field: PartitionField
    source: DataType


def derived_columns(
    partitioning: Partitioning, schema: InternalSchema, mode: Mode, rules: NameRules
) -> tuple[Derived, ...]:
    """Return the derived columns of a table, in order.

    Args:
        partitioning: in the target's names.
        schema: the table's columns, in the target's names. A field whose column is not there, or of a type that it does
            not take, has none.
    """
    types = column_types(schema.columns, mode)
    found = (derived_as(derived_name(item, rules), item, types) for item in partitioning.fields)
    return tuple(column for column in found if column is not None)


def derived_as(name: str, item: PartitionField, types: Mapping[str, DataType]) -> Derived | None:
    """Return the column of a name for a field; None where its column is not there, or of a type that it does not take.

    Args:
        types: of the table's columns, by name.
    """
    source = types.get(item.column)
    if source is None or not fits(item, source):
        return None
    return Derived(name=name, type=derived_type(item, source), field=item, source=source)


def derived_name(item: PartitionField, rules: NameRules) -> str:
    """Return the name of the column for a field, which is in the target's names; no two fields have the same.

    It has ASCII letters, digits and `_` alone, whatever the source's has: Delta's MERGE (3.3, `writeFiles`) takes a
    name of a partition column for an expression. What a source's name has of escapes is escaped too.
    """
    column = item.column if rules.plain else _ESCAPE.sub(_ESCAPED, item.column)
    return held_name(f"{DERIVED_PREFIX}{_word(item)}_{column}", NameRules(plain=True, max_bytes=_MAX_NAME))


def derived_type(item: PartitionField, source: DataType) -> DataType:
    """Return the type of the column for a field; it is one that every reader reads out of a folder's name.

    It does not change where the source's widens in place.
    """
    match item:
        case Period(unit="year") | Bucket():
            return INT32
        case Period(unit="day"):
            return DATE
        case Period():
            return STRING
        case Identity() | Truncate():
            return _kept(item, source)
        case _:
            assert_never(item)


def _kept(item: Identity | Truncate, source: DataType) -> DataType:
    match source:
        case IntegerType():
            return INT64
        case DecimalType(scale=scale) if scale <= _PLAIN_SCALE:
            # The multiple below a number may have more digits than the number.
            return source if isinstance(item, Identity) else DecimalType(precision=38, scale=scale)
        case BooleanType() | DateType():
            return source
        case _:
            return STRING


def _word(item: PartitionField) -> str:
    match item:
        case Identity():
            return "value"
        case Period(unit=unit):
            return unit
        case Bucket(count=count):
            return f"bucket{count}"
        case Truncate(width=width):
            return f"truncate{width}"
        case _:
            assert_never(item)


def held_partitioning(partitioning: Partitioning, rules: NameRules) -> Partitioning:
    """Return a partitioning with the target's names of columns."""
    return _mapped(partitioning, names={item.column: held_name(item.column, rules) for item in partitioning.fields})


def followed(partitioning: Partitioning, steps: Steps) -> Partitioning:
    """Return what is left of a partitioning after changes of columns, in their new names.

    A field goes with its column, and where the column's new type is none that it takes.

    Args:
        steps: in the target's names, as the partitioning is.
    """
    for before, change in steps:
        match change:
            case RenameColumn(old=old, new=new):
                partitioning = _mapped(partitioning, names={old: new})
            case DropColumn(column=column) | JoinColumn(column=column):
                partitioning = _without(partitioning, column.name)
            case UpdateColumnType(id=id_, new=type_):
                partitioning = _fitting(partitioning, before.column(id_).name, type_)
            case _:
                pass
    return partitioning


def text_left(text: str | None, before: Partitioning, after: Partitioning) -> str | None:
    """Return the operator's text that a table was brought to, or what is left of it if columns took a part of it away.

    Args:
        text: None if there is none.
        before, after: how the table was partitioned, and how it is after its columns changed.
    """
    return str(after) if text is not None and len(after.fields) < len(before.fields) else text


def _mapped(partitioning: Partitioning, *, names: Mapping[str, str]) -> Partitioning:
    fields = (replace(item, column=names.get(item.column, item.column)) for item in partitioning.fields)
    return Partitioning(fields=tuple(fields))


def _without(partitioning: Partitioning, name: str) -> Partitioning:
    return Partitioning(fields=tuple(item for item in partitioning.fields if item.column != name))


def _fitting(partitioning: Partitioning, name: str, type_: DataType) -> Partitioning:
    kept = (item for item in partitioning.fields if item.column != name or fits(item, type_))
    return Partitioning(fields=tuple(kept))
