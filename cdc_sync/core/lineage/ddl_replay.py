"""One schema-change record applied to the catalogue, and checked against the columns that Debezium says itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from cdc_sync.core.lineage.column_log import LoggedColumn, Token
from cdc_sync.core.lineage.ddl_catalogue import Catalogue, Contradiction
from cdc_sync.core.lineage.ddl_pieces import shortened
from cdc_sync.core.lineage.ddl_statements import (
    AlterTable,
    CreateTable,
    DropDatabase,
    DropTables,
    Noise,
    NotParsed,
    RenameTables,
    Statement,
)
from cdc_sync.core.lineage.records import ColumnEntry, SchemaChangeRecord, TableEntry
from cdc_sync.core.model.positions import TableId

_ABOUT_TABLES = re.compile(r"\b(?:alter|rename|create|drop)\b", re.IGNORECASE)


class Replay:
    """One record's statements, applied one after another, then compared with what the record says itself.

    Attributes:
        said: what was done to each table, in the statements' words.
        lost: tables whose columns before the record cannot be told from those after it, with the reason.
        created: tables that were not there, and are created under the names that they have behind the record.
        dropped: tables that were there, or must have been, and are gone behind the record.
        renamed: old and new name of each known table that was renamed, one step after the other.
    """

    def __init__(self, catalogue: Catalogue, record: SchemaChangeRecord, statements: tuple[Statement, ...]) -> None:
        self.said: dict[TableId, list[str]] = {}
        self.lost: dict[TableId, str] = {}
        self._catalogue = catalogue
        self._record = record
        self._entries = {entry.table: entry for entry in record.tables}
        self._fold: Callable[[str], str] = str if record.connector == "oracle" else str.lower
        self._unproven: set[TableId] = set()
        self._moved: set[Token] = set()
        self._not_parsed: list[NotParsed] = []
        self.created: set[TableId] = set()
        self.dropped: set[TableId] = set()
        self.renamed: list[tuple[TableId, TableId]] = []
        self._moved_rows: list[tuple[TableId, str]] = []
        self._undone: set[TableId] = set()
        named = {table for statement in statements for table in _tables_of(statement)}
        # lower_case_table_names: the server keeps names in small letters, whatever the statement says.
        self._keeps_small_names = record.connector != "oracle" and any(
            table not in self._entries and _small(table) in self._entries for table in named
        )
        for statement in statements:
            self._apply(statement)
        if not statements:
            self.lost.update(dict.fromkeys(self._entries, "it says columns and no statement"))
        for entry in self._entries.values():
            self._check(entry)
        self._end()

    @property
    def touched(self) -> set[TableId]:
        """All tables that the record may have changed."""
        return self.said.keys() | self._entries.keys() | self.lost.keys()

    def _apply(self, statement: Statement) -> None:
        """Do what a statement says."""
        match statement:
            case AlterTable():
                self._alter(statement)
            case RenameTables():
                for old, new in statement.pairs:
                    self._rename(self._stored(old), self._stored(new), statement.text)
            case CreateTable():
                self._create(statement)
            case DropTables():
                for table in map(self._stored, statement.tables):
                    self._say(table, statement.text)
                    if table in self._catalogue.tables or not statement.if_exists:
                        self.dropped.add(table)  # IF EXISTS alone does not say that it did
                    self._catalogue.drop(table)
                    self._unproven.discard(table)
            case DropDatabase():
                self._drop_database(statement)
            case NotParsed():
                self._misunderstand(statement)
            case Noise():
                if statement.is_program and self._entries:
                    self._misunderstand(NotParsed(text=statement.text, reason="it should not change any table"))

    def _check(self, entry: TableEntry) -> None:
        """Compare a table with what the record says of it, and take order, spelling and types from there."""
        table, known = entry.table, self._catalogue.tables.get(entry.table)
        self._unproven.discard(table)
        if entry.columns is None:
            if known is not None:
                self.lost.setdefault(table, "the record says the table was dropped, the statement does not")
            return
        if table in self.lost:
            self._catalogue.adopt(table, entry.columns)
            return
        if known is None:
            self._catalogue.adopt(table, entry.columns)
        elif known.columns is None:
            self._catalogue.fill(table, entry.columns)
        else:
            pairs = _matched(known.columns, entry.columns, self._fold)
            if pairs is not None and _keep_order(known.columns, pairs, self._moved):
                self._catalogue.show(table, pairs)
                return
            self._undone.add(table)
            expected = ", ".join(column.name for column in known.columns)
            self.lost[table] = f"by the statements the columns are {shortened(expected)}, by the record they are not"
            self._catalogue.adopt(table, entry.columns)

    def _end(self) -> None:
        """Forget every table whose new columns nothing confirms."""
        for table in self._unproven & self.created:
            self._catalogue.forget(table)
        self._undone |= self._unproven - self.created - self.lost.keys()
        for table in self._unproven - self.created:
            self.lost.setdefault(table, "the record does not say the columns after it")
        for table in self.lost:
            if table not in self._entries or self._entries[table].columns is None:
                self._catalogue.forget(table)
        self.dropped -= {*self.lost, *self._catalogue.tables}

    def unlogged(self) -> list[tuple[TableId, Literal["rows", "undone"], str]]:
        """Return what changes rows without an event for each, by table, with what was said.

        Where the record says other columns than its statements lead to, or none, the connector did not take them up as
        they are meant, and reads later rows into other columns.
        """
        moved: list[tuple[TableId, Literal["rows", "undone"], str]] = [
            (table, "rows", text) for table, text in self._moved_rows
        ]
        if self._not_parsed:
            return moved
        return moved + [(table, "undone", "; ".join(self.said.get(table, ()))) for table in sorted(self._undone)]

    def reports(self) -> list[tuple[str, list[TableId]]]:
        """Return what was not understood, with the tables it may be about."""
        found = [(f"{bad.reason}: {bad.text}", sorted(self.lost)) for bad in self._not_parsed]
        if not self._not_parsed and self._record.ddl:
            found = [(reason, [table]) for table, reason in sorted(self.lost.items())]
        return found

    def _alter(self, statement: AlterTable) -> None:
        table = self._stored(statement.table)
        self._moved_rows += [(self._stored(item), statement.text) for item in statement.moves_rows]
        if statement.clauses:
            self._say(table, statement.text)
            try:
                self._moved |= self._catalogue.alter(table, statement.clauses, self._fold)
            except Contradiction as reason:
                self.lost[table] = str(reason)
            if table in self._catalogue.tables:
                self._unproven.add(table)
        if statement.rename_to is not None:
            self._rename(table, self._stored(statement.rename_to), statement.text)

    def _rename(self, old: TableId, new: TableId, text: str) -> None:
        self._say(old, text)
        self._say(new, text)
        if old in self._catalogue.tables and old != new:
            self.renamed.append((old, new))
        self._catalogue.rename(old, new)
        self.created -= {old, new}
        self._unproven.discard(new)
        if old in self._unproven:
            self._unproven.remove(old)
            self._unproven.add(new)
        if old in self.lost:
            self.lost[new] = self.lost[old]

    def _create(self, statement: CreateTable) -> None:
        table = self._stored(statement.table)
        if statement.if_not_exists and table in self._catalogue.tables:
            return
        self._say(table, statement.text)
        if table not in self._catalogue.tables:
            self.created.add(table)
        like = None if statement.like is None else self._stored(statement.like)
        self._catalogue.create(statement, table, like)
        self._unproven.add(table)

    def _drop_database(self, statement: DropDatabase) -> None:
        for table in list(self._catalogue.tables):
            if table.database == statement.database:
                self._say(table, statement.text)
                self.dropped.add(table)
                self._catalogue.drop(table)
            elif table.database.lower() == statement.database.lower():
                # Only the server knows whether it is the same database.
                self._say(table, statement.text)
                self._catalogue.forget(table)

    def _misunderstand(self, statement: NotParsed) -> None:
        self._not_parsed.append(statement)
        tables = set(self._entries)
        if not tables and _ABOUT_TABLES.search(self._record.ddl):
            tables = {table for table in self._catalogue.tables if _mentions(self._record.ddl, table.table)}
        for table in tables:
            self.lost[table] = statement.reason

    def _say(self, table: TableId, text: str) -> None:
        self.said.setdefault(table, []).append(text)

    def _stored(self, table: TableId) -> TableId:
        return _small(table) if self._keeps_small_names else table


def _matched(
    known: tuple[LoggedColumn, ...], shown: tuple[ColumnEntry, ...], fold: Callable[[str], str]
) -> list[tuple[LoggedColumn, ColumnEntry]] | None:
    """Pair columns by name, as the server compares names; None if they are not the same columns."""
    by_name = {fold(column.name): column for column in known}
    if len(by_name) != len(known) or len(known) != len(shown) or by_name.keys() != {fold(e.name) for e in shown}:
        return None
    return [(by_name[fold(entry.name)], entry) for entry in shown]


def _keep_order(
    known: tuple[LoggedColumn, ...], pairs: list[tuple[LoggedColumn, ColumnEntry]], moved: set[Token]
) -> bool:
    """Tell whether columns that nothing moved stand in their old order.

    If not, Debezium understood a rename in another way, and reads the values of rows into other columns.
    """
    before = [column.token for column in known if column.token not in moved]
    return before == [own.token for own, _ in pairs if own.token not in moved]


def _tables_of(statement: Statement) -> tuple[TableId, ...]:
    match statement:
        case AlterTable():
            return (statement.table,) if statement.rename_to is None else (statement.table, statement.rename_to)
        case RenameTables():
            return tuple(table for pair in statement.pairs for table in pair)
        case CreateTable():
            return (statement.table,)
        case DropTables():
            return statement.tables
        case DropDatabase() | Noise() | NotParsed():
            return ()


def _small(table: TableId) -> TableId:
    return replace(table, database=table.database.lower(), table=table.table.lower())


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text, re.IGNORECASE) is not None
