"""Tables with their columns as statements leave them, each column with a token that outlives its name.

Tokens of one era are comparable whatever happened, because every new column of any table gets a number of its own; an
era ends where something was not understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

from cdc_sync.core.lineage.column_log import LoggedColumn, Token
from cdc_sync.core.lineage.ddl_statements import Add, Clause, CreateTable, Drop, Modify, Rename
from cdc_sync.core.lineage.records import ColumnEntry
from cdc_sync.core.model.positions import TableId

_OF_ONLINE_CHANGE = re.compile(r"(_+)(.*)_new", re.DOTALL)
"""Names that pt-online-schema-change gives to its copies."""


class Contradiction(ValueError):
    """A statement does not fit what is known of its table; something before it was missed or misunderstood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Where the columns of a table were copied from.

    Attributes:
        columns: the origin's columns when they were copied, of another era than the table's own.
        tokens: the table's own tokens -> the origin's.
    """

    columns: tuple[LoggedColumn, ...]
    tokens: Mapping[Token, Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A table.

    Attributes:
        columns: in order; None where only the record's own list can tell them (`CREATE TABLE … SELECT`).
    """

    era: int
    columns: tuple[LoggedColumn, ...] | None
    copy: Copy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Former:
    """The table that last had a name which is free now; `dropped` if it is gone and not renamed."""

    table: Known
    dropped: bool


