"""Writing one range of one table: decode, last event per key, one commit; and what to do when a record will not go.

The common case makes one pass. A record that does not fit fails the Spark job before its commit; only then is the
range inspected, its bad records set aside, and the rest written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from structlog import get_logger

from cdc_sync.core.debezium.position import Source
from cdc_sync.core.model.doubts import Doubt
from cdc_sync.core.model.offsets import OffsetRange, Place, first_half
from cdc_sync.core.model.progress import Lsns, Progress, seen_before
from cdc_sync.core.planning.problems import (
    KEY_MAY_BE_MADE_UP,
    MALFORMED,
    NO_ROWS,
    PLACEHOLDER_FOUND,
    SKIPPED,
)
from cdc_sync.core.planning.stops import (
    Pause,
    before_places,
    cut_at_stops,
    letters_in,
    made_up_key,
    missing_row,
    too_many_letters,
    unknown_value,
    unlinked_create,
    unsent_values,
)
from cdc_sync.errors import TargetError
from cdc_sync.runtime.bounds import highest_lsns, last_sources, only_creates, progress_after
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.dead_letters import Of, set_aside
from cdc_sync.runtime.row_shape import Shape, events_of, rows_of
from cdc_sync.runtime.unchanged_values import Keeping, Unlinked
from cdc_sync.runtime.write_plan import (
    IN_DOUBT,
    NOT_APPENDABLE,
    Outcome,
    WritePlan,
    converted_events,
    decoding,
    deletes_without_row,
    doubts_of,
    ends_of,
    failing,
    note,
    problem_in,
    raised,
)
from cdc_sync.spark.columns import CREATED, DELETED, OUT_OF_RANGE, PROBLEM, SNAPSHOT_EDGE
from cdc_sync.spark.compile import unchangeable
from cdc_sync.spark.observe import Inspection, first_without_row, inspect
from cdc_sync.targets.protocol import MISSING_ROW, UNKNOWN_VALUE, Batch, check_held

_WHY = {
    MISSING_ROW: "its row is not there, and policy.missing_rows is pause",
    UNKNOWN_VALUE: "it left a value out, and nobody knows the row's",
}


def write_range(context: Context, plan: WritePlan) -> Outcome:
    """Write the ranges of a plan in one commit.

    Raises:
        TargetMoved: if the target does not hold any more what the plan was made for.
        TargetError: if the target refuses, and the records are not the reason.
    """
    outcome = _write_range(context, plan)
    if outcome.stop is not None and outcome.progress == _unchanged(plan):
        check_unmoved(context, plan)
    return outcome


def check_unmoved(context: Context, plan: WritePlan) -> None:
    """Look whether a target holds what a plan was made for, before rows that it lacks are taken for a reason to stop.

    They were looked for in whatever it held by then, and another job may have changed them.

    Raises:
        TargetMoved: if it does not.
    """
    state = context.target.state(plan.route.target)
    check_held(plan.route.target, None if state is None else state.progress, plan.held)


def _write_range(context: Context, plan: WritePlan) -> Outcome:
    if plan.inspects and plan.inspected is None:
        return _write_inspected(context, plan)
    last = last_sources(context, plan.ranges)
    empty = plan.progress is None
    by_key = plan.shape in (Shape.RECORD_KEY, Shape.DECLARED_KEY)
    append = by_key and not plan.keep_unchanged and (empty or (plan.may_append and _may_append(context, plan, last)))
    bounds = highest_lsns(last) if plan.inspected is None else _bounds(plan.ranges, plan.inspected)
    told = {source.null_is_default for source in last.values() if source}
    replaces_null = True in told or (False if False in told else None)
    try:
        outcome = _attempt(context, plan, bounds=bounds, append=append, empty=empty)
        newest = max((source.at for source in last.values() if source and source.at is not None), default=None)
        return replace(outcome, replaces_null=replaces_null, newest=newest)
    except _Found as found:
        if found.problem == NOT_APPENDABLE:
            outcome = write_range(context, replace(plan, may_append=False))
            return replace(outcome, tried_append=True)
        if found.problem in NO_ROWS or found.problem == SNAPSHOT_EDGE:
            return Outcome(progress=None)
        if found.problem == OUT_OF_RANGE:
            return write_range(context, replace(plan, counts_out_of_range=True))
        if found.problem == KEY_MAY_BE_MADE_UP:
            return write_range(context, replace(plan, looks_for_deleted=True))
        if found.problem == IN_DOUBT:
            return write_range(context, replace(plan, notes_doubts=True))
        if found.problem == MISSING_ROW:
            return _write_before_missing(context, plan, empty=empty)
        if found.problem == UNKNOWN_VALUE and not plan.follow_keys:
            return replace(write_range(context, replace(plan, follow_keys=True)), left_out=True)
        if found.problem == UNKNOWN_VALUE:
            return _write_before_the_one(context, plan, unknown_value)
        if found.problem == PLACEHOLDER_FOUND:
            kept = write_range(context, replace(plan, keep_unchanged=True, may_append=False))
            return replace(kept, left_out=True)
        if plan.inspected is None:
            return _write_inspected(context, plan)
        raise TargetError(f"Cannot write {plan.table}: {found.problem}") from found
    except Unlinked as unlinked:
        return _write_before(context, plan, unlinked)


def _write_before(context: Context, plan: WritePlan, unlinked: Unlinked) -> Outcome:
    """Write up to creates whose deletes another partition may have yet to bring; stop where nothing is left of it."""
    ranges = before_places(plan.ranges, unlinked.creates)
    if ranges and sum(item.size for item in ranges) < sum(item.size for item in plan.ranges):
        return write_range(context, replace(plan, ranges=ranges))
    if plan.route.policy.missing_rows == "insert":
        return write_range(context, replace(plan, require_links=False))
    return Outcome(progress=_unchanged(plan), stop=unlinked_create(plan.ranges, unlinked.creates[0]), left_out=True)


def _write_before_missing(context: Context, plan: WritePlan, *, empty: bool) -> Outcome:
    """Write up to the first update of a row that is not there, and stop before it, however the range was cut."""
    schema = plan.head.schema
    if plan.shape is Shape.WHOLE_ROW:
        return _write_before_the_one(context, plan, missing_row)
    events = _events(context, plan).where(F.col(PROBLEM).isNull())
    held = context.target.read(plan.route.target, schema, schema.primary_key)
    first = first_without_row(events, schema, held.limit(0) if empty else held)
    if not first:
        check_unmoved(context, plan)
        raise TargetError(
            f"Cannot write {plan.route.target}: it misses a row that it holds, so its key is not what it was; "
            "restore it, or snapshot the table again into a new target"
        )
    places = [Place(partition=partition, offset=offset) for partition, offset in first.items()]
    ranges = before_places(plan.ranges, places)
    stop = missing_row(plan.ranges, min(places, default=None))
    if not ranges:
        return Outcome(progress=_unchanged(plan), stop=stop)
    return replace(write_range(context, replace(plan, ranges=ranges)), stop=stop)


def write_again(context: Context, plan: WritePlan) -> str | None:
    """Write some events of ranges that the target holds; return why they cannot be, None if they are.

    Raises:
        TargetMoved, TargetError: as `write_range`.
    """
    try:
        outcome = _attempt(context, plan, bounds={}, append=False, empty=False)
    except _Found as found:
        return _WHY.get(found.problem, found.problem)
    except Unlinked:
        return "an update of its key left values out, and the row under the old key is not known"
    return None if outcome.stop is None else outcome.stop.reason


def _write_before_the_one(
    context: Context, plan: WritePlan, stop: Callable[[tuple[OffsetRange, ...]], Pause]
) -> Outcome:
    """Write the first half of ranges of which one record cannot be; stop where they are that record alone."""
    half = first_half(plan.ranges)
    if not half:
        return Outcome(progress=_unchanged(plan), stop=stop(plan.ranges), left_out=True)
    return replace(write_range(context, replace(plan, ranges=half)), left_out=True)


def _may_append(context: Context, plan: WritePlan, last: Mapping[int, Source | None]) -> bool:
    if plan.head.position.incarnation:
        return False  # a row that another server wrote may have a key that this one gives again
    return seen_before(plan.progress, plan.ranges) is not None and only_creates(context, plan.ranges, last)


class _Found(Exception):
    """A record stopped the write before its commit."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


