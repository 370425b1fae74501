"""A cursor over the pieces of one statement, with the few forms that all grammars share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from cdc_sync.core.lineage.ddl_pieces import Piece, Pieces, Unreadable
from cdc_sync.core.lineage.ddl_statements import Clause
from cdc_sync.core.lineage.stated import Part, Stated, stated_default
from cdc_sync.core.model.positions import TableId

_Definition = TypeVar("_Definition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What unqualified names are in.

    Attributes:
        has_schemas: names are `schema.table`, inside one database; `database.table` otherwise.
    """

    database: str | None
    schema: str | None
    has_schemas: bool

    def table(self, parts: list[str]) -> TableId:
        """Return the table that a name of one or more parts means.

        Raises:
            Unreadable: if nothing says the database, or the name has more parts than there are.
        """
        *outer, table = parts
        if len(outer) > (2 if self.has_schemas else 1):
            raise Unreadable(f"{'.'.join(parts)!r} has too many parts for a table")
        inner = outer[-1] if outer else (self.schema if self.has_schemas else self.database)
        if not inner or (self.has_schemas and not self.database):
            raise Unreadable(f"nothing says which database {table!r} is in")
        if not self.has_schemas:
            return TableId(database=inner, schema="", table=table)
        return TableId(database=outer[0] if len(outer) > 1 else str(self.database), schema=inner, table=table)


class Reader:
    """Reads pieces from left to right; what does not fit raises `Unreadable`."""

    def __init__(self, text: Pieces, first: int, last: int, place: Place, fold: Callable[[str], str]) -> None:
        self._text = text
        self._last = last
        self._fold = fold
        self.at = first
        self.place = place

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self.at >= self._last

    def peek(self, ahead: int = 0) -> Piece | None:
        """Return a piece without taking it, None behind the end."""
        index = self.at + ahead
        return self._text.pieces[index] if index < self._last else None

    def word(self, ahead: int = 0) -> str:
        """Return an unquoted word in capitals, or a sign, without taking it; empty if there is neither."""
        piece = self.peek(ahead)
        return piece.text.upper() if piece is not None and piece.kind in ("word", "sign") else ""

    def take(self, *words: str) -> bool:
        """Take these words if they come next, all of them."""
        if any(self.word(index) != word for index, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def take_any(self, *words: str) -> str:
        """Take the next word if it is one of these, and return it; empty if it is not."""
        word = self.word()
        if word not in words:
            return ""
        self.at += 1
        return word

    def need(self, *words: str) -> None:
        """Take these words.

        Raises:
            Unreadable: if something else comes next.
        """
        if not self.take(*words):
            raise Unreadable(f"{' '.join(words)} is missing {self.where()}")

    def where(self) -> str:
        """Say where reading stands, for a message."""
        piece = self.peek()
        return f"before {piece.text[:40]!r}" if piece is not None else "at the end"

    def name(self) -> str:
        """Take a name, quoted or not.

        Raises:
            Unreadable: if no name comes next.
        """
        piece = self.peek()
        if piece is None:
            raise Unreadable("a name is missing at the end")
        self.at += 1
        if piece.kind == "name":
            return piece.text
        if piece.kind == "word":
            return self._fold(piece.text)
        # A string cannot stand where a name must, so the server reads double quotes as ANSI does.
        if piece.kind == "string" and piece.text.startswith('"') and "\\" not in piece.text and len(piece.text) > 2:
            return piece.text[1:-1].replace('""', '"')
        self.at -= 1
        raise Unreadable(f"a name is missing {self.where()}")

    def table(self, place: Place | None = None) -> TableId:
        """Take a table's name, qualified or not."""
        parts = [self.name()]
        while self.take("."):
            parts.append(self.name())
        return (place or self.place).table(parts)

    def waiting(self) -> None:
        """Take what MariaDB allows behind a table's name: how long to wait for its lock."""
        if self.take("WAIT"):
            piece = self.peek()
            if piece is None or piece.kind != "number":
                raise Unreadable(f"a number is missing {self.where()}")
            self.at += 1
        else:
            self.take("NOWAIT")

    def names(self) -> list[str]:
        """Take one or more names with commas between."""
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        return found

    def group(self) -> Reader:
        """Take a pair of parentheses and return a reader of what is inside.

        Raises:
            Unreadable: if it does not begin here, or does not end.
        """
        self.need("(")
        first, depth = self.at, 1
        while depth:
            if self.at_end:
                raise Unreadable("a parenthesis is not closed")
            depth += {"(": 1, ")": -1}.get(self.word(), 0)
            self.at += 1
        return Reader(self._text, first, self.at - 1, self.place, self._fold)

    def outer(self) -> list[str]:
        """Take everything up to the next comma or the end; return the words outside of parentheses, in capitals.

        What is no word stands there as an empty text, and so does a word behind AFTER, which is a column's name.
        """
        found: list[str] = []
        while not self.at_end and self.word() != ",":
            if self.word() == ")":
                raise Unreadable("a parenthesis is closed that was not opened")
            if self.word() == "(":
                self.group()
                found.append("")
            else:
                found.append("" if found and found[-1] == "AFTER" else self.word())
                self.at += 1
        return found

    def stated(self, first: int, *, implicit: bool = False) -> Stated:
        """Return what a definition, all that was taken since a place, says of a default; see `stated_default`."""
        parts = [_part(piece) for piece in self._text.pieces[first : self.at]]
        return stated_default(parts, self._text.source(first, self.at), implicit=implicit)


def _part(piece: Piece) -> Part:
    if piece.kind != "string":
        return Part(piece.kind, piece.text)
    quote = piece.text[0]
    # Whether a backslash escapes depends on sql_mode; b'1', x'41' and N'a' are literals of other forms.
    plain = quote in "'\"" and "\\" not in piece.text
    return Part("string", piece.text[1:-1].replace(quote * 2, quote) if plain else None)


def listed_columns(
    elements: Reader, is_other: Callable[[Reader], bool], definition: Callable[[Reader], _Definition]
) -> tuple[tuple[str, _Definition], ...]:
    """Read what stands in the parentheses of CREATE TABLE or ADD; keys and constraints are left out.

    Args:
        elements: what stands between the parentheses.
        is_other: tells an element that is no column.
        definition: takes all that follows a column's name, and returns the words outside of parentheses.

    Returns:
        Each column's name, and what `definition` gave.

    Raises:
        Unreadable: if an element is not understood.
    """
    found: list[tuple[str, _Definition]] = []
    while True:
        if is_other(elements):
            elements.outer()
        else:
            found.append((elements.name(), definition(elements)))
        if elements.at_end:
            return tuple(found)
        elements.need(",")


def refuse_hidden(verbs: frozenset[str], words: Iterable[str]) -> None:
    """Be sure that no clause about columns hides behind another one.

    Raises:
        Unreadable: if one of the verbs is among the words.
    """
    hidden = verbs.intersection(words)
    if hidden:
        raise Unreadable(f"{min(hidden)} stands inside another clause")


@dataclass(frozen=True, slots=True)
class AlterClauses:
    """What a grammar found in an ALTER TABLE behind the table's name; in `moves_rows` None is that table."""

    clauses: tuple[Clause, ...]
    rename_to: TableId | None = None
    moves_rows: tuple[TableId | None, ...] = ()
