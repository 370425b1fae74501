"""A DDL text cut into words, names, strings and signs, in the dialect of its source.

sqlglot's tokenizers know the quotes and numbers of each dialect. Two things are checked here because a mistake in them
would go unseen: that nothing but white space and comments was skipped, and what version comments hold
(`/*!50100 … */`, `/*M! … */`), which servers execute.

Source: MySQL Reference Manual, "Comments", "Schema Object Names"; MariaDB Knowledge Base, "Comment Syntax".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.oracle import Oracle
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Tokenizer

MAX_TEXT = 300
"""How many characters of a statement are kept to be shown."""

PieceKind: TypeAlias = Literal["word", "name", "string", "number", "sign"]


class Unreadable(ValueError):
    """A text that is not understood, with the reason; it becomes a `NotParsed`."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text; `text` is without quotes for a quoted name, and as written otherwise."""

    kind: PieceKind
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text whose version comments were unwrapped or left out, and its pieces in order."""

    text: str
    pieces: tuple[Piece, ...]

    def source(self, first: int, last: int) -> str:
        """Return the text of some pieces without comments, shortened; `last` is not included."""
        written: list[str] = []
        for index in range(first, min(last, first + 400)):
            piece = self.pieces[index]
            if index > first and piece.start > self.pieces[index - 1].end:
                written.append(" ")
            written.append(self.text[piece.start : piece.end])
        return shortened("".join(written))


class _MySqlTokenizer(MySQL.Tokenizer):
    # sqlglot joins some pairs of words, and takes all behind a command word for one string.
    KEYWORDS = {word: kind for word, kind in MySQL.Tokenizer.KEYWORDS.items() if " " not in word}
    COMMANDS = set()


class _NoEscapesTokenizer(_MySqlTokenizer):
    """With `sql_mode` NO_BACKSLASH_ESCAPES."""

    STRING_ESCAPES = ["'", '"']


class _OracleTokenizer(Oracle.Tokenizer):
    KEYWORDS = {word: kind for word, kind in Oracle.Tokenizer.KEYWORDS.items() if " " not in word}
    COMMANDS = set()


_MYSQL = MySQL()
_ORACLE = Oracle()
_SPACE = r"[ \t\n\r\v\f]+"
_GAPS = {
    "mysql": re.compile(rf"{_SPACE}|--(?=[\s\x00-\x1f]|$)[^\n]*|#[^\n]*|(?P<block>/\*.*?\*/)", re.DOTALL),
    "oracle": re.compile(rf"{_SPACE}|--[^\n]*|(?P<block>/\*.*?\*/)", re.DOTALL),
}
_VERSION_COMMENT = re.compile(r"/\*(?P<maria>M?)!(?P<number>\d{5,6})?")
_WORD = re.compile(r"[\w$#]+")
_NUMBER = re.compile(r"\d+")

VERSIONED_LONG_AGO = 50700
"""Every server that Debezium reads executes version comments up to this one."""

MARIADB = 100000
"""MariaDB leaves out version comments of numbers between MySQL's 5.7 and its own first version."""


@dataclass(frozen=True, slots=True)
class _VersionComment:
    """Where a version comment begins and ends, where what it holds begins, and whether the server executes that.

    `executed` is None if it depends on the server's version, which nobody tells.
    """

    start: int
    inner: int
    end: int
    executed: bool | None


def read(text: str, connector: str) -> Pieces:
    """Cut a text into pieces, with all in it that the server may have executed.

    Raises:
        Unreadable: if a quote or comment does not end, or something is not of this dialect.
    """
    return _unwrapped(text, connector, _tokenizer(connector), newer=True)


def read_as_older_server(text: str, connector: str) -> Pieces | None:
    """Cut a text without the version comments that only some servers execute; None if there are none.

    Raises:
        Unreadable: as `read`.
    """
    if not _VERSION_COMMENT.search(text):
        return None
    return _unwrapped(text, connector, _tokenizer(connector), newer=False)


