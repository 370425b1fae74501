"""What the first and last records of a range say about the source positions in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cdc_sync.core.debezium.position import Source
from cdc_sync.core.model.incarnations import placed
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.model.progress import Lsns, Progress
from cdc_sync.errors import TargetError, WireError
from cdc_sync.runtime.context import Context
from cdc_sync.sources.records import FAR_BACK
from cdc_sync.sources.samples import read_sample

_LOOK_BACK = 4


def last_sources(context: Context, ranges: Sequence[OffsetRange]) -> dict[int, Source | None]:
    """Return by partition the source block of each range's last event; deletes are followed by tombstones."""
    return {item.partition: last_source(context, item) for item in ranges}


def last_source(context: Context, item: OffsetRange) -> Source | None:
    """Return the source block of a range's last event, None if it is not near the end."""
    for offset in range(item.end - 1, max(item.start, item.end - _LOOK_BACK) - 1, -1):
        source = source_at(context, item.topic, item.partition, offset)
        if source is not None:
            return source
    return None


def highest_lsns(last: Mapping[int, Source | None]) -> Lsns:
    """Return a bound on the source LSNs of each range, taken from its last event.

    Events come in commit order, so all earlier ones lie below the last commit before the last event, or within its
    transaction. A connector that repeats events breaks this, which the write job checks.
    """
    found = {partition: max(source.lsn or 0, source.last_commit or 0) for partition, source in last.items() if source}
    return {partition: lsn for partition, lsn in found.items() if lsn}


def only_creates(context: Context, ranges: Sequence[OffsetRange], last: Mapping[int, Source | None]) -> bool:
    """Whether the first and last event of each range are creates: worth trying to append."""
    if not all(source is not None and source.op == "c" for source in last.values()):
        return False
    firsts = (source_at(context, item.topic, item.partition, item.start) for item in ranges)
    return all(source is not None and source.op == "c" for source in firsts)


def source_at(context: Context, topic: str, partition: int, offset: int) -> Source | None:
    """Return the source block of the event at a place, None if there is none or it cannot be read."""
    record = context.kafka.peek(topic, partition, offset)
    if record is None or record.value is None:
        return None
    try:
        return read_sample(context.book, record).source
    except WireError:
        return None


def position_before(context: Context, table: TableId, topic: str, partition: int, end: int) -> SourcePosition | None:
    """Return the position of the table's last event before an offset, None if there is none near it."""
    for offset in range(end - 1, max(-1, end - FAR_BACK), -1):
        source = source_at(context, topic, partition, offset)
        if source is not None and source.table == table:
            return placed(source.position, source.at, context.began.get(table, ()))
    return None


def progress_after(
    context: Context, before: Progress, version: int, ranges: Sequence[OffsetRange], bounds: Lsns
) -> Progress:
    """Return the marker of a commit that holds the ranges.

    It names every partition of a topic that the table begins with, those without a range at where the topic begins:
    one that a later marker does not name is new, and what retention takes from it before it is read is missing.

    Args:
        before: what the table holds now.
        version: the head's number.
        bounds: LSNs that no event in the ranges exceeds.

    Raises:
        TargetError: if a range begins before where the table is: its rows would be there twice.
    """
    topics = {item.topic for item in ranges}
    partial = topics - before.whole
    present = context.kafka.beginnings(partial) if partial else {}
    before = before.looked_through(
        {
            (topic, partition): beginning
            for topic, partitions in present.items()
            if topic not in before.offsets
            for partition, beginning in partitions.items()
        }
    )
    offsets = {topic: dict(partitions) for topic, partitions in before.offsets.items()}
    high_water = {topic: dict(partitions) for topic, partitions in before.high_water.items()}
    for item in ranges:
        held = before.offsets.get(item.topic, {}).get(item.partition, 0)
        if held > item.start:
            raise TargetError(f"Cannot write {item.topic}[{item.partition}] from {item.start}: it is held up to {held}")
        offsets.setdefault(item.topic, {})[item.partition] = item.end
        seen, bound = before.highest_lsn(item.topic, item.partition), bounds.get(item.partition)
        known = high_water.setdefault(item.topic, {})
        if seen is None or bound is None:
            known.pop(item.partition, None)
        else:
            known[item.partition] = max(seen, bound)
    whole = before.whole | {topic for topic, found in present.items() if found.keys() <= offsets[topic].keys()}
    # One that is known stays: if the topic is another one since it was looked at, the next look has to find that.
    topic_ids = {**context.kafka.topic_ids(topics - before.topic_ids.keys()), **before.topic_ids}
    return replace(before, version=version, offsets=offsets, topic_ids=topic_ids, high_water=high_water, whole=whole)
