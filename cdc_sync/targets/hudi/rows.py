"""Rows as a Hudi commit takes them: each says which record it is, and in which file the record lies.

A record's key is a text that is computed from the key's values, so that it does not change when a column is renamed or
widened. Hudi's own key generators name the columns in it, and nothing tells `a:1,b:2` from one value that is so.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.types import BinaryType, DataType, FloatType, ListType, MapType, StructType
from cdc_sync.spark.columns import CREATED, unchanged_column, value_column
from cdc_sync.spark.columns import DELETED as ROW_DELETED
from cdc_sync.spark.conditions import any_of
from cdc_sync.spark.unchanged import FORGOTTEN
from cdc_sync.targets.hudi.partitions import UNDIVIDED, Division, placed
from cdc_sync.targets.hudi.schema import COMMIT_TIME, DELETED, FILE_NAME, KEY, META, PARTITION_PATH
from cdc_sync.targets.protocol import MISSING_ROW, UNKNOWN_VALUE, Batch

_FOUND, _HELD = "found", "h"
"""Of a batch's row joined with the table: the key of the record that was found; what begins the names of its values."""


def record_key(values: Sequence[tuple[Column, DataType]]) -> Column:
    """Return the record's key; no two keys have one text, and equal keys have the same."""
    texts = [_text(value, type_) for value, type_ in values]
    if len(texts) == 1:
        return texts[0]
    return F.concat(*_separated([_escaped(text) for text in texts]))


def new_key() -> Column:
    """Return the key of a row that nothing tells from its copies."""
    return F.expr("uuid()")


def _text(value: Column, type_: DataType) -> Column:
    match type_:
        case FloatType():
            # As a double, so that widening keeps it; -0.0 becomes 0.0, which it is equal to.
            return (value.cast("double") + F.lit(0.0)).cast("string")
        case BinaryType():
            return F.hex(value)
        case StructType() | ListType() | MapType():
            return F.to_json(F.struct(value.alias("k")))
        case _:
            return value.cast("string")


def _escaped(text: Column) -> Column:
    return F.regexp_replace(text, r"([\\,])", r"\\$1")


def _separated(texts: Sequence[Column]) -> list[Column]:
    found = [texts[0]]
    for text in texts[1:]:
        found += [F.lit(","), text]
    return found


def prepared(
    rows: DataFrame,
    struct: T.StructType,
    values: dict[str, Column],
    *,
    key: Column,
    deleted: Column | None = None,
    division: Division = UNDIVIDED,
) -> DataFrame:
    """Return rows that say where they belong.

    Args:
        rows: with `_hoodie_commit_time`, `_hoodie_file_name` and `_hoodie_partition_path` of the record that each
            replaces; without the columns, or where they are NULL, a row is a new record.
        struct: the table's columns.
        values: what each has, by name; NULL if it is not named.
        key: the record's key.
        deleted: whether the record goes; none does if it is not given.
        division: what the table is partitioned by.
    """
    place = {name: F.col(name) for name in (COMMIT_TIME, PARTITION_PATH, FILE_NAME) if name in rows.columns}
    own = {**place, KEY: key}
    if not division.columns:
        own[PARTITION_PATH] = F.lit("")
    nothing = F.lit(None)
    found = rows.select(
        *(own.get(name, nothing).cast("string").alias(name) for name in META),
        (F.lit(False) if deleted is None else deleted).alias(DELETED),
        *(values.get(field.name, nothing).cast(field.dataType).alias(field.name) for field in struct.fields),
    )
    return placed(found, division) if division.columns else found


def appended(
    rows: DataFrame, schema: InternalSchema, struct: T.StructType, *, keyed: bool, division: Division = UNDIVIDED
) -> DataFrame:
    """Return rows of `value_column(id)` (and a changelog's metadata) as new records."""
    key = _key_of(schema) if keyed else new_key()
    values = {field.name: F.col(quoted(field.name)) for field in struct.fields if field.name in rows.columns}
    # These count, for a column of the source may have the very name of one of ours: `created`, `c1`.
    values |= {column.name: F.col(value_column(column.id)) for column in schema.columns}
    return prepared(rows, struct, values, key=key, division=division)


def _key_of(schema: InternalSchema) -> Column:
    return record_key([(F.col(value_column(column.id)), column.type) for column in schema.key_columns])


def merged(batch: Batch, table: DataFrame, struct: T.StructType, division: Division = UNDIVIDED) -> DataFrame:
    """Return what becomes of each row of a batch, as `targets.merge` has it for formats that know MERGE.

    Args:
        batch: of a table with a key; its schema has the names of the table.
        table: all rows, with Hudi's own columns.
        struct: the table's columns.
    """
    schema = batch.schema
    # A retired column keeps what it has: the source says nothing about it any more.
    kept = [column for column in schema.columns if column.retired or column.id in batch.unchanged]
    found = table.select(
        F.col(KEY).alias(_FOUND),
        COMMIT_TIME,
        PARTITION_PATH,
        FILE_NAME,
        *(table[quoted(column.name)].alias(f"{_HELD}{column.id}") for column in kept),
    )
    rows = batch.rows.withColumn(KEY, _key_of(schema))
    joined = rows.join(found, F.col(KEY) == F.col(_FOUND), "left")
    is_there = F.col(_FOUND).isNotNull()
    values = {column.name: F.col(value_column(column.id)) for column in schema.columns}
    for column in kept:
        held, given = F.col(f"{_HELD}{column.id}"), F.col(value_column(column.id))
        stays = is_there if column.retired else F.col(unchanged_column(column.id)) & ~F.col(FORGOTTEN)
        values[column.name] = F.when(stays & is_there, held).otherwise(given.cast(struct[column.name].dataType))
    known = joined.where(_changes_something(batch, is_there))
    return prepared(known, struct, values, key=F.col(KEY), deleted=F.col(ROW_DELETED), division=division)


def _changes_something(batch: Batch, is_there: Column) -> Column:
    """Return whether a row is to be written; the job fails at one that must not be."""
    condition = is_there | ~F.col(ROW_DELETED)
    if batch.unchanged and batch.require_values:
        left_out = any_of([F.coalesce(F.col(unchanged_column(id_)), F.lit(False)) for id_ in batch.unchanged])
        unknown = F.when(is_there, F.col(FORGOTTEN)).otherwise(left_out)
        condition = F.when(~F.col(ROW_DELETED) & unknown, _failing(UNKNOWN_VALUE)).otherwise(condition)
    if batch.require_rows:
        condition = F.when(~is_there & ~F.col(CREATED), _failing(MISSING_ROW)).otherwise(condition)
    return condition


def _failing(problem: str) -> Column:
    return F.raise_error(F.lit(problem)).cast("boolean")
