"""Partitions of a Hudi table: what it was made to be divided by, and in which folder each row belongs.

The fields are part of the table for good: `hoodie.properties` names them, and cannot change in the commit of the files.
So each is a column of its own, computed from the source's, whose name stays whatever becomes of that one. It is a text,
and never NULL: Hudi's reader for Spark compares values out of folders' names, and fails at decimals, and at NULL behind
the first field. Source: Hudi 1.2.0, `Predicates.BinaryComparison`, `FileSystemBackedTableMetadata`.

Folders are named as Hive names them, with Hive's escapes, for Hudi's readers put such a name together from a query's
values. Source: Hudi 1.2.0, `PartitionPathEncodeUtils`, `SparkHoodieTableFileIndex.composeRelativePartitionPath`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.migration.derived import Derived, Steps, derived_as, derived_columns, followed
from cdc_sync.core.migration.modes import Mode, column_types
from cdc_sync.core.migration.namerules import NameRules
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import PartitionField, Partitioning, field_text
from cdc_sync.spark.derived import derived_column
from cdc_sync.targets.hudi.schema import COMMIT_TIME, DELETED, FILE_NAME, PARTITION_PATH

NOTHING = "__NULL__"
"""What a column says where its source is NULL, or gone."""
_DEFAULT = "__HIVE_DEFAULT_PARTITION__"
"""What Hudi's readers take for NULL in a folder's name. Source: `PartitionPathEncodeUtils.DEFAULT_PARTITION_PATH`."""
_ESCAPED = r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]"""
_PLACE, _LEAVES = "__cdc_sync_place", "__cdc_sync_leaves"
"""Of a row: the folder it belongs in, and whether this is the word that it is no longer in another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumn:
    """A column that a table was made to be divided by.

    Attributes:
        name: for good.
        field: how it is computed now, in the target's present names; None once its source is gone.
    """

    name: str
    field: PartitionField | None

    def to_json(self) -> dict[str, Any]:
        """Return it as the table's stamp has it."""
        return {"name": self.name, "field": None if self.field is None else field_text(self.field)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> PartitionColumn:
        """Read what `to_json` returned."""
        text = data["field"]
        (field,) = (None,) if text is None else Partitioning.parse([text]).fields
        return PartitionColumn(name=data["name"], field=field)


def partition_columns(
    partitioning: Partitioning, schema: InternalSchema, mode: Mode, rules: NameRules
) -> tuple[PartitionColumn, ...]:
    """Return the columns of a table that is made; `partitioning` and `schema` have the names it holds."""
    return tuple(
        PartitionColumn(name=it.name, field=it.field) for it in derived_columns(partitioning, schema, mode, rules)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How rows that are written are divided.

    Attributes:
        columns: all that the table is divided by, in order; none if it is not.
        derived: those of them that are computed; the others say nothing. None if rows have the values already.
    """

    columns: tuple[PartitionColumn, ...]
    derived: tuple[Derived, ...] | None


UNDIVIDED = Division(columns=(), derived=None)


def division(columns: tuple[PartitionColumn, ...], schema: InternalSchema, mode: Mode) -> Division:
    """Return how rows are divided that have the columns of a schema, in the names that the table holds."""
    types = column_types(schema.columns, mode)
    found = (derived_as(it.name, it.field, types) for it in columns if it.field is not None)
    return Division(columns=columns, derived=tuple(column for column in found if column is not None))


def partitioning_of(columns: Sequence[PartitionColumn]) -> Partitioning:
    """Return what rows are divided by now, in the names that the table holds."""
    return Partitioning(fields=tuple(it.field for it in columns if it.field is not None))


def after_changes(
    columns: Sequence[PartitionColumn],
    steps: Steps,
    schema: InternalSchema,
    mode: Mode,
) -> tuple[PartitionColumn, ...]:
    """Return the columns after changes of the table's others, which lead to a schema.

    A column goes on being computed under its source's new name, and as long as its transform takes the source's type.
    """
    types = column_types(schema.columns, mode)
    found = []
    for it in columns:
        fields = () if it.field is None else followed(Partitioning(fields=(it.field,)), steps).fields
        kept = tuple(field for field in fields if derived_as(it.name, field, types) is not None)
        found.append(replace(it, field=kept[0] if kept else None))
    return tuple(found)


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
        filled = {it.name: _text(of.get(it.name, F.lit(None))) for it in division.columns}
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


def _text(value: Column) -> Column:
    text = value.cast("string")
    return F.when(text.isNull() | (text == _DEFAULT), F.lit(NOTHING)).otherwise(text)


def _folder(text: Column) -> Column:
    """Return a text as the name of a folder has it."""
    parts = F.split(text, f"(?={_ESCAPED})|(?<={_ESCAPED})")
    escaped = F.transform(
        parts,
        lambda part: F.when(part.rlike(f"^{_ESCAPED}$"), F.concat(F.lit("%"), F.lpad(F.hex(part), 2, "0"))).otherwise(
            part
        ),
    )
    return F.when(text.rlike(_ESCAPED), F.concat_ws("", escaped)).otherwise(text)
