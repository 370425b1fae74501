"""What is in a topic beside the rows of its tables, and rows whose key is damaged: counted if known, else set aside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cdc_sync.core.debezium.forms import Absent, KnownSchema, RecordKind
from cdc_sync.core.debezium.topics import is_topic_of
from cdc_sync.core.model.offsets import Ends, OffsetRange
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.planning.problems import KEY_MISSING, KEY_UNREADABLE, MALFORMED, NOT_READABLE, STRANGER
from cdc_sync.errors import WireError
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.dead_letters import Of, set_aside, why_not
from cdc_sync.runtime.observe import events_in, learn, sample
from cdc_sync.sources.samples import Sample, read_sample
from cdc_sync.spark.observe import Survey, offsets_of, offsets_with_digests

MOST: Final = 100
"""Records of one schema that may each be damaged; more of them are another way of writing keys."""
_NEAR = 16
"""Records among which the table's next one is looked for; those of other tables may lie between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The schemas of the table's nearest rows before and behind a record; None where there is none near it."""

    before: str | None
    behind: str | None

    def is_damage(self, digest: str) -> bool | None:
        """Return whether the record between is damaged; None if only the next one will tell."""
        if digest in (self.before, self.behind):
            return False
        if self.behind is None:
            return None
        return self.before in (None, self.behind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The stretches of a survey without those of damaged keys, and before which places tables are to stop."""

    stretches: tuple[Stretch, ...]
    ends: Mapping[TableId, Ends] = field(default_factory=dict)


class OtherRecords:
    """The records of one topic that are no rows. One thread at a time.

    Attributes:
        counts: how many there were, by kind.
    """

    def __init__(self, context: Context, topic: str) -> None:
        self._context = context
        self._topic = topic
        self.counts: Counter[str] = Counter()

    def without_strangers(self, fresh: tuple[OffsetRange, ...], found: Survey) -> Survey:
        """Set aside events of tables that the topic is not named after, where topics are bound; return the rest."""
        bound, tables = self._context.config.kafka.bound_topics, {stretch.table for stretch in found.stretches}
        others = {table for table in tables if bound and not is_topic_of(self._topic, table)}
        records = self._context.read(fresh) if others and fresh else None
        if records is not None:
            reason = f"{STRANGER} ({', '.join(map(str, sorted(others)))})"
            places = offsets_of(records, events_in(self._context, records), sorted(others))
            set_aside(self._context, ((at, reason) for at in places))
        return replace(found, stretches=tuple(item for item in found.stretches if item.table not in others))

    def without_damaged_keys(
        self, step: tuple[OffsetRange, ...], stretches: tuple[Stretch, ...], mine: Sequence[TableActor]
    ) -> Keys:
        """Set records aside whose key is damaged; those of which only the next one will tell are left for later."""
        context = self._context
        known = {stretch.digest: item for stretch in stretches if (item := context.book.get(stretch.digest))}
        keyed = {table.table for table in mine if table.state.has_key}
        declared = {table.table for table in mine if table.route.key is not None or table.route.append}
        suspects = suspected(stretches, known, keyed, declared)
        if not suspects:
            return Keys(stretches=stretches)
        records = context.read(step)
        tables = {stretch.digest: stretch.table for stretch in stretches}
        found: dict[str, dict[KafkaPosition, bool | None]] = {}
        for place, digest, _ in offsets_with_digests(records, events_in(context, records), sorted(suspects)):
            around = beside(context, place, tables[digest])
            if around is not None:
                found.setdefault(digest, {})[place] = around.is_damage(digest)
        damaged = {
            digest: places for digest, places in found.items() if False not in places.values() and len(places) <= MOST
        }
        ends: dict[TableId, dict[tuple[str, int], int]] = {}
        for digest, places in damaged.items():
            letters = ((at, suspects[digest]) for at, is_damage in places.items() if is_damage)
            set_aside(context, letters, Of(table=tables[digest], version=None))
            for at in (at for at, is_damage in places.items() if is_damage is None):
                ends.setdefault(tables[digest], {})[at.topic, at.partition] = at.offset
        left = tuple(stretch for stretch in stretches if stretch.digest not in damaged or stretch.truncate)
        return Keys(stretches=left, ends=ends)

    def account(self, fresh: tuple[OffsetRange, ...], found: Survey) -> None:
        """Count what is no change of a table, and set aside what cannot be understood."""
        # By schema text and whether the record is an event: one with a damaged payload has its neighbours' schema.
        # None where records have nothing in common, so that each tells its own.
        reasons: dict[tuple[str, bool], str | None] = {}
        for item in found.others:
            if not item.digest:
                reasons["", False] = None
                continue
            reason = self._reason(item.digest, item.first, item.count)
            if reason is None:
                continue
            reasons[item.digest, False] = reason
        for stretch in found.stretches:
            known = self._context.book.get(stretch.digest) or learn(self._context, stretch.kafka, stretch.digest)
            if known.kind is not RecordKind.TABLE_CHANGE or known.broken is not None:
                reasons[stretch.digest, True] = self._refusal(stretch.kafka, known) or known.broken or NOT_READABLE
        if reasons:
            self._set_aside(fresh, reasons)

    def _reason(self, digest: str, first: KafkaPosition, count: int) -> str | None:
        """Return why such records are set aside, None if they are known and carry no rows."""
        known = learn(self._context, first, digest)
        if known.broken is not None:
            return self._refusal(first, known) or known.broken
        if known.kind is RecordKind.TABLE_CHANGE:
            return MALFORMED
        if known.kind is RecordKind.UNKNOWN:
            return self._refusal(first, known) or NOT_READABLE
        self.counts[known.kind.value] += count
        return None

    def _refusal(self, at: KafkaPosition, known: KnownSchema) -> str | None:
        return why_not(self._context, sample(self._context, at), known)

    def _set_aside(self, fresh: tuple[OffsetRange, ...], reasons: Mapping[tuple[str, bool], str | None]) -> None:
        context = self._context
        if not fresh:
            return
        records = context.read(fresh)
        found = offsets_with_digests(records, events_in(context, records), sorted({digest for digest, _ in reasons}))
        mine = ((place, (digest, is_event)) for place, digest, is_event in found)
        set_aside(context, ((place, reasons[which]) for place, which in mine if which in reasons))


