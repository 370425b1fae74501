"""Types as people write them in files, in Spark's and Iceberg's words: `decimal(18, 2)`, `array<struct<sku: string>>`.

sqlglot reads types too, but also takes `int)` and `int not null` for one: what a file says twice has to be refused.
"""

from __future__ import annotations

import re

from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    Field,
    ListType,
    MapType,
    StructType,
)
from cdc_sync.errors import SchemaError

_PLAIN: dict[str, DataType] = {
    "boolean": BOOLEAN,
    "tinyint": INT8,
    "smallint": INT16,
    "int": INT32,
    "integer": INT32,
    "bigint": INT64,
    "long": INT64,
    "float": FLOAT32,
    "double": FLOAT64,
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp_ntz": TIMESTAMP,
    "timestamptz": TIMESTAMP_TZ,
}
_MOST_DIGITS = 38
_DEEPEST = 50
_TOKEN = re.compile(r"\s*(?:(?P<word>\w+)|`(?P<name>(?:[^`]|``)+)`|(?P<mark>[<>(),:]))", re.ASCII)
_KNOWN = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal(18, 2), string, binary, date, timestamp_ntz, "
    "timestamptz, array<int>, map<string, int> and struct<name: int>"
)


def parse_type(text: str) -> DataType:
    """Read a type; all ids in it are 0.

    `timestamp` is refused: it is an instant to Spark, and a local date and time to Iceberg and to SQL.

    Raises:
        SchemaError: if it is none; the message continues "it ".
    """
    reader = _Reader(text)
    found = reader.type_(0)
    reader.end()
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def type_(self, depth: int) -> DataType:
        if depth > _DEEPEST:
            raise SchemaError("is nested too deeply")
        word = (self._take("word") or "").lower()
        if word == "timestamp":
            raise SchemaError("must say timestamptz (an instant) or timestamp_ntz (a local date and time)")
        match word:
            case "decimal":
                return self._decimal()
            case "array":
                self._mark("<")
                element = self.type_(depth + 1)
                self._mark(">")
                return ListType(element_id=0, element=element)
            case "map":
                self._mark("<")
                key = self.type_(depth + 1)
                self._mark(",")
                value = self.type_(depth + 1)
                self._mark(">")
                return MapType(key_id=0, key=key, value_id=0, value=value)
            case "struct":
                return self._struct(depth)
            case _ if word in _PLAIN:
                return _PLAIN[word]
            case _:
                raise self._wrong()

    def end(self) -> None:
        if self._text[self._at :].strip():
            raise self._wrong()

    def _decimal(self) -> DecimalType:
        self._mark("(")
        precision = self._digits()
        self._mark(",")
        scale = self._digits()
        self._mark(")")
        if not (1 <= precision <= _MOST_DIGITS and scale <= precision):
            raise SchemaError(f"must have 1 to {_MOST_DIGITS} digits, those behind the point among them")
        return DecimalType(precision=precision, scale=scale)

    def _struct(self, depth: int) -> StructType:
        self._mark("<")
        fields: list[Field] = []
        while True:
            name = self._take("word") or (self._take("name") or "").replace("``", "`")
            if not name:
                raise self._wrong()
            if name in (field.name for field in fields):
                raise SchemaError(f"has two members {name!r}")
            self._mark(":")
            fields.append(Field(id=0, name=name, type=self.type_(depth + 1)))
            if not self._has(","):
                self._mark(">")
                return StructType(fields=tuple(fields))

    def _digits(self) -> int:
        word = self._take("word") or ""
        if not word.isdecimal() or len(word) > 2:
            raise self._wrong()
        return int(word)

    def _mark(self, mark: str) -> None:
        if not self._has(mark):
            raise self._wrong()

    def _has(self, mark: str) -> bool:
        return self._take("mark", mark) is not None

    def _take(self, kind: str, only: str | None = None) -> str | None:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found[kind] is None or only not in (None, found[kind]):
            return None
        self._at = found.end()
        return found[kind]

    def _wrong(self) -> SchemaError:
        rest = self._text[self._at :].strip()
        where = f", wrong from {rest!r} on" if self._at and rest else ""
        return SchemaError(f"must be a type ({_KNOWN}), not {self._text!r}{where}")


def type_words(type_: DataType) -> str:
    """Write a type so that `parse_type` reads it; ids are left out."""
    match type_:
        case DecimalType(precision=precision, scale=scale):
            return f"decimal({precision}, {scale})"
        case ListType(element=element):
            return f"array<{type_words(element)}>"
        case MapType(key=key, value=value):
            return f"map<{type_words(key)}, {type_words(value)}>"
        case StructType(fields=fields):
            return f"struct<{', '.join(f'{quoted(field.name)}: {type_words(field.type)}' for field in fields)}>"
        case _:
            return next(word for word, plain in _PLAIN.items() if plain == type_)
