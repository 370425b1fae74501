"""Rows of a range in which events leave unchanged values out: taken from the batch, from the old key's row, or kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.offsets import OffsetRange, Place
from cdc_sync.core.planning.problems import UNKNOWN_SCHEMA
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.columns import PROBLEM
from cdc_sync.spark.lineages import Lineages, carry, find_delete, find_lineages
from cdc_sync.spark.source import in_one_task
from cdc_sync.spark.unchanged import count_unknown, fold, kept_in_doubt
from cdc_sync.targets.protocol import Commit, Target

_LOOK_BACK = 100
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
        since_version: states of an older version are not looked at: a column's values stood in two columns then,
            or were of another type.
        follow_keys: rows that changed their key are followed, which takes another pass over the events.
        require_links: values that are to be taken over and are not found are an error; else nobody knows them.
    """

    kafka: KafkaClient
    lake: Target
    target: TargetName
    schema: InternalSchema
    unchanged: tuple[int, ...]
    follow_keys: bool
    require_links: bool
    events: Callable[[tuple[OffsetRange, ...]], DataFrame]
    since_version: int = 0

    def rows(self, events: DataFrame, ranges: tuple[OffsetRange, ...], *, exists: bool) -> DataFrame:
        """Reduce a range's events to the rows of `targets.protocol.Batch`.

        Args:
            events: all of them without a problem, or failing at one.
            ranges: where they are from.
            exists: the target holds rows.

        Raises:
            Unlinked: if values are to be taken over from rows that are not found.
        """
        if not self.follow_keys:
            return fold(events, self.schema, self.unchanged, one_task=in_one_task(ranges))
        found = find_lineages(events, self.schema, self.unchanged)
        if not found.unlinked:
            held = self._held(None, exists=exists)
            carried = self._carry(events, found, held) if found.steps else None
            return fold(events, self.schema, self.unchanged, carried)
        carried = self._carried_from_before(ranges, found.unlinked[0]) if exists else None
        if carried is None and self.require_links:
            raise Unlinked(found.unlinked)
        return fold(events, self.schema, self.unchanged, carried)

    def _carried_from_before(self, ranges: tuple[OffsetRange, ...], create: Place) -> DataFrame | None:
        """Return what creates take over from rows that were deleted before their range; None if that is not found.

        The newest state that still has such a row is looked for, and all events from there on are taken into account.
        """
        starts = {item.partition: item.start for item in ranges}
        states = self._states(ranges)
        if not states:
            return None
        oldest = self._known(states[-1][1])
        missing, age = create, 0
        while oldest is not None and (delete := find_delete(oldest, missing)) is not None:
            begins = (self._start(since, delete.partition) for _, since in states)
            age = max(age, next((number for number, start in enumerate(begins) if start <= delete.offset), len(states)))
            if age == len(states):
                return None
            commit, since = states[age]
            events = self._known(since)
            assert events is not None
            found = find_lineages(events, self.schema, self.unchanged, starts)
            if not found.unlinked:
                held = self._held(commit, exists=commit.progress is not None)
                return self._carry(events, found, held, starts)
            if found.unlinked[0] == missing:
                return None
            missing = found.unlinked[0]
        return None

    @staticmethod
    def _start(since: tuple[OffsetRange, ...], partition: int) -> int:
        """Return where a partition is read from; a partition that is not read at all begins nowhere."""
        return next((item.start for item in since if item.partition == partition), 1 << 62)

    def _known(self, since: tuple[OffsetRange, ...]) -> DataFrame | None:
        """Return the events of a longer range, None if some are of schemas that are not at hand: they may matter."""
        events = self.events(since)
        if not events.where(F.col(PROBLEM) == UNKNOWN_SCHEMA).isEmpty():
            return None
        return events.where(F.col(PROBLEM).isNull())

    def _states(self, ranges: tuple[OffsetRange, ...]) -> list[tuple[Commit, tuple[OffsetRange, ...]]]:
        """Return earlier states, newest first, with the ranges from each to now, as far as the topic has them."""
        topic = ranges[0].topic
        beginnings = self.kafka.beginnings([topic]).get(topic, {})
        now = self.lake.state(self.target)
        ends = dict(now.progress.offsets.get(topic, {})) if now and now.progress else {}
        truncated = now.progress.truncated if now and now.progress else None
        ends |= {item.partition: item.end for item in ranges}
        found = []
        for commit in self.lake.commits(self.target, _LOOK_BACK)[1:]:
            if truncated is not None and (commit.progress is None or commit.progress.truncated != truncated):
                break  # its rows are gone, whatever keys they had
            if self.since_version and (commit.progress is None or commit.progress.version < self.since_version):
                break
            read = commit.progress.offsets.get(topic, {}) if commit.progress else {}
            starts = {partition: read.get(partition, 0) for partition in beginnings}
            if any(starts[partition] < beginning for partition, beginning in beginnings.items()):
                break  # events after this state are gone from the topic
            since = (
                OffsetRange(topic=topic, partition=partition, start=start, end=ends.get(partition, start))
                for partition, start in sorted(starts.items())
            )
            found.append((commit, tuple(item for item in since if item.size)))
        return found

    def _carry(
        self, events: DataFrame, found: Lineages, held: DataFrame, starts: Mapping[int, int] | None = None
    ) -> DataFrame:
        return carry(events, self.schema, self.unchanged, found, held, starts)

    def _held(self, commit: Commit | None, *, exists: bool) -> DataFrame:
        ids = (*self.schema.primary_key, *self.unchanged)
        held = self.lake.read(self.target, self.schema, ids, commit)
        return held if exists else held.limit(0)

    def kept_in_doubt(self, events: DataFrame, ids: Iterable[int], *, exists: bool) -> frozenset[int]:
        """Return which of some columns keep a value in some row that the source may have set to NULL."""
        return kept_in_doubt(events, self.schema, ids, self.unchanged, self._held(None, exists=exists))

    def count_unknown(self, rows: DataFrame) -> int:
        """Count the rows for which NULL is stored because nobody knows a value."""
        return count_unknown(rows, self.schema, self.unchanged, self._held(None, exists=True))
