"""Rows that changed their key: which delete and create are one update, and the values the new row takes over.

A source that updates a key sends a delete of the old key and a create of the new one, at one source position. Where the
create leaves unchanged values out, they are those of the row under the old key: of an event of it in the range, else of
the target's row as it is before the commit. A chain of such updates is followed from key to key, so a range never has
to be cut for it.

A *segment* is what one row was under one key: the key's events up to and with a delete. It is named by its first event,
whose offset counts double, for one update of a declared key is both a delete and a create.
One of the places that collect from records: partitions and offsets reach the driver, no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.model.offsets import Place
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.spark.columns import OFFSET, OP, PARTITION, POSITION, unchanged_column, value_column
from cdc_sync.spark.conditions import any_of
from cdc_sync.spark.local_rows import local_rows
from cdc_sync.spark.position import PARTS
from cdc_sync.spark.unchanged import RECEIVED_AT, newest_known

_SEGMENT, _IS_FIRST = "segment", "is_first"
_CHAIN, _DEPTH, _HELD = "chain", "depth", "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One update of a key: the segment that its delete ends, the one its create is in, and the create."""

    donor: Place
    receiver: Place
    create: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A segment's place in the life of one row.

    Attributes:
        chain: number of the row's life; arbitrary.
        depth: 0 for the segment under the first key.
        create: the create that takes over the values of the segment before; None in the first segment.
    """

    segment: Place
    chain: int
    depth: int
    create: Place | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineages:
    """Rows that changed their key, and creates that leave values out and whose delete was not found.

    Attributes:
        unlinked: in order; the delete is in a range before, in one that another partition has yet to reach, or
            the connector's positions do not tell it.
    """

    steps: tuple[Step, ...]
    unlinked: tuple[Place, ...]


def find_lineages(
    converted: DataFrame, schema: InternalSchema, unchanged: Sequence[int], starts: Mapping[int, int] | None = None
) -> Lineages:
    """Find the key updates whose create leaves a value out.

    Args:
        converted: events with `unchanged_column(id)` for each of `unchanged`, and `position`.
        starts: partition -> first offset of the events to be written, where `converted` begins earlier to look back.
            Of the creates before it, only those are reported as unlinked whose values a later one takes over.
    """
    links: list[Link] = []
    unlinked: dict[Place, Place] = {}
    for row in _halves(_segments(converted, schema), schema, unchanged).collect():
        pairs = _pairs(row)
        links += (_link(delete, create) for delete, create in pairs)
        linked = {_place(create, OFFSET) for _, create in pairs}
        left = ((_place(create, OFFSET), create) for create in row.creates if create.leaves_out)
        unlinked |= {place: _place(create, _SEGMENT) for place, create in left if place not in linked}
    found = steps(links)
    roots = _roots(found, starts or {})
    wanted = (place for place, segment in unlinked.items() if segment in roots or _counted(place, starts or {}))
    return Lineages(steps=found, unlinked=tuple(sorted(wanted)))


def _roots(found: Sequence[Step], starts: Mapping[int, int]) -> frozenset[Place]:
    """Return the first segments of the chains that lead to a create that counts."""
    chains = {step.chain for step in found if _counted(step.create, starts)}
    return frozenset(step.segment for step in found if step.depth == 0 and step.chain in chains)


def find_delete(converted: DataFrame, create: Place) -> Place | None:
    """Return the delete at a create's source position, the last one if the connector repeated it.

    Args:
        converted: the create itself and events to look through, from as far back as may be.
    """
    is_it = (F.col(PARTITION) == create.partition) & (F.col(OFFSET) == create.offset)
    told = F.size(F.col(POSITION).getField(PARTS)) > 0
    wanted = converted.where(is_it & told).select(POSITION)
    deletes = converted.where(F.col(OP) == "d").join(F.broadcast(wanted), POSITION, "left_semi")
    return max((_place(row, OFFSET) for row in deletes.select(PARTITION, OFFSET).collect()), default=None)


def _pairs(row: Row) -> list[tuple[Row, Row]]:
    """Return the deletes and creates at one position that belong together, as far as that is certain."""
    by_record = {_place(delete, OFFSET): delete for delete in row.deletes}
    same = [(by_record[place], create) for create in row.creates if (place := _place(create, OFFSET)) in by_record]
    if same or row.old_keys != 1 or row.new_keys != 1:
        return same
    # A connector that repeats events repeats both halves: the n-th last delete belongs to the n-th last create.
    deletes, creates = (sorted(half, key=_offset, reverse=True) for half in (row.deletes, row.creates))
    return list(zip(deletes, creates, strict=False))


def _offset(row: Row) -> int:
    return int(row[OFFSET])


def _place(row: Row, column: str) -> Place:
    return Place(partition=row[PARTITION], offset=row[column])


def _link(delete: Row, create: Row) -> Link:
    return Link(donor=_place(delete, _SEGMENT), receiver=_place(create, _SEGMENT), create=_place(create, OFFSET))


def steps(links: Iterable[Link]) -> tuple[Step, ...]:
    """Follow the links from the first segment of each row to its last.

    A segment gives to one other, for one delete ends it; of several creates that would take over in one segment, which
    only repeated events make, the first does.
    """
    by_receiver: dict[Place, Link] = {}
    for link in sorted(links, key=lambda link: link.create):
        by_receiver.setdefault(link.receiver, link)
    by_donor = {link.donor: link for link in by_receiver.values()}
    found = []
    for chain, first in enumerate(sorted(by_donor.keys() - by_receiver.keys())):
        found.append(Step(segment=first, chain=chain, depth=0, create=None))
        segment = first
        while segment in by_donor:
            link = by_donor[segment]
            segment = link.receiver
            found.append(Step(segment=segment, chain=chain, depth=found[-1].depth + 1, create=link.create))
    return tuple(found)


def _segments(converted: DataFrame, schema: InternalSchema) -> DataFrame:
    """Add what names the segment in its partition, and whether the key has no earlier segment here."""
    keys = [value_column(id_) for id_ in schema.primary_key]
    in_order = Window.partitionBy(*keys).orderBy(OFFSET)
    before = F.lag(OP).over(in_order)
    number = F.col(OFFSET) * 2 + (F.col(OP) != "d").cast("long")
    begins = F.when(before.isNull() | (before == "d"), number)
    return (
        converted.withColumn("begins", begins)
        .withColumn(_SEGMENT, F.last("begins", ignorenulls=True).over(in_order))
        .withColumn(_IS_FIRST, F.col(_SEGMENT) == F.first(number).over(in_order))
        .drop("begins")
    )


def _halves(segments: DataFrame, schema: InternalSchema, unchanged: Sequence[int]) -> DataFrame:
    """Return `deletes`, `creates`, `old_keys`, `new_keys` for each position with a create that leaves a value out."""
    key = F.struct(*(value_column(id_) for id_ in schema.primary_key))
    flags = any_of([F.lit(False), *(F.col(unchanged_column(id_)) for id_ in unchanged)])
    is_delete, is_create = F.col(OP) == "d", F.col(OP) == "c"
    told = F.size(F.col(POSITION).getField(PARTS)) > 0
    place = F.struct(PARTITION, OFFSET, _SEGMENT, "leaves_out")
    halves = (
        segments.where(is_delete | is_create)
        .select(PARTITION, OFFSET, OP, _SEGMENT, POSITION, key.alias("key"), (is_create & flags).alias("leaves_out"))
        # Events without a position are equal in it, which says nothing; each record is a group of its own then.
        .withColumn("alone", F.when(~told, F.struct(PARTITION, OFFSET)))
    )
    return (
        halves.groupBy(POSITION, "alone")
        .agg(
            F.collect_list(F.when(is_delete, place)).alias("deletes"),
            F.collect_list(F.when(is_create, place)).alias("creates"),
            F.size(F.collect_set(F.when(is_delete, F.col("key")))).alias("old_keys"),
            F.size(F.collect_set(F.when(is_create, F.col("key")))).alias("new_keys"),
            F.max("leaves_out").alias("wanted"),
        )
        .where("wanted")
        .select("deletes", "creates", "old_keys", "new_keys")
    )


def carry(
    converted: DataFrame,
    schema: InternalSchema,
    unchanged: Sequence[int],
    found: Lineages,
    held: DataFrame,
    starts: Mapping[int, int] | None = None,
) -> DataFrame:
    """Look up what the creates of key updates take over.

    Where the target has a row under the new key already, the connector repeats an event that is in the table, and the
    row's own values are the ones to keep.

    Args:
        converted: the events `found` was made from.
        held: the target's rows as they are before the first of these events, `value_column(id)` of the key's columns
            and of `unchanged`.
        starts: partition -> first offset of creates to look it up for, where `converted` begins earlier to look back.

    Returns:
        `value_column(id)` of the key's columns, `received_at`, and for each of `unchanged` `value_column(id)`, a struct
        of `value`, NULL where nothing is known: what `fold` takes as `carried`.
    """
    keys = [value_column(id_) for id_ in schema.primary_key]
    left_out = [id_ for id_ in unchanged if id_ not in schema.primary_key]
    lives = _lives(_segments(converted, schema), keys, left_out, _places(found, starts or {}))
    rows = held.select(*keys, F.struct(F.lit(1).alias("row"), *(value_column(id_) for id_ in left_out)).alias(_HELD))
    # The target is read once, past the few keys; what is left of it is small.
    rows = rows.join(F.broadcast(lives.where(_IS_FIRST).select(*keys).distinct()), keys)
    lives = lives.join(rows, keys, "left").withColumn(_HELD, F.when(F.col(_IS_FIRST), F.col(_HELD)))
    earlier = Window.partitionBy(_CHAIN).orderBy(_DEPTH).rowsBetween(Window.unboundedPreceding, -1)
    return (
        lives.select(
            *keys,
            RECEIVED_AT,
            _HELD,
            *(
                F.last(F.coalesce(_known(id_), _in_table(id_)), ignorenulls=True).over(earlier).alias(value_column(id_))
                for id_ in left_out
            ),
        )
        .where(F.col(RECEIVED_AT).isNotNull() & F.col(_HELD).isNull())
        .drop(_HELD)
    )


def _known(id_: int) -> Column:
    newest = F.col(value_column(id_))
    return F.when(newest.isNotNull(), F.struct(newest.getField("value").alias("value")))


def _in_table(id_: int) -> Column:
    row = F.col(_HELD)
    return F.when(row.isNotNull(), F.struct(row.getField(value_column(id_)).alias("value")))


_STEP_TYPE = T.StructType(
    [
        T.StructField(PARTITION, T.IntegerType()),
        T.StructField(_SEGMENT, T.LongType()),
        T.StructField(_CHAIN, T.IntegerType()),
        T.StructField(_DEPTH, T.IntegerType()),
        T.StructField(RECEIVED_AT, T.LongType()),
    ]
)


def _places(found: Lineages, starts: Mapping[int, int]) -> list[tuple[int, int, int, int, int | None]]:
    return [
        (step.segment.partition, step.segment.offset, step.chain, step.depth, _received_at(step.create, starts))
        for step in found.steps
    ]


def _received_at(create: Place | None, starts: Mapping[int, int]) -> int | None:
    return create.offset if create is not None and _counted(create, starts) else None


def _counted(create: Place | None, starts: Mapping[int, int]) -> bool:
    return create is not None and create.offset >= starts.get(create.partition, 0)


def _lives(
    segments: DataFrame,
    keys: Sequence[str],
    left_out: Sequence[int],
    places: Sequence[tuple[int, int, int, int, int | None]],
) -> DataFrame:
    """Return one row for each step: its key, whether it is the key's first segment, and the newest known values."""
    steps_of_lives = local_rows(segments.sparkSession, places, _STEP_TYPE)
    return (
        segments.join(F.broadcast(steps_of_lives), [PARTITION, _SEGMENT])
        .groupBy(_CHAIN, _DEPTH, RECEIVED_AT, _IS_FIRST, *keys)
        .agg(F.lit(1).alias("one"), *(newest_known(id_).alias(value_column(id_)) for id_ in left_out))
        .drop("one")
    )
