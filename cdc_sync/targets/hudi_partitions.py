"""Partitions of a Hudi table: what it was made to be divided by, and in which folder each row belongs.

The fields are part of the table for good: `hoodie.properties` names them, and cannot change in the commit of the files.
So each is a column of its own, computed from the source's, whose name stays whatever becomes of that one.

Folders are named as Hive names them, with Hive's escapes, for Hudi's readers put such a name together from a query's
values. Source: Hudi 1.2.0, `PartitionPathEncodeUtils`, `SparkHoodieTableFileIndex.composeRelativePartitionPath`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_sync.migrate.derived import Derived, derived_columns, derived_type, followed
from cdc_sync.migrate.modes import METADATA, Mode
from cdc_sync.migrate.namerules import NameRules
from cdc_sync.quote import quoted
from cdc_sync.schema.changes import SchemaChange
from cdc_sync.schema.internal import InternalSchema
from cdc_sync.schema.partitioning import PartitionField, Partitioning, field_text
from cdc_sync.schema.serde import type_from_json, type_to_json
from cdc_sync.schema.transforms import fits
from cdc_sync.schema.types import DataType, DecimalType
from cdc_sync.spark.derived import derived_column
from cdc_sync.spark.types import to_spark
from cdc_sync.targets.hudi_schema import COMMIT_TIME, DELETED, FILE_NAME, PARTITION_PATH

_NULL = "__HIVE_DEFAULT_PARTITION__"
"""Source: `PartitionPathEncodeUtils.DEFAULT_PARTITION_PATH`."""
_ESCAPED = r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]"""
_PLACE, _LEAVES = "__cdc_sync_place", "__cdc_sync_leaves"
"""Of a row: the folder it belongs in, and whether this is the word that it is no longer in another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumn:
    """A column that a table was made to be divided by.

    Attributes:
        name: for good.
        type: the same.
        field: how it is computed now, in the target's present names; None once its source is gone: then it is NULL.
    """

    name: str
    type: DataType
    field: PartitionField | None

    def to_json(self) -> dict[str, Any]:
        """Return it as the table's stamp has it."""
        text = None if self.field is None else field_text(self.field)
        return {"name": self.name, "type": type_to_json(self.type), "field": text}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> PartitionColumn:
        """Read what `to_json` returned."""
        text = data["field"]
        (field,) = (None,) if text is None else Partitioning.parse([text]).fields
        return PartitionColumn(name=data["name"], type=type_from_json(data["type"]), field=field)