def read_without_escapes(text: str, connector: str) -> Pieces | None:
    """Cut a text as a server with NO_BACKSLASH_ESCAPES does; None if that is no other way, or not a possible one."""
    if connector == "oracle" or not ("\\'" in text or '\\"' in text):
        return None
    try:
        return _unwrapped(text, connector, _NoEscapesTokenizer, newer=True)
    except Unreadable:
        return None


def _tokenizer(connector: str) -> type[Tokenizer]:
    return _OracleTokenizer if connector == "oracle" else _MySqlTokenizer


def _unwrapped(text: str, connector: str, tokenizer: type[Tokenizer], *, newer: bool) -> Pieces:
    pieces, comments = _cut(text, connector, tokenizer)
    executed = [comment for comment in comments if _is_executed(comment, newer)]
    if not executed:
        return Pieces(text, pieces)
    for comment in reversed(executed):
        inner = text[comment.inner : comment.end - 2]
        blank = " " * (comment.inner - comment.start)
        text = f"{text[: comment.start]}{blank}{inner}  {text[comment.end :]}"
    pieces, comments = _cut(text, connector, tokenizer)
    if any(_is_executed(comment, newer) for comment in comments):
        raise Unreadable("a version comment stands inside another one")
    return Pieces(text, pieces)


def _is_executed(comment: _VersionComment, newer: bool) -> bool:
    return newer if comment.executed is None else comment.executed


def _cut(
    text: str, connector: str, tokenizer: type[Tokenizer]
) -> tuple[tuple[Piece, ...], tuple[_VersionComment, ...]]:
    dialect: Dialect = _ORACLE if connector == "oracle" else _MYSQL
    try:
        tokens = tokenizer(dialect=dialect).tokenize(text)
    except (SqlglotError, ValueError, IndexError, KeyError) as error:
        raise Unreadable("a quote or a comment does not end, or a sign is not of this dialect") from error
    pieces: list[Piece] = []
    comments: list[_VersionComment] = []
    place = 0
    for token in tokens:
        if token.start < place or token.end >= len(text):
            raise Unreadable("it cannot be cut into words")
        comments.extend(_skipped(text, place, token.start, connector))
        place = token.end + 1
        pieces.append(_piece(text, token.start, place, connector))
    comments.extend(_skipped(text, place, len(text), connector))
    return tuple(pieces), tuple(comments)


def _skipped(text: str, start: int, end: int, connector: str) -> list[_VersionComment]:
    """Check that only white space and comments stand between two pieces, and return the version comments."""
    gap = _GAPS["oracle" if connector == "oracle" else "mysql"]
    found = []
    while start < end:
        match = gap.match(text, start, end)
        if match is None:
            raise Unreadable(f"{text[start : start + 1]!r} is no white space of this dialect")
        if match["block"] and connector != "oracle":
            head = _VERSION_COMMENT.match(match["block"])
            if head is not None:
                executed = _executed(head, connector)
                found.append(_VersionComment(start=start, inner=start + head.end(), end=match.end(), executed=executed))
        start = match.end()
    return found


def _executed(head: re.Match[str], connector: str) -> bool | None:
    if head["maria"] and connector != "mariadb":
        return False
    number = int(head["number"] or 0)
    if number <= VERSIONED_LONG_AGO:
        return True
    return False if connector == "mariadb" and number < MARIADB and not head["maria"] else None


def _piece(text: str, start: int, end: int, connector: str) -> Piece:
    written = text[start:end]
    quote = '"' if connector == "oracle" else "`"
    if written.startswith(quote) and written.endswith(quote) and len(written) > 1:
        name = written[1:-1].replace(quote * 2, quote)
        if not name:
            raise Unreadable("a name is empty")
        return Piece("name", name, start, end)
    if written.endswith(("'", '"')):
        return Piece("string", written, start, end)
    if _NUMBER.fullmatch(written):
        return Piece("number", written, start, end)
    return Piece("word" if _WORD.fullmatch(written) else "sign", written, start, end)


def shortened(text: str) -> str:
    """Collapse white space and cut to what is kept to be shown."""
    text = " ".join(text[: 20 * MAX_TEXT].split())
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