class Catalogue:
    """Tables by name, changed by one statement at a time."""

    def __init__(self) -> None:
        self.tables: dict[TableId, Known] = {}
        self._former: dict[TableId, _Former] = {}
        self._count = 0

    def adopt(self, table: TableId, columns: Iterable[ColumnEntry]) -> None:
        """Take a table as it is shown, in a new era: nothing is known about what its columns were before."""
        self._former.pop(table, None)
        era = self._next()
        self.tables[table] = Known(era=era, columns=self._new(columns, era))

    def forget(self, table: TableId) -> None:
        """Know nothing about a table any more."""
        self.tables.pop(table, None)
        self._former.pop(table, None)

    def forget_all(self) -> None:
        """Know nothing about any table any more; numbers go on."""
        self.tables.clear()
        self._former.clear()

    def fill(self, table: TableId, columns: Iterable[ColumnEntry]) -> None:
        """Give a table that a query created its columns."""
        known = self.tables[table]
        self.tables[table] = replace(known, columns=self._new(columns, known.era))

    def show(self, table: TableId, columns: Iterable[tuple[LoggedColumn, ColumnEntry]]) -> None:
        """Take order, spelling and types of a table's columns from a record."""
        shown = tuple(entry.shown_in(own) for own, entry in columns)
        self.tables[table] = replace(self.tables[table], columns=shown)

    def alter(self, table: TableId, clauses: tuple[Clause, ...], fold: Callable[[str], str]) -> set[Token]:
        """Change the columns of a known table; nothing if it is not known.

        Returns:
            The columns that may stand anywhere now; all others keep their order.

        Raises:
            Contradiction: if the clauses do not fit its columns.
        """
        known = self.tables.get(table)
        if known is None or known.columns is None:
            return set()
        columns = self._altered(known.columns, known.era, clauses, fold)
        self.tables[table] = replace(known, columns=columns)
        named = {clause.name if isinstance(clause, Modify) else clause.new for clause in clauses if _moves(clause)}
        moved = {fold(name) for name in named}
        before = {column.token for column in known.columns}
        return {column.token for column in columns if column.token not in before or fold(column.name) in moved}

    def create(self, statement: CreateTable, table: TableId, like: TableId | None) -> None:
        """Make a table; nothing if it is there and the statement allows that."""
        if table in self.tables and statement.if_not_exists:
            return
        if table in self.tables:
            self.drop(table)
        former = self._former.get(table)
        original = self.tables.get(like) if like is not None else self._to_be_changed_online(table, statement.columns)
        era = former.table.era if former is not None and former.dropped else self._next()
        may_be_copy = like is not None or _OF_ONLINE_CHANGE.fullmatch(table.table) is not None
        if may_be_copy and (original is None or original.era == era):
            # Its columns may become the original's: in one era they would be two columns before and one after that.
            era = self._next()
        names = None if statement.columns is None else [ColumnEntry(name=name, type="") for name in statement.columns]
        made = Known(era=era, columns=None if names is None else self._new(names, era))
        self.tables[table] = made if original is None or original.columns is None else self._copied(made, original)

    def drop(self, table: TableId) -> None:
        """Take a table away; nothing if it is not known."""
        known = self.tables.pop(table, None)
        if known is not None:
            self._former[table] = _Former(table=known, dropped=True)

    def rename(self, old: TableId, new: TableId) -> None:
        """Give a table another name; if it is not known, nothing is known under the new name.

        A copy that takes the place of its unchanged original goes on as that: this is how gh-ost and
        pt-online-schema-change carry out an ALTER TABLE.
        """
        if old == new:
            return
        self.drop(new)
        moved = self.tables.pop(old, None)
        if moved is None:
            self.forget(new)
            return
        self._former[old] = _Former(table=moved, dropped=False)
        former = self._former.pop(new, None)
        self.tables[new] = moved if former is None else self._in_place_of(former.table, moved)

    def _in_place_of(self, original: Known, moved: Known) -> Known:
        copy = moved.copy
        if copy is None or moved.columns is None:
            return moved
        if _identities(original.columns) != _identities(copy.columns):
            return moved
        columns = tuple(
            replace(column, token=copy.tokens.get(column.token) or self._token(original.era))
            for column in moved.columns
        )
        return Known(era=original.era, columns=columns)

    def _copied(self, made: Known, original: Known) -> Known:
        assert original.columns is not None
        columns = tuple(replace(column, token=self._token(made.era)) for column in original.columns)
        tokens = {own.token: theirs.token for own, theirs in zip(columns, original.columns, strict=True)}
        copy = Copy(columns=original.columns, tokens=tokens)
        return replace(made, columns=columns, copy=copy)

    def _to_be_changed_online(self, table: TableId, columns: tuple[str, ...] | None) -> Known | None:
        """Find the one table whose columns pt-online-schema-change gives to `_name_new`."""
        shape = _OF_ONLINE_CHANGE.fullmatch(table.table)
        if shape is None or columns is None:
            return None
        tail = table.table[:-4]
        names = {replace(table, table=tail[count:]) for count in range(1, len(shape[1]) + 1)}
        found = [known for name in names if (known := self.tables.get(name)) is not None and _names(known) == columns]
        return found[0] if len(found) == 1 else None

    def _altered(
        self, columns: tuple[LoggedColumn, ...], era: int, clauses: tuple[Clause, ...], fold: Callable[[str], str]
    ) -> tuple[LoggedColumn, ...]:
        """Apply the clauses of one statement; all names in them are those from before it."""
        before = {fold(column.name) for column in columns}
        dropped: set[str] = set()
        renamed: dict[str, str] = {}
        added: list[Add] = []
        for clause in clauses:
            match clause:
                case Add():
                    if not (clause.if_not_exists and fold(clause.name) in before):
                        added.append(clause)
                    continue
                case Modify() if fold(clause.name) in [fold(item.name) for item in added]:
                    continue
                case Drop() | Modify():
                    key = fold(clause.name)
                case Rename():
                    key = fold(clause.old)
            if key not in before:
                if clause.if_exists:
                    continue
                raise Contradiction(f"it names column {key!r}, which the table is not known to have")
            if key in dropped or key in renamed:
                raise Contradiction(f"it names column {key!r} twice")
            if isinstance(clause, Drop):
                dropped.add(key)
            elif isinstance(clause, Rename):
                renamed[key] = clause.new
        after = [
            replace(column, name=renamed.get(fold(column.name), column.name))
            for column in columns
            if fold(column.name) not in dropped
        ]
        after.extend(LoggedColumn(name=item.name, token=self._token(era), added=item.stated) for item in added)
        if len({fold(column.name) for column in after}) != len(after):
            raise Contradiction("two columns would have one name after it")
        return tuple(after)

    def _new(self, columns: Iterable[ColumnEntry], era: int) -> tuple[LoggedColumn, ...]:
        return tuple(entry.shown_in(LoggedColumn(name=entry.name, token=self._token(era))) for entry in columns)

    def _token(self, era: int) -> Token:
        return Token(era=era, number=self._next())

    def _next(self) -> int:
        self._count += 1
        return self._count


def _moves(clause: Clause) -> TypeGuard[Rename | Modify]:
    return isinstance(clause, Rename | Modify) and clause.moved


def _names(known: Known) -> tuple[str, ...] | None:
    return None if known.columns is None else tuple(column.name for column in known.columns)


def _identities(columns: tuple[LoggedColumn, ...] | None) -> set[tuple[str, Token]]:
    return {(column.name, column.token) for column in columns or ()}
