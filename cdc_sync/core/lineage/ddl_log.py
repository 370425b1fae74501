"""The schema-change topic replayed: which column is which, from the statements that made and renamed them.

Debezium parses every statement as well and says the columns after it; both must agree, or nothing is claimed about what
came before. What the statements leave is in `ddl_catalogue`; here is what makes a record believable: its place, its
repeats, and its list of columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from cdc_sync.core.lineage.column_log import ColumnLog, LoggedColumn, NameChange, Structure, Unlogged, Unread
from cdc_sync.core.lineage.ddl import parse
from cdc_sync.core.lineage.ddl_catalogue import Catalogue
from cdc_sync.core.lineage.ddl_order import Order
from cdc_sync.core.lineage.ddl_pieces import shortened
from cdc_sync.core.lineage.ddl_replay import Replay
from cdc_sync.core.lineage.records import ColumnEntry, SchemaChangeRecord
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId

_CASCADE = re.compile(
    r"\bFOREIGN\s+KEY\b[^;]*?\bON\s+(?:DELETE|UPDATE)\s+(?:CASCADE|SET\s+(?:NULL|DEFAULT))", re.IGNORECASE
)
NO_PLACE = "its place in the source's log is not known"
GAP = "records are missing behind this place; nothing is known until the next one about the table"
RESTART = "the source's positions began again; nothing is known until they are past the highest one seen before"


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


class DdlLog:
    """Builds a `ColumnLog` from the records of one schema-change topic.

    Law: of two columns of one table whose tokens have one era, equal tokens are one column and different ones are two.
    """

    def __init__(self) -> None:
        self._catalogue = Catalogue()
        self._structures: list[Structure] = []
        self._unread: list[Unread] = []
        self._unlogged: list[Unlogged] = []
        self._shown: dict[TableId, tuple[LoggedColumn, ...]] = {}
        self._order = Order()
        self._renames = Renames()

    def add(self, record: SchemaChangeRecord) -> None:
        """Take the next record of the topic, in offset order; one that was taken before changes nothing."""
        if not record.position.parts:
            if record.tables:
                self._lose(record, {entry.table for entry in record.tables}, NO_PLACE)
            return
        match self._order.take(record):
            case "repeated":
                self._doubt_impossible_repeat(record)
                return
            case "restarted":
                self._end_all(record.position, RESTART)
                self._unread.append(_unread(record, self._shown, RESTART))
                return
            case "overlapping":
                return
            case "next":
                pass
        self._note_foreign_keys(record)
        if record.snapshot:
            self._snapshot(record)
        else:
            self._statements(record)

    def gap(self) -> None:
        """Say that records are missing between the last one taken and the next one, by compaction for example."""
        if self._order.last is not None:
            self._end_all(self._order.last, GAP)

    def log(self) -> ColumnLog:
        """Return what the records taken so far tell."""
        return ColumnLog(
            "ddl", self._structures, self._unread, name_changes=self._renames.outcome(), unlogged=self._unlogged
        )

    def _snapshot(self, record: SchemaChangeRecord) -> None:
        """Take the columns of a table as they are there; statements of snapshots are made up by the connector."""
        for entry in record.tables:
            if entry.columns is None:
                continue
            shown = self._shown.get(entry.table)
            same = shown is not None and _entries(shown) == entry.columns
            if not (same and self._order.in_first_snapshot):
                self._catalogue.adopt(entry.table, entry.columns)
                self._show(entry.table, record.position, "", reading=True)

    def _statements(self, record: SchemaChangeRecord) -> None:
        statements = parse(record.ddl, record.connector, record.database, record.schema)
        replay = Replay(self._catalogue, record, statements)
        for table in sorted(replay.touched):
            said = "; ".join(replay.said.get(table, ())) or record.ddl
            self._show(
                table,
                record.position,
                shortened(said),
                created=table in replay.created,
                dropped=record.kafka if table in replay.dropped else None,
            )
        self._renames.take(record, replay, self._catalogue.tables.keys())
        for table, effect, text in replay.unlogged():
            self._unlogged.append(Unlogged(position=record.position, table=table, effect=effect, text=shortened(text)))
        for reason, tables in replay.reports():
            self._unread.append(_unread(record, tables, reason))
        self._order.touched |= replay.touched

    def _note_foreign_keys(self, record: SchemaChangeRecord) -> None:
        """Note that rows of a table go with those of another one, of which the server writes nothing into its log.

        Source: MySQL Reference Manual, "FOREIGN KEY Constraints": InnoDB cascades below the SQL layer.
        """
        if record.connector == "oracle" or (found := _CASCADE.search(record.ddl)) is None:
            return
        for entry in record.tables:
            if entry.columns is not None:
                self._unlogged.append(
                    Unlogged(position=record.position, table=entry.table, effect="follow", text=shortened(found[0]))
                )

    def _show(
        self,
        table: TableId,
        position: SourcePosition,
        statement: str,
        *,
        reading: bool = False,
        created: bool = False,
        dropped: KafkaPosition | None = None,
    ) -> None:
        """Add a structure if a table's columns are not what was last shown, or if it was dropped."""
        known = self._catalogue.tables.get(table)
        columns = () if known is None else known.columns or ()
        if dropped is not None or columns != self._shown.get(table, ()):
            self._shown[table] = columns
            self._structures.append(
                Structure(
                    table=table,
                    position=position,
                    columns=columns,
                    statement=statement,
                    reading=reading,
                    created=created,
                    dropped=dropped is not None,
                    kafka=dropped,
                )
            )

    def _lose(self, record: SchemaChangeRecord, tables: Iterable[TableId], reason: str) -> None:
        for table in tables:
            self._catalogue.forget(table)
            if record.position.parts:
                self._show(table, record.position, reason)
            elif self._shown.get(table) and self._order.last is not None:
                self._show(table, self._order.last, reason)
        self._unread.append(_unread(record, tables, reason))

    def _end_all(self, position: SourcePosition, reason: str) -> None:
        """Know nothing behind a position, and nothing at higher ones that were shown already."""
        self._renames.forget_behind(position)
        later = {structure.table for structure in self._structures if structure.position > position}
        self._structures = [structure for structure in self._structures if structure.position <= position]
        self._catalogue.forget_all()
        for table in sorted(later.union(table for table, columns in self._shown.items() if columns)):
            self._shown[table] = ()
            self._structures.append(Structure(table=table, position=position, columns=(), statement=reason))

    def _doubt_impossible_repeat(self, record: SchemaChangeRecord) -> None:
        """Notice a statement that truly ran twice at one place: `RENAME TABLE a TO b, b TO a, a TO b`.

        Debezium sends one record for each pair, all at one place, so that the third looks like the first sent again.
        """
        if record.snapshot or self._order.is_newest(record) or not self._order.is_at_last_place(record):
            return
        tables = self._catalogue.tables
        for entry in record.tables:
            known = tables.get(entry.table)
            if entry.columns is None or known is None or known.columns is None:
                fits = entry.columns is None and known is None
            else:
                fits = _entries(known.columns) == entry.columns
            if not fits:
                reason = "it is sent again, or was done twice at one place; its outcome is not there"
                self._lose(record, sorted(self._order.touched), reason)
                return


def _entries(columns: tuple[LoggedColumn, ...]) -> tuple[ColumnEntry, ...]:
    return tuple(
        ColumnEntry(name=column.name, type=column.type, optional=column.optional, default=column.shown_default)
        for column in columns
    )


def _unread(record: SchemaChangeRecord, tables: Iterable[TableId], reason: str) -> Unread:
    return Unread(
        position=record.position, tables=tuple(sorted(tables)), text=shortened(record.ddl), reason=shortened(reason)
    )
