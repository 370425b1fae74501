"""The one place that collects from records: which schemas are in a range, where each begins, and what is broken.

Runs only when a range may hold something new. What reaches the driver is one small row for each stretch of events
that share a schema; samples are fetched by offset afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from cdc_sync.core.debezium.position import FIRST, LAST, READING
from cdc_sync.core.model.incarnations import Began, Fall
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.planning.problems import Trouble
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.spark.columns import LSN, MADE_UP, OFFSET, OP, PARTITION, PROBLEM, TOPIC, value_column
from cdc_sync.spark.conditions import any_of, any_or_false, by_partition, first_of, names_table
from cdc_sync.spark.eventreader import EventReader
from cdc_sync.spark.falls import Before, reached_before, with_falls
from cdc_sync.spark.kept import Projection
from cdc_sync.spark.position import INCARNATION, KIND, PARTS, incarnation_of, literal_position, position_of


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRecords:
    """Records that are not changes of a table, by schema text; `digest` is empty where no schema was found."""

    digest: str
    first: KafkaPosition
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a range holds.

    Attributes:
        falls: for each table under which the source's log begins anew here, the first event that proves it; the
            stretches are in no order then.
    """

    stretches: tuple[Stretch, ...]
    others: tuple[OtherRecords, ...]
    falls: Mapping[TableId, Fall] = field(default_factory=dict)


_MAX_SCHEMAS = 10_000


def survey(
    records: DataFrame,
    events: EventReader,
    ends: Mapping[tuple[str, int], int],
    cuts: Mapping[TableId, Sequence[SourcePosition]] | None = None,
    before: Before | None = None,
) -> Survey:
    """Find the stretches of a range, and everything in it that is not a change of a table.

    Args:
        records: the range, and perhaps records beyond it, so that a stretch that begins earlier in another partition
            is found there.
        ends: (topic, partition) -> end of the range itself. Stretches that begin, in source order, after the last
            event of their table within the range are left out.
        cuts: table -> positions; the first event behind each begins a stretch even if its schema is that of older
            events here. The newest version's is one, for what lies between may have been read before, in another
            partition; so are those at which the source itself tells of its columns, for events may look the same
            before and behind.
        before: without it, a log that begins anew with the first records is not noticed.
    """
    within = any_of(
        (F.col(TOPIC) == topic) & F.coalesce(F.col(OFFSET) < by_partition(of_topic), F.lit(False))
        for topic, of_topic in _by_topic(ends).items()
    )
    # Each step of its own is planned anew for each range, so what differs from range to range is one.
    beside = (within.alias("within"), reached_before(before or {}).alias("before"), _cuts_passed(cuts or {}))
    rows = _firsts(_looked_at(records, events).select("*", *beside)).collect()
    began = dict(events.began)
    return Survey(
        stretches=tuple(_stretch(row, began) for row in rows if row.is_event),
        others=tuple(
            OtherRecords(digest=row.digest, first=_place(row), count=row["count"]) for row in rows if not row.is_event
        ),
        falls={
            _table(row): Fall(last=row.fall["last"], latest=row.fall["latest"], at=row.fall["at"])
            for row in rows
            if row.is_event and row.fall is not None
        },
    )


