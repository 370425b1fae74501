"""How a table is partitioned, in the words of Iceberg and Spark: `day(created_at), bucket(16, id), region`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn, TypeAlias, get_args

from typing_extensions import assert_never

from cdc_sync.core.schema.identifiers import quoted

Unit: TypeAlias = Literal["year", "month", "day", "hour"]
UNITS: tuple[Unit, ...] = get_args(Unit)
_WORDS = (*UNITS, "bucket", "truncate")
_LARGEST = 2**31 - 1
"""Iceberg's numbers of buckets and widths are Java integers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """By the column's value."""

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """By the year, month, day or hour, in UTC, that a date or timestamp lies in."""

    unit: Unit
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """By a hash of the value, into `count` parts."""

    count: int
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """By the first `width` characters or bytes, or by the multiple of `width` below a number."""

    width: int
    column: str


PartitionField: TypeAlias = Identity | Period | Bucket | Truncate


class PartitioningError(Exception):
    """A text that says no partitioning.

    Args:
        reason: what is wrong and what to do; it continues "it ...".
        index: which of the texts.
    """

    def __init__(self, reason: str, index: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.index = index


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioning:
    """What the files of a table are divided by, in order; nothing if there are no fields.

    Law: `Partitioning.parse([str(p)]) == p`, and so it is of any text of `p` that is cut at its commas.
    """

    fields: tuple[PartitionField, ...] = ()

    @staticmethod
    def parse(texts: Sequence[str]) -> Partitioning:
        """Read what the operator wrote.

        Args:
            texts: fields, or parts of them: YAML cuts `[bucket(16, id)]` at the comma, so they are put together again.

        Raises:
            PartitioningError: for the first that cannot be read, or that says what another one does.
        """
        reader = _Reader(texts=texts)
        found: list[PartitionField] = []
        for index, item in reader.fields():
            if item in found:
                raise PartitioningError(f"names {field_text(item)} twice; keep one of the two", index)
            other = next((it for it in found if _is_finer_or_coarser(it, item)), None)
            if other is not None:
                # Source: Iceberg, `PartitionSpec.Builder`, "Cannot add redundant partition".
                both = f"{field_text(other)} and {field_text(item)}"
                raise PartitioningError(
                    f"names {both}, of which Iceberg takes one; keep the finer one, by which readers prune for the "
                    "coarser one too",
                    index,
                )
            found.append(item)
        return Partitioning(fields=tuple(found))

    def __str__(self) -> str:
        """Write it as `parse` reads it: two of the same text are the same."""
        return ", ".join(map(field_text, self.fields))


UNPARTITIONED = Partitioning()


def field_text(item: PartitionField) -> str:
    """Write one field as `parse` reads it."""
    column = item.column if _BARE.fullmatch(item.column) else quoted(item.column)
    match item:
        case Identity():
            return column
        case Period(unit=unit):
            return f"{unit}({column})"
        case Bucket(count=count):
            return f"bucket({count}, {column})"
        case Truncate(width=width):
            return f"truncate({width}, {column})"
        case _:
            assert_never(item)


def _is_finer_or_coarser(one: PartitionField, other: PartitionField) -> bool:
    return isinstance(one, Period) and isinstance(other, Period) and one.column == other.column


_BARE = re.compile(r"[^\s(),`]+")
_TOKEN = re.compile(r"\s*(?:(?P<mark>[(),])|(?P<quoted>`(?:[^`]|``)*`)|(?P<word>[^\s(),`]+)|(?P<open>`)|(?P<end>$))")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    kind: str
    text: str
    at: int


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Reads tokens one by one; the only state is how far it is."""

    texts: Sequence[str]
    _tokens: list[_Token] = field(init=False)
    _next: int = 0

    def __post_init__(self) -> None:
        text, place = ",".join(self.texts), 0
        self._tokens = []
        while not self._tokens or self._tokens[-1].kind != "end":
            match = _TOKEN.match(text, place)
            assert match is not None  # every character is one of a token
            kind = match.lastgroup or "end"
            token = _Token(kind=kind, text=match[kind], at=match.start(kind))
            if kind == "open":
                self._refuse("opens a name with ` and does not close it; a ` inside a name is written ``", token)
            self._tokens.append(token)
            place = match.end()

    def fields(self) -> Iterator[tuple[int, PartitionField]]:
        """Yield each field and the text it begins in."""
        if not self.texts:
            return
        while True:
            begin = self._tokens[self._next]
            yield self._index(begin), self._field()
            token = self._take()
            if token.kind == "end":
                return
            if token.text != ",":
                self._refuse(f"has {token.text!r} behind a field; a comma goes between two fields", token)

    def _field(self) -> PartitionField:
        token = self._take()
        if token.kind == "quoted" or (token.kind == "word" and self._tokens[self._next].text != "("):
            return Identity(column=self._name(token))
        if token.kind != "word":
            self._refuse("has no column where one is expected; remove the comma or name a column", token)
        bracket = self._take()
        match token.text:
            case "year" | "month" | "day" | "hour" as unit:
                found: PartitionField = Period(unit=unit, column=self._column(token, bracket))
            case "bucket":
                number = self._number(token, "how many buckets there are", "bucket(16, id)")
                found = Bucket(count=number, column=self._column(token, bracket))
            case "truncate":
                number = self._number(token, "how much is kept", "truncate(4, name)")
                found = Truncate(width=number, column=self._column(token, bracket))
            case _:
                self._refuse(f"has the unknown transform {token.text!r}{_meant(token.text)}", token)
        return found

    def _number(self, word: _Token, what: str, example: str) -> int:
        token = self._take()
        comma = self._take()
        is_number = token.kind == "word" and re.fullmatch(r"[0-9]{1,10}", token.text) is not None
        if not is_number or comma.text != "," or not 1 <= int(token.text) <= _LARGEST:
            self._refuse(f"does not say {what}, a whole number from 1 to {_LARGEST}; write it as {example}", word)
        return int(token.text)

    def _column(self, word: _Token, bracket: _Token) -> str:
        token = self._take()
        close = self._take()
        if token.kind not in ("quoted", "word"):
            self._refuse(f"names no column in {word.text}(...); name one", word)
        if close.text != ")" or close.kind != "mark":
            ends = "has no closing bracket" if close.kind == "end" else f"has {close.text!r} where the bracket closes"
            self._refuse(f"{ends} behind {word.text}({token.text}; a name with other signs goes into `...`", bracket)
        return self._name(token)

    def _name(self, token: _Token) -> str:
        name = token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text
        if not name:
            self._refuse("names a column without a name", token)
        return name

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _index(self, token: _Token) -> int:
        begin = 0
        for index, text in enumerate(self.texts):
            begin += len(text) + 1
            if token.at < begin:
                return index
        return len(self.texts) - 1

    def _refuse(self, reason: str, token: _Token) -> NoReturn:
        raise PartitioningError(reason, self._index(token))


def _meant(word: str) -> str:
    if word.lower() == "identity":
        return "; for a column's own value name the column alone"
    near = difflib.get_close_matches(word.lower(), _WORDS, n=1)
    known = f"there are {', '.join(_WORDS)}, and a column's name alone"
    return f"; did you mean {near[0]}? {known[0].upper()}{known[1:]}" if near else f"; {known}"
