"""What the steps of a migration do to a Hudi table, each in one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from cdc_sync.core.migration.capabilities import SchemaEvolution, can_compare
from cdc_sync.core.migration.derived import Steps, text_left
from cdc_sync.core.migration.migration import Backfill, JoinValues, Migration, RewriteTable
from cdc_sync.core.migration.modes import metadata_names
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.errors import TargetError
from cdc_sync.spark.columns import value_column
from cdc_sync.spark.conditions import all_of, any_of
from cdc_sync.spark.types import literal
from cdc_sync.targets.common.rewritten_rows import converted_rows
from cdc_sync.targets.hudi.partitions import after_changes, division, partitioning_of
from cdc_sync.targets.hudi.properties import Kept, Stamp, names_of
from cdc_sync.targets.hudi.rows import prepared, record_key
from cdc_sync.targets.hudi.schema import KEY, held_type
from cdc_sync.targets.hudi.table import HudiTable, Written
from cdc_sync.targets.hudi.timeline import Snapshot
from cdc_sync.targets.protocol import check_held, marker_after_join

_KEPT_COMMITS = 1000
"""So many commits later a state before a rewrite is given up: as long as it is kept, Hudi archives nothing."""


def following(table: HudiTable, now: Snapshot, progress: Progress | None) -> Callable[[Written], Stamp]:
    """Return what the next commit says, once it is known what it writes."""
    kept = now.stamp.kept
    if kept is not None:
        kept = replace(kept, age=kept.age + 1) if kept.age < _KEPT_COMMITS else None
        if kept is None:
            table.let_go(but=None)
    stamp = replace(now.stamp, progress=progress, kept=kept, goes_back_to=None, created=False)
    return lambda written: replace(stamp, rows=stamp.rows + written.inserted - written.deleted)


def alter(table: HudiTable, now: Snapshot, migration: Migration) -> None:
    """Commit other columns and nothing else; those that the table is divided by depend on nothing done in place."""
    stamp = now.stamp
    columns = table.columns_of(migration.schema, stamp.mode, now.columns.evolution, stamp.partitions)
    stamp = replace(stamp, version=migration.version, columns=names_of(migration.schema))
    table.commit("upsert", None, columns, following(table, replace(now, stamp=stamp), stamp.progress))


def rewrite(
    table: HudiTable,
    now: Snapshot,
    step: RewriteTable,
    migration: Migration,
    progress: Progress | None,
    kept: Kept | None,
) -> None:
    """Replace all files by others with the new columns; records keep their keys unless the key changes."""
    schema, mode = migration.schema, now.stamp.mode
    divided = divided_after(now.stamp, step.steps, schema)
    columns = table.columns_of(schema, mode, now.columns.evolution, divided.partitions)
    rows = converted_rows(table.rows(now.instant, now.columns), step, schema, [*metadata_names(mode), KEY])
    key = F.col(KEY)
    if mode == "upsert" and schema.primary_key:
        key = record_key([(F.col(quoted(column.name)), column.type) for column in schema.key_columns])
    stamp = replace(
        divided,
        version=migration.version,
        columns=names_of(schema),
        progress=progress,
        kept=kept,
        goes_back_to=None,
        created=False,
    )
    struct = table.struct(columns)
    table.commit(
        "overwrite",
        prepared(rows, struct, _given(struct, rows), key=key, division=division(divided.partitions, schema, mode)),
        columns,
        lambda written: replace(stamp, rows=written.inserted),
    )


def divided_after(stamp: Stamp, steps: Steps, schema: InternalSchema) -> Stamp:
    """Return a stamp that says what rows are divided by after changes of columns, which lead to a schema."""
    partitions = after_changes(stamp.partitions, steps, schema, stamp.mode)
    left = text_left(stamp.partition_by, partitioning_of(stamp.partitions), partitioning_of(partitions))
    return replace(stamp, partitions=partitions, partition_by=left)


def change_regime(table: HudiTable, now: Snapshot, schema: InternalSchema, evolution: SchemaEvolution) -> None:
    """Replace all files by others that are read in another way; records keep their keys, and the table its stamp.

    Files from before are not read again, so none has to be read in both ways. What a savepoint keeps would be, and is
    given up; repeated after a crash, only that is done.

    Args:
        schema: the columns that the table has, in the names that it holds.

    Raises:
        TargetError: if the table has others than these: a step that was begun has to be ended first; or if it is
            partitioned, which no table is whose columns are found by ids.
    """
    if now.columns.evolution != evolution:
        if now.stamp.partitions:
            raise TargetError(
                f"Cannot change the regime of {table.path}: it is partitioned, and Spark shows wrong values of the "
                "columns that it is partitioned by where columns are found by ids; set schema_evolution: on_write again"
            )
        table.merge_logs()
        now = present(table)
        columns = table.columns_of(schema, now.stamp.mode, evolution, ())
        struct = table.struct(columns)
        if _shape(struct) != _shape(table.struct(now.columns)):
            raise TargetError(
                f"Cannot change the regime of {table.path}: a join of its columns is not complete; set "
                f"schema_evolution: {now.columns.evolution} again until it is"
            )
        stamp = replace(now.stamp, kept=None, goes_back_to=None, created=False)
        table.commit(
            "overwrite",
            prepared(table.rows(now.instant, now.columns), struct, values_of(struct), key=F.col(KEY)),
            columns,
            lambda written: replace(stamp, rows=written.inserted),
        )
    table.let_go(but=None)


def restamp(table: HudiTable, now: Snapshot, partitioning: Partitioning, held: Partitioning) -> None:
    """Say by which text the table is divided that is divided so already.

    Args:
        partitioning: as it is configured.
        held: the same in the names that the table holds.

    Raises:
        TargetError: if it is divided in another way, which it is for good.
    """
    if set(held.fields) != set(partitioning_of(now.stamp.partitions).fields):
        raise TargetError(f"Cannot partition {table.path} by {partitioning}: a Hudi table stays as it was made")
    if now.stamp.partition_by != str(partitioning):
        stamp = replace(now.stamp, partition_by=str(partitioning))
        table.commit("upsert", None, now.columns, following(table, replace(now, stamp=stamp), stamp.progress))


def fill(table: HudiTable, now: Snapshot, step: Backfill, schema: InternalSchema, progress: Progress) -> None:
    """Give the rows that are there the values of new columns; `schema` is the table's."""
    rows = table.rows(now.instant, now.columns)
    # All columns of one step are new, so they are NULL in exactly the rows that are not filled yet.
    unfilled = rows.where(all_of(rows[quoted(column.name)].isNull() for column in step.columns))
    values = {column.name: literal(column.initial, column.type) for column in step.columns}
    _update(table, now, schema, unfilled, values, progress)


