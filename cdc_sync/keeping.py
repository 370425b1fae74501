"""Rows of a range in which events leave unchanged values out: taken from the batch, from the old key's row, or kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.context import Context
from cdc_sync.naming import TargetName
from cdc_sync.schema.internal import InternalSchema
from cdc_sync.spark.columns import PROBLEM
from cdc_sync.spark.lineages import Lineages, Place, carry, find_lineages
from cdc_sync.spark.problems import UNKNOWN_SCHEMA
from cdc_sync.spark.source import OffsetRange
from cdc_sync.spark.unchanged import count_unknown, fold
from cdc_sync.targets.base import Commit

_LOOK_BACK = 20
"""Commits; a key update's two halves are neighbours in the log, so the newest one nearly always will do."""


class Unlinked(Exception):
    """Creates leave values out, and the deletes that removed the rows which hold them were not found."""

    def __init__(self, creates: Sequence[Place]) -> None:
        super().__init__(creates)
        self.creates = tuple(creates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What is needed beside a range's events.

    Attributes:
        events: decodes a range's events, those with a problem included.
        unchanged: ids of the columns that events may leave out.
        require_links: values that are to be taken over and are not found are an error; else nobody knows them.
    """

    context: Context
    target: TargetName
    schema: InternalSchema
    unchanged: tuple[int, ...]
    require_links: bool
    events: Callable[[tuple[OffsetRange, ...]], DataFrame]

    def rows(self, events: DataFrame, ranges: tuple[OffsetRange, ...], *, exists: bool) -> DataFrame:
        """Reduce a range's events to the rows of `targets.base.Batch`.

        Args:
            events: all of them without a problem, or failing at one.
            ranges: where they are from.
            exists: the target holds rows.

        Raises:
            Unlinked: if values are to be taken over from rows that are not found.
        """
        found = find_lineages(events, self.schema, self.unchanged)
        if not found.steps and not found.unlinked:
            return fold(events, self.schema, self.unchanged)
        if not found.unlinked:
            held = self._held(None, exists=exists)
            return fold(events, self.schema, self.unchanged, self._carry(events, found, held))
        starts = {item.partition: item.start for item in ranges}
        for commit in self.context.target.commits(self.target, _LOOK_BACK)[1:] if exists else ():
            longer = self.events(self._since(commit, ranges)).persist()
            try:
                carried = self._carried_since(longer, commit, starts)
            finally:
                longer.unpersist()
            if carried is not None:
                return fold(events, self.schema, self.unchanged, carried)
        if self.require_links:
            raise Unlinked(found.unlinked)
        return fold(events, self.schema, self.unchanged)

    def _carried_since(self, longer: DataFrame, commit: Commit, starts: Mapping[int, int]) -> DataFrame | None:
        """Return what is taken over, looking back to a commit; None if that does not say it."""
        if not longer.where(F.col(PROBLEM) == UNKNOWN_SCHEMA).isEmpty():
            return None  # there may be values among them
        known = longer.where(F.col(PROBLEM).isNull())
        found = find_lineages(known, self.schema, self.unchanged, starts)
        if found.unlinked:
            return None
        held = self._held(commit, exists=commit.progress is not None)
        return self._carry(known, found, held, starts).localCheckpoint()

    def _carry(
        self, events: DataFrame, found: Lineages, held: DataFrame, starts: Mapping[int, int] | None = None
    ) -> DataFrame:
        return carry(events, self.schema, self.unchanged, found, held, starts)

    def _held(self, commit: Commit | None, *, exists: bool) -> DataFrame:
        ids = (*self.schema.primary_key, *self.unchanged)
        held = self.context.target.read(self.target, self.schema, ids, commit)
        return held if exists else held.limit(0)

    def _since(self, commit: Commit, ranges: tuple[OffsetRange, ...]) -> tuple[OffsetRange, ...]:
        topic = ranges[0].topic
        beginnings = self.context.kafka.beginnings([topic]).get(topic, {})
        ends = {item.partition: item.end for item in ranges}
        read = commit.progress.offsets.get(topic, {}) if commit.progress else {}
        starts = {partition: max(beginning, read.get(partition, 0)) for partition, beginning in beginnings.items()}
        now = self.context.target.state(self.target)
        reached = now.progress.offsets.get(topic, {}) if now and now.progress else {}
        wanted = (
            OffsetRange(
                topic=topic, partition=partition, start=start, end=ends.get(partition, reached.get(partition, start))
            )
            for partition, start in sorted(starts.items())
        )
        return tuple(item for item in wanted if item.size)

    def count_unknown(self, rows: DataFrame) -> int:
        """Count the rows for which NULL is stored because nobody knows a value."""
        return count_unknown(rows, self.schema, self.unchanged, self._held(None, exists=True))


def before_creates(ranges: tuple[OffsetRange, ...], creates: Sequence[Place]) -> tuple[OffsetRange, ...]:
    """Cut ranges before records: another partition may have yet to bring what they need."""
    first: dict[int, int] = {}
    for place in creates:
        first[place.partition] = min(place.offset, first.get(place.partition, place.offset))
    cut = (replace(item, end=min(item.end, first.get(item.partition, item.end))) for item in ranges)
    return tuple(item for item in cut if item.size)
