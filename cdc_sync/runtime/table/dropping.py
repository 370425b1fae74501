"""Letting one table's target go, or leaving it as it is, where the source table was dropped or got another name.

Neither shows in an event, so each is taken up in two places: before the first event behind it, and between two batches
once everything in the topics is read. All rows from before are written first; then the version is recorded that says
what becomes of the target; then the target goes. So each step may be repeated: a target that is stamped with an older
version than the recorded end is one that has yet to go. A target that goes on under another name is renamed once the
history under that name says where it comes from (`tablerenaming`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from structlog import get_logger

from cdc_sync.core.history.revision import Version
from cdc_sync.core.lineage.drops import ToldDrop
from cdc_sync.core.lineage.renames import ToldRename
from cdc_sync.core.migration.names import held_target
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.model.offsets import Ends, OffsetRange
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.core.planning.end_of_table import archive_name, begun_behind, last_end
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.planning.plan import first_end
from cdc_sync.core.planning.stops import Pause
from cdc_sync.errors import HistoryError, VersionExists
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.followed import name_changes
from cdc_sync.runtime.observe import survey_with
from cdc_sync.runtime.table.renaming import TableRenaming


class TableDropping(TableRenaming):
    """The end of one table, and the beginning of another one of its name. One thread at a time."""

    def __init__(self, context: Context, route: Route) -> None:
        super().__init__(context, route)
        # What was in the topics when a drop was first told, by the record that told it.
        self._ends_at: tuple[KafkaPosition, Mapping[str, Mapping[int, int]]] | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the source table was dropped and its target is gone, or about to be."""
        return self.history is not None and self.history.head.ends_target

    @property
    def is_told_dropped(self) -> bool:
        """Whether the source told of a drop or a new name that nothing was made of yet, or that was not carried out."""
        return self.pause is None and (self._told() is not None or self._due() is not None)

    def _told(self) -> ToldDrop | ToldRename | None:
        """Return a drop or a new name that nothing was made of yet."""
        if self.history is None or self.history.head.dropped is not None or self._is_homeless:
            return None
        names = name_changes(self._context, self.route, self.history)
        return first_end(self._context.evidence.logs, self.history, names)

    def _due(self) -> Version | None:
        """Return the recorded version at which the target has yet to go, None if there is none."""
        if self.history is None or self._stamped is None:
            return None
        end = last_end(self.history)
        return end if end is not None and end.number > self._stamped else None

    def _begin_behind_end(self, *, is_there: bool) -> None:
        """Know, after a start, where the present table begins if another one of its name ended before.

        Args:
            is_there: there is a table of the target's name, of whomever.
        """
        if self.history is None or self.progress is not None:
            return
        end = last_end(self.history, self._stamped)
        if end is None:
            return
        if not is_there and end.dropped == "drop":
            self._context.target.drop(self.route.target)  # files may be left of it
        self.progress = begun_behind(end, self._stamped or end.number)
        before = self._state.load(self.table)
        self._unread = {} if before is None else {topic: dict(found) for topic, found in before.offsets.items()}

    def check_topic(self, topic: str) -> bool:
        """Pause if the topic is another one; after the table was dropped, its topic may have been cleared away too."""
        if self.is_gone and not self._is_same_topic(topic):
            self._passed.clear()
            self._awaited.clear()
            self.progress = None
            self._begin_behind_end(is_there=True)
        return super().check_topic(topic)

    def _has_read_all(self, told: ToldDrop | ToldRename, looked_at: Ends) -> bool:
        """Whether all was read that was in the topics when this was first asked of a drop or a new name.

        Debezium writes in source order, so rows from before it are in the topics when that can be read. A table that
        only passed under this name may have had no row, and no topic, under it: then all topics count.
        """
        topics = set(self.progress.offsets) if self.progress else set(self._unread)
        topics |= set(self._unread)
        only_passed = not topics and self.history is not None and self.history.head.renamed_from is not None
        if only_passed:
            topics = set(self._context.kafka.matching_topics(self._context.config.kafka))
        if not topics:
            return False
        if self._ends_at is None or self._ends_at[0] != told.kafka:
            self._ends_at = told.kafka, self._context.kafka.ends(topics)
        beginnings = self._context.kafka.beginnings(topics)
        places = {(topic, partition) for topic, partitions in self._ends_at[1].items() for partition in partitions}
        read = looked_at if only_passed else {place: self.next_offset(*place) or 0 for place in places}
        return all(
            max(read.get((topic, partition), 0), beginnings.get(topic, {}).get(partition, 0)) >= end
            for topic, partitions in self._ends_at[1].items()
            for partition, end in partitions.items()
        )

    def _rest_before(self, end: Version) -> tuple[OffsetRange, ...]:
        """Return what of before the drop is in the topics and not written yet, at most one batch of each partition."""
        topics = self._topics()
        size = self._context.config.job.max_offsets_per_batch
        found: list[OffsetRange] = []
        for topic, partitions in self._context.kafka.ends(topics).items():
            ends = {(topic, partition): offset for partition, offset in partitions.items()}
            # What keeps a new partition waiting may lie behind the end.
            found += self._before(self.ranges(topic, ends), end) or self._before(
                self.ranges(topic, ends, all_at_once=True), end
            )
        return tuple(
            OffsetRange(
                topic=item.topic, partition=item.partition, start=item.start, end=min(item.end, item.start + size)
            )
            for item in found
            if item.size
        )

    def _stretches_in(self, ranges: tuple[OffsetRange, ...]) -> Sequence[Stretch]:
        ends = {(item.topic, item.partition): item.end for item in ranges}
        found = survey_with(self._context, self._context.read(ranges), ends, {})
        return [stretch for stretch in found.stretches if stretch.table == self.table]

    def _end(self, end: Version) -> None:
        """Record that the table ends, everything from before being written, and let the target go.

        Raises:
            HistoryError: if another job records versions of the table.
            TargetError: if the target cannot be dropped or renamed; it is tried again.
        """
        assert self.history is not None
        if self._collides(end):
            return
        if end.renamed_to is not None:
            self._migrate()  # what goes on under the other name has the columns of this version
            if self.pause is not None:
                return
        try:
            self._context.history.append(end)
        except VersionExists as error:
            raise HistoryError(f"{error}; run one job per pipeline") from error
        self.history = self.history.extended(end)
        get_logger().info("schema version recorded", table=str(self.table), version=end.number)
        self._let_go(end)

    def _let_go(self, end: Version) -> None:
        """Drop or rename the target of a recorded end."""
        if self._collides(end):
            return
        target = self._context.target
        if end.renamed_to is not None:
            self._record_arrival(end)
            target.archive(self.route.target, self._into(end))
        elif end.dropped == "archive":
            target.archive(self.route.target, self._archive(end))
        else:
            target.drop(self.route.target)
        get_logger().info("target let go", table=str(self.table), how=end.dropped, at=str(end.position))
        self._stamped = None
        former = self.progress
        self.progress = begun_behind(end, end.number, former)
        offsets = {} if former is None else former.offsets
        self._unread = {topic: dict(partitions) for topic, partitions in offsets.items()}
        for topic, partitions in offsets.items():
            for partition, offset in partitions.items():
                self._passed[topic, partition] = max(offset, self._passed.get((topic, partition), 0))
        self._current = frozenset()
        self.save_status()

    def _end_in_words(self, end: Version) -> str:
        found = super()._end_in_words(end)
        return f"{found} as {self._archive(end)}" if end.dropped == "archive" else found

    def _archive(self, end: Version) -> TargetName:
        return held_target(archive_name(self.route.target, end), self.route.capabilities.tables)

    def _collides(self, end: Version) -> bool:
        """Pause if a table has the name that the target is to get."""
        if end.renamed_to is not None:
            stop = self._cannot_move(end)
            if stop is not None:
                self.refuse(stop)
            return stop is not None
        if end.dropped != "archive":
            return False
        into, target = self._archive(end), self._context.target
        if target.state(into) is None or target.state(self.route.target) is None:
            return False
        self.refuse(
            Pause(
                reason=f"the source table was dropped, and its target cannot be archived as {into}, for there is a "
                "table of that name",
                remedy=f"move {into} away and start the job again, or set policy.drop_table: keep",
                at=str(end.kafka),
            )
        )
        return True