def partition_columns(
    partitioning: Partitioning, schema: InternalSchema, mode: Mode, rules: NameRules
) -> tuple[PartitionColumn, ...]:
    """Return the columns of a table that is made; `partitioning` and `schema` have the names it holds."""
    return tuple(
        PartitionColumn(name=it.name, type=_lasting(it.type), field=it.field)
        for it in derived_columns(partitioning, schema, mode, rules)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How rows that are written are divided.

    Attributes:
        columns: all that the table is divided by, in order; none if it is not.
        derived: those of them that are computed; the others become NULL. None if rows have the values already.
    """

    columns: tuple[PartitionColumn, ...]
    derived: tuple[Derived, ...] | None


UNDIVIDED = Division(columns=(), derived=None)


def division(columns: tuple[PartitionColumn, ...], schema: InternalSchema, mode: Mode) -> Division:
    """Return how rows are divided that have the columns of a schema, in the names that the table holds."""
    types = _types_of(schema, mode)
    derived = tuple(
        Derived(name=it.name, type=it.type, field=it.field, source=types[it.field.column])
        for it in columns
        if it.field is not None and _takes(it, it.field, types)
    )
    return Division(columns=columns, derived=derived)


def partitioning_of(columns: Sequence[PartitionColumn]) -> Partitioning:
    """Return what rows are divided by now, in the names that the table holds."""
    return Partitioning(fields=tuple(it.field for it in columns if it.field is not None))


def after_changes(
    columns: Sequence[PartitionColumn],
    steps: Sequence[tuple[InternalSchema, SchemaChange]],
    schema: InternalSchema,
    mode: Mode,
) -> tuple[PartitionColumn, ...]:
    """Return the columns after changes of the table's others, which lead to a schema.

    A column goes on being computed under its source's new name, and where its type has room for the source's new one.
    """
    types = _types_of(schema, mode)
    found = []
    for it in columns:
        fields = () if it.field is None else followed(Partitioning(fields=(it.field,)), steps).fields
        kept = tuple(field for field in fields if _takes(it, field, types))
        found.append(replace(it, field=kept[0] if kept else None))
    return tuple(found)


def _types_of(schema: InternalSchema, mode: Mode) -> dict[str, DataType]:
    types = {column.name: column.type for column in schema.columns}
    return types | dict(METADATA) if mode == "append" else types


def _takes(column: PartitionColumn, field: PartitionField, types: Mapping[str, DataType]) -> bool:
    type_ = types.get(field.column)
    return type_ is not None and fits(field, type_) and _lasting(derived_type(field, type_)) == column.type


def _lasting(type_: DataType) -> DataType:
    """Return a type that stays the same while the source's is widened in place."""
    return DecimalType(precision=38, scale=type_.scale) if isinstance(type_, DecimalType) else type_


def placed(rows: DataFrame, division: Division) -> DataFrame:
    """Return prepared rows with the folder that each belongs in; one that moves to another becomes two.

    Hudi finds a record by folder and file, and its key is told from others there only: so a row whose folder is
    another now is deleted where it lies and is a new one in its new place, in the same commit.

    Args:
        rows: with Hudi's own columns, of which those of the place say where a record lies, or are NULL.
    """
    names = rows.columns
    if division.derived is not None:
        of = {it.name: derived_column(it, it.field.column) for it in division.derived}
        filled = {it.name: of.get(it.name, F.lit(None)).cast(to_spark(it.type)) for it in division.columns}
        rows = rows.withColumns(filled)
    parts = (F.concat(F.lit(f"{it.name}="), _folder(F.col(quoted(it.name)))) for it in division.columns)
    place = F.concat_ws("/", *parts)
    rows = rows.withColumn(_PLACE, F.when(F.col(DELETED), F.col(PARTITION_PATH)).otherwise(place))
    moves = F.col(FILE_NAME).isNotNull() & (F.col(PARTITION_PATH) != F.col(_PLACE))
    both = F.array(F.lit(True), F.lit(False))
    rows = rows.withColumn(_LEAVES, F.explode(F.when(moves, both).otherwise(F.array(F.lit(False)))))
    leaves, lies = F.col(_LEAVES), F.col(FILE_NAME).isNotNull() & (F.col(PARTITION_PATH) == F.col(_PLACE))
    found = {
        COMMIT_TIME: F.when(leaves | lies, F.col(COMMIT_TIME)),
        FILE_NAME: F.when(leaves | lies, F.col(FILE_NAME)),
        PARTITION_PATH: F.when(leaves, F.col(PARTITION_PATH)).otherwise(F.col(_PLACE)),
        DELETED: F.col(DELETED) | leaves,
    }
    return rows.select(*(found.get(name, F.col(quoted(name))).alias(name) for name in names))


def _folder(value: Column) -> Column:
    """Return a value as the name of a folder has it."""
    text = value.cast("string")
    parts = F.split(text, f"(?={_ESCAPED})|(?<={_ESCAPED})")
    escaped = F.transform(
        parts,
        lambda part: F.when(part.rlike(f"^{_ESCAPED}$"), F.concat(F.lit("%"), F.lpad(F.hex(part), 2, "0"))).otherwise(
            part
        ),
    )
    return F.coalesce(F.when(text.rlike(_ESCAPED), F.concat_ws("", escaped)).otherwise(text), F.lit(_NULL))
