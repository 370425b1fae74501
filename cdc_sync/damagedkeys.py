"""Single records whose key is missing or cannot be read, among records of their table that have one.

A primary key that is dropped, or a converter that is set otherwise, shows in every record from there on; one record
alone is damaged, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from cdc_sync.context import Context
from cdc_sync.debezium.forms import Absent
from cdc_sync.errors import WireError
from cdc_sync.events import KafkaPosition, TableId
from cdc_sync.samples import read_sample
from cdc_sync.schemabook import KnownSchema
from cdc_sync.spark.observe import Stretch

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
    seen = [(stretch.table, known[stretch.digest]) for stretch in stretches if stretch.digest in known]
    mine = {table for table, item in seen if item.key_schema is not None}.union(keyed)
    return {
        item.digest: MISSING if _is_absent(item) else UNREADABLE
        for table, item in seen
        if table in mine and item.key_schema is None and item.schema is not None and item.flattened is None
        if table not in declared or not _is_absent(item)
    }


def _is_absent(known: KnownSchema) -> bool:
    return isinstance(known.key_form, Absent)


def neighbours(context: Context, at: KafkaPosition, table: TableId) -> Iterator[str]:
    """Return the schemas of the table's nearest events before and behind a place, as far as there are any near it."""
    for step in (-1, 1):
        for distance in range(1, _NEAR + 1):
            record = context.kafka.peek(at.topic, at.partition, at.offset + step * distance)
            if record is None or not record.value:
                continue
            try:
                event = read_sample(context.book, record)
            except WireError:
                continue
            if event.source.table == table:
                yield event.known.digest
                break
