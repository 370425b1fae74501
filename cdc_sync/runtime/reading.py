"""What one table reads next of its topics, and what of them is gone before it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from structlog import get_logger

from cdc_sync.core.model.offsets import Ends, OffsetRange
from cdc_sync.core.table.checks import lacks_offsets
from cdc_sync.core.table.state import TableState
from cdc_sync.runtime.context import Context


def awaited(
    context: Context, state: TableState, topic: str, partition: int, end: int
) -> tuple[TableState, Mapping[int, int]]:
    """Return up to where other partitions are to be read before one is begun; empty if it may be.

    Where a topic is given more partitions, keys go on in new ones, and offsets no longer order a key's events. The
    first record of a new partition says that they have moved, so what came before is in the others by then.

    Args:
        topic: one of the table's.
        partition: of the topic.
        end: the offset after the last record of the partition to read.
    """
    place = topic, partition
    cursor = state.cursor
    if place not in cursor.awaited:
        named = state.progress.offsets.get(topic, {}) if state.progress else {}
        begun = {*named, *(number for name, number in cursor.passed if name == topic)}
        if not begun or partition in begun or not end:
            return state, {}
        now = context.kafka.ends([topic]).get(topic, {})
        found = {number: now[number] for number in begun if number in now}
        state = replace(state, cursor=replace(cursor, awaited={**cursor.awaited, place: found}))
        get_logger().info("partition is new to the table", table=str(state.table), topic=topic, partition=partition)
    return state, {
        number: offset
        for number, offset in state.cursor.awaited[place].items()
        if (state.next_offset(topic, number) or 0) < offset
    }


def due(
    context: Context, state: TableState, topic: str, ends: Ends, *, all_at_once: bool = False
) -> tuple[TableState, tuple[OffsetRange, ...]]:
    """Return what the table has not read of a topic; stops if some of it is gone from the topic.

    Args:
        topic: one of the table's.
        ends: up to where to read; other topics' do not count.
        all_at_once: a partition that is new need not wait until the others are read.
    """
    beginnings = context.kafka.beginnings([topic]).get(topic, {})
    state = with_all(context, state, topic, beginnings)
    if state.stop is not None:
        return state, ()
    found = []
    for place in sorted(place for place in ends if place[0] == topic):
        if not all_at_once:
            state, before = awaited(context, state, *place, ends[place])
            if before:
                continue
        known = state.next_offset(*place)
        start = beginnings.get(place[1], 0) if known is None else known
        if known is None:
            unread = {**state.cursor.unread, topic: {**state.cursor.unread.get(topic, {}), place[1]: start}}
            state = replace(state, cursor=replace(state.cursor, unread=unread))
        if start < ends[place]:
            found.append(OffsetRange(topic=topic, partition=place[1], start=start, end=ends[place]))
    return state, tuple(found)


def with_all(context: Context, state: TableState, topic: str, beginnings: Mapping[int, int]) -> TableState:
    """Return the table, stopped if something of a topic that it has not read is gone from it.

    Args:
        topic: one of the table's.
        beginnings: the first offset of each partition that is still there.
    """
    for partition, beginning in sorted(beginnings.items()):
        start = state.next_offset(topic, partition)
        if start is not None and start < beginning and state.progress is not None:
            # Go on where an earlier process was with the same rows, if that was further. Asked only where something is
            # gone: else it is read again, which does no harm.
            at = context.state.passed(state.table, state.progress.to_text()).get((topic, partition), 0)
            state = replace(state, cursor=state.cursor.passing({(topic, partition): at}))
        state = lacks_offsets(state, topic, partition, beginning)
        if state.stop is not None:
            break
    return state


def is_same_topic(context: Context, state: TableState, topic: str) -> bool:
    """Whether a topic is the one whose offsets the target knows."""
    known = state.progress.topic_ids.get(topic) if state.progress else None
    return known is None or known == context.kafka.topic_ids([topic]).get(topic, known)
