"""Which partitions of a Parquet table rows belong to, and which ones a batch touches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StringType, StructType

from cdc_sync.core.migration.capabilities import PARQUET
from cdc_sync.core.migration.derived import Steps, derived_columns, followed, held_partitioning, text_left
from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.spark.columns import DELETED, unchanged_column, value_column
from cdc_sync.spark.conditions import all_of
from cdc_sync.spark.derived import derived_sql
from cdc_sync.spark.types import to_spark
from cdc_sync.spark.unchanged import FORGOTTEN
from cdc_sync.targets.hive.partitions import Values
from cdc_sync.targets.parquet.properties import NULL, Key, Stamp
from cdc_sync.targets.parquet.rows import new_rows
from cdc_sync.targets.protocol import Batch

_FIRST_DAY, _LAST_DAY = "0001-01-01", "9999-12-31"


def divided_by(stamp: Stamp, partitioning: Partitioning, schema: InternalSchema) -> Stamp:
    """Return what a state says that is divided as configured.

    Args:
        stamp: what it says of everything else; nothing of it holds that was said of partitions.
        partitioning: in the source's names, whose text is stamped.
        schema: the table's columns, in the names that it holds.
    """
    held = held_partitioning(partitioning, PARQUET.columns)
    keys = keys_of(held, schema, stamp.mode)
    return replace(stamp, partitioning=held, partition_by=str(partitioning), keys=keys, partitions=())


def still_divided(stamp: Stamp, steps: Steps, schema: InternalSchema) -> Stamp:
    """Return what a state says whose columns changed: what they took along is not in its partitioning any more.

    Args:
        stamp: with the partitioning of before.
        steps: each change with the schema that it is applied to.
        schema: the columns after them, all in the names that the table holds.
    """
    left = followed(stamp.partitioning, steps)
    text = text_left(stamp.partition_by, stamp.partitioning, left)
    return replace(stamp, partitioning=left, partition_by=text, keys=keys_of(left, schema, stamp.mode))


def keys_of(partitioning: Partitioning, schema: InternalSchema, mode: Mode) -> tuple[Key, ...]:
    """Return the keys of a table with these columns; both have the names that it holds."""
    found = derived_columns(partitioning, schema, mode, PARQUET.columns)
    keys = []
    for item in found:
        type_ = to_spark(item.type)
        sql = derived_sql(item, quoted(item.field.column))
        if isinstance(type_, DateType):
            # What comes before and after has no text that every reader takes for a date, and one is enough for it to
            # fail at all partitions.
            sql = f"CASE WHEN {sql} BETWEEN DATE'{_FIRST_DAY}' AND DATE'{_LAST_DAY}' THEN {sql} END"
        if isinstance(type_, StringType):
            # A text that is written as NULL is would make a second folder of the same name.
            sql = f"NULLIF({sql}, '{NULL}')"
        keys.append(Key(name=item.name, type=type_, sql=sql))
    return tuple(keys)


def divided(rows: DataFrame, stamp: Stamp) -> DataFrame:
    """Return rows with their keys behind the columns, those of a partition together."""
    keyed = rows.select("*", *(F.expr(key.sql).alias(key.name) for key in stamp.keys))
    return keyed.repartition(*(quoted(key.name) for key in stamp.keys))


def partitions_of(rows: DataFrame, stamp: Stamp) -> frozenset[Values]:
    """Return the partitions that rows belong to, which have the table's columns; those with a part in a key will do.

    What is collected are partitions, not rows.
    """
    found = rows.select(*(_text(key).alias(key.name) for key in stamp.keys)).distinct().collect()
    return frozenset(tuple(row) for row in found)


def touched(batch: Batch, table: DataFrame, stamp: Stamp) -> frozenset[Values]:
    """Return the partitions that a batch takes rows out of or puts rows into, and maybe some more.

    Args:
        batch: of a table with a key; its schema has the names of the table.
        table: all rows; of most columns nothing is read.
    """
    schema, struct = batch.schema, stamp.struct
    sources = {item.column for item in stamp.partitioning.fields}
    if sources <= {column.name for column in schema.key_columns}:
        # A row's partition follows from its key: it was never in another one.
        return partitions_of(new_rows(batch.rows, schema, struct), stamp)
    left = new_rows(batch.rows.where(~F.col(DELETED)), schema, struct)
    names = [field.name for field in struct.fields if field.name in sources]
    return partitions_of(left.select(*map(quoted, names)).unionByName(_moved(batch, table, struct, names)), stamp)


def _moved(batch: Batch, table: DataFrame, struct: StructType, names: list[str]) -> DataFrame:
    """Return what rows of the table that are in a batch have in some columns, before it and after it."""
    schema = batch.schema
    columns = [column for column in schema.columns if column.name in names]
    read = {column.id: column for column in (*columns, *schema.key_columns)}
    before = table.select(*(table[quoted(column.name)].alias(f"h{id_}") for id_, column in read.items()))
    same = all_of(
        before[f"h{column.id}"].eqNullSafe(F.col(value_column(column.id)).cast(struct[column.name].dataType))
        for column in schema.key_columns
    )
    after: Mapping[str, Column] = {
        column.name: F.when(
            F.col(unchanged_column(column.id)) & ~F.col(FORGOTTEN) if column.id in batch.unchanged else F.lit(False),
            F.col(f"h{column.id}"),
        ).otherwise(F.col(value_column(column.id)).cast(struct[column.name].dataType))
        for column in columns
        if not column.retired
    }
    was = F.struct(*(F.col(f"h{column.id}").alias(column.name) for column in columns))
    becomes = F.struct(*(after.get(column.name, F.col(f"h{column.id}")).alias(column.name) for column in columns))
    both = F.array(was, F.when(~F.col(DELETED), becomes))
    found = before.join(batch.rows, same).select(F.explode(both).alias("row"))
    return found.where(F.col("row").isNotNull()).select("row.*")


def _text(key: Key) -> Column:
    """Return what the metastore has for a row's key. Source: Spark, `ExternalCatalogUtils.getPartitionPathString`."""
    return F.coalesce(F.nullif(F.expr(f"CAST({key.sql} AS STRING)"), F.lit("")), F.lit(NULL))
