"""Single records whose key is missing or cannot be read, among records of their table that have one.

A primary key that is dropped, or a converter that is set otherwise, shows in every record from there on, and a key that
is dropped and made anew is another one behind. One record between two of the same key is damaged, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cdc_sync.core.debezium.forms import Absent
from cdc_sync.core.debezium.schema_book import KnownSchema
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.errors import WireError
from cdc_sync.runtime.context import Context
from cdc_sync.sources.samples import Sample, read_sample

MISSING: Final = "the key is missing, and records before and behind it have one"
UNREADABLE: Final = "the key cannot be read, and those of records before and behind it can"
MOST: Final = 100
"""Records of one schema that may each be damaged; more of them are another way of writing keys."""
_NEAR = 16
"""Records among which the table's next one is looked for; those of other tables may lie between."""


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
        item.digest: MISSING if _is_absent(item) else UNREADABLE
        for table, item in seen
        if table in mine and item.key_schema is None and item.schema is not None and item.flattened is None
        if table not in declared or not _is_absent(item)
    }


def _is_absent(known: KnownSchema) -> bool:
    return isinstance(known.key_form, Absent)


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
