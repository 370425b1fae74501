"""What the rows of two columns hold that turned out to be one: read again from the topic, from where they were parted.

A row that was changed since then has its value in the newer column, any other in the older one; the row itself does not
tell which, for a NULL may be either. The events tell. They are read once more as if the rename had been known, and a
key's newest value, if any of its events carried one, is what its row gets; a placeholder carries none. Rows that are
not among them were not touched, and the older column still has what it had.

Where rows are never changed (a changelog, a table without a key), one of the two columns at most has a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.migration import JoinValues, Migration
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.merge_columns import since
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.table.state import TableState
from cdc_sync.errors import ConfigError
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.observe import events_in, schemas_again
from cdc_sync.runtime.row_shape import Shape, events_of, shape_of
from cdc_sync.runtime.write_plan import WritePlan, converted_events, decoding, plan_again
from cdc_sync.spark.columns import DELETED, PROBLEM, unchanged_column, value_column
from cdc_sync.spark.compile import unchangeable
from cdc_sync.spark.latest import latest
from cdc_sync.spark.lineages import carry, find_lineages
from cdc_sync.spark.observe import first_offsets_from, first_positions
from cdc_sync.spark.places import left_out
from cdc_sync.spark.types import to_spark
from cdc_sync.spark.unchanged import FORGOTTEN, fold
from cdc_sync.targets.protocol import Commit

_AGAIN = "snapshot the table again into a new target with the rename declared, or leave the columns as they are"
_STATES = 10_000


def joined_values(
    context: Context, state: TableState, steps: Migration, history: History
) -> dict[int, DataFrame] | Refused:
    """Return what events said of columns that steps join, by the column that stays; it takes reading them again."""
    said: dict[int, DataFrame] = {}
    for step in steps.steps:
        if not isinstance(step, JoinValues) or state.progress is None:
            continue
        joining = Joining(context=context, route=state.route, history=history, step=step, progress=state.progress)
        found = joining.values()
        if isinstance(found, Refused):
            return found
        if found is not None:
            said[step.into] = found
    return said


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """One table whose columns are to be joined.

    Attributes:
        history: with the version that joins them as its head, or one behind it.
        progress: what the target's rows contain.
    """

    context: Context
    route: Route
    history: History
    step: JoinValues
    progress: Progress

    def values(self) -> DataFrame | Refused | None:
        """Return what `Target.migrate` wants to be said of the column that stays; None where it needs nothing."""
        begins = min((since(self.history, id_) for id_ in self.step.joined), key=lambda version: version.number)
        match shape_of(self.route, self.history.head.schema):
            case Shape.NOTHING:
                return None
            case Shape.WHOLE_ROW:
                return self._refused_whole_rows()
            case Shape.RECORD_KEY | Shape.DECLARED_KEY as shape:
                ranges = self._ranges(begins)
                return ranges if isinstance(ranges, Refused) else self._said(ranges, shape)

    def _refused_whole_rows(self) -> Refused | None:
        """Refuse if an event may have found another row than its own, or none."""
        if self.route.policy.missing_rows != "pause":
            return Refused(
                code=Code.JOIN,
                reason="the table has no key, and deletes of rows that were not found were passed over "
                "(policy.missing_rows: insert), so its rows are not known to be the source's",
                remedy=_AGAIN,
            )
        newer = (since(self.history, id_).schema.column(id_) for id_ in self.step.joined)
        if any(column.initial is not None for column in newer):
            return Refused(
                code=Code.JOIN,
                reason="the table has no key, and existing rows were given a default in the newer column: a row with "
                "that value may have been taken for another one since",
                remedy=_AGAIN,
            )
        return None

    def _ranges(self, begins: Version) -> tuple[OffsetRange, ...] | Refused:
        """Return where the events since a version are, in every partition, up to what the target contains."""
        if len(self.progress.offsets) != 1:
            names = " and ".join(sorted(self.progress.offsets))
            return Refused(
                code=Code.JOIN, reason=f"the table's events come from several topics, {names}", remedy=_AGAIN
            )
        ((topic, ends),) = self.progress.offsets.items()
        if topic != begins.kafka.topic:
            return Refused(
                code=Code.JOIN,
                reason=f"version {begins.number} was first seen in another topic, {begins.kafka.topic}",
                remedy=_AGAIN,
            )
        beginnings = self.context.kafka.beginnings([topic]).get(topic, {})
        whole = tuple(
            OffsetRange(topic=topic, partition=partition, start=beginnings.get(partition, 0), end=end)
            for partition, end in sorted(ends.items())
        )
        starts = self._starts(begins, whole)
        truncated = self.progress.truncated
        found = []
        for item in whole:
            start = starts.get(item.partition, item.end)
            if truncated is not None:  # what rows held before says nothing about those that are there now
                start = max(start, truncated.offsets.get(topic, {}).get(item.partition, start))
            if start < item.start:
                return Refused(
                    code=Code.JOIN,
                    reason=f"events since version {begins.number} are gone from the topic: {topic}[{item.partition}] "
                    f"begins at offset {item.start}",
                    remedy=_AGAIN,
                )
            found.append(replace(item, start=start))
        return tuple(item for item in found if item.size)

    def _starts(self, begins: Version, whole: tuple[OffsetRange, ...]) -> dict[int, int]:
        """Return for each partition where a version begins, -1 if what is there does not show that it is all."""
        starts = {item.partition: 0 if item.start == 0 else -1 for item in whole}
        starts[begins.kafka.partition] = begins.kafka.offset
        others = tuple(item for item in whole if item.partition != begins.kafka.partition and item.size)
        if not others or not begins.position.parts:
            return starts
        records, table = self.context.read(others), self.history.table
        events = events_in(self.context, records)
        cuts = first_offsets_from(records, events, table, begins.position)
        firsts = first_positions(records, events, table)
        for item in others:
            place = item.topic, item.partition
            # What was deleted from the topic lies before the first event that is left; that must be from before, too.
            if item.start == 0 or (place in firsts and firsts[place] < begins.position):
                starts[item.partition] = cuts.get(place, item.end)
        return starts

    def _said(self, ranges: tuple[OffsetRange, ...], shape: Shape) -> DataFrame | Refused | None:
        """Return the newest value of every key that an event carried one for."""
        seen = schemas_again(self.context, self.history.table, ranges) if ranges else ((), ())
        if not seen[0]:
            return None
        plan = plan_again(self.history, self.route, self.progress, ranges, seen)
        if plan is None:
            return Refused(code=Code.JOIN, reason="the events since then cannot be read", remedy=_AGAIN)
        schema, into = plan.head.schema, self.step.into
        compacted = self._may_be_compacted(ranges[0].topic)
        if compacted and shape is Shape.DECLARED_KEY:
            return Refused(
                code=Code.JOIN,
                reason="the topic is compacted, by other keys than the declared one: some events of a row may be gone",
                remedy=_AGAIN,
            )
        events = self._applied(events_of(converted_events(self.context, plan), schema, shape), ranges[0].topic)
        wanted = [value_column(id_) for id_ in (*schema.primary_key, into)]
        if into not in unchangeable(plan.converters, schema, decoding(self.context, plan)):
            return latest(events, schema).where(~F.col(DELETED)).select(*wanted)
        rows = self._followed(events, plan)
        if isinstance(rows, Refused):
            return rows
        left_out = F.col(unchanged_column(into))
        kept = rows.where(~F.col(DELETED))
        if not kept.where(left_out & (F.lit(compacted) | F.col(FORGOTTEN))).isEmpty():
            why = "the topic is compacted, so an event that had it may be gone" if compacted else "no event has it"
            return Refused(
                code=Code.JOIN, reason=f"events left the value out because it had not changed, and {why}", remedy=_AGAIN
            )
        return kept.where(~left_out).select(*wanted)

    def _may_be_compacted(self, topic: str) -> bool:
        """Whether records may be missing between others; where the brokers do not say, they may."""
        try:
            return self.context.kafka.is_compacted(topic)
        except ConfigError:
            return True

    def _applied(self, events: DataFrame, topic: str) -> DataFrame:
        """Leave out what was set aside: it was not applied to the other columns either."""
        aside = self.context.state.dead_letters.places(topic)
        return left_out(events.where(F.col(PROBLEM).isNull()), aside)

    def _followed(self, events: DataFrame, plan: WritePlan) -> DataFrame | Refused:
        """Reduce events of which some leave the value out; rows that changed their key take it with them."""
        schema, columns = plan.head.schema, (self.step.into,)
        found = find_lineages(events, schema, columns)
        if found.unlinked:
            place = found.unlinked[0]
            return Refused(
                code=Code.JOIN,
                reason=f"an update of a key at {plan.ranges[0].topic}[{place.partition}]@{place.offset} left the value "
                "out, and the row under the old key is not known",
                remedy=_AGAIN,
            )
        if not found.steps:
            return fold(events, schema, columns)
        state = self._state_before(plan.ranges)
        if state is None:
            return Refused(
                code=Code.JOIN,
                reason="updates of keys left the value out, and what the rows held before is no longer kept: the "
                "target's snapshots from then are expired",
                remedy=_AGAIN,
            )
        then = 0 if state.progress is None else state.progress.version
        capabilities = self.route.capabilities
        if any(rewrites(version.changes, capabilities, version.schema) for version in self.history.versions[then:]):
            return Refused(
                code=Code.JOIN,
                reason="updates of keys left the value out, and the rows were rewritten since: what they held before "
                "had other types",
                remedy=_AGAIN,
            )
        ids = (*schema.primary_key, self.step.into)
        held = self.context.target.read(self.route.target, self.step.schema, ids, state)
        name = value_column(self.step.into)
        held = held.withColumn(name, F.col(name).cast(to_spark(self.step.type)))
        return fold(events, schema, columns, carry(events, schema, columns, found, held))

    def _state_before(self, ranges: Sequence[OffsetRange]) -> Commit | None:
        """Return the state that holds just what lies before the ranges; None if it is not kept."""
        starts = {item.partition: item.start for item in ranges}
        for commit in self.context.target.commits(self.route.target, _STATES):
            if commit.progress is None:
                continue
            offsets = commit.progress.offsets.get(ranges[0].topic, {})
            if all(offsets.get(partition, 0) == start for partition, start in starts.items()):
                return commit
        return None
