"""Dead letters applied after all, in the order of the source: no older event comes over a newer one.

Where rows have a key, those that letters are of are read again, from the first letter up to what the target holds,
with today's converters and policies, and folded as any batch is; the result is merged in one commit, whose progress
stays as it is. So a later event of a row wins, a row that was deleted later stays deleted, and a value that later
events left out is the letter's. Done twice it ends the same, so a job that dies on the way does it again.

Rows without a key are copies that events add and take away, in any order; those of a changelog each stand alone. There
the letters alone are written, and the commit itself says which (`Progress.redriven`): done twice they were there twice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.history.history import History
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.problems import MALFORMED
from cdc_sync.core.table.state import TableState
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.dead_letters import malformed
from cdc_sync.runtime.observe import schemas_again
from cdc_sync.runtime.row_shape import Shape, events_of, shape_of
from cdc_sync.runtime.write import write_again
from cdc_sync.runtime.write_plan import WritePlan, converted_events, plan_again
from cdc_sync.spark.columns import OFFSET, PARTITION, PROBLEM, value_column
from cdc_sync.spark.places import at_places, left_out

_NOT_NOW = "the table has a change that is not carried out yet; once it runs again, redrive anew"
_PASSED_OVER = (
    "the table has no key, and policy.missing_rows is insert: a later delete of the row may have been passed over"
)
_SPREAD = "the table's key is declared, and its topic has several partitions: newer events of a row may be in another"
_ELSEWHERE = "the table has read nothing of this topic"
_AHEAD = "the table has not come to it yet"
_OTHER_TOPIC = "the topic was made anew since"
_GONE = "the topic does not hold it any more; `cdc-sync resync` has the connector read the table's rows again"
_EMPTIED = "the table was emptied behind it"
_NO_EVENT = "it is still no event of the table that can be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """What became of dead letters.

    Attributes:
        applied: those that the target holds now; where a newer event of the row is there, that one.
        refused: why others cannot be.
        progress: the target's marker behind that; None if the table has none.
    """

    applied: tuple[KafkaPosition, ...] = ()
    refused: dict[KafkaPosition, str] = field(default_factory=dict)
    progress: Progress | None = None


def redrive(context: Context, state: TableState, letters: Collection[KafkaPosition]) -> Redriven:
    """Apply dead letters of one table.

    Args:
        letters: their places.

    Raises:
        TargetMoved: if another job has written the table.
        TargetError: if the target refuses, and the records are not the reason.
    """
    applied: list[KafkaPosition] = []
    refused: dict[KafkaPosition, str] = {}
    for topic in sorted({place.topic for place in letters}):
        mine = sorted((place for place in letters if place.topic == topic), key=lambda it: (it.partition, it.offset))
        found = _redrive_of(context, state, topic, mine)
        applied += found.applied
        refused |= found.refused
        state = replace(state, progress=found.progress or state.progress)
    return Redriven(applied=tuple(applied), refused=refused, progress=state.progress)


def _redrive_of(context: Context, state: TableState, topic: str, letters: Sequence[KafkaPosition]) -> Redriven:
    history, progress = state.history, state.progress
    if history is None or progress is None or state.target.stamped != history.head.number:
        return Redriven(refused=dict.fromkeys(letters, _NOT_NOW))
    beginnings = context.kafka.beginnings([topic]).get(topic, {})
    why = _why_not(context, state, history, progress, topic, partitions=len(beginnings))
    if why is not None:
        return Redriven(refused=dict.fromkeys(letters, why))
    done = tuple(place for place in letters if progress.has_redriven(place))
    rest = [place for place in letters if not progress.has_redriven(place)]
    refused = {place: why for place in rest if (why := _why_not_at(progress, place, beginnings.get(place.partition)))}
    left = [place for place in rest if place not in refused]
    starts: dict[int, int] = {}
    for place in left:
        starts[place.partition] = min(place.offset, starts.get(place.partition, place.offset))
    ranges = tuple(
        OffsetRange(topic=topic, partition=partition, start=start, end=progress.offsets[topic][partition])
        for partition, start in sorted(starts.items())
    )
    seen = schemas_again(context, state.table, ranges) if ranges else ((), ())
    plan = plan_again(history, state.route, progress, ranges, seen)
    if plan is None:
        return Redriven(applied=done, refused=refused | dict.fromkeys(left, _NO_EVENT))
    found = _written(context, plan, topic, left, refused)
    return replace(found, applied=(*done, *found.applied))


def _why_not(
    context: Context, state: TableState, history: History, progress: Progress, topic: str, *, partitions: int
) -> str | None:
    """Return why no letter of a topic can be applied."""
    shape = shape_of(state.route, history.head.schema)
    if shape is Shape.WHOLE_ROW and state.route.policy.missing_rows == "insert":
        return _PASSED_OVER
    if shape is Shape.DECLARED_KEY and partitions > 1:
        return _SPREAD
    if topic not in progress.offsets:
        return _ELSEWHERE
    known = progress.topic_ids.get(topic)
    return _OTHER_TOPIC if known is not None and context.kafka.topic_ids([topic]).get(topic) != known else None


def _why_not_at(progress: Progress, place: KafkaPosition, beginning: int | None) -> str | None:
    """Return why one letter cannot be applied."""
    if place.offset >= progress.offsets[place.topic].get(place.partition, 0):
        return _AHEAD
    if beginning is None or place.offset < beginning:
        return _GONE
    truncated = progress.truncated.offsets.get(place.topic, {}) if progress.truncated else {}
    return _EMPTIED if place.offset < truncated.get(place.partition, 0) else None


def _written(
    context: Context,
    plan: WritePlan,
    topic: str,
    letters: Sequence[KafkaPosition],
    refused: dict[KafkaPosition, str],
) -> Redriven:
    """Write the rows of those letters that can be read."""
    wanted = {(place.partition, place.offset) for place in letters}
    problems = _problems(context, plan, wanted)
    for place in letters:
        problem = problems.get((place.partition, place.offset), _NO_EVENT)
        if problem is not None:
            refused[place] = _in_words(context, place, problem)
    fitting = {(place.partition, place.offset) for place in letters if place not in refused}
    if not fitting:
        return Redriven(refused=refused)
    done = tuple(place for place in letters if (place.partition, place.offset) in fitting)
    if plan.shape in (Shape.RECORD_KEY, Shape.DECLARED_KEY):
        others = context.state.dead_letters.places(topic) - fitting
        plan = replace(plan, only=partial(_of_their_rows, plan=plan, letters=fitting, others=others))
    else:
        assert plan.progress is not None
        plan = replace(plan, only=partial(at_places, places=fitting), progress=plan.progress.with_redriven(done))
    context.guard()
    why = write_again(context, plan)
    if why is not None:
        return Redriven(refused=refused | dict.fromkeys(done, why))
    return Redriven(applied=done, refused=refused, progress=plan.progress)


def _problems(context: Context, plan: WritePlan, wanted: set[tuple[int, int]]) -> dict[tuple[int, int], str | None]:
    """Return what is wrong with letters by today's reading, None for those that are well."""
    events = events_of(converted_events(context, plan), plan.head.schema, plan.shape)
    rows = at_places(events, wanted).select(PARTITION, OFFSET, PROBLEM).collect()
    return {(row[PARTITION], row[OFFSET]): row[PROBLEM] for row in rows}


def _in_words(context: Context, place: KafkaPosition, problem: str) -> str:
    if problem != MALFORMED:
        return problem
    record = context.kafka.peek(place.topic, place.partition, place.offset)
    return problem if record is None else malformed(context.book, record)


def _of_their_rows(
    events: DataFrame, *, plan: WritePlan, letters: set[tuple[int, int]], others: set[tuple[int, int]]
) -> DataFrame:
    """Return all events of the rows that letters are of, without other dead letters."""
    keys = [value_column(id_) for id_ in plan.head.schema.primary_key]
    mine = at_places(events.where(F.col(PROBLEM).isNull()), letters).select(*keys).distinct()
    return left_out(events, others).join(mine, keys, "left_semi")