def _attempt(
    context: Context,
    plan: WritePlan,
    *,
    bounds: Lsns,
    append: bool,
    empty: bool,
) -> Outcome:
    """Write once; what is a dead letter is left out."""
    started = time.monotonic()
    events = _events(context, plan)
    if plan.only is not None:
        events = events.where(F.col(PROBLEM).isNull())
    else:
        events = failing(events, plan, bounds=bounds, append=append and not empty)
    progress = _unchanged(plan)
    if plan.only is None:
        progress = progress_after(context, progress, plan.head.number, plan.ranges, bounds)
    unknown = 0
    try:
        batch = _batch(plan, events, progress, append=append, empty=empty)
        keeping = _keeping(context, plan) if plan.keeps else None
        doubts = doubts_of(context, plan, events, keeping, exists=not empty)
        kept = [item.id for item in doubts if item.kind == "unsent"]
        lost = deletes_without_row(context, plan, events, exists=not empty)
        if lost and plan.route.policy.missing_rows == "pause":
            return _write_before_lost(context, plan, lost)
        if lost:
            doubts = (*doubts, Doubt(kind="made_up", id=0, version=plan.head.number, ends=ends_of(plan)))
        if kept and plan.route.policy.unsent_values == "pause":
            names = ", ".join(column.name for column in plan.head.schema.columns if column.id in kept)
            return _write_before_the_one(context, plan, partial(unsent_values, names=names))
        if keeping is not None:
            batch = _keeping_batch(plan, batch, keeping.rows(events, plan.ranges, exists=not empty), keeping)
            unknown = 0 if batch.require_values else keeping.count_unknown(batch.rows)
        if plan.only is not None and plan.shape in (Shape.RECORD_KEY, Shape.DECLARED_KEY):
            # what was deleted later is not there
            batch = replace(batch, rows=batch.rows.withColumn(CREATED, F.col(CREATED) | F.col(DELETED)))
        note(context, plan, doubts)
        context.target.write(plan.route.target, batch)
    except (TargetError, Py4JJavaError, PySparkException) as error:
        problem = problem_in(error)
        if problem is None:
            raise
        raise _Found(problem) from None
    get_logger().info(
        "batch written",
        table=str(plan.table),
        version=plan.head.number,
        offsets=sum(item.size for item in plan.ranges),
        mode="append" if append else "merge",
        seconds=round(time.monotonic() - started, 3),
    )
    return Outcome(
        progress=progress,
        appended=append,
        tried_append=append,
        unknown_values=unknown,
        out_of_range=_count_out_of_range(context, plan) if plan.counts_out_of_range else 0,
        numbers=plan.numbers,
        in_doubt=bool(doubts),
    )


