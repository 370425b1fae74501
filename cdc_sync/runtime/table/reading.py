"""How far one table has read its topics, and what of them it reads next."""

from __future__ import annotations

from collections.abc import Mapping

from structlog import get_logger

from cdc_sync.core.history.revision import Version
from cdc_sync.core.lineage.coverage import Coverage
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.offsets import Ends, OffsetRange, narrowed
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.end_of_table import first_of_life
from cdc_sync.core.planning.plan import Refusal, Waiting
from cdc_sync.core.planning.stops import Pause, lost_beginning
from cdc_sync.core.planning.truncation import Truncate
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.observe import events_in
from cdc_sync.runtime.table.standing import TableStanding
from cdc_sync.spark.observe import first_offsets_from, schemas

_FEW_SCHEMAS = 3


class TableReading(TableStanding):
    """The ranges of one table. One thread at a time."""

    def __init__(self, context: Context, route: Route) -> None:
        super().__init__(context.state, route)
        self._context = context
        # Read without finding anything of this table; not worth a commit.
        self._passed: dict[tuple[str, int], int] = {}
        self._remembered: tuple[Progress, Mapping[tuple[str, int], int]] | None = None
        # By partition that the topic was given later: up to where the others are to be read before it is begun.
        self._awaited: dict[tuple[str, int], Mapping[int, int]] = {}
        self._current: frozenset[str] = frozenset()

    @property
    def coverage(self) -> Coverage:
        """Since when the evidence tells of the table."""
        return self._context.coverage(self.table, self.history)

    def next_offset(self, topic: str, partition: int) -> int | None:
        """Return where the table goes on in a partition, None if it holds nothing of it."""
        committed = self.progress.next_offset(topic, partition) if self.progress else None
        passed = self._passed.get((topic, partition))
        return max((offset for offset in (committed, passed) if offset is not None), default=None)

    @property
    def reached(self) -> Progress | None:
        """The marker of what the table has read, which may be further than what it has committed.

        What it has only passed is of no use to anyone before the next commit, and must not be missed after it.
        """
        if self.progress is None:
            return None
        return self.progress.looked_through(self._passed_of(self.progress))

    def remember_passed(self) -> None:
        """Keep what the table has only passed, for a process that finds it gone from the topic."""
        if self.progress is None:
            return
        progress = self.progress
        passed = {
            place: at for place, at in self._passed_of(progress).items() if at > (progress.next_offset(*place) or 0)
        }
        if passed and self._remembered != (progress, passed):
            self._state.save_passed(self.table, progress.to_text(), passed)
            self._remembered = progress, passed

    def _passed_of(self, progress: Progress) -> dict[tuple[str, int], int]:
        """Return what was passed of the topics that a marker names."""
        return {place: at for place, at in self._passed.items() if place[0] in progress.offsets}

    def _recall_passed(self, topic: str, partition: int) -> int:
        """Go on where an earlier process was with the same rows, if that was further; return the next offset to read.

        Asked only where something is gone: else it is read again, which does no harm.
        """
        place = topic, partition
        if self.progress is not None:
            at = self._state.passed(self.table, self.progress.to_text()).get(place, 0)
            self._passed[place] = max(at, self._passed.get(place, 0))
        return self.next_offset(*place) or 0

    def awaits(self, topic: str, partition: int, end: int) -> Mapping[int, int]:
        """Return up to where other partitions are to be read before this one is begun; empty if it may be.

        Where a topic is given more partitions, keys go on in new ones, and offsets no longer order a key's events.
        The first record of a new partition says that they have moved, so what came before is in the others by then.

        Args:
            topic: one of the table's.
            partition: of the topic.
            end: the offset after the last record of the partition to read.
        """
        place = topic, partition
        if place not in self._awaited:
            named = self.progress.offsets.get(topic, {}) if self.progress else {}
            begun = {*named, *(number for name, number in self._passed if name == topic)}
            if not begun or partition in begun or not end:
                return {}
            now = self._context.kafka.ends([topic]).get(topic, {})
            self._awaited[place] = {number: now[number] for number in begun if number in now}
            get_logger().info("partition is new to the table", table=str(self.table), topic=topic, partition=partition)
        return {
            number: offset
            for number, offset in self._awaited[place].items()
            if (self.next_offset(topic, number) or 0) < offset
        }

    def ranges(self, topic: str, ends: Ends, *, all_at_once: bool = False) -> tuple[OffsetRange, ...]:
        """Return what the table has not read of a topic; pauses if some of it is gone from the topic.

        Args:
            topic: one of the table's.
            ends: up to where to read; other topics' do not count.
            all_at_once: a partition that is new need not wait until the others are read.
        """
        wanted = [place for place in ends if place[0] == topic]
        beginnings = self._context.kafka.beginnings([topic]).get(topic, {})
        if not self.has_all(topic, beginnings):
            return ()
        found = []
        for place in sorted(wanted):
            if not all_at_once and self.awaits(*place, ends[place]):
                continue
            known = self.next_offset(*place)
            beginning = beginnings.get(place[1], 0)
            start = beginning if known is None else known
            end = ends[place]
            if known is None:
                self._unread.setdefault(topic, {})[place[1]] = start
            if start < end:
                found.append(OffsetRange(topic=topic, partition=place[1], start=start, end=end))
        return tuple(found)

    def has_all(self, topic: str, beginnings: Mapping[int, int]) -> bool:
        """Pause if something of a topic that the table has not read is gone from it; return whether nothing is.

        Args:
            topic: one of the table's.
            beginnings: the first offset of each partition that is still there.
        """
        for partition, beginning in sorted(beginnings.items()):
            start = self.next_offset(topic, partition)
            if start is None and self._lost_beginning(topic, partition, beginning):
                return False
            if start is None:
                self._warn_of_unknown(topic, partition, beginning)
            elif start < beginning and self._recall_passed(topic, partition) < beginning:
                self.refuse(
                    Pause(
                        reason=f"offsets {start} to {beginning - 1} of {topic}[{partition}] were deleted from the "
                        "topic before they were read",
                        remedy="snapshot the table again into a new target; raise the topic's retention",
                    )
                )
                return False
        return True

    def _lost_beginning(self, topic: str, partition: int, beginning: int) -> bool:
        """Pause a table whose target holds nothing where the topic does not have its first event any more."""
        if self.progress is not None or self.history is None:
            return False
        first = first_of_life(self.history).kafka
        if (first.topic, first.partition) != (topic, partition) or first.offset >= beginning:
            return False
        lost = f"offsets {first.offset} to {beginning - 1} of {topic}[{partition}]"
        if self.route.policy.missing_rows == "insert":
            self._warn(
                f"{lost} were deleted from the topic, and the target was not there: rows of then are missing unless "
                "the table was snapshot since; compare with `cdc-sync verify`"
            )
            return False
        self.refuse(lost_beginning(lost))
        return True

    def _warn_of_unknown(self, topic: str, partition: int, beginning: int) -> None:
        """Say that a marker of an earlier version does not tell whether what is gone from a partition was read."""
        if not beginning or self.progress is None or topic not in self.progress.offsets:
            return
        is_new = self._warn(
            f"{topic}[{partition}] begins at offset {beginning}, and the table, written by an earlier version of "
            "cdc_sync, does not say whether what was before was read; compare it with `cdc-sync verify`"
        )
        if is_new:
            self.save_status()

    def check_topic(self, topic: str) -> bool:
        """Pause if the topic is not the one whose offsets the target knows; return whether the table may go on."""
        if not self._is_same_topic(topic):
            self.refuse(
                Pause(
                    reason=f"topic {topic} was deleted and made again, so its offsets no longer mean what they did",
                    remedy="snapshot the table again into a new target",
                )
            )
        return self.pause is None

    def _is_same_topic(self, topic: str) -> bool:
        known = self.progress.topic_ids.get(topic) if self.progress else None
        return known is None or known == self._context.kafka.topic_ids([topic]).get(topic, known)

    def _shown_in(self, ranges: tuple[OffsetRange, ...], digests: frozenset[str]) -> frozenset[str]:
        """Return which of the schemas a part of the surveyed ranges shows.

        Where each of many versions rewrites the rows, each is written with a converter for its own schema only: with
        those of all, a table of 28 versions took ten minutes instead of one. Few are not worth another look. A
        flattened event's delete has no schema of its own, so all may tell its key.
        """
        if len(digests) <= _FEW_SCHEMAS or not ranges or self._context.config.connector.flattened is not None:
            return digests
        records = self._context.read(ranges)
        return (digests & schemas(records, events_in(self._context, records)).keys()) or digests

    def _before(
        self, ranges: tuple[OffsetRange, ...], change: Refusal | Waiting | Version | Truncate
    ) -> tuple[OffsetRange, ...]:
        """Cut ranges where a change begins or a TRUNCATE stands, in every partition."""
        context = self._context
        cuts: dict[tuple[str, int], int] = {}
        shown = any(item.topic == change.kafka.topic for item in ranges)  # an evidence topic tells of a drop
        if change.position.parts and ranges and (len(ranges) > 1 or not shown):
            records = context.read(ranges)
            cuts = first_offsets_from(records, events_in(context, records), self.table, change.position)
        cuts[change.kafka.topic, change.kafka.partition] = change.kafka.offset
        return narrowed(ranges, ends=cuts)
