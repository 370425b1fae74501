"""Writing one range of one table: decode, last event per key, one commit; and what to do when a record will not go.

The common case makes one pass. A record that does not fit fails the Spark job before its commit; only then is the
range inspected, its bad records set aside, and the rest written.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from structlog import get_logger

from cdc_sync.aside import set_aside
from cdc_sync.context import Context
from cdc_sync.debezium.envelope import Source, read_source, split
from cdc_sync.errors import TargetError, WireError
from cdc_sync.events import KafkaPosition, TableId
from cdc_sync.history.history import History
from cdc_sync.history.revision import Version
from cdc_sync.naming import Route
from cdc_sync.progress import Progress
from cdc_sync.readings import readings
from cdc_sync.schema.internal import InternalSchema
from cdc_sync.schemabook import KnownSchema
from cdc_sync.spark.columns import CREATED, DELETED, LSN, OFFSET, OP, PARTITION, PROBLEM, VALUE, value_column
from cdc_sync.spark.compile import UNKNOWN_SCHEMA, Converter, convert
from cdc_sync.spark.latest import latest
from cdc_sync.spark.observe import Stretch, inspect, offsets_with_problem
from cdc_sync.spark.source import OffsetRange, read_ranges
from cdc_sync.stops import Pause, cut_at_stops, missing_row
from cdc_sync.targets.base import MISSING_ROW, Batch

_ABOVE_BOUND = "above_bound"
_NOT_APPENDABLE = "not_appendable"
_RAISED = "cdc_sync found: "
_LOOK_BACK = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What to write.

    Attributes:
        exact: the converters are for every schema the table has in the ranges, so any other record is not the
            table's. Without it, a record of another schema means that the range must be surveyed first.
        may_append: adding rows without looking for their keys may be tried, where the records allow it.
    """

    table: TableId
    route: Route
    head: Version
    ranges: tuple[OffsetRange, ...]
    converters: tuple[Converter, ...]
    exact: bool
    progress: Progress | None
    may_append: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a write; no `progress` means: nothing was written, survey the range first.

    Attributes:
        replaces_null: the events show that the connector sends a NULL as its column's default.
    """

    progress: Progress | None
    stop: Pause | None = None
    replaces_null: bool = False
    appended: bool = False
    tried_append: bool = False


def converters_for(
    history: History, known: Iterable[KnownSchema], stretches: Sequence[Stretch] = ()
) -> tuple[Converter, ...]:
    """Build the converters for some schemas of a table, to the head."""
    first_seen = {stretch.digest: stretch.position for stretch in reversed(stretches)}
    found = []
    for item in known:
        if item.schema is None or item.fingerprint is None or not item.schema.key:
            continue  # a truncate has no key, and a table without one is never written
        at = first_seen.get(item.digest, history.head.position)
        for reading in readings(history, item.schema, item.fingerprint, at):
            found.append(
                Converter(
                    key_prefix=item.key_prefix,
                    value_prefix=item.value_prefix,
                    table=history.table,
                    schema=item.schema,
                    projection=reading.projection,
                    from_position=reading.from_position,
                    to_position=reading.to_position,
                )
            )
    return tuple(found)


def write_range(context: Context, plan: WritePlan) -> Outcome:
    """Write the ranges of a plan in one commit.

    Raises:
        TargetError: if the target refuses, and the records are not the reason.
    """
    last = {item.partition: _last_source(context, item) for item in plan.ranges}
    empty = plan.progress is None
    append = empty or (plan.may_append and _seen_before(plan) is not None and _only_creates(context, plan, last))
    try:
        outcome = _attempt(context, plan, bounds=_highest_lsns(last), append=append, empty=empty)
        return replace(outcome, replaces_null=any(source.null_is_default for source in last.values() if source))
    except _Found as found:
        if found.problem == _NOT_APPENDABLE:
            outcome = write_range(context, replace(plan, may_append=False))
            return replace(outcome, tried_append=True)
        if found.problem == UNKNOWN_SCHEMA:
            return Outcome(progress=None)
        if found.problem == MISSING_ROW:
            return Outcome(progress=_unchanged(plan), stop=missing_row(plan.ranges))
        return _write_inspected(context, plan, empty=empty)


Lsns = Mapping[int, int]
"""Partition -> source LSN; a partition that is missing is one for which it is not known."""


def _seen_before(plan: WritePlan) -> Lsns | None:
    """Return the LSN up to which events of each range may be in the table already, None if one is not known."""
    found = {
        item.partition: plan.progress.highest_lsn(item.topic, item.partition) if plan.progress else 0
        for item in plan.ranges
    }
    known = {partition: lsn for partition, lsn in found.items() if lsn is not None}
    return known if len(known) == len(found) else None


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
    inspected: bool = False,
) -> Outcome:
    """Write once; `inspected` ranges have had their bad records set aside, which are left out."""
    started = time.monotonic()
    converted = _converted(context, plan)
    if inspected:
        converted = converted.where(F.col(PROBLEM).isNull())
    else:
        converted = _failing(converted, plan, bounds=bounds, append=append and not empty)
    rows = latest(converted, plan.head.schema)
    require_rows = plan.route.policy.missing_rows == "pause"
    if empty:
        rows = rows.where(~F.col(DELETED))
        if require_rows:
            rows = _failing_without_create(rows, plan.head.schema)
    progress = _progress_after(context, plan, bounds)
    batch = Batch(
        rows=rows,
        schema=plan.head.schema,
        progress=progress,
        append=append,
        require_rows=require_rows,
    )
    try:
        context.target.write(plan.route.target, batch)
    except TargetError as error:
        problem = _problem_in(error)
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
    return Outcome(progress=progress, appended=append, tried_append=append)


def _converted(context: Context, plan: WritePlan) -> DataFrame:
    records = read_ranges(context.spark, context.config.kafka, plan.ranges).where(F.col(VALUE).isNotNull())
    converted = convert(
        records,
        plan.converters,
        plan.head.schema,
        refuse_ambiguous_null=plan.route.policy.ambiguous_null == "pause",
    )
    if plan.exact:
        converted = converted.where(F.col(PROBLEM).isNull() | (F.col(PROBLEM) != UNKNOWN_SCHEMA))
    return converted


def _failing(converted: DataFrame, plan: WritePlan, *, bounds: Lsns, append: bool) -> DataFrame:
    """Make the job fail at the first record with a problem, by way of the offset, which every path needs."""
    problem = F.col(PROBLEM)
    if bounds:
        problem = F.coalesce(problem, F.when(F.col(LSN) > _of_partition(bounds), F.lit(_ABOVE_BOUND)))
    if append:
        # A create that the connector repeats has an LSN the table has seen; a create beyond it is a new row.
        new = (F.col(OP) == "c") & (F.col(LSN) > _of_partition(_seen_before(plan) or {}))
        problem = F.coalesce(problem, F.when(~F.coalesce(new, F.lit(False)), F.lit(_NOT_APPENDABLE)))
    return converted.withColumn(
        OFFSET, F.when(problem.isNull(), F.col(OFFSET)).otherwise(_raise(problem).cast("bigint"))
    )


def _of_partition(lsns: Lsns) -> Column:
    """Return the record's partition's LSN, NULL where there is none.

    An array, because a number would stand in the generated code, which then had to be compiled anew for each batch.
    """
    by_partition = [lsns.get(partition) for partition in range(max(lsns, default=0) + 1)]
    return F.get(F.array(*(F.lit(lsn).cast("bigint") for lsn in by_partition)), F.col(PARTITION))


def _failing_without_create(rows: DataFrame, schema: InternalSchema) -> DataFrame:
    """Fail at an update of a key that the batch does not create, by way of the key: any other column may be pruned."""
    key = value_column(schema.primary_key[0])
    missing = _raise(MISSING_ROW).cast(rows.schema[key].dataType)
    return rows.withColumn(key, F.when(F.col(CREATED), F.col(key)).otherwise(missing))


def _raise(problem: Column | str) -> Column:
    text = F.lit(problem) if isinstance(problem, str) else problem
    return F.raise_error(F.concat(F.lit(_RAISED), text, F.lit(";")))


def _problem_in(error: Exception) -> str | None:
    found = re.search(re.escape(_RAISED) + r"([^;]*);", str(error))
    if found is not None:
        return found[1]
    return MISSING_ROW if MISSING_ROW in str(error) else None


def _write_inspected(context: Context, plan: WritePlan, *, empty: bool) -> Outcome:
    """Set aside what does not convert, stop before what must not be passed, write the rest."""
    converted = _converted(context, plan)
    found = inspect(converted)
    ranges, stop = cut_at_stops(plan.ranges, found.troubles)
    plan = replace(plan, ranges=ranges)
    if not ranges:
        return Outcome(progress=_unchanged(plan), stop=stop)
    converted = _converted(context, plan)
    found_problems = (
        (KafkaPosition(topic=ranges[0].topic, partition=partition, offset=offset), problem)
        for partition, offset, problem in offsets_with_problem(converted)
    )
    set_aside(context, found_problems)
    bounds = {item.partition: found.highest_lsn for item in ranges} if found.highest_lsn else {}
    try:
        outcome = _attempt(context, plan, bounds=bounds, append=empty, empty=empty, inspected=True)
    except _Found as problem:
        if problem.problem == MISSING_ROW:
            return Outcome(progress=_unchanged(plan), stop=missing_row(plan.ranges))
        raise TargetError(f"Cannot write {plan.table}: {problem.problem}") from problem
    return replace(outcome, stop=stop)


def _unchanged(plan: WritePlan) -> Progress:
    return plan.progress or Progress(version=plan.head.number)


def _progress_after(context: Context, plan: WritePlan, bounds: Lsns) -> Progress:
    before = plan.progress or Progress(version=plan.head.number)
    offsets = {topic: dict(partitions) for topic, partitions in before.offsets.items()}
    high_water = {topic: dict(partitions) for topic, partitions in before.high_water.items()}
    for item in plan.ranges:
        offsets.setdefault(item.topic, {})[item.partition] = item.end
        seen, bound = before.highest_lsn(item.topic, item.partition), bounds.get(item.partition)
        known = high_water.setdefault(item.topic, {})
        if seen is None or bound is None:
            known.pop(item.partition, None)
        else:
            known[item.partition] = max(seen, bound)
    topics = {item.topic for item in plan.ranges}
    return Progress(
        version=plan.head.number,
        offsets=offsets,
        topic_ids={**before.topic_ids, **context.kafka.topic_ids(topics)},
        high_water=high_water,
    )


def _last_source(context: Context, item: OffsetRange) -> Source | None:
    """Return the source block of the last event of a range; deletes are followed by tombstones, which have none."""
    for offset in range(item.end - 1, max(item.start, item.end - _LOOK_BACK) - 1, -1):
        source = _source_at(context, item, offset)
        if source is not None:
            return source
    return None


def _highest_lsns(last: Mapping[int, Source | None]) -> Lsns:
    """Return a bound on the source LSNs of each range, taken from its last event.

    Events come in commit order, so all earlier ones lie below the last commit before the last event, or within its
    transaction. A connector that repeats events breaks this, which the write job checks.
    """
    found = {partition: max(source.lsn or 0, source.last_commit or 0) for partition, source in last.items() if source}
    return {partition: lsn for partition, lsn in found.items() if lsn}


def _only_creates(context: Context, plan: WritePlan, last: Mapping[int, Source | None]) -> bool:
    """Whether the first and last event of each range are creates: worth trying to append."""
    firsts = (_source_at(context, item, item.start) for item in plan.ranges)
    return all(source is not None and source.op == "c" for source in last.values()) and all(
        source is not None and source.op == "c" for source in firsts
    )


def _source_at(context: Context, item: OffsetRange, offset: int) -> Source | None:
    record = context.kafka.peek(item.topic, item.partition, offset)
    if record is None or record.value is None:
        return None
    try:
        return read_source(split(record.value).payload)
    except WireError:
        return None
