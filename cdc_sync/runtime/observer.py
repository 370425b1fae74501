"""Finds out, of one table, the facts that a decision depends on: each question is one look at Kafka or the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cdc_sync.config.routes import route
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.names import held_target
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.model.offsets import Ends, OffsetRange
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.planning.deadline import Patience
from cdc_sync.core.planning.limits import Window, too_many_versions
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.planning.truncation import Reach, Truncate
from cdc_sync.core.table.questions import (
    CanReadFrom,
    Cuts,
    Destination,
    Exists,
    Fingerprints,
    HasAllEvents,
    HistoryOf,
    IsSameTopic,
    IsWhole,
    KeyClash,
    PlanOf,
    Question,
    Reaches,
    RefusedJoin,
    Rest,
    RestBefore,
    RoomFor,
    TargetNow,
)
from cdc_sync.core.table.seen import Seen, Unknown
from cdc_sync.core.table.state import TableState
from cdc_sync.errors import RefusedError
from cdc_sync.runtime.bounds import position_before
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.evidence import plan_of
from cdc_sync.runtime.joined_values import joined_values
from cdc_sync.runtime.observe import events_in, survey_with
from cdc_sync.runtime.reading import due, is_same_topic
from cdc_sync.spark.keys import clash
from cdc_sync.spark.observe import first_offsets_from, first_positions, has_ended


class Observer:
    """Answers questions about one table. One thread at a time."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.begin_hour()
        self._patience = Patience(context.config.evidence.wait.total_seconds())
        self._others = Patience(context.config.evidence.wait.total_seconds())

    def begin_hour(self) -> None:
        """Count anew how often the table's schema changes within an hour."""
        self._versions = Window(self._context.config.limits.max_versions_per_hour)

    def answer(self, state: TableState, seen: Seen, question: Question[Any]) -> object:
        """Return the answer to a question.

        Raises:
            TransientError: if Kafka or a store is away.
            CdcSyncError: if it cannot be found out.
        """
        context, target = self._context, self._context.target
        match question:
            case PlanOf():
                return plan_of(context, state, seen.stretches, self._patience, question)
            case RoomFor(versions=wanted):
                granted = self._versions.take(wanted)
                return granted, None if granted == wanted else too_many_versions(context.config.limits)
            case TargetNow():
                return target.state(state.route.target)
            case Exists(name=name):
                return target.state(name) is not None
            case HasAllEvents():
                return self._has_all_events(state)
            case Cuts(position=position):
                return self._cuts(state, seen.ranges, position)
            case KeyClash(before=number, held=held):
                return self._key_clash(state, number, held)
            case RefusedJoin(steps=steps, history=history):
                found = joined_values(context, state, steps, history)
                return found if isinstance(found, Refused) else None
            case IsSameTopic():
                return all(is_same_topic(context, state, topic) for topic in state.topics)
            case Reaches(truncate=truncate):
                return self._reaches(state, truncate)
            case Fingerprints(digests=digests):
                known = (context.book.get(digest) for digest in sorted(digests))
                return {item.digest: item.fingerprint for item in known if item is not None and item.fingerprint}
            case RestBefore(end=end):
                return self._rest_before(state, end)
            case Destination(table=table):
                return self._destination(table)
            case HistoryOf(table=table):
                return context.history.find(table)
            case CanReadFrom(at=at):
                return self._can_read_from(at)
            case IsWhole(position=position, within=within):
                records = context.read((within,))
                return has_ended(records, events_in(context, records), state.table, position)
            case _:
                raise TypeError(question)

    def is_tired_of(self, table: TableId) -> bool:
        """Whether another table, that was never seen, was waited for long enough."""
        return self._others.is_over(table)

    def _can_read_from(self, at: KafkaPosition) -> bool:
        kafka, topic = self._context.kafka, at.topic
        if len(kafka.ends([topic]).get(topic, {})) > 1:
            return False
        return kafka.beginnings([topic]).get(topic, {}).get(at.partition, 0) <= at.offset

    def _has_all_events(self, state: TableState) -> bool:
        """Whether nothing is gone from the beginnings of the topics that the target was filled from."""
        beginnings = self._context.kafka.beginnings(state.topics)
        return not any(offset for found in beginnings.values() for offset in found.values())

    def _cuts(self, state: TableState, ranges: tuple[OffsetRange, ...], position: SourcePosition) -> Ends:
        if not ranges:
            return {}
        records = self._context.read(ranges)
        return first_offsets_from(records, events_in(self._context, records), state.table, position)

    def _key_clash(self, state: TableState, number: int, held: tuple[int, ...]) -> str | None:
        assert state.history is not None
        before = state.history.version(number).schema
        if held:
            return clash(self._context.target.read(state.route.target, before, list(held)), list(held))
        rows = self._context.target.read(state.route.target, before, [before.columns[0].id])
        return "rows that are there have no value of its new column" if rows.limit(1).collect() else None

    def _destination(self, table: TableId) -> tuple[TargetName, bool] | None:
        found = route_of(self._context, table)
        return (
            None if found is None else (held_target(found.target, found.capabilities.tables), found.merge is not None)
        )

    def has_drained(self, state: TableState, drains: Mapping[str, Mapping[int, int]], looked_at: Ends) -> bool:
        """Whether all was read that was in the topics when an end was told.

        Debezium writes in source order, so rows from before it are in the topics when that can be read.

        Args:
            drains: what was in the topics then.
            looked_at: how far every topic was looked through, whatever tables are in it. A table that only passed under
                this name may have had no row, and no topic, under it: then all topics count.
        """
        beginnings = self._context.kafka.beginnings(drains)
        only_passed = not _drain_topics(state)

        def read(topic: str, partition: int) -> int:
            at = looked_at.get((topic, partition)) if only_passed else state.next_offset(topic, partition)
            return max(at or 0, beginnings.get(topic, {}).get(partition, 0))

        return all(read(topic, partition) >= end for topic, ends in drains.items() for partition, end in ends.items())

    def drains(self, state: TableState) -> Mapping[str, Mapping[int, int]]:
        """Return what is in the topics that an end of the table depends on, nothing where there are none."""
        topics = _drain_topics(state)
        if not topics and state.history is not None and state.history.head.renamed_from is not None:
            topics = set(self._context.kafka.matching_topics(self._context.config.kafka))
        return self._context.kafka.ends(topics) if topics else {}

    def _rest_before(self, state: TableState, end: Version) -> Rest:
        size = self._context.config.job.max_offsets_per_batch
        found: list[OffsetRange] = []
        for topic, partitions in self._context.kafka.ends(state.topics).items():
            ends = {(topic, partition): offset for partition, offset in partitions.items()}
            # What keeps a new partition waiting may lie behind the end.
            for all_at_once in (False, True):
                state, ranges = due(self._context, state, topic, ends, all_at_once=all_at_once)
                if state.stop is not None:
                    return Rest(stop=state.stop)
                left = self._before(state, ranges, end)
                if left:
                    found += left
                    break
        rest = tuple(replace(item, end=min(item.end, item.start + size)) for item in found)
        if not rest:
            return Rest()
        upto = {(item.topic, item.partition): item.end for item in rest}
        survey = survey_with(self._context, self._context.read(rest), upto, {})
        return Rest(ranges=rest, stretches=tuple(item for item in survey.stretches if item.table == state.table))

    def _before(self, state: TableState, ranges: tuple[OffsetRange, ...], end: Version) -> tuple[OffsetRange, ...]:
        seen = Seen.of(ranges, ())
        try:
            return seen.before(ranges, end.position, end.kafka)
        except Unknown:
            facts = seen.facts.knowing(Cuts(end.position), self._cuts(state, ranges, end.position))
            return replace(seen, facts=facts).before(ranges, end.position, end.kafka)

    def _reaches(self, state: TableState, truncate: Truncate) -> Mapping[tuple[str, int], Reach]:
        """Look where the TRUNCATE lies in all partitions but its own; one partition needs no look.

        Debezium writes in source order, so what lies before the TRUNCATE is in the topics when that can be read.
        """
        kafka, at, position = self._context.kafka, truncate.kafka, truncate.position
        topics = {at.topic, *state.topics}
        beginnings = kafka.beginnings(topics)
        ends = {
            (topic, partition): end
            for topic, partitions in kafka.ends(topics).items()
            for partition, end in partitions.items()
            if (topic, partition) != (at.topic, at.partition)
        }
        looks = tuple(
            OffsetRange(topic=topic, partition=partition, start=start, end=end)
            for (topic, partition), end in sorted(ends.items())
            if position.parts
            and (start := self._look_from(state, position, topic, partition, beginnings[topic].get(partition, 0))) < end
        )
        behind = self._cuts(state, looks, position)
        firsts: Mapping[tuple[str, int], SourcePosition] = {}
        if looks:
            records = self._context.read(looks)
            firsts = first_positions(records, events_in(self._context, records), state.table)
        starts = {(item.topic, item.partition): item.start for item in looks}
        found = {}
        for where, end in ends.items():
            known = state.progress.next_offset(*where) if state.progress else None
            start = starts.get(where, end)
            begins_before = where in firsts and firsts[where] < position
            found[where] = Reach(
                next_offset=known,
                first_behind=behind.get(where),
                end=end,
                whole=begins_before or start == 0 or start == known or start == _begins(state, *where),
            )
        return found

    def _look_from(
        self, state: TableState, position: SourcePosition, topic: str, partition: int, beginning: int
    ) -> int:
        """Return where to look for the TRUNCATE: where the table goes on, if it was not read beyond it."""
        known = state.progress.next_offset(topic, partition) if state.progress else None
        if known is not None and known >= beginning:
            last = position_before(self._context, state.table, topic, partition, known)
            if last is not None and last < position:
                return known
        return max(beginning, _begins(state, topic, partition) or 0)


def _begins(state: TableState, topic: str, partition: int) -> int | None:
    """Return the first offset behind the last TRUNCATE, None if there was none."""
    truncated = state.progress.truncated if state.progress else None
    return None if truncated is None else truncated.offsets.get(topic, {}).get(partition)


def _drain_topics(state: TableState) -> set[str]:
    """Return the topics in which events of the table came."""
    return {*state.topics, *state.cursor.unread}


def route_of(context: Context, table: TableId) -> Route | None:
    """Return what the operator wants of a table; None where no rule matches it, or it is refused."""
    try:
        return route(context.config, table)
    except RefusedError:
        return None