def _events(context: Context, plan: WritePlan) -> DataFrame:
    events = events_of(converted_events(context, plan), plan.head.schema, plan.shape)
    return events if plan.only is None else plan.only(events)


def _write_before_lost(context: Context, plan: WritePlan, places: Sequence[Place]) -> Outcome:
    """Write up to the first deletes of rows that are not there, and stop before them."""
    stop = made_up_key(plan.ranges, places[0])
    ranges = before_places(plan.ranges, places)
    if not ranges:
        return Outcome(progress=_unchanged(plan), stop=stop)
    return replace(write_range(context, replace(plan, ranges=ranges)), stop=stop)


def _count_out_of_range(context: Context, plan: WritePlan) -> int:
    """Count the events of a write in which a value became NULL."""
    events = converted_events(context, replace(plan, counts_out_of_range=False))
    return events.where(F.col(PROBLEM).isNull() & F.col(OUT_OF_RANGE)).count()


def _keeping(context: Context, plan: WritePlan) -> Keeping:
    schema = plan.head.schema
    return Keeping(
        kafka=context.kafka,
        lake=context.target,
        target=plan.route.target,
        schema=schema,
        follow_keys=plan.follow_keys,
        require_links=plan.require_links,
        unchanged=unchangeable(plan.converters, schema, decoding(context, plan)),
        since_version=plan.columns_since,
        events=lambda ranges: _events(context, replace(plan, ranges=ranges)),
    )


