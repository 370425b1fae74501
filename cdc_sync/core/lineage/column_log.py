"""The columns of tables as a source itself tells them, over time, each with a token that outlives its name.

A token is what the source, or a replay of its DDL, knows a column by: Postgres' attribute number, or a number given
when a CREATE or ADD was read. Equal tokens are one column; different ones are two; tokens of different *eras* cannot be
compared, because something in between was not understood.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from cdc_sync.core.lineage.stated import Stated
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId

SourceKind: TypeAlias = Literal["ddl", "message"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A column's identity at its source.

    Attributes:
        era: what the number counts in; tokens of different eras cannot be compared.
        number: different for different columns of one era.
    """

    era: Hashable
    number: Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedColumn:
    """A column at one time.

    Attributes:
        type: the source's own text, which differs if the column's type does.
        optional: it accepts NULL; None where the source does not tell.
        default: rows that come get a value by themselves: of a default, a sequence, a domain or an expression; None
            where the source does not tell.
        shown_default: the default as the connector writes it, None if there is none or it cannot be read.
        added: what the statement that added it gives to rows that were there; None where that is not known, or has to
            be read in the structure's statement.
        missing: what rows read in it that were there before it and never written since, as JSON; None where the source
            does not tell or there is no such value, as where adding the column wrote every row anew.
    """

    name: str
    token: Token
    type: str = ""
    optional: bool | None = None
    default: bool | None = None
    shown_default: str | None = None
    added: Stated | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """The columns of a table from a source position on.

    Attributes:
        position: of the statement that led to it; rows behind it have these columns.
        columns: all columns in the source's order, those the connector leaves out too; empty after a DROP TABLE.
        statement: what was done, in the source's words, at most 300 characters.
        reading: nothing was done; the source only tells what is there (a snapshot, a baseline).
        created: the table was created then, under this name and empty.
        dropped: the table was dropped then, and not renamed away or lost from sight.
        kafka: the record that says so, where `dropped`.
        file: the number of the file that has its rows, which another one takes the place of when all are written anew;
            None where the source does not tell.
    """

    table: TableId
    position: SourcePosition
    columns: tuple[LoggedColumn, ...]
    statement: str
    reading: bool = False
    created: bool = False
    dropped: bool = False
    kafka: KafkaPosition | None = None
    file: int | None = None

    def token(self, name: str) -> Token | None:
        """Return the token of the column with exactly this name, None if there is none."""
        return next((column.token for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameChange:
    """A table got another name, and is known to be the same one by the log's own means.

    Attributes:
        old, new: of what one statement does at one place only the outcome: `a TO b, b TO c` is `a` to `c`.
        position: behind which the table's events have the new name.
        kafka: the record that says so.
        statement: in the source's words.
    """

    old: TableId
    new: TableId
    position: SourcePosition
    kafka: KafkaPosition
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A statement or message that could not be understood; it is reported and never ignored.

    Attributes:
        tables: whose columns are not known any more because of it; empty if none can be.
        text: the statement, at most 300 characters.
        reason: why it was not understood.
    """

    position: SourcePosition
    tables: tuple[TableId, ...]
    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlogged:
    """A statement that changes rows without an event for each.

    Attributes:
        effect: it takes `rows` away, or brings some; it was `undone`: the connector goes on with the columns of before,
            so that every later row is read into others; by a foreign key, rows `follow` those of another table.
        text: the statement, at most 300 characters.
    """

    position: SourcePosition
    table: TableId
    effect: Literal["rows", "undone", "follow"]
    text: str


BeforeFirst: TypeAlias = Callable[[TableId, tuple[str, ...]], Mapping[str, Token] | None]


def avro_name(name: str) -> str:
    """Return a column's name as connectors adjust it for Avro: what Avro does not allow becomes `_`.

    Source: Debezium, `SchemaNameAdjuster` (`field.name.adjustment.mode=avro`), and real captures; Java sees a character
    beyond the 16-bit plane as two.
    """
    found = re.sub(r"[^A-Za-z0-9_]", lambda match: "_" if match[0] <= "\uffff" else "__", name)
    return f"_{found}" if found[:1].isdigit() else found


def _with_avro_names(structure: Structure) -> Structure:
    columns = tuple(replace(column, name=avro_name(column.name)) for column in structure.columns)
    distinct = len({column.name for column in columns}) == len(columns)
    return replace(structure, columns=columns if distinct else ())


class ColumnLog:
    """Structures of many tables from one kind of source, in source order. Never changed once built."""

    def __init__(
        self,
        kind: SourceKind,
        structures: Iterable[Structure] = (),
        unread: Iterable[Unread] = (),
        *,
        name_changes: Iterable[NameChange] = (),
        unlogged: Iterable[Unlogged] = (),
        before_first: BeforeFirst | None = None,
    ) -> None:
        """Begin with everything the log holds.

        Args:
            kind: what the structures come from.
            structures: in any order; of those of one table at one position the last one given stands.
            unread: what was not understood.
            name_changes: in any order.
            unlogged: what changes rows without an event.
            before_first: tells the tokens of a table's columns, by name, from before its first structure, as far as
                they are certain; where that is a reading, nothing is asked.
        """
        self.kind: SourceKind = kind
        self._before_first = before_first
        self._adjusted: ColumnLog | None = None
        self.unread = tuple(unread)
        self.unlogged = tuple(unlogged)
        self.name_changes = tuple(sorted(name_changes, key=lambda change: change.position))
        by_table: dict[TableId, dict[SourcePosition, Structure]] = {}
        for structure in structures:
            by_table.setdefault(structure.table, {})[structure.position] = structure
        self._by_table: Mapping[TableId, tuple[Structure, ...]] = {
            table: tuple(found[position] for position in sorted(found)) for table, found in by_table.items()
        }

    @property
    def tables(self) -> tuple[TableId, ...]:
        """The tables this log knows."""
        return tuple(sorted(self._by_table))

    def of(self, table: TableId) -> tuple[Structure, ...]:
        """Return all structures of a table, oldest first."""
        return self._by_table.get(table, ())

    def at(self, table: TableId, position: SourcePosition) -> Structure | None:
        """Return the structure in effect for rows at a position; None if the log begins later.

        None as well where the source's log began anew before the position: which of the two is told here is not known.
        """
        if position.incarnation:
            return None
        found = self.of(table)
        place = bisect_right([structure.position for structure in found], position)
        return found[place - 1] if place else None

    def with_avro_names(self) -> ColumnLog:
        """Return the log with column names as connectors adjust them for Avro; the same value at every call.

        A structure in which two names would become one tells nothing.
        """
        if self._adjusted is None:
            found = (structure for structures in self._by_table.values() for structure in structures)
            self._adjusted = ColumnLog(
                self.kind, map(_with_avro_names, found), self.unread, name_changes=self.name_changes
            )
        return self._adjusted

    def before(self, table: TableId, names: tuple[str, ...]) -> Mapping[str, Token]:
        """Return what is certain of the columns a table had before its first structure.

        A reading does not change anything, so the same names in the same order are the same columns, as everywhere
        where nothing else is proven.

        Args:
            table: which table.
            names: of its columns as events showed them then, in order; some may be left out.
        """
        structures = self.of(table)
        if not structures:
            return {}
        if not structures[0].reading:
            return (self._before_first(table, names) if self._before_first is not None else None) or {}
        rest = iter(structures[0].columns)
        found: dict[str, Token] = {}
        for name in names:
            column = next((column for column in rest if column.name == name), None)
            if column is None:
                return {}
            found[name] = column.token
        return found

    def between(self, table: TableId, after: SourcePosition, upto: SourcePosition) -> tuple[Structure, ...]:
        """Return the structures that begin behind one position and not behind the other, oldest first."""
        return tuple(structure for structure in self.of(table) if after < structure.position <= upto)


def types_at(logs: Iterable[ColumnLog], table: TableId, position: SourcePosition) -> dict[str, str]:
    """Return the source's own types of a table's columns at a position, by name, as far as any log tells."""
    found = (log.at(table, position) for log in logs)
    return {column.name: column.type for structure in found if structure is not None for column in structure.columns}


def structures_behind(
    logs: Iterable[ColumnLog], table: TableId, position: SourcePosition | None
) -> tuple[SourcePosition, ...]:
    """Return the positions behind one at which any log tells of a table's columns, in order; None is before all."""
    found = {structure.position for log in logs for structure in log.of(table)}
    return tuple(sorted(at for at in found if position is None or (at.kind == position.kind and at > position)))