def suspected(
    stretches: Iterable[Stretch],
    known: Mapping[str, KnownSchema],
    keyed: Collection[TableId],
    declared: Collection[TableId],
) -> dict[str, str]:
    """Return the schemas whose records may be damaged in their keys, each with the reason.

    Args:
        stretches: of one survey.
        known: what is known of their schemas, by digest.
        keyed: tables that have a key, as their newest version says.
        declared: tables whose key the operator declared, which records need not have.
    """
    seen = [(item.table, known[item.digest]) for item in stretches if item.digest in known and not item.truncate]
    mine = {table for table, item in seen if item.key_schema is not None}.union(keyed)
    return {
        item.digest: KEY_MISSING if _is_absent(item) else KEY_UNREADABLE
        for table, item in seen
        if table in mine and item.key_schema is None and item.schema is not None and item.flattened is None
        if table not in declared or not _is_absent(item)
    }


def _is_absent(known: KnownSchema) -> bool:
    return isinstance(known.key_form, Absent)


def beside(context: Context, at: KafkaPosition, table: TableId) -> Beside | None:
    """Return what lies beside a record; None if it is no row, but a TRUNCATE, which has no key."""
    if _row_at(context, at, 0, table) is None:
        return None
    return Beside(before=_nearest(context, at, -1, table), behind=_nearest(context, at, 1, table))


def _nearest(context: Context, at: KafkaPosition, step: int, table: TableId) -> str | None:
    rows = (_row_at(context, at, step * distance, table) for distance in range(1, _NEAR + 1))
    return next((row.known.digest for row in rows if row is not None), None)


def _row_at(context: Context, at: KafkaPosition, away: int, table: TableId) -> Sample | None:
    record = context.kafka.peek(at.topic, at.partition, at.offset + away) if at.offset + away >= 0 else None
    if record is None or not record.value:
        return None
    try:
        event = read_sample(context.book, record)
        return event if event.source.table == table and event.source.op != "t" else None
    except WireError:
        return None
