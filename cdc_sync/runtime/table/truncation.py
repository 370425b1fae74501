"""Emptying one table's target where the source's was truncated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from structlog import get_logger

from cdc_sync.core.history.history import History
from cdc_sync.core.history.revision import Version
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition
from cdc_sync.core.model.progress import Progress, Truncated
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.planning.plan import is_later
from cdc_sync.core.planning.refusals import Refused
from cdc_sync.core.planning.stops import Pause
from cdc_sync.core.planning.truncation import PAUSED, Reach, Truncate, in_effect, place, progress_behind
from cdc_sync.runtime.bounds import position_before
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.observe import events_in
from cdc_sync.runtime.table.migration import TableMigration
from cdc_sync.spark.observe import first_offsets_from, first_positions, has_ended


class TableTruncation(TableMigration):
    """The TRUNCATEs of one table, and the snapshots that read all of it again. One thread at a time."""

    def __init__(self, context: Context, route: Route) -> None:
        super().__init__(context, route)
        # By version that a snapshot began: up to where no end of it was found.
        self._looked_for_end: dict[int, int] = {}
        self._given_up = 0

    def _first_truncate(self, ranges: Iterable[OffsetRange], stretches: Iterable[Stretch]) -> Truncate | None:
        """Return the first TRUNCATE within the ranges that the target has to follow, or to pause at.

        A table that was made anew is one before its first row, wherever that is.
        """
        if self.history is None or self.route.append:
            return None
        bounds = {(item.topic, item.partition): item for item in ranges}
        truncated = self.progress.truncated if self.progress else None
        found = list(self._made_anew(self.history))
        for stretch in stretches if self.route.policy.truncate != "ignore" else ():
            within = bounds.get((stretch.kafka.topic, stretch.kafka.partition))
            if stretch.truncate and within is not None and within.start <= stretch.kafka.offset < within.end:
                truncate = Truncate(position=stretch.position, kafka=stretch.kafka)
                nothing = self.history.versions[self._begun_at(truncate, self.history) - 1].ends_target
                if not in_effect(truncate, truncated) and not nothing:
                    found.append(truncate)
        # What a connector repeats goes back in position, never in its partition.
        first: dict[tuple[str, int], Truncate] = {}
        for truncate in sorted(found, key=lambda item: item.kafka):
            first.setdefault((truncate.kafka.topic, truncate.kafka.partition), truncate)
        return min(first.values(), key=lambda item: (item.position, item.kafka), default=None)

    def _made_anew(self, history: History) -> Iterator[Truncate]:
        """Yield where the source's table became another one, as far as the target did not follow yet."""
        truncated = self.progress.truncated if self.progress else None
        done = truncated.position if truncated is not None and truncated.made_anew else None
        for version in history.versions[self._first_unseen :]:
            created = version.made_anew
            if created is not None and (done is None or done < created):
                yield Truncate(position=created, kafka=version.kafka, made_anew=True)

    def _in_effect_at(self, truncate: Truncate, history: History) -> History:
        """Return the history up to a TRUNCATE; never less than the target has, nor than a table needs."""
        begun = self._begun_at(truncate, history)
        return History(table=self.table, versions=history.versions[: max(begun, self._first_unseen)])

    def _begun_at(self, truncate: Truncate, history: History) -> int:
        """Return the number of the version in effect at a TRUNCATE, 1 if it lies before all."""
        return max(1, sum(is_later(truncate.position, truncate.kafka, version) for version in history.versions))

    def _truncate(self, truncate: Truncate) -> None:
        """Empty the target, after everything that lies before the TRUNCATE in its own partition was written.

        One commit holds the emptiness and where each partition goes on, so this may be repeated, and a crash before or
        after it leaves nothing half done.
        """
        assert self.history is not None
        pauses = self.route.policy.truncate == "pause" and not truncate.made_anew
        found = PAUSED if pauses else place(truncate, self._reaches(truncate))
        if isinstance(found, Refused):
            self.refuse(Pause(reason=found.reason, remedy=found.remedy, at=str(truncate.kafka)))
            return
        self._empty(found, self.history, why=truncate.what, at=truncate.kafka)

    def _empty(self, truncated: Truncated, history: History, *, why: str, at: KafkaPosition) -> None:
        topic_ids = self._context.kafka.topic_ids(truncated.offsets.keys())
        progress = progress_behind(self.progress, truncated, history.head.number, topic_ids)
        self._context.target.truncate(self.route.target, progress, self.progress)
        self.progress = progress
        self._passed.clear()  # partitions may have to be read again
        get_logger().info("target emptied", table=str(self.table), why=why, at=str(at))
        self.save_status()

    def apply_snapshot(self) -> None:
        """Let the rows go that were there before the newest snapshot of the whole table, once that is whole.

        It shows all rows that there are, so the target is emptied and read on from its first row: one commit holds
        both, as with a TRUNCATE, and rows that came behind it come again.
        """
        version = self._unapplied_snapshot()
        if version is None or self.progress is None:
            return
        at = version.kafka
        if not self._can_read_from(at, self.progress):
            self._given_up = version.number
            self._warn(
                f"the snapshot from {at} on is not applied (policy.second_snapshot): its rows are gone from the topic, "
                "or the table's events come in several partitions. Rows that were deleted before it may be here; "
                "compare with `cdc-sync verify`"
            )
            return
        if not self._is_whole(version, self.progress.next_offset(at.topic, at.partition) or 0):
            return
        truncated = Truncated(position=version.position, offsets={at.topic: {at.partition: at.offset}})
        assert self.history is not None
        self._empty(truncated, self.history, why="a whole snapshot follows", at=at)
        self._current = frozenset()

    def _unapplied_snapshot(self) -> Version | None:
        """Return the version that the newest snapshot of the whole table began, if it is to be applied and was not."""
        history, wanted = self.history, self.route.policy.second_snapshot == "apply" and not self.route.append
        if not wanted or history is None or self.pause is not None or self._stamped != history.head.number:
            return None
        version = next((item for item in reversed(history.versions) if item.read_again), None)
        truncated = self.progress.truncated if self.progress else None
        if (
            version is None
            or version.number == self._given_up
            or (truncated is not None and truncated.position >= version.position)
        ):
            return None
        return version

    def _can_read_from(self, at: KafkaPosition, progress: Progress) -> bool:
        kafka = self._context.kafka
        if len(progress.offsets) > 1 or len(kafka.ends([at.topic]).get(at.topic, {})) > 1:
            return False
        return kafka.beginnings([at.topic]).get(at.topic, {}).get(at.partition, 0) <= at.offset

    def _is_whole(self, version: Version, end: int) -> bool:
        """Whether all rows of a snapshot were read up to an offset."""
        at = version.kafka
        start = max(at.offset, self._looked_for_end.get(version.number, 0))
        if start >= end:
            return False
        records = self._context.read((OffsetRange(topic=at.topic, partition=at.partition, start=start, end=end),))
        self._looked_for_end = {version.number: end}
        return has_ended(records, events_in(self._context, records), self.table, version.position)

    def _reaches(self, truncate: Truncate) -> dict[tuple[str, int], Reach]:
        """Look where the TRUNCATE lies in all partitions but its own; one partition needs no look.

        Debezium writes in source order, so what lies before the TRUNCATE is in the topics when that can be read.
        """
        kafka, at = self._context.kafka, truncate.kafka
        topics = {at.topic, *(self.progress.offsets if self.progress else ())}
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
            if truncate.position.parts
            and (start := self._look_from(truncate, topic, partition, beginnings.get(topic, {}).get(partition, 0)))
            < end
        )
        behind: dict[tuple[str, int], int] = {}
        firsts: dict[tuple[str, int], SourcePosition] = {}
        if looks:
            records = self._context.read(looks)
            events = events_in(self._context, records)
            behind = first_offsets_from(records, events, self.table, truncate.position)
            firsts = first_positions(records, events, self.table)
        starts = {(item.topic, item.partition): item.start for item in looks}
        found = {}
        for where, end in ends.items():
            known = self.progress.next_offset(*where) if self.progress else None
            start = starts.get(where, end)
            begins_before = where in firsts and firsts[where] < truncate.position
            found[where] = Reach(
                next_offset=known,
                first_behind=behind.get(where),
                end=end,
                whole=begins_before or start == 0 or start == known or start == self._begins(*where),
            )
        return found

    def _look_from(self, truncate: Truncate, topic: str, partition: int, beginning: int) -> int:
        """Return where to look for the TRUNCATE: where the table goes on, if it was not read beyond it."""
        known = self.progress.next_offset(topic, partition) if self.progress else None
        if known is not None and known >= beginning:
            last = position_before(self._context, self.table, topic, partition, known)
            if last is not None and last < truncate.position:
                return known
        return max(beginning, self._begins(topic, partition) or 0)

    def _begins(self, topic: str, partition: int) -> int | None:
        """Return the first offset behind the last TRUNCATE, None if there was none."""
        truncated = self.progress.truncated if self.progress else None
        return None if truncated is None else truncated.offsets.get(topic, {}).get(partition)

    def _warn_of_late_events(self, stretches: Sequence[Stretch]) -> None:
        """Say that events were passed over which lie before the last TRUNCATE, but behind it in their partition."""
        truncated = self.progress.truncated if self.progress else None
        bound = None if truncated is None else truncated.bound
        if bound is None:
            return
        for stretch in stretches:
            begins = self._begins(stretch.kafka.topic, stretch.kafka.partition)
            late = stretch.position.kind == bound.kind and stretch.position < bound
            if late and begins is not None and stretch.kafka.offset >= begins:
                what = "the table was dropped" if truncated is not None and truncated.made_anew else "the TRUNCATE"
                self._warn(
                    f"events from {stretch.kafka} on are passed over, for the source wrote them before {what} at "
                    f"{bound}; if the source was restored to an earlier state, snapshot the table into a new target"
                )
                self.save_status()
                return