def _keeping_batch(plan: WritePlan, batch: Batch, rows: DataFrame, keeping: Keeping) -> Batch:
    # Only once rows were followed through their keys is a value nobody knows a matter of policy.
    require_values = not plan.follow_keys or plan.route.policy.missing_rows == "pause"
    return replace(batch, rows=rows, append=False, unchanged=keeping.unchanged, require_values=require_values)


def _batch(plan: WritePlan, events: DataFrame, progress: Progress, *, append: bool, empty: bool) -> Batch:
    rows = rows_of(events, plan.head.schema, plan.shape, ranges=plan.ranges)
    require_rows = plan.route.policy.missing_rows == "pause"
    if append and empty:
        missing = raised(MISSING_ROW).cast("boolean")
        keep = F.when(F.col(CREATED), ~F.col(DELETED)).otherwise(missing) if require_rows else ~F.col(DELETED)
        rows = rows.where(keep)
    return Batch(
        rows=rows,
        schema=plan.head.schema,
        progress=progress,
        behind=plan.held,
        append=append,
        require_rows=require_rows,
        mode="append" if plan.route.append else "upsert",
    )


def _write_inspected(context: Context, plan: WritePlan) -> Outcome:
    """Set aside what does not convert, stop before what must not be passed, write the rest."""
    plan, found = _inspected(context, plan)
    if any(trouble.problem in NO_ROWS for trouble in found.troubles):
        return Outcome(progress=None)
    ranges, stop = cut_at_stops(plan.ranges, found.troubles)
    if not ranges:
        return Outcome(progress=_unchanged(plan), stop=stop)
    letters = letters_in(ranges, found.troubles)
    unwanted = [place for place, problem in letters if problem != SKIPPED]
    if plan.letters is not None and len(unwanted) > plan.letters.room():
        return Outcome(progress=_unchanged(plan), stop=too_many_letters(plan.letters.limit, letters))
    set_aside(context, letters, Of(table=plan.table, version=plan.head.number))
    outcome = write_range(context, replace(plan, ranges=ranges, inspected=found))
    if plan.letters is not None and outcome.progress is not None:
        plan.letters.take(sum(outcome.progress.has(place) for place in unwanted))  # what is not passed comes again
    return replace(outcome, stop=outcome.stop or stop, aside=bool(letters))


def _bounds(ranges: tuple[OffsetRange, ...], found: Inspection) -> Lsns:
    return {item.partition: found.highest_lsn for item in ranges} if found.highest_lsn else {}


def _inspected(context: Context, plan: WritePlan) -> tuple[WritePlan, Inspection]:
    """Inspect a plan's ranges; where payloads are malformed, their decimals may be numbers."""

    def inspected(plan: WritePlan) -> Inspection:
        # What is met in its turn when the range is written, and read again in another way, is no problem here.
        counts = plan.route.policy.out_of_range == "null"
        as_it_is = replace(plan, keep_unchanged=True, counts_out_of_range=counts, notes_doubts=True)
        return inspect(converted_events(context, replace(as_it_is, looks_for_deleted=plan.is_by_record_key)))

    found = inspected(plan)
    if plan.numbers or not found.count(MALFORMED):
        return plan, found
    with_numbers = replace(plan, numbers=True)
    other = inspected(with_numbers)
    return (with_numbers, other) if other.count(MALFORMED) < found.count(MALFORMED) else (plan, found)


def _unchanged(plan: WritePlan) -> Progress:
    return plan.progress or Progress(version=plan.head.number)