def join(table: HudiTable, now: Snapshot, step: JoinValues, said: DataFrame | None) -> None:
    """Fill the column that stays, under the name it was kept under; readers find the new name when all is there."""
    if now.stamp.progress is None:
        return  # no rows yet
    into = step.schema.column(step.into)
    columns = tuple(replace(it, type=step.type) if it.id == into.id else it for it in step.schema.columns)
    schema = replace(step.schema, columns=columns)
    wanted = table.columns_of(schema, now.stamp.mode, now.columns.evolution, now.stamp.partitions)
    wider = now if table.struct(wanted) == table.struct(now.columns) else replace(now, columns=wanted)
    progress = marker_after_join(now.stamp.progress, step.version)
    rows = table.rows(now.instant, now.columns)
    held = rows[quoted(into.name)].cast(held_type(step.type))
    if now.stamp.mode == "append" or not step.schema.primary_key:
        newer = [rows[quoted(step.schema.column(id_).name)] for id_ in step.joined]
        missing = rows.where(held.isNull() & any_of(value.isNotNull() for value in newer))
        value = F.coalesce(held, *(item.cast(held_type(step.type)) for item in newer))
        _update(table, wider, schema, missing, {into.name: value}, progress)
    elif said is not None:
        key = record_key([(F.col(value_column(column.id)), column.type) for column in step.schema.key_columns])
        given = said.select(key.alias("said_of"), F.col(value_column(into.id)).alias("said"))
        joined = rows.join(given, F.col(KEY) == F.col("said_of"))
        changed = joined.where(~held.eqNullSafe(F.col("said"))) if can_compare(step.type) else joined
        _update(table, wider, schema, changed, {into.name: F.col("said")}, progress)


def _update(
    table: HudiTable,
    now: Snapshot,
    schema: InternalSchema,
    rows: DataFrame,
    values: Mapping[str, Column],
    progress: Progress,
) -> None:
    """Change values of records that are there; `rows` has all columns of the table."""
    struct = table.struct(now.columns)
    divided = division(now.stamp.partitions, schema, now.stamp.mode)
    changed = prepared(rows, struct, values_of(struct) | dict(values), key=F.col(KEY), division=divided)
    table.commit("upsert", changed, now.columns, following(table, now, progress))


def present(table: HudiTable) -> Snapshot:
    """Return the newest state of a table that has to be there."""
    return _there(table, table.snapshot())


def to_change(table: HudiTable, behind: Progress | None) -> Snapshot:
    """Begin a change: return the newest state of a table that has to be there and to hold what it is known to.

    Raises:
        TargetMoved: if it holds something else, or is changed just now.
    """
    now = _there(table, table.begin())
    check_held(table.path, now.stamp.progress, behind)
    return now


def _there(table: HudiTable, now: Snapshot | None) -> Snapshot:
    if now is None:
        raise TargetError(f"Cannot use {table.path}: there is no table")
    return now


def _shape(struct: StructType) -> list[tuple[str, DataType]]:
    return [(field.name, field.dataType) for field in struct.fields]


def _given(struct: StructType, rows: DataFrame) -> dict[str, Column]:
    """Return as its own value each column that rows have: what a table is divided by is computed."""
    return {name: value for name, value in values_of(struct).items() if name in rows.columns}


def values_of(struct: StructType) -> dict[str, Column]:
    """Return each column as its own value."""
    return {field.name: F.col(quoted(field.name)) for field in struct.fields}
