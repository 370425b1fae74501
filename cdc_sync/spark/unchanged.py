"""The last event of each key where events leave values out that did not change (placeholders, of TOAST columns mostly).

Only for ranges in which the write job met a placeholder; all others are reduced by `latest`. One of the three places
that collect from records (with `observe` and `lineages`): counts and ids of columns reach the driver, no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.spark.columns import CREATED, DELETED, OFFSET, OP, doubt_column, unchanged_column, value_column
from cdc_sync.spark.conditions import all_of, any_of
from cdc_sync.spark.latest import begins_with_row, together

FORGOTTEN = "forgotten"
"""Of a batch's row: a delete in the batch ended what was known of the key, and no later event has all the values."""

RECEIVED_AT = "received_at"
"""Of a carried row: the offset of the create that takes the values over."""

DOUBTS = UNSENT, UNREAD, OVERFLOWN = "unsent", "unread", "overflown"
"""Doubts of a value: it may be one that did not change and was left out; it may be an array that was not read; it is a
negative number that is none at the source."""

_LAST, _ENDED, _HAS = "last", "ended", "has"


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
        TRUE where the batch does not have the value, which is NULL then. The contract of `targets.protocol.Batch`.
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


def doubted(events: DataFrame, ids: Sequence[int]) -> dict[str, frozenset[int]]:
    """Return by doubt (see `compile`) in which columns events have one.

    Args:
        events: with `doubt_column(id)` for each of `ids`.
    """
    found: dict[str, frozenset[int]] = {}
    if not ids:
        return found
    (row,) = events.agg(*(F.collect_set(doubt_column(id_)).alias(doubt_column(id_)) for id_ in ids)).collect()
    for id_ in ids:
        for doubt in row[doubt_column(id_)]:
            found[doubt] = found.get(doubt, frozenset()) | {id_}
    return found


def kept_in_doubt(
    events: DataFrame, schema: InternalSchema, ids: Iterable[int], unchanged: Sequence[int], held: DataFrame
) -> frozenset[int]:
    """Return the columns that keep a value in some row though the source may have set it to NULL.

    A row that took its values over from another key counts without a look at them. Where no value is kept, NULL is
    right either way.

    Args:
        events: all of a range, with `unchanged_column(id)` and `doubt_column(id)`.
        ids: of the columns to look at; they are among `unchanged`.
        held: the target's rows before the write, with the columns of the key and of `ids`.
    """
    looked_at = [id_ for id_ in ids if id_ in unchanged]
    if not looked_at:
        return frozenset()
    keys = [value_column(id_) for id_ in schema.primary_key]
    alive = F.col(OP) != "d"

    def of_key(id_: int) -> list[Column]:
        in_doubt = F.coalesce(F.col(doubt_column(id_)) == UNSENT, F.lit(False)) & alive
        known = F.struct(F.col(OFFSET).alias(OFFSET), F.col(value_column(id_)).isNotNull().alias(_HAS))
        return [
            F.max(F.when(in_doubt, F.col(OFFSET))).alias(f"doubt{id_}"),
            F.max_by(known, F.when(alive & ~F.col(unchanged_column(id_)), F.col(OFFSET))).alias(f"known{id_}"),
            F.bool_or(in_doubt & (F.col(OP) == "c")).alias(f"moved{id_}"),
        ]

    ended = F.max(F.when(F.col(OP) == "d", F.col(OFFSET))).alias(_ENDED)
    of_keys = events.groupBy(*keys).agg(ended, *(column for id_ in looked_at for column in of_key(id_)))
    there = held.select(*keys, *(F.col(value_column(id_)).isNotNull().alias(f"held{id_}") for id_ in looked_at))

    def keeps(id_: int) -> Column:
        doubt, known = F.col(f"doubt{id_}"), F.col(f"known{id_}")
        since_end = known.isNotNull() & (_is_behind(known.getField(OFFSET), F.col(_ENDED)))
        of_batch = (doubt > known.getField(OFFSET)) & known.getField(_HAS)
        of_target = F.col(f"moved{id_}") | (F.col(_ENDED).isNull() & F.coalesce(F.col(f"held{id_}"), F.lit(False)))
        kept = F.when(since_end, of_batch).otherwise(of_target)
        return doubt.isNotNull() & _is_behind(doubt, F.col(_ENDED)) & kept

    joined = of_keys.join(there, keys, "left")
    (row,) = joined.agg(*(F.bool_or(keeps(id_)).alias(value_column(id_)) for id_ in looked_at)).collect()
    return frozenset(id_ for id_ in looked_at if row[value_column(id_)])


def _is_behind(offset: Column, end: Column) -> Column:
    return end.isNull() | (offset > end)


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
