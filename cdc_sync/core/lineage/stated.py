"""What the statement that added a column gives to rows that are there, and a literal in it as a value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from cdc_sync.core.debezium.literals import canonical
from cdc_sync.core.debezium.wire import (
    WireBoolean,
    WireDateText,
    WireDecimal,
    WireFloat,
    WireInteger,
    WireTimestampText,
)
from cdc_sync.core.schema.types import (
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
    Default,
    FloatType,
    IntegerType,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """The default in the definition of an added column.

    Attributes:
        kind: `null` if there is none, or NULL; `literal`; `other` for all else: functions, expressions, generated
            columns, numbers that count up, and what a source gives where nothing is written and there can be no NULL.
        text: the literal without its quotes, None if it is of a form that is not read here; of `other` the definition.
        quoted: the literal is a text.
    """

    kind: Literal["null", "literal", "other"]
    text: str | None = None
    quoted: bool = False


NULL = Stated(kind="null")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a definition; `text` of a string is without quotes, None where its form is not read here."""

    kind: Literal["word", "name", "string", "number", "sign"]
    text: str | None


_COUNTS = frozenset(("SERIAL", "BIGSERIAL", "SMALLSERIAL", "SERIAL2", "SERIAL4", "SERIAL8"))
_COMPUTED = frozenset(("AS", "GENERATED", "IDENTITY", "AUTO_INCREMENT"))
_BEHIND = frozenset(
    (
        *("", "NOT", "NULL", "COMMENT", "COLLATE", "CHECK", "CONSTRAINT", "UNIQUE", "PRIMARY", "REFERENCES", "AFTER"),
        *("FIRST", "ON", "INVISIBLE", "VISIBLE", "KEY", "COLUMN_FORMAT", "STORAGE", "CHARACTER", "CHARSET", "ENABLE"),
        *("COMPRESSED", "WITHOUT", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"),
    )
)
"""Words that may follow a default that is one literal; any other sign or word makes it an expression."""


def stated_default(parts: Sequence[Part], definition: str, *, implicit: bool = False) -> Stated:
    """Read the definition of an added column behind its name.

    Args:
        parts: the type and all that follows it.
        definition: the same as it was written, to be shown.
        implicit: rows get 0, '' or a moment in a column that accepts no NULL, or in a TIMESTAMP, though nobody wrote
            such a default (MySQL, MariaDB). Other sources add no such column where there are rows.
    """
    outer = tuple(_outside(parts))
    words = [(part.text or "").upper().split(" ")[0] if part.kind == "word" else "" for part in outer]
    other = Stated(kind="other", text=definition)
    if not words or words[0] in _COUNTS or not _COMPUTED.isdisjoint(words):
        return other
    pairs = list(zip(["", *words], words, strict=False))
    place = next((at for at, (before, word) in enumerate(pairs) if word == "DEFAULT" and before not in _NO_VALUE), None)
    if place is None:
        accepts_null = ("NOT", "NULL") not in pairs and "PRIMARY" not in words
        has_none = accepts_null and (words[0] != "TIMESTAMP" or "NULL" in words)
        return NULL if has_none or not implicit else other
    return _value(outer[place + 1 :]) or other


_NO_VALUE = ("COLUMN_FORMAT", "STORAGE", "BY")


def _value(parts: Sequence[Part]) -> Stated | None:
    """Read the one literal behind DEFAULT; None if there is something else."""
    if not parts:
        return None
    first, *rest = parts
    sign = ""
    if first.kind == "sign" and first.text in ("+", "-") and rest:
        sign, (first, *rest) = first.text, rest
    behind = rest[0] if rest else Part("word", "")
    if behind.kind != "word" or (behind.text or "").upper().split(" ")[0] not in _BEHIND:
        return None
    if first.text is not None and first.kind in ("number", "sign", "word") and _NUMBER.fullmatch(first.text):
        return Stated(kind="literal", text=sign + first.text)
    if sign:
        return None
    if first.kind == "string":
        return Stated(kind="literal", text=first.text, quoted=True)
    word = (first.text or "").upper() if first.kind == "word" else ""
    if word == "NULL":
        return NULL
    return Stated(kind="literal", text=word.lower()) if word in ("TRUE", "FALSE") else None


def _outside(parts: Iterable[Part]) -> Iterator[Part]:
    """Leave out what stands in parentheses; the opening one stays, for what it follows is no literal."""
    depth = 0
    for part in parts:
        if part.kind == "sign" and part.text == ")":
            depth -= 1
        elif depth == 0:
            yield part
        if part.kind == "sign" and part.text == "(":
            depth += 1


_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?", re.ASCII)
_BOOLEANS = {"0": False, "1": True, "false": False, "true": True}
_TEXTS = ("text", "varchar", "character varying", "nvarchar", "tinytext", "mediumtext", "longtext", "char", "enum")
"""Beginnings of the names of types that hold a text as it was written, in small letters."""


def literal_value(stated: Stated, type_: DataType, source_type: str) -> Default:
    """Return a literal in canonical form, as its column holds it.

    Args:
        stated: of the statement that added the column.
        type_: what a target holds.
        source_type: the source's own word for the type when the column was added.

    Returns:
        None if that is not certain: the source may round it, cut it off or read it in a time zone.
    """
    text, source = stated.text, source_type.lower()
    if stated.kind != "literal" or text is None:
        return None
    if isinstance(type_, IntegerType | DecimalType | FloatType):
        return None if source.startswith("year") else _number(text, type_)
    if type_ == BOOLEAN:
        return canonical(WireBoolean(), _BOOLEANS.get(text.lower()))
    if not stated.quoted:
        return None
    if type_ == STRING:
        return text if _holds(text, source_type) else None
    if type_ == DATE and source == "date":
        return canonical(WireDateText(), text)
    if type_ == TIMESTAMP and source in ("datetime(6)", "timestamp without time zone") and _MOMENT.fullmatch(text):
        return canonical(WireTimestampText(), text.replace(" ", "T"))
    return None


def _number(text: str, type_: IntegerType | DecimalType | FloatType) -> Default:
    if not _NUMBER.fullmatch(text):
        return None
    value = Decimal(text)
    match type_:
        case IntegerType(bits=bits):
            return canonical(WireInteger(bits=bits), int(value)) if value == value.to_integral_value() else None
        case FloatType(bits=bits):
            return canonical(WireFloat(bits=bits), value)
        case DecimalType(precision=precision, scale=scale):
            return canonical(WireDecimal(precision=precision, scale=scale), value)


def _holds(text: str, source_type: str) -> bool:
    """Whether a column of the type holds a text just as it was written."""
    source = source_type.lower()
    if source.startswith("enum"):
        return repr(text) in source_type  # a label may be written in other letters
    fixed = source.startswith("char") and not source.startswith("character varying")
    return source.startswith(_TEXTS) and not (fixed and text.endswith(" ")) and not source.startswith("character(")
