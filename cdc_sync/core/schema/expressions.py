"""SQL that people write in files: an expression over the columns of one row, which it knows by their ids.

The text stays what was written, but for the names of columns: sqlglot tells where those stand, and does not write the
rest anew, for it knows few functions of Spark as Spark has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp, parse, tokenize
from sqlglot.errors import SqlglotError

from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.errors import SchemaError

_VOLATILE = frozenset(
    (
        *("current_catalog", "current_database", "current_date", "current_schema", "current_timestamp"),
        *("current_timezone", "current_user", "curdate", "input_file_block_length", "input_file_block_start"),
        *("input_file_name", "java_method", "localtimestamp", "monotonically_increasing_id", "now", "rand", "randn"),
        *("random", "reflect", "session_user", "shuffle", "spark_partition_id", "try_reflect", "unix_timestamp"),
        *("user", "uuid", "version"),
    )
)
"""Functions of Spark 3.5 that tell more than their arguments; a repeated fill would give other values."""
_BARE = frozenset(("current_date", "current_timestamp", "current_user", "localtimestamp", "user"))
"""Those that are called without parentheses too."""
_SEVERAL_ROWS = (exp.Subquery, exp.Select, exp.AggFunc, exp.Window, exp.Star)
_OUTSIDE = (exp.Parameter, exp.Placeholder)
_LONGEST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """An expression: its text, cut where columns are named, by their ids."""

    parts: tuple[str | int, ...]

    @property
    def ids(self) -> frozenset[int]:
        """The columns that it reads."""
        return frozenset(part for part in self.parts if isinstance(part, int))

    def sql(self, schema: InternalSchema) -> str:
        """Write it for the present names of the columns."""
        texts = (quoted(schema.column(part).name) if isinstance(part, int) else part for part in self.parts)
        return f"({''.join(texts)})"


def parse_expression(text: str, schema: InternalSchema) -> Expression:
    """Read an expression in Spark's SQL.

    Raises:
        SchemaError: if it is none, reads more than one row or anything outside of it, or names a column that is not
            there; the message continues "it ".
    """
    found = _parsed(text)
    spans: dict[int, tuple[int, int]] = {}
    for name, start, end in _columns(found):
        column = schema.find(name)
        if column is None:
            names = ", ".join(item.name for item in schema.columns)
            raise SchemaError(f"reads column {name!r}, which the table does not have by then; it has {names}")
        spans[start] = (end, column.id)
    parts: list[str | int] = []
    at = 0
    for start, (end, id_) in sorted(spans.items()):
        parts += [text[at:start], id_]
        at = end + 1
    parts.append(text[at:])
    return Expression(parts=tuple(part for part in parts if part != ""))


def _parsed(text: str) -> exp.Expression:
    if len(text) > _LONGEST:
        raise SchemaError(f"is longer than {_LONGEST} characters")
    try:
        tokens, found = tokenize(text, dialect="spark"), parse(text, dialect="spark")
    except (SqlglotError, RecursionError) as error:
        detail = str(error).partition("\n")[0].partition(" Line ")[0].rstrip(".")
        raise SchemaError(f"cannot be read as SQL: {detail}") from None
    if any(token.comments for token in tokens) or "--" in text or "/*" in text:
        raise SchemaError("must be without comments, and without -- and /* in texts; say them in the file")
    if len(found) != 1 or not isinstance(found[0], exp.Expression):
        raise SchemaError("must be one expression")
    for place, token in enumerate(tokens):
        word = token.text.lower()
        called = place + 1 < len(tokens) and tokens[place + 1].text == "("
        if word in _VOLATILE and token.token_type.name not in ("STRING", "IDENTIFIER") and (called or word in _BARE):
            raise SchemaError(f"calls {word}, which may say something else each time; write the value out")
    expression = found[0]
    if next(expression.find_all(*_SEVERAL_ROWS), None) is not None:
        raise SchemaError("must read one row only: no subqueries, aggregates, windows or *")
    if next(expression.find_all(*_OUTSIDE), None) is not None:
        raise SchemaError("must say its values itself: no parameters")
    return expression


def _columns(expression: exp.Expression) -> Iterator[tuple[str, int, int]]:
    """Yield the columns, and where in the text their names begin and end; what stands behind a dot is inside them."""
    for column in expression.find_all(exp.Column):
        first = column.parts[0]
        yield first.name, first.meta["start"], first.meta["end"]
