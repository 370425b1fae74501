"""Which tables the statements of a schema-change topic gave another name.

Debezium sends `RENAME TABLE a TO tmp, b TO a, tmp TO b` as three records at one place; what counts is what that place
comes to: here `a` has become `b`, and `b` has become `a`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from cdc_sync.core.lineage.column_log import NameChange
from cdc_sync.core.lineage.ddl_replay import Replay
from cdc_sync.core.lineage.ddl_statements import shortened
from cdc_sync.core.lineage.records import SchemaChangeRecord
from cdc_sync.core.model.positions import SourcePosition, TableId


@dataclass(frozen=True, slots=True)
class _Origin:
    table: TableId
    record: SchemaChangeRecord
    statement: str


class Renames:
    """Gathers what records say, place by place, in the topic's order."""

    def __init__(self) -> None:
        # By place, by the name a table has behind it: what it was called before.
        self._found: dict[tuple[int, ...], dict[TableId, _Origin]] = {}

    def take(self, record: SchemaChangeRecord, replay: Replay, known: Collection[TableId]) -> None:
        """Take what one record did; tables that are not `known` behind it, or were misunderstood, are not followed."""
        place = record.position.parts[:2] if record.position.kind == "binlog" else record.position.parts
        here = self._found.get(place, {})
        for old, new in replay.renamed:
            former = here.pop(old, None)
            said = shortened((replay.said.get(new) or [record.ddl])[-1])
            here[new] = _Origin(table=former.table if former else old, record=record, statement=said)
        for table in [table for table in here if table in replay.lost or table not in known]:
            del here[table]
        if here:
            self._found[place] = here
        else:
            self._found.pop(place, None)

    def forget_behind(self, position: SourcePosition) -> None:
        """Take back what was found at higher positions than one, which mean something else from now on."""
        self._found = {
            place: kept
            for place, here in self._found.items()
            if (kept := {new: origin for new, origin in here.items() if origin.record.position <= position})
        }

    def outcome(self) -> Iterator[NameChange]:
        """Yield what each place comes to."""
        for here in self._found.values():
            for new, origin in here.items():
                if origin.table != new:
                    yield NameChange(
                        old=origin.table,
                        new=new,
                        position=origin.record.position,
                        kafka=origin.record.kafka,
                        statement=origin.statement,
                    )