def _by_topic(ends: Mapping[tuple[str, int], int]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for (topic, partition), end in ends.items():
        found.setdefault(topic, {})[partition] = end
    return found


def _looked_at(records: DataFrame, events: EventReader) -> DataFrame:
    """Return `topic`, `partition`, `offset`, `digest`, `is_event`, `op`, `table`, `position` and what `_of_event` adds.

    No value is among them.
    """
    changes = records.where(events.carries_change())
    read = (events.digest().alias("digest"), events.event().alias("event"))
    return _of_event(events.began).of(changes.select(TOPIC, PARTITION, OFFSET, *read))


@cache
def _of_event(began: tuple[tuple[TableId, Began], ...]) -> Projection:
    """Return place and digest, and what is told of the column `event`; the same for every range.

    `is_event`, `op`, `table`, `position`; `at`, its time; `may_fall`, whether it may prove that the log began anew;
    `reading`, whether a snapshot of the whole table read it, and `marker`, what it says of that.
    """
    source = F.col("event").getField("source")
    op = F.col("event").getField("op")
    table = F.struct(
        source.getField("db").alias("db"),
        F.coalesce(source.getField("schema"), F.lit("")).alias("schema"),
        source.getField("table").alias("table"),
    )
    is_event = (
        _is_name(source.getField("table"))
        & _is_name(source.getField("db"))
        & (source.getField("schema").isNull() | _is_name(source.getField("schema")))
        & F.coalesce(op.isin("c", "r", "u", "d", "t"), F.lit(False))
    )
    newest, incarnation = F.lit(0), F.lit(0)
    if began:
        tables = [(names_table(table, item), times) for item, times in began]
        newest = first_of((here, F.lit(len(times))) for here, times in tables).otherwise(newest)
        incarnation = first_of((here, incarnation_of(source, times)) for here, times in tables).otherwise(incarnation)
    position = position_of(source, incarnation)
    streamed = F.coalesce(source.getField("snapshot") != "incremental", F.lit(True))
    may_fall = (F.size(position.getField(PARTS)) > 0) & streamed & (incarnation == newest)
    told = (
        is_event.alias("is_event"),
        op.alias("op"),
        table.alias("table"),
        position.alias("position"),
        source.getField("ts_ms").alias("at"),
        may_fall.alias("may_fall"),
        F.coalesce(source.getField("snapshot").isin(*READING), F.lit(False)).alias("reading"),
        source.getField("snapshot").alias("marker"),
    )
    return Projection((TOPIC, PARTITION, OFFSET, "digest", *told))


def _is_name(text: Column) -> Column:
    """Whether a name is there and whole: a damaged one would be a table that nobody has."""
    whole = F.encode(text, "UTF-8") == text.cast("binary")
    return F.coalesce(whole & ~F.contains(text, F.lit("\ufffd")), F.lit(False))


def schemas(records: DataFrame, events: EventReader) -> Mapping[str, KafkaPosition]:
    """Return the digests of all schemas in a range, each with one record that has it; '' is among them."""
    place = F.struct(TOPIC, PARTITION, OFFSET)
    rows = (
        records.where(events.carries_change())
        .select(events.digest().alias("digest"), place.alias("place"))
        .groupBy("digest")
        .agg(F.min("place").alias("place"))
        .limit(_MAX_SCHEMAS)
        .collect()
    )
    return {
        row.digest: KafkaPosition(topic=row.place[TOPIC], partition=row.place[PARTITION], offset=row.place[OFFSET])
        for row in rows
    }


def _firsts(looked_at: DataFrame) -> DataFrame:
    """Return the first record of each stretch, and of each schema of records that are no changes.

    One job does both: most ranges are small, and what they cost is planning.
    """
    over_windows, is_first, found = _of_firsts()
    # No row is left out before the windows: Spark would work the columns out once for the filter, and once more.
    return found.of(over_windows.of(with_falls(looked_at)).where(is_first))


@cache
def _of_firsts() -> tuple[Projection, Column, Projection]:
    """Return what windows add, which records are first then, and what is told of them; the same for every range."""
    # Changes are looked at by table, in source order; everything else by schema.
    kind = ("is_event", F.when(F.col("is_event"), F.col("table")), F.when(~F.col("is_event"), F.col("digest")))
    together = Window.partitionBy(*kind)
    in_source_order = together.orderBy("position", PARTITION, OFFSET)
    empties = F.col(OP) == "t"
    incarnation = F.col("position").getField(INCARNATION)
    # The rows of one snapshot share a position, where the connector has one; else only the first one's marker tells.
    has_place = F.size(F.col("position").getField(PARTS)) > 0
    reading = F.when(F.col("reading") & has_place, F.col("position"))
    begins_reading = F.col("marker").isin(*FIRST) & ~has_place
    same = F.struct(
        "digest", "cuts_passed", incarnation.alias("incarnation"), empties.alias("empties"), reading.alias("reading")
    )
    place = F.struct(TOPIC, PARTITION, OFFSET)
    counts = F.when(F.col("within"), place)
    over_windows = (
        "*",
        same.alias("same"),
        F.lag(same).over(in_source_order).alias("previous"),
        F.max(F.when(F.col("within"), F.col("position"))).over(together).alias("last_within"),
        F.min("fall").over(together).alias("first_fall"),
        F.min(counts).over(together).alias("first"),
        F.count(counts).over(together).alias("count"),
    )
    begins = F.col("previous").isNull() | (F.col("previous") != F.col("same")) | empties
    begins = begins | F.coalesce(begins_reading, F.lit(False))
    is_first = F.when(F.col("is_event"), begins & (F.col("position") <= F.col("last_within"))).otherwise(
        place == F.col("first")
    )
    told = ("is_event", "table", "position", TOPIC, PARTITION, OFFSET, "digest", "count")
    found = (*told, empties.alias("empties"), F.col("first_fall").alias("fall"))
    return Projection(over_windows), is_first, Projection(found)


def _stretch(row: Row, began: Mapping[TableId, Began]) -> Stretch:
    return Stretch(
        table=_table(row),
        position=_position(row.position),
        kafka=_place(row),
        digest=row.digest,
        truncate=row.empties,
        began=began.get(_table(row), ()),
    )


def _table(row: Row) -> TableId:
    return TableId(database=row.table.db, schema=row.table.schema, table=row.table.table)


def _position(row: Row) -> SourcePosition:
    return SourcePosition(kind=row[KIND], parts=tuple(row[PARTS]), incarnation=row[INCARNATION])


def _place(row: Row) -> KafkaPosition:
    return KafkaPosition(topic=row[TOPIC], partition=row[PARTITION], offset=row[OFFSET])


def _cuts_passed(cuts: Mapping[TableId, Sequence[SourcePosition]]) -> Column:
    """Return `cuts_passed`: how many cuts of its table lie before an event."""
    counts = [
        (
            _is_of(table),
            F.size(F.filter(F.array(*map(literal_position, positions)), lambda cut: cut < F.col("position"))),
        )
        for table, positions in cuts.items()
        if positions
    ]
    found = first_of(counts).otherwise(F.lit(0)) if counts else F.lit(0)
    return found.alias("cuts_passed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What converting a range would meet, and the highest source LSN in it."""

    troubles: tuple[Trouble, ...]
    highest_lsn: int | None

    def count(self, problem: str) -> int:
        """Return how many records have a problem."""
        return sum(len(trouble.offsets) for trouble in self.troubles if trouble.problem == problem)


def inspect(converted: DataFrame) -> Inspection:
    """Convert a range without writing it, and report the problems."""
    offsets = F.collect_list(F.when(F.col(PROBLEM).isNotNull(), F.col(OFFSET)))
    rows = converted.groupBy(PARTITION, PROBLEM).agg(offsets.alias("offsets"), F.max(LSN).alias(LSN)).collect()
    return Inspection(
        troubles=tuple(
            Trouble(partition=row[PARTITION], problem=row[PROBLEM], offsets=tuple(sorted(row.offsets)))
            for row in rows
            if row[PROBLEM] is not None
        ),
        highest_lsn=max((row[LSN] for row in rows if row[LSN] is not None), default=None),
    )


def first_without_row(events: DataFrame, schema: InternalSchema, held: DataFrame) -> dict[int, int]:
    """Return for each partition the first offset of an update whose row is neither in the range nor held.

    Args:
        events: converted, without problems.
        held: `value_column(id)` of the key's columns of the target's rows.
    """
    keys = [value_column(id_) for id_ in schema.primary_key]
    first = F.min_by(F.struct(PARTITION, OFFSET, OP), OFFSET)
    firsts = events.groupBy(*keys).agg(first.alias("first")).where(F.col("first").getField(OP) == "u")
    missing = firsts.join(held, keys, "left_anti").select("first.*")
    rows = missing.groupBy(PARTITION).agg(F.min(OFFSET).alias(OFFSET)).collect()
    return {row[PARTITION]: row[OFFSET] for row in rows}


def first_delete_without_row(
    events: DataFrame, schema: InternalSchema, held: DataFrame, seen: Mapping[int, int]
) -> dict[int, int]:
    """Return for each partition the first offset of a delete with `made_up` whose row is neither in the range nor held.

    Args:
        events: converted, without problems.
        held: `value_column(id)` of the key's columns of the target's rows.
        seen: by partition, the LSN up to which an event may be one that the connector repeats: its row is gone.
    """
    keys = [value_column(id_) for id_ in schema.primary_key]
    first = F.min_by(F.struct(PARTITION, OFFSET, MADE_UP, LSN), OFFSET)
    firsts = events.groupBy(*keys).agg(first.alias("first")).select(*keys, "first.*")
    repeated = F.coalesce(F.col(LSN) <= by_partition(seen), F.lit(False))
    missing = firsts.where(F.col(MADE_UP) & ~repeated).join(held, keys, "left_anti")
    rows = missing.groupBy(PARTITION).agg(F.min(OFFSET).alias(OFFSET)).collect()
    return {row[PARTITION]: row[OFFSET] for row in rows}


def first_offsets_from(
    records: DataFrame, events: EventReader, table: TableId, bound: SourcePosition
) -> dict[tuple[str, int], int]:
    """Return for each partition the first offset of an event of the table at or after a source position."""
    looked_at = _looked_at(records, events)
    limit = literal_position(bound)
    rows = (
        looked_at.where("is_event")
        .where(_is_of(table) & (F.col("position") >= limit))
        .groupBy(TOPIC, PARTITION)
        .agg(F.min(OFFSET).alias("first_offset"))
        .collect()
    )
    return {(row[TOPIC], row[PARTITION]): row.first_offset for row in rows}


def first_positions(records: DataFrame, events: EventReader, table: TableId) -> dict[tuple[str, int], SourcePosition]:
    """Return for each partition the source position of the first event of the table."""
    mine = _looked_at(records, events).where("is_event").where(_is_of(table))
    rows = mine.groupBy(TOPIC, PARTITION).agg(F.min_by("position", OFFSET).alias("position")).collect()
    return {(row[TOPIC], row[PARTITION]): _position(row.position) for row in rows}


def seen_in_stream(records: DataFrame, events: EventReader, table: TableId, before: SourcePosition) -> bool:
    """Return whether any event of the table before a place in the source comes from the log and not from a snapshot."""
    looked_at = _looked_at(records, events).where("is_event").where(_is_of(table))
    streamed = (F.col("op") != "r") & (F.col("position") < literal_position(before))
    return bool(looked_at.where(streamed).limit(1).collect())


def has_ended(records: DataFrame, events: EventReader, table: TableId, snapshot: SourcePosition) -> bool:
    """Return whether records show that a snapshot of the table is whole: its last row, or an event of the log."""
    mine = _looked_at(records, events).where("is_event").where(_is_of(table))
    last = (F.col("position") == literal_position(snapshot)) & F.col("marker").isin(*LAST)
    return bool(mine.where(F.coalesce(last, F.lit(False)) | (F.col("op") != "r")).limit(1).collect())


def _is_of(table: TableId) -> Column:
    return names_table(F.col("table"), table)


def offsets_with_digests(
    records: DataFrame, events: EventReader, digests: Sequence[str]
) -> Sequence[tuple[KafkaPosition, str, bool]]:
    """Return every record whose schema text has one of the digests, and whether it is an event, in order."""
    wanted = _looked_at(records, events).where(F.col("digest").isin(*digests))
    rows = wanted.select(TOPIC, PARTITION, OFFSET, "digest", "is_event").collect()
    return sorted(
        (KafkaPosition(topic=row[TOPIC], partition=row[PARTITION], offset=row[OFFSET]), row.digest, row.is_event)
        for row in rows
    )


def offsets_of(records: DataFrame, events: EventReader, tables: Iterable[TableId]) -> Sequence[KafkaPosition]:
    """Return the places of all events of some tables, in order."""
    found = _looked_at(records, events).where("is_event").where(any_or_false(map(_is_of, tables)))
    rows = found.select(TOPIC, PARTITION, OFFSET).collect()
    return sorted(KafkaPosition(topic=row[TOPIC], partition=row[PARTITION], offset=row[OFFSET]) for row in rows)
