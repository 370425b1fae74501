"""The last event of each key where events leave values out that did not change (placeholders, of TOAST columns mostly).

Only for ranges in which the write job met a placeholder; all others are reduced by `latest`. One of the three places
that collect from records (with `observe` and `lineages`): a count reaches the driver, no value.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_sync.schema.internal import InternalSchema
from cdc_sync.spark.columns import CREATED, DELETED, OFFSET, OP, unchanged_column, value_column
from cdc_sync.spark.conditions import all_of, any_of
from cdc_sync.spark.latest import begins_with_row, together

FORGOTTEN = "forgotten"
"""Of a batch's row: a delete in the batch ended what was known of the key, and no later event has all the values."""

RECEIVED_AT = "received_at"
"""Of a carried row: the offset of the create that takes the values over."""

_LAST, _ENDED = "last", "ended"


def fold(
    converted: DataFrame,
    schema: InternalSchema,
    unchanged: Sequence[int],
    carried: DataFrame | None = None,
    *,
    one_task: bool = False,
) -> DataFrame:
    """Reduce converted events to one row for each key, as `latest` does, and look for values that events leave out.

    A value that the key's last event leaves out is that of the newest event that has it. A delete ends what was known:
    only events after the key's last one count, and of those the create may have been carried the values of the row
    that a key update removed.

    Args:
        converted: events with `unchanged_column(id)`, all of them without a problem.
        unchanged: ids of the columns that have it.
        carried: what `lineages.carry` found for creates among the events.
        one_task: as of `latest`.

    Returns:
        `deleted`, `created`, `forgotten`, `value_column(id)` for each column of the schema, and `unchanged_column(id)`:
        TRUE where the batch does not have the value, which is NULL then. The contract of `targets.base.Batch`.
    """
    keys = tuple(value_column(id_) for id_ in schema.primary_key)
    left_out = [id_ for id_ in unchanged if id_ not in schema.primary_key]
    others = [column.id for column in schema.columns if column.id not in (*schema.primary_key, *left_out)]
    reduced = (
        together(converted, keys, one_task=one_task)
        .groupBy(*keys)
        .agg(
            F.max_by(F.struct(OP, *(value_column(id_) for id_ in others)), OFFSET).alias(_LAST),
            begins_with_row(F.col(OP), F.col(OFFSET)).alias(CREATED),
            F.max(F.when(F.col(OP) == "d", F.col(OFFSET))).alias(_ENDED),
            *(newest_known(id_).alias(value_column(id_)) for id_ in left_out),
        )
    )
    if carried is None:
        found = {id_: _since_end(id_) for id_ in left_out}
    else:
        reduced = _with_carried(reduced, carried, keys, left_out)
        found = {id_: F.coalesce(_since_end(id_), F.col(_carried(id_))) for id_ in left_out}
    return _as_rows(reduced, schema, found)


def newest_known(id_: int) -> Column:
    """Aggregate to the newest value that is no placeholder, a struct of `value` and `offset`; NULL if there is none."""
    value = F.struct(F.col(value_column(id_)).alias("value"), F.col(OFFSET).alias(OFFSET))
    has_it = (F.col(OP) != "d") & ~F.col(unchanged_column(id_))
    return F.max_by(value, F.when(has_it, F.col(OFFSET)))


def _since_end(id_: int) -> Column:
    """Return the newest known value as a struct; if that is older than the last delete, no later event has one."""
    newest = F.col(value_column(id_))
    current = F.col(_ENDED).isNull() | (newest.getField(OFFSET) > F.col(_ENDED))
    return F.when(newest.isNotNull() & current, F.struct(newest.getField("value").alias("value")))


def _carried(id_: int) -> str:
    return f"carried{id_}"


def _with_carried(reduced: DataFrame, carried: DataFrame, keys: Sequence[str], left_out: Sequence[int]) -> DataFrame:
    """Join the values that the create after the key's last delete takes over; one at most is carried to it."""
    given = carried.select(
        *(F.col(key).alias(f"to_{key}") for key in keys),
        RECEIVED_AT,
        *(F.col(value_column(id_)).alias(_carried(id_)) for id_ in left_out),
    )
    same_key = all_of(F.col(key) == F.col(f"to_{key}") for key in keys)
    alive = F.col(_ENDED).isNull() | (F.col(RECEIVED_AT) > F.col(_ENDED))
    return reduced.join(given, same_key & alive, "left")


def _as_rows(reduced: DataFrame, schema: InternalSchema, found: dict[int, Column]) -> DataFrame:
    last, deleted = F.col(_LAST), F.col(_LAST).getField(OP) == "d"
    unknown = {id_: F.when(found[id_].isNotNull(), False).otherwise(~deleted) for id_ in found}
    forgotten = F.col(_ENDED).isNotNull() & any_of((F.lit(False), *unknown.values()))

    def value(id_: int) -> Column:
        if id_ in schema.primary_key:
            return F.col(value_column(id_))
        if id_ in found:
            return F.when(~deleted, found[id_].getField("value"))
        return last.getField(value_column(id_))

    return reduced.select(
        deleted.alias(DELETED),
        CREATED,
        forgotten.alias(FORGOTTEN),
        *(value(column.id).alias(value_column(column.id)) for column in schema.columns),
        *(unknown[id_].alias(unchanged_column(id_)) for id_ in found),
    )


def count_unknown(rows: DataFrame, schema: InternalSchema, unchanged: Sequence[int], held: DataFrame) -> int:
    """Count the rows that a write without `Batch.require_values` stores with NULL for a value nobody knows.

    Args:
        rows: what `fold` returned.
        held: the target's rows before the write, `value_column(id)` of the key's columns at least.
    """
    keys = [value_column(id_) for id_ in schema.primary_key]
    left_out = [F.col(unchanged_column(id_)) for id_ in unchanged if id_ not in schema.primary_key]
    open_rows = rows.where(~F.col(DELETED) & any_of((F.lit(False), *left_out))).select(FORGOTTEN, *keys)
    present = held.select(*keys, F.lit(True).alias("held"))
    return open_rows.join(present, keys, "left").where(F.col(FORGOTTEN) | F.col("held").isNull()).count()
