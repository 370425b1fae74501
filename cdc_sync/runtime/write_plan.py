"""What is to be written to one table, how its records are read for it, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from structlog import get_logger

from cdc_sync.core.debezium.forms import KnownSchema
from cdc_sync.core.debezium.unsent import may_be_in_doubt, unread_fields, unsigned_fields
from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.column_log import ColumnLog, types_at
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.doubts import Doubt, Kind, doubts_with
from cdc_sync.core.model.offsets import OffsetRange, Place
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.progress import Lsns, Progress, seen_before
from cdc_sync.core.planning.column_mappings import readings, with_declared_key
from cdc_sync.core.planning.limits import Window
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.planning.problems import NO_ROWS, SKIPPED
from cdc_sync.core.planning.stops import Pause, letters_in
from cdc_sync.core.schema.projection import without_initials
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.row_shape import Shape, decoding_of, shape_of
from cdc_sync.runtime.unchanged_values import Keeping
from cdc_sync.spark.columns import LSN, OFFSET, OP, OUT_OF_RANGE, PARTITION, PROBLEM, SNAPSHOT_EDGE, doubt_column
from cdc_sync.spark.compile import convert, doubtful
from cdc_sync.spark.conditions import any_or_false, by_partition
from cdc_sync.spark.converter import Converter, Decoding
from cdc_sync.spark.observe import Inspection, first_delete_without_row
from cdc_sync.spark.places import marked
from cdc_sync.spark.recognise import value_has_payload
from cdc_sync.spark.unchanged import OVERFLOWN, UNREAD, UNSENT, doubted
from cdc_sync.targets.protocol import MISSING_ROW, UNKNOWN_VALUE

_ABOVE_BOUND = "above_bound"
NOT_APPENDABLE = "not_appendable"
IN_DOUBT = "in_doubt"
_RAISED = "cdc_sync found: "
_IS_LETTER = "is_letter"


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What to write.

    Attributes:
        held: what the target is known to hold; it is written only if it does still.
        exact: the converters are for every schema the table has in the ranges, so any other record is not the
            table's. Without it, a record of another schema means that the range must be surveyed first.
        may_append: adding rows without looking for their keys may be tried, where the records allow it.
        follow_keys: values may have to be taken over from rows that changed their key.
        require_links: a create that takes values over from a row that is not found is not written.
        keep_unchanged: events may leave values out; without it, one that does is met as a problem first.
        columns_since: the last version that joined or rewrote columns, 0 if none did.
        counts_out_of_range: values that become NULL for being out of range are counted; without it, the first one is
            met as a problem.
        notes_doubts: values in doubt are looked for and written down; without it, the first one is met as a problem.
        looks_for_deleted: a delete whose key may be made up is looked for in the target; without it, one is met as a
            problem.
        numbers: records may be there in which decimals are JSON numbers; without it, one is met as a problem.
        inspects: ranges are inspected at once, for in those before there were records to set aside.
        letters: how many records may become dead letters now; None if it does not matter.
        skipped: records that the operator said to pass; they become dead letters.
        inspected: what was found in the ranges, or in longer ones, whose bad records are dead letters by now; None if
            the first one is to be met as a problem.
        only: what is left of the events; None where all of them are written. The target holds the ranges already then,
            and its progress stays as it is.
    """

    table: TableId
    route: Route
    head: Version
    ranges: tuple[OffsetRange, ...]
    converters: tuple[Converter, ...]
    exact: bool
    progress: Progress | None
    held: Progress | None
    may_append: bool
    keep_unchanged: bool = False
    follow_keys: bool = False
    require_links: bool = True
    columns_since: int = 0
    counts_out_of_range: bool = False
    notes_doubts: bool = False
    looks_for_deleted: bool = False
    numbers: bool = False
    inspects: bool = False
    letters: Window | None = None
    skipped: frozenset[Place] = frozenset()
    inspected: Inspection | None = None
    only: Callable[[DataFrame], DataFrame] | None = None

    @property
    def shape(self) -> Shape:
        """How the rows of events are found."""
        return shape_of(self.route, self.head.schema)

    @property
    def is_by_record_key(self) -> bool:
        """Whether rows are found by the key that the connector knows."""
        return self.shape is Shape.RECORD_KEY

    @property
    def keeps(self) -> bool:
        """Whether rows may keep what the target has."""
        return self.keep_unchanged and self.shape in (Shape.RECORD_KEY, Shape.DECLARED_KEY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a write; no `progress` means: nothing was written, survey the range first.

    Attributes:
        replaces_null: whether the connector sends a NULL as its column's default, None if no event tells.
        left_out: events left unchanged values out, so later ones may too.
        aside: records were set aside.
        numbers: decimals were JSON numbers, so later ones may be too.
        out_of_range: how many events had a value that is NULL in the target, by `policy.out_of_range`.
        in_doubt: values are in doubt, and that is written down.
        newest: when the source wrote the last event, in milliseconds since the epoch; None if that is not known.
        unknown_values: how many rows have NULL in place of a value that an event left out and nobody knows.
    """

    progress: Progress | None
    stop: Pause | None = None
    replaces_null: bool | None = None
    left_out: bool = False
    aside: bool = False
    unknown_values: int = 0
    out_of_range: int = 0
    numbers: bool = False
    in_doubt: bool = False
    newest: int | None = None
    appended: bool = False
    tried_append: bool = False


def converters_for(
    history: History,
    route: Route,
    known: Iterable[KnownSchema],
    stretches: Sequence[Stretch] = (),
    logs: Iterable[ColumnLog] = (),
) -> tuple[Converter, ...]:
    """Build the converters for some schemas of a table, to the head.

    Args:
        logs: what the source says of its columns.
    """
    logs = tuple(logs)
    first_seen = {stretch.digest: stretch.position for stretch in reversed(stretches)}
    found = []
    for item in known:
        if item.schema is None or item.fingerprint is None:
            continue
        # A changelog finds no rows by the record's key, but it is all that a delete may have.
        schema = item.schema if route.append else with_declared_key(item.schema, route)
        if not schema.key and history.head.schema.primary_key:
            continue  # a truncate has no key
        at = first_seen.get(item.digest, history.head.position)
        types = types_at(logs, history.table, at)
        for reading in readings(history, item.schema, item.fingerprint, at):
            found.append(
                Converter(
                    key_form=item.key_form,
                    value_form=item.value_form,
                    table=history.table,
                    schema=schema,
                    flattened=item.flattened,
                    projection=without_initials(reading.projection) if route.append else reading.projection,
                    from_position=reading.from_position,
                    to_position=reading.to_position,
                    unsigned=unsigned_fields(item.schema, types),
                    unread=unread_fields(item.schema, types),
                )
            )
    return tuple(found)


def plan_again(
    history: History,
    route: Route,
    progress: Progress,
    ranges: tuple[OffsetRange, ...],
    seen: tuple[tuple[Stretch, ...], tuple[KnownSchema, ...]],
) -> WritePlan | None:
    """Return how to read ranges that a table has passed, with today's converters; None if none of it can be read.

    Args:
        progress: what the target holds, the ranges among it.
        seen: the table's stretches there, and their schemas.
    """
    stretches, known = seen
    converters = converters_for(history, route, known, stretches)
    if not converters:
        return None
    return WritePlan(
        table=history.table,
        route=route,
        head=history.head,
        ranges=ranges,
        converters=converters,
        exact=True,
        progress=progress,
        held=progress,
        may_append=False,
        keep_unchanged=True,
        numbers=True,
        follow_keys=True,
    )


def converted_events(context: Context, plan: WritePlan) -> DataFrame:
    """Decode the records of a plan's ranges; those that hold no row are left out where the plan is exact."""
    how = decoding(context, plan)
    records = context.read(plan.ranges, headers=how.keep_unchanged or how.unsent)
    if not any(converter.flattened for converter in plan.converters):
        # A tombstone follows a delete and says nothing; of a flattened table it may be the delete itself.
        records = records.where(value_has_payload())
    converted = convert(records, plan.converters, plan.head.schema, how)
    if plan.skipped:
        of = [(F.col(PARTITION) == place.partition) & (F.col(OFFSET) == place.offset) for place in plan.skipped]
        holds_row = ~F.coalesce(F.col(PROBLEM).isin(*NO_ROWS), F.lit(False))
        converted = converted.withColumn(
            PROBLEM, F.when(any_or_false(of) & holds_row, F.lit(SKIPPED)).otherwise(F.col(PROBLEM))
        )
    if plan.exact:
        converted = converted.where(F.col(PROBLEM).isNull() | ~F.col(PROBLEM).isin(*NO_ROWS))
    return converted


def decoding(context: Context, plan: WritePlan) -> Decoding:
    """Return how a plan's records are read."""
    truncated = plan.progress.truncated if plan.progress else None
    found = decoding_of(
        context.config,
        plan.route,
        plan.shape,
        keep_unchanged=plan.keep_unchanged,
        numbers=plan.numbers,
        headers=context.headers,
    )
    bound = truncated.bound if truncated else None
    return replace(
        found,
        rows_begin=bound,
        tell_out_of_range=found.out_of_range == "null" and not plan.counts_out_of_range,
        began=context.began.get(plan.table, ()),
        tell_made_up=plan.looks_for_deleted if plan.is_by_record_key else None,
        unsent=found.unsent
        and any(converter.unread or may_be_in_doubt(converter.schema) for converter in plan.converters),
    )


def failing(converted: DataFrame, plan: WritePlan, *, bounds: Lsns, append: bool) -> DataFrame:
    """Make the job fail at the first record with a problem, by way of the offset, which every path needs.

    What is a dead letter by now is left out, whatever it is.
    """
    letters = [] if plan.inspected is None else letters_in(plan.ranges, plan.inspected.troubles)
    if letters:
        converted = marked(converted, {(place.partition, place.offset) for place, _ in letters}, _IS_LETTER)
    problem = F.col(PROBLEM)
    if not plan.exact:
        # Whether the table is read again only a survey can tell.
        problem = F.coalesce(problem, F.when(F.col(SNAPSHOT_EDGE), F.lit(SNAPSHOT_EDGE)))
    if plan.route.policy.out_of_range == "null" and not plan.counts_out_of_range:
        problem = F.coalesce(problem, F.when(F.col(OUT_OF_RANGE), F.lit(OUT_OF_RANGE)))
    doubts = [name for name in converted.columns if name.startswith(doubt_column(0)[:-1])]
    if doubts and not plan.notes_doubts:
        in_doubt = any_or_false(F.col(name).isNotNull() for name in doubts)
        problem = F.coalesce(problem, F.when(in_doubt, F.lit(IN_DOUBT)))
    if bounds:
        problem = F.coalesce(problem, F.when(F.col(LSN) > by_partition(bounds), F.lit(_ABOVE_BOUND)))
    if append:
        # A create that the connector repeats has an LSN the table has seen; a create beyond it is a new row.
        new = (F.col(OP) == "c") & (F.col(LSN) > by_partition(seen_before(plan.progress, plan.ranges) or {}))
        problem = F.coalesce(problem, F.when(~F.coalesce(new, F.lit(False)), F.lit(NOT_APPENDABLE)))
    if letters:
        problem = F.when(~F.col(_IS_LETTER), problem)
    found = converted.withColumn(
        OFFSET, F.when(problem.isNull(), F.col(OFFSET)).otherwise(raised(problem).cast("bigint"))
    )
    return found.where(~F.col(_IS_LETTER)).drop(_IS_LETTER) if letters else found


def raised(problem: Column | str) -> Column:
    """Return a value that fails the job, which says the problem."""
    text = F.lit(problem) if isinstance(problem, str) else problem
    return F.raise_error(F.concat(F.lit(_RAISED), text, F.lit(";")))


def problem_in(error: Exception) -> str | None:
    """Return the problem that a job failed for, None if it was something else."""
    found = re.search(re.escape(_RAISED) + r"([^;]*);", str(error))
    if found is not None:
        return found[1]
    return next((problem for problem in (MISSING_ROW, UNKNOWN_VALUE) if problem in str(error)), None)


def doubts_of(
    context: Context, plan: WritePlan, events: DataFrame, keeping: Keeping | None, *, exists: bool
) -> tuple[Doubt, ...]:
    """Find which values are in doubt behind a write; a NULL is not where rows are what their events say."""
    ids = doubtful(plan.converters, plan.head.schema, decoding(context, plan)) if plan.notes_doubts else ()
    found = doubted(events, ids)
    unread = found.get(UNREAD, frozenset())
    kept = keeping.kept_in_doubt(events, found.get(UNSENT, ()), exists=exists) if keeping else frozenset()
    overflown = found.get(OVERFLOWN, frozenset())
    kinds: tuple[tuple[Kind, frozenset[int]], ...] = (("unsent", kept), ("unread", unread), ("overflown", overflown))
    number, ends = plan.head.number, ends_of(plan)
    return tuple(Doubt(kind=kind, id=id_, version=number, ends=ends) for kind, ids in kinds for id_ in sorted(ids))


def note(context: Context, plan: WritePlan, doubts: Sequence[Doubt]) -> None:
    """Write doubts down, before the rows are written that they are about."""
    if doubts:
        context.state.save_doubts(plan.table, doubts_with(context.state.doubts(plan.table), doubts))
        get_logger().warning("values in doubt", table=str(plan.table), columns=sorted({item.id for item in doubts}))


def ends_of(plan: WritePlan) -> Mapping[str, Mapping[int, int]]:
    """Return by topic and partition up to where a plan reads."""
    ends: dict[str, dict[int, int]] = {}
    for item in plan.ranges:
        ends.setdefault(item.topic, {})[item.partition] = item.end
    return ends


def deletes_without_row(context: Context, plan: WritePlan, events: DataFrame, *, exists: bool) -> list[Place]:
    """Return the first delete of each partition that names a key which no row has, and which may be made up."""
    if not plan.looks_for_deleted:
        return []
    schema = plan.head.schema
    held = context.target.read(plan.route.target, schema, schema.primary_key)
    seen = seen_before(plan.progress, plan.ranges) or {}
    first = first_delete_without_row(events, schema, held if exists else held.limit(0), seen)
    return sorted(Place(partition=partition, offset=offset) for partition, offset in first.items())
